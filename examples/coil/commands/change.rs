//! `coil create`, `coil apply` and `coil replace`.

use cloudcoil_core::manifest::{Done, ManifestObject, ManifestOutcome};
use cloudcoil_core::{Resource as _, Unstructured};

use super::session::Session;
use super::world::*;
use crate::args::{Apply, Create, Files, Replace, Writing};
use crate::fault::Fault;
use crate::files;
use crate::out::Out;
use crate::result::Results;

/// The same builder with the options that every write has.
macro_rules! written {
    ($request:expr, $writing:expr) => {{
        let writing: &crate::args::Writing = $writing;
        let request = $request.field_manager(&writing.field_manager).field_validation(writing.validate.into());
        if writing.dry_run == crate::args::DryRun::Server { request.dry_run() } else { request }
    }};
}
pub(crate) use written;

#[dual]
pub(crate) async fn create(args: Create, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let objects = objects(&args.files, "create")?;
    let manifests = session.client().await?.manifests(objects);
    let request = written!(manifests.create(), &args.writing);
    carry_out(request, &args.writing, |_| "created", session, out).await
}

#[dual]
pub(crate) async fn apply(args: Apply, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let objects = objects(&args.files, "apply")?;
    let manifests = session.client().await?.manifests(objects);
    let mut request = written!(manifests.apply(&args.writing.field_manager), &args.writing);
    if args.force_conflicts {
        request = request.force();
    }
    let what = |done: &Done| match done {
        _ if args.server_side => "serverside-applied",
        Done::Created => "created",
        Done::Unchanged => "unchanged",
        _ => "configured",
    };
    carry_out(request, &args.writing, what, session, out).await
}

#[dual]
pub(crate) async fn replace(args: Replace, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let objects = objects(&args.files, "replace")?;
    let mut results = Results::new(args.writing.output, args.writing.dry_run);
    for ManifestObject { object, place, .. } in objects {
        let label = format!("{place}: {} {:?}", object.kind(), object.name());
        match replace_one(object, &args, session).await {
            Ok(object) => results.done(object, "replaced", out)?,
            Err(fault) => results.failed(fault.about(label)),
        }
    }
    results.end(out)
}

/// As kubectl, replaces the object as it is now where no version is named: some types cannot be replaced otherwise.
#[dual]
async fn replace_one(mut object: Unstructured, args: &Replace, session: &mut Session) -> Result<Unstructured, Fault> {
    let api = api_of(&object, session).await?;
    if let Some(subresource) = &args.subresource {
        let part = api.subresource::<Unstructured>(object.name(), subresource.as_str());
        return Ok(written!(part.replace(&object), &args.writing).send().await?);
    }
    if object.resource_version().is_none() {
        let current = api.get(object.name()).send().await?;
        object.metadata_mut().set_resource_version(current.resource_version());
    }
    Ok(written!(api.replace(&object), &args.writing).send().await?)
}

/// Prints what comes of each object, as it is seen to.
#[dual]
async fn carry_out(
    mut request: ManifestRequest,
    writing: &Writing,
    what: impl Fn(&Done) -> &'static str,
    session: &Session,
    out: &mut Out,
) -> Result<(), Fault> {
    if session.chosen_namespace().is_some() {
        request = request.enforce_namespace();
    }
    let mut results = Results::new(writing.output, writing.dry_run);
    let mut outcomes = request.stream();
    while let Some(outcome) = outcomes.next().await {
        let ManifestOutcome { place, kind, name, result, object, .. } = outcome;
        match result {
            Ok(done) => results.done(object.unwrap_or_default(), what(&done), out)?,
            Err(error) => results.failed(Fault::from(error).about(format!("{place}: {kind} {name:?}"))),
        }
    }
    results.end(out)
}

/// The objects of files; there must be some.
pub(crate) fn objects(files: &Files, verb: &str) -> Result<Vec<ManifestObject>, Fault> {
    let objects = files::objects(files)?;
    if objects.is_empty() {
        return Err(Fault::failed(format!("there are no objects to {verb} in the files")));
    }
    Ok(objects)
}

/// Where an object belongs: to the namespace that it names, which a flag must not contradict, or to the current one.
#[dual]
pub(crate) async fn api_of(object: &Unstructured, session: &mut Session) -> Result<Api<Unstructured>, Fault> {
    let kind = session.client().await?.discovery().find_kind(object.api_version(), object.kind()).await?;
    let api = session.api(&kind, false).await?;
    let Some(named) = object.namespace().filter(|_| kind.resource_type.is_namespaced()) else { return Ok(api) };
    match session.chosen_namespace() {
        Some(chosen) if chosen != named => Err(Fault::failed(format!(
            "it names the namespace {named:?}, and --namespace says {chosen:?}; leave one of them out"
        ))),
        _ => Ok(api.namespace(named)),
    }
}
