//! The work itself.

use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::{
    HttpEffect, HttpEvent, Informer, InformerConfig, InformerInput, InformerOutput, JsonPatch, KnownResource, Machine,
    Now, Outbox, QueueConfig, QueueInput, QueueOutput, Requests, ResourceKey, Ticket, WatchConfig, WorkQueue,
};
use http::{HeaderMap, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

/// Watches an empty list and then `chunks`, into a store.
pub fn watch_to_store(chunks: &[Bytes]) -> Informer {
    let mut server = Server::new(WatchConfig { streaming: false, ..pods() });
    server.answer(Bytes::from_static(EMPTY));
    let ticket = server.expect();
    server.head(ticket);
    for bytes in chunks {
        server.tell(HttpEvent::Received { ticket, bytes: bytes.clone() });
    }
    server.informer
}

/// Lists `chunks` into a store.
pub fn list_to_store(chunks: &[Bytes]) -> Informer {
    let mut server = Server::new(WatchConfig { streaming: false, page_size: 0, ..pods() });
    let ticket = server.expect();
    server.head(ticket);
    for bytes in chunks {
        server.tell(HttpEvent::Received { ticket, bytes: bytes.clone() });
    }
    server.tell(HttpEvent::Closed { ticket, result: Ok(()) });
    server.informer
}

/// Puts `names` into a queue and takes them all out again, one worker at a time.
pub fn queue(names: &[String]) -> usize {
    let mut queue = WorkQueue::new(QueueConfig::default());
    let mut out = Outbox::new();
    for name in names {
        let key = ResourceKey::new(Some("default"), name).expect("a name");
        let _ = queue.step(Now::default(), Some(QueueInput::Added(key)), &mut out);
    }
    let mut started = 0;
    while let Some(output) = out.pop() {
        if let QueueOutput::Start(key) = output {
            started += 1;
            let _ = queue.step(Now::default(), Some(QueueInput::Done(key)), &mut out);
        }
    }
    started
}

/// The difference of two values as a JSON patch.
pub fn diff(old: &Value, new: &Value) -> usize {
    JsonPatch::diff(old, new).map_or(0, |patch| patch.len())
}

fn pods() -> WatchConfig {
    WatchConfig::new(Requests::new(Pod::resource_type(), None))
}

/// Plays the API server to an informer.
struct Server {
    informer: Informer,
    now: Now,
    out: Outbox<InformerOutput>,
}

impl Server {
    fn new(config: WatchConfig) -> Self {
        let informer = Informer::new(InformerConfig::new(config), 0, 0);
        let mut server = Self { informer, now: Now::default(), out: Outbox::new() };
        server.step(None);
        server
    }

    fn step(&mut self, input: Option<InformerInput>) {
        let _ = self.informer.step(self.now, input, &mut self.out);
    }

    fn tell(&mut self, event: HttpEvent) {
        // What was said before is dropped here, as a handler drops what it has dealt with.
        drop(self.out.drain());
        self.step(Some(InformerInput::Http(event)));
    }

    /// The ticket of the next request.
    fn expect(&mut self) -> Ticket {
        for _ in 0..100 {
            while let Some(output) = self.out.pop() {
                if let InformerOutput::Http(HttpEffect::Send { ticket, .. }) = output {
                    return ticket;
                }
            }
            self.now = self.now.after(Duration::from_secs(1));
            self.step(None);
        }
        panic!("the informer asks for nothing");
    }

    fn head(&mut self, ticket: Ticket) {
        self.tell(HttpEvent::Responded { ticket, status: StatusCode::OK, headers: HeaderMap::new() });
    }

    fn answer(&mut self, bytes: Bytes) {
        let ticket = self.expect();
        self.head(ticket);
        self.tell(HttpEvent::Received { ticket, bytes });
        drop(self.out.drain());
        self.step(Some(InformerInput::Http(HttpEvent::Closed { ticket, result: Ok(()) })));
    }
}

const EMPTY: &[u8] = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
