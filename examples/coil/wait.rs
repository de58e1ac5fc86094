//! `coil wait`, and waiting for the end of what was deleted.

use std::pin::pin;
use std::time::Duration;

use cloudcoil_tokio::core::Predicate;
use cloudcoil_tokio::prelude::*;
use cloudcoil_tokio::{ApiResource, WatchEvent};
use tokio::time::{Instant, timeout_at};

use crate::args::{DryRun, Wait};
use crate::durations::Span;
use crate::fault::{Fault, failed_with};
use crate::kinds;
use crate::out::Out;
use crate::result::Results;
use crate::session::Session;

pub(crate) async fn run(args: Wait, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let what: Predicate = args.what.parse()?;
    let selects = args.all || args.which.labels.is_some() || args.which.fields.is_some();
    let targets = kinds::selected(&args.targets, selects)?;
    let until = Instant::now() + session.patience(Span::seconds(30));
    let mut results = Results::new(args.output, DryRun::None);
    let mut any = false;
    for target in targets {
        for kind in session.kinds(&target.word).await? {
            let api = session.api(&kind, args.which.all_namespaces).await?;
            let found = if selects { select(&api, &args, &what, until).await? } else { named(&api, &target.names) };
            for (api, name) in found {
                any = true;
                match one(&api, &kind, &name, &what, until).await {
                    Ok(Some(object)) => results.done(object, "condition met", out)?,
                    Ok(None) => {}
                    Err(fault) => results.failed(fault),
                }
            }
        }
    }
    if !any && !matches!(what, Predicate::Deleted) {
        results.failed(Fault::failed("no matching resources found"));
    }
    results.end(out)
}

type Found = (Api<Unstructured>, String);

fn named(api: &Api<Unstructured>, names: &[String]) -> Vec<Found> {
    names.iter().map(|name| (api.clone(), name.clone())).collect()
}

/// The objects that match; when their creation is waited for, as soon as there are any.
async fn select(api: &Api<Unstructured>, args: &Wait, what: &Predicate, until: Instant) -> Result<Vec<Found>, Fault> {
    let mut list = api.list();
    let mut watch = api.watch();
    if let Some(labels) = &args.which.labels {
        (list, watch) = (list.labels(labels), watch.labels(labels));
    }
    if let Some(fields) = &args.which.fields {
        (list, watch) = (list.fields(fields), watch.fields(fields));
    }
    if matches!(what, Predicate::Exists) {
        let first = async {
            let mut events = pin!(watch.stream());
            while let Some(event) = events.next().await {
                if let WatchEvent::Listed(_) | WatchEvent::Applied(_) = event? {
                    break;
                }
            }
            Ok::<(), Error>(())
        };
        timeout_at(until, first).await.map_err(|_| timed_out(&api.resource_type().plural))??;
    }
    let found = list.metadata().await?.items.into_iter().map(|object| {
        let api = match object.namespace() {
            Some(namespace) => api.clone().namespace(namespace),
            None => api.clone(),
        };
        (api, object.name().to_owned())
    });
    Ok(found.collect())
}

/// The object for which it has come true; none when it was to go and is not there.
async fn one(
    api: &Api<Unstructured>,
    kind: &ApiResource,
    name: &str,
    what: &Predicate,
    until: Instant,
) -> Result<Option<Unstructured>, Fault> {
    let object = match api.get(name).await {
        Ok(object) => Some(object),
        Err(error) if failed_with(&error, 404) && matches!(what, Predicate::Deleted) => return Ok(None),
        Err(error) if failed_with(&error, 404) && matches!(what, Predicate::Exists) => None,
        // As kubectl, expects an object that is not there to come only when told so.
        Err(error) => return Err(error.into()),
    };
    let mut wait = api.wait_for(name).until(what.clone()).timeout(until.saturating_duration_since(Instant::now()));
    if let Some(uid) = object.as_ref().and_then(|object| object.uid()) {
        wait = wait.uid(uid);
    }
    match wait.await {
        Ok(awaited) => Ok(awaited.object.or(object)),
        Err(Error::TimedOut(_)) => Err(timed_out(&format!("{}/{name}", kind.resource_type.plural))),
        // The object is not as what was asked for takes it to be.
        Err(Error::Misuse(message)) => Err(Fault::failed(message)),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the object with this uid is there no more.
pub(crate) async fn gone(
    api: &Api<Unstructured>,
    name: &str,
    uid: Option<&str>,
    patience: Duration,
) -> Result<(), Fault> {
    match api.get_opt(name).await? {
        Some(object) if uid.is_none() || object.uid() == uid => {}
        _ => return Ok(()),
    }
    let mut wait = api.wait_for(name).deleted().timeout(patience);
    if let Some(uid) = uid {
        wait = wait.uid(uid);
    }
    match wait.await {
        Ok(_) => Ok(()),
        Err(Error::TimedOut(_)) => Err(timed_out(&format!("{}/{name}", api.resource_type().plural))),
        Err(error) => Err(error.into()),
    }
}

fn timed_out(label: &str) -> Fault {
    Fault::failed(format!("timed out waiting for the condition on {label}; give it more time with --timeout"))
}
