//! Prints the pods of a cluster, as a script would.
//!
//! ```text
//! cargo run --example list -- [SELECTOR]
//! ```

use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Pod;
use cloudcoil_blocking::{Client, prelude::*};

fn main() -> Result<(), Error> {
    let client = Client::try_default()?;
    let selector = std::env::args().nth(1).unwrap_or_default();
    for pod in client.api::<Pod>().list().all_namespaces().labels(selector) {
        let pod = pod?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
        println!("{}/{} {phase}", pod.namespace().unwrap_or_default(), pod.name());
    }
    Ok(())
}
