//! `coil create`, `coil apply` and `coil replace`.

use cloudcoil_tokio::{Api, FieldValidation, Resource as _, Unstructured};

use crate::args::{Apply, Create, Replace, Validation, Writing};
use crate::fault::Fault;
use crate::files::{self, Document};
use crate::out::Out;
use crate::result::Results;
use crate::session::Session;

/// The same builder with the options that every write has.
macro_rules! written {
    ($request:expr, $writing:expr) => {{
        let writing: &crate::args::Writing = $writing;
        let request = $request
            .field_manager(&writing.field_manager)
            .field_validation(crate::change::validation(writing.validate));
        if writing.dry_run == crate::args::DryRun::Server { request.dry_run() } else { request }
    }};
}
pub(crate) use written;

pub(crate) const fn validation(how: Validation) -> FieldValidation {
    match how {
        Validation::Strict => FieldValidation::Strict,
        Validation::Warn => FieldValidation::Warn,
        Validation::Ignore => FieldValidation::Ignore,
    }
}

pub(crate) async fn create(args: Create, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let documents = documents(&args.files, "create")?;
    let mut results = Results::new(args.writing.output, args.writing.dry_run);
    for document in documents {
        match create_one(&document, &args.writing, session).await {
            Ok(object) => results.done(object, "created", out)?,
            Err(fault) => results.failed(fault.about(document.label())),
        }
    }
    results.end(out)
}

async fn create_one(document: &Document, writing: &Writing, session: &mut Session) -> Result<Unstructured, Fault> {
    let api = api_of(&document.object, session).await?;
    Ok(written!(api.create(&document.object), writing).await?)
}

pub(crate) async fn apply(args: Apply, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let documents = documents(&args.files, "apply")?;
    let mut results = Results::new(args.writing.output, args.writing.dry_run);
    for document in documents {
        match apply_one(&document, &args, session).await {
            Ok((object, _)) if args.server_side => results.done(object, "serverside-applied", out)?,
            Ok((object, what)) => results.done(object, what, out)?,
            Err(fault) => results.failed(fault.about(document.label())),
        }
    }
    results.end(out)
}

/// The object as it is then, and what that means.
async fn apply_one(
    document: &Document,
    args: &Apply,
    session: &mut Session,
) -> Result<(Unstructured, &'static str), Fault> {
    let api = api_of(&document.object, session).await?;
    let before = api.get_opt(document.object.name()).await?;
    let request = written!(api.apply(&args.writing.field_manager, &document.object), &args.writing);
    let after = if args.force_conflicts { request.force().await } else { request.await }?;
    let what = match before {
        None => "created",
        Some(before) if before.resource_version() == after.resource_version() => "unchanged",
        Some(_) => "configured",
    };
    Ok((after, what))
}

pub(crate) async fn replace(args: Replace, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let documents = documents(&args.files, "replace")?;
    let mut results = Results::new(args.writing.output, args.writing.dry_run);
    for document in documents {
        match replace_one(&document, &args, session).await {
            Ok(object) => results.done(object, "replaced", out)?,
            Err(fault) => results.failed(fault.about(document.label())),
        }
    }
    results.end(out)
}

/// Without a resource version of its own, it replaces the object as it is now: some types cannot be replaced otherwise.
async fn replace_one(document: &Document, args: &Replace, session: &mut Session) -> Result<Unstructured, Fault> {
    let api = api_of(&document.object, session).await?;
    let mut object = document.object.clone();
    if let Some(subresource) = &args.subresource {
        let part = api.subresource::<Unstructured>(object.name(), subresource.as_str());
        return Ok(written!(part.replace(&object), &args.writing).await?);
    }
    if object.resource_version().is_none() {
        let current = api.get(object.name()).await?;
        object.metadata_mut().set_resource_version(current.resource_version());
    }
    Ok(written!(api.replace(&object), &args.writing).await?)
}

/// The objects of files; there must be some.
pub(crate) fn documents(files: &crate::args::Files, verb: &str) -> Result<Vec<Document>, Fault> {
    let documents = files::documents(files)?;
    if documents.is_empty() {
        return Err(Fault::failed(format!("there are no objects to {verb} in the files")));
    }
    Ok(documents)
}

/// Where an object belongs: to the namespace that it names, which a flag must not contradict, or to the current one.
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
