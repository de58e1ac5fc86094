//! `coil patch`.

use cloudcoil_core::{Patch, Unstructured};
use serde_json::{Value, json};

use super::change::written;
use super::session::Session;
use super::world::{Api, dual};
use crate::args::{self, PatchKind};
use crate::fault::Fault;
use crate::files;
use crate::kinds;
use crate::out::Out;
use crate::result::Results;

#[dual]
pub(crate) async fn run(args: args::Patch, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let targets = kinds::named(&args.targets)?;
    let patch = read(&args)?;
    let mut results = Results::new(args.writing.output, args.writing.dry_run);
    for target in targets {
        let kind = session.kind(&target.word).await?;
        let api = session.api(&kind, false).await?;
        for name in &target.names {
            match one(&api, name, addressed(patch.clone(), name), &args).await {
                Ok((object, true)) => results.done(object, "patched", out)?,
                Ok((object, false)) => results.done(object, "patched (no change)", out)?,
                Err(fault) => results.failed(fault),
            }
        }
    }
    results.end(out)
}

/// What is applied must name its object.
fn addressed(patch: Patch, name: &str) -> Patch {
    match patch {
        Patch::Apply(mut object) => {
            if object["metadata"].is_null() {
                object["metadata"] = json!({});
            }
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.entry("name").or_insert_with(|| name.into());
            }
            Patch::Apply(object)
        }
        patch => patch,
    }
}

/// The object as it is then, and whether that is another than before.
#[dual]
async fn one(
    api: &Api<Unstructured>,
    name: &str,
    patch: Patch,
    args: &args::Patch,
) -> Result<(Unstructured, bool), Fault> {
    let may_create = matches!(patch, Patch::Apply(_)) && args.subresource.is_none();
    let before: Option<Unstructured> = match &args.subresource {
        Some(subresource) => Some(api.subresource(name, subresource.as_str()).get().await?),
        None if may_create => api.get_opt(name).await?,
        None => Some(api.get(name).send().await?),
    };
    let after = match &args.subresource {
        Some(subresource) => {
            let request = api.subresource::<Unstructured>(name, subresource.as_str()).patch(patch);
            let request = written!(request, &args.writing);
            let request = if args.force_conflicts { request.force() } else { request };
            request.send().await
        }
        None => {
            let request = written!(api.patch(name, patch), &args.writing);
            let request = if args.force_conflicts { request.force() } else { request };
            request.send().await
        }
    }?;
    let changed = before.is_none_or(|before| before != after);
    Ok((after, changed))
}

fn read(args: &args::Patch) -> Result<Patch, Fault> {
    if args.force_conflicts && args.kind != PatchKind::Apply {
        return Err(Fault::misuse("--force-conflicts is for --type=apply alone"));
    }
    let value = match (&args.patch, &args.patch_file) {
        (Some(text), _) => {
            files::value("the patch", text.as_bytes()).map_err(|fault| Fault::misuse(fault.to_string()))?
        }
        (None, Some(path)) => {
            let files::Source { origin, content } = files::one(path)?;
            files::value(&origin, &content)?
        }
        (None, None) => return Err(Fault::misuse("say what to change with -p or --patch-file")),
    };
    Ok(match (args.kind, &value) {
        (PatchKind::Json, Value::Array(_)) => Patch::Json(value),
        (PatchKind::Json, _) => return Err(Fault::misuse("with --type=json a patch is a list of operations")),
        (_, Value::Object(_)) => match args.kind {
            PatchKind::Merge => Patch::Merge(value),
            PatchKind::Apply => Patch::Apply(value),
            _ => Patch::Strategic(value),
        },
        (kind, _) => {
            let kind = format!("{kind:?}").to_lowercase();
            return Err(Fault::misuse(format!("with --type={kind} a patch is an object")));
        }
    })
}
