//! `coil logs`.

use cloudcoil_core::UnixTime;
use cloudcoil_core::k8s_openapi::api::core::v1::Pod;

use super::session::Session;
use super::world::*;
use crate::args;
use crate::fault::Fault;
use crate::kinds;
use crate::out::Out;

#[dual]
pub(crate) async fn run(args: args::Logs, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let name = kinds::pod(&args.pod)?;
    let mut logs = session.client().await?.api::<Pod>().logs(name);
    if let Some(container) = args.container.or(args.name) {
        logs = logs.container(container);
    }
    if args.follow {
        logs = logs.follow();
    }
    if args.previous {
        logs = logs.previous();
    }
    if args.timestamps {
        logs = logs.timestamps();
    }
    match u64::try_from(args.tail) {
        Ok(lines) => logs = logs.tail_lines(lines),
        Err(_) if args.tail == -1 => {}
        Err(_) => return Err(Fault::misuse("--tail takes a number of lines, or -1 for all")),
    }
    if let Some(since) = args.since {
        // Whole seconds, of which the API wants one at least; as kubectl, rather too much than too little.
        logs = logs.since_seconds(since.length().as_secs_f64().ceil().max(1.0) as u64);
    }
    if let Some(time) = args.since_time {
        logs = logs.since_time(since(&time)?);
    }
    if let Some(bytes) = args.limit_bytes {
        logs = logs.limit_bytes(bytes);
    }
    let mut pieces = logs.bytes();
    while let Some(piece) = pieces.next().await {
        out.bytes(&piece?)?;
        out.flush()?;
    }
    Ok(())
}

fn since(time: &str) -> Result<UnixTime, Fault> {
    let wrong = || Fault::misuse(format!("{time:?} is no time; write it as 2026-01-31T12:00:00Z"));
    let time: jiff::Timestamp = time.parse().map_err(|_| wrong())?;
    Ok(UnixTime::from_micros(time.as_microsecond()))
}
