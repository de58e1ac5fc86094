//! The body of the fuzz target for discovery.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::{Catalog, Discovery, DiscoveryConfig, DiscoveryInput, DiscoveryOutput};
use crate::exchange::{HttpEffect, HttpEvent};
use crate::machine::{Machine as _, Outbox};
use crate::time::Now;

/// Takes the bodies of answers, split at bytes 0xFF, the first byte of each choosing its code. The discovery must end, and
/// whatever it says that there is must be found by its full name.
pub fn discovery(data: &[u8]) {
    let mut bodies = data.split(|byte| *byte == 0xFF);
    let mut discovery = Discovery::new(DiscoveryConfig::default(), None, 1);
    let (mut out, mut now) = (Outbox::new(), Now::default());
    let mut deadline = discovery.step(now, None, &mut out);
    while !discovery.is_done() {
        match out.pop() {
            Some(DiscoveryOutput::Http(HttpEffect::Send { ticket, .. })) => {
                let [code, body @ ..] = bodies.next().unwrap_or_default() else {
                    let _ = discovery.step(now, Some(DiscoveryInput::Cancelled), &mut out);
                    break;
                };
                let status = CODES[usize::from(*code) % CODES.len()];
                let bytes = Bytes::copy_from_slice(body);
                for event in [
                    HttpEvent::Responded { ticket, status, headers: HeaderMap::new() },
                    HttpEvent::Received { ticket, bytes },
                    HttpEvent::Closed { ticket, result: Ok(()) },
                ] {
                    deadline = discovery.step(now, Some(DiscoveryInput::Http(event)), &mut out);
                }
            }
            Some(_) => {}
            None => {
                let due = deadline.expect("something is waited for");
                now = now.after(due.at.since(now.mono) + Duration::from_nanos(1));
                deadline = discovery.step(now, None, &mut out);
            }
        }
    }
    for output in out {
        if let DiscoveryOutput::Done(Ok(catalog)) = output {
            every_type_is_found(&catalog);
        }
    }
}

fn every_type_is_found(catalog: &Catalog) {
    for resource in catalog.groups().iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources) {
        let of = &resource.resource_type;
        assert!(catalog.find_kind(&of.api_version(), &of.kind).is_ok(), "{of:?}");
        let name = format!("{}.{}.{}", of.plural, of.version, of.group);
        // A dot in a plural or a version reads as the end of it.
        if !of.plural.contains('.') && !of.version.contains('.') {
            assert!(catalog.find(&name).is_ok(), "{name}");
        }
    }
    for category in catalog.resources().flat_map(|resource| &resource.categories) {
        assert!(!catalog.category(category).is_empty(), "{category}");
    }
    for name in ["pods", "po", "a.b.c", "", ".", "é", "all"] {
        let _ = catalog.resolve(name);
    }
}

const CODES: [StatusCode; 6] = [
    StatusCode::OK,
    StatusCode::NOT_FOUND,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::NOT_MODIFIED,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::FORBIDDEN,
];
