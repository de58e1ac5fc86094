//! `coil wait`, and waiting for the end of what was deleted.

use std::time::{Duration, Instant};

use cloudcoil_core::{ApiResource, Error, Predicate, Resource as _, Unstructured};
use cloudcoil_runtime::WatchEvent;

use super::session::Session;
use super::world::{Api, WatchUntil, dual};
use crate::args::{DryRun, Wait, Which};
use crate::durations::Span;
use crate::fault::{Fault, failed_with};
use crate::kinds;
use crate::out::Out;
use crate::result::Results;

#[dual]
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
#[dual]
async fn select(api: &Api<Unstructured>, args: &Wait, what: &Predicate, until: Instant) -> Result<Vec<Found>, Fault> {
    let found = matching(api, &args.which).await?;
    if !found.is_empty() || !matches!(what, Predicate::Exists) {
        return Ok(found);
    }
    let mut watch = api.watch();
    if let Some(labels) = &args.which.labels {
        watch = watch.labels(labels);
    }
    if let Some(fields) = &args.which.fields {
        watch = watch.fields(fields);
    }
    let mut events = WatchUntil::new(watch, api.client(), until);
    while Instant::now() < until {
        if let Some(WatchEvent::Listed(_) | WatchEvent::Applied(_)) = events.next().await.transpose()? {
            return matching(api, &args.which).await;
        }
    }
    Err(timed_out(&api.resource_type().plural))
}

#[dual]
async fn matching(api: &Api<Unstructured>, which: &Which) -> Result<Vec<Found>, Fault> {
    let mut list = api.list();
    if let Some(labels) = &which.labels {
        list = list.labels(labels);
    }
    if let Some(fields) = &which.fields {
        list = list.fields(fields);
    }
    let found = list.metadata().send().await?.items.into_iter().map(|object| {
        let api = match object.namespace() {
            Some(namespace) => api.clone().namespace(namespace),
            None => api.clone(),
        };
        (api, object.name().to_owned())
    });
    Ok(found.collect())
}

/// The object for which it has come true; none when it was to go and is not there.
#[dual]
async fn one(
    api: &Api<Unstructured>,
    kind: &ApiResource,
    name: &str,
    what: &Predicate,
    until: Instant,
) -> Result<Option<Unstructured>, Fault> {
    let object = match api.get(name).send().await {
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
    match wait.send().await {
        Ok(awaited) => Ok(awaited.object.or(object)),
        Err(Error::TimedOut(_)) => Err(timed_out(&format!("{}/{name}", kind.resource_type.plural))),
        // The object is not as what was asked for takes it to be.
        Err(Error::Misuse(message)) => Err(Fault::failed(message)),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the object with this uid is there no more.
#[dual]
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
    match wait.send().await {
        Ok(_) => Ok(()),
        Err(Error::TimedOut(_)) => Err(timed_out(&format!("{}/{name}", api.resource_type().plural))),
        Err(error) => Err(error.into()),
    }
}

fn timed_out(label: &str) -> Fault {
    Fault::failed(format!("timed out waiting for the condition on {label}; give it more time with --timeout"))
}
