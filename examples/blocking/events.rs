//! Follows the events of a cluster until it is asked to stop.
//!
//! ```text
//! cargo run --example events
//! ```

use std::thread;

use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Event;
use cloudcoil_blocking::{Client, prelude::*, shutdown_signal};

fn main() -> Result<(), Error> {
    let client = Client::try_default()?;
    let events = client.api::<Event>().all_namespaces().watch().iter();
    let stop = events.stop_handle();
    thread::spawn(move || {
        shutdown_signal();
        stop.stop();
    });
    for change in events {
        if let WatchEvent::Listed(event) | WatchEvent::Applied(event) = change? {
            let about = &event.involved_object;
            let (kind, name) = (about.kind.as_deref().unwrap_or("?"), about.name.as_deref().unwrap_or("?"));
            let (reason, message) = (event.reason.as_deref(), event.message.as_deref());
            println!("{kind} {name}: {}: {}", reason.unwrap_or("?"), message.unwrap_or_default());
        }
    }
    Ok(())
}
