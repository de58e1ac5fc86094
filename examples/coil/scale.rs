//! `coil scale`.

use cloudcoil_tokio::core::k8s_openapi::api::autoscaling::v1::ScaleSpec;
use cloudcoil_tokio::{Api, Unstructured};

use crate::args::{DryRun, Scale};
use crate::fault::Fault;
use crate::kinds;
use crate::out::Out;
use crate::result::Results;
use crate::session::Session;

pub(crate) async fn run(args: Scale, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let targets = kinds::named(&args.targets)?;
    let mut results = Results::new(args.output, args.dry_run);
    for target in targets {
        let kind = session.kind(&target.word).await?;
        let api = session.api(&kind, false).await?;
        for name in &target.names {
            match scale(&api, name, &args).await {
                Ok(object) => results.done(object, "scaled", out)?,
                Err(fault) => results.failed(fault),
            }
        }
    }
    results.end(out)
}

async fn scale(api: &Api<Unstructured>, name: &str, args: &Scale) -> Result<Unstructured, Fault> {
    let is_dry = args.dry_run == DryRun::Server;
    let Some(expected) = args.current_replicas else {
        let mut setting = api.set_replicas(name, args.replicas);
        if is_dry {
            setting = setting.dry_run();
        }
        return Ok(setting.await?);
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
    replacing.await?;
    Ok(api.get(name).await?)
}
