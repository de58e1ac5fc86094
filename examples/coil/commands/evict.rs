//! `coil evict`.

use std::time::Duration;

use cloudcoil_core::Evicted;
use cloudcoil_core::k8s_openapi::api::core::v1::Pod;

use super::session::Session;
use super::world::dual;
use crate::args::{DryRun, Evict};
use crate::fault::Fault;
use crate::kinds;
use crate::out::Out;
use crate::result::{Results, dry};

#[dual]
pub(crate) async fn run(args: Evict, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let names: Vec<&str> = args.pods.iter().map(|pod| kinds::pod(pod)).collect::<Result<_, _>>()?;
    let pods = session.client().await?.api::<Pod>();
    let mut results = Results::new(None, args.dry_run);
    for name in names {
        let mut eviction = pods.evict(name);
        if let Ok(seconds) = u64::try_from(args.grace_period) {
            eviction = eviction.grace_period(Duration::from_secs(seconds));
        }
        if args.dry_run == DryRun::Server {
            eviction = eviction.dry_run();
        }
        match eviction.send().await {
            Ok(Evicted::Refused(refusal)) => {
                results.failed(Fault::failed(format!("pod {name:?} stays for now: {refusal}; try again later")));
            }
            Ok(_) => out.line(&format!("pod/{name} evicted{}", dry(args.dry_run)))?,
            Err(error) => results.failed(error.into()),
        }
    }
    results.end(out)
}
