//! `coil scale`.

use cloudcoil_core::k8s_openapi::api::autoscaling::v1::ScaleSpec;
use cloudcoil_core::manifest::ManifestObject;
use cloudcoil_core::{Resource as _, Unstructured};

use super::change::{api_of, objects};
use super::session::Session;
use super::world::{Api, dual};
use crate::args::{DryRun, Scale};
use crate::fault::Fault;
use crate::kinds;
use crate::out::Out;
use crate::result::Results;

#[dual]
pub(crate) async fn run(args: Scale, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let mut results = Results::new(args.output, args.dry_run);
    let found = match &args.files.filename[..] {
        [] => selected(&args, session).await?,
        _ => filed(&args, session, &mut results).await?,
    };
    if found.is_empty() && results.is_well() {
        return Err(Fault::failed("there are no objects to scale"));
    }
    for (api, name) in found {
        match scale(&api, &name, &args).await {
            Ok(object) => results.done(object, "scaled", out)?,
            Err(fault) => results.failed(fault),
        }
    }
    results.end(out)
}

/// The objects that are named, or that match.
#[dual]
async fn selected(args: &Scale, session: &mut Session) -> Result<Vec<Found>, Fault> {
    let targets = match (&args.labels, args.all) {
        (Some(_), _) => kinds::selected(&args.targets, true)?,
        // As with kubectl, names go before --all.
        (None, true) => kinds::targets(&args.targets)?,
        (None, false) => kinds::named(&args.targets)?,
    };
    let mut found = Vec::new();
    for target in targets {
        let kind = session.kind(&target.word).await?;
        let api = session.api(&kind, false).await?;
        found.extend(target.names.iter().map(|name| (api.clone(), name.clone())));
        if target.names.is_empty() {
            let mut list = api.list();
            if let Some(labels) = &args.labels {
                list = list.labels(labels);
            }
            let list = list.metadata().send().await?;
            found.extend(list.items.iter().map(|object| (api.clone(), object.name().to_owned())));
        }
    }
    Ok(found)
}

/// The objects that files name.
#[dual]
async fn filed(args: &Scale, session: &mut Session, results: &mut Results) -> Result<Vec<Found>, Fault> {
    let mut found = Vec::new();
    for ManifestObject { object, place, .. } in objects(&args.files, "scale")? {
        match api_of(&object, session).await {
            Ok(api) => found.push((api, object.name().to_owned())),
            Err(fault) => results.failed(fault.about(format!("{place}: {} {:?}", object.kind(), object.name()))),
        }
    }
    Ok(found)
}

type Found = (Api<Unstructured>, String);

#[dual]
async fn scale(api: &Api<Unstructured>, name: &str, args: &Scale) -> Result<Unstructured, Fault> {
    let is_dry = args.dry_run == DryRun::Server;
    let Some(expected) = args.current_replicas else {
        let mut setting = api.set_replicas(name, args.replicas);
        if is_dry {
            setting = setting.dry_run();
        }
        return Ok(setting.send().await?);
    };
    let mut scale = api.scale(name).get().await?;
    let current = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
    if i64::from(current) != i64::from(expected) {
        return Err(Fault::failed(format!(
            "{name} should have {expected} replicas now, and has {current}; nothing was changed"
        )));
    }
    let replicas = i32::try_from(args.replicas).map_err(|_| Fault::misuse("there cannot be so many replicas"))?;
    scale.spec = Some(ScaleSpec { replicas: Some(replicas) });
    // It carries the version that was looked at, so that a change in between is a conflict.
    let mut replacing = api.scale(name).replace(&scale);
    if is_dry {
        replacing = replacing.dry_run();
    }
    replacing.send().await?;
    Ok(api.get(name).send().await?)
}
