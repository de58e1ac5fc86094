//! `coil delete`.

use std::time::Duration;

use cloudcoil_core::manifest::ManifestObject;
use cloudcoil_core::{ApiResource, Deleted, Propagation, Resource as _, Unstructured};

use super::change::{api_of, objects};
use super::session::Session;
use super::wait;
use super::world::{Api, dual};
use crate::args::{Cascade, Delete, DryRun};
use crate::durations::Span;
use crate::fault::{Fault, failed_with};
use crate::kinds::{self, Target};
use crate::out::Out;
use crate::result::{Results, dry};

#[dual]
pub(crate) async fn run(args: Delete, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    check(&args)?;
    let mut deletion = Deletion { results: Results::new(None, args.dry_run), gone: Vec::new(), found: 0, args: &args };
    if args.files.filename.is_empty() {
        let selects = args.all || args.which.labels.is_some() || args.which.fields.is_some();
        for target in kinds::selected(&args.targets, selects)? {
            for kind in session.kinds(&target.word).await? {
                deletion.target(&target, &kind, session, out).await?;
            }
        }
    } else {
        for ManifestObject { object, place, .. } in objects(&args.files, "delete")? {
            match api_of(&object, session).await {
                Ok(api) => deletion.one(&api, object.name(), out).await?,
                Err(fault) => {
                    deletion.results.failed(fault.about(format!("{place}: {} {:?}", object.kind(), object.name())));
                }
            }
        }
    }
    let Deletion { mut results, gone, found, .. } = deletion;
    if found == 0 && !args.ignore_not_found && args.files.filename.is_empty() && results.is_well() {
        out.line("No resources found")?;
    }
    out.flush()?;
    if args.wait && args.dry_run == DryRun::None {
        let patience = session.patience(Span::seconds(0));
        // As with kubectl, no limit is a week.
        let patience = if patience.is_zero() { WEEK } else { patience };
        for (api, name, uid) in gone {
            if let Err(fault) = wait::gone(&api, &name, uid.as_deref(), patience).await {
                results.failed(fault);
            }
        }
    }
    results.end(out)
}

fn check(args: &Delete) -> Result<(), Fault> {
    if args.which.all_namespaces && !(args.all || args.which.labels.is_some() || args.which.fields.is_some()) {
        return Err(Fault::misuse("-A goes with --all or a selector: an object of a name lives in one namespace"));
    }
    if args.force && args.grace_period > 0 {
        return Err(Fault::misuse("--force and a grace period above 0 exclude each other"));
    }
    if args.grace_period < -1 {
        return Err(Fault::misuse("--grace-period takes a number of seconds, or -1 to leave it to the object"));
    }
    Ok(())
}

/// Deletions, and whose end is to be waited for.
struct Deletion<'a> {
    args: &'a Delete,
    results: Results,
    gone: Vec<(Api<Unstructured>, String, Option<String>)>,
    found: usize,
}

#[dual]
impl Deletion<'_> {
    async fn target(
        &mut self,
        target: &Target,
        kind: &ApiResource,
        session: &mut Session,
        out: &mut Out,
    ) -> Result<(), Fault> {
        let api = session.api(kind, self.args.which.all_namespaces).await?;
        if !target.names.is_empty() {
            for name in &target.names {
                self.one(&api, name, out).await?;
            }
            return Ok(());
        }
        let mut list = api.list();
        if let Some(labels) = &self.args.which.labels {
            list = list.labels(labels);
        }
        if let Some(fields) = &self.args.which.fields {
            list = list.fields(fields);
        }
        match list.metadata().send().await {
            Ok(list) => {
                for object in list.items {
                    let api = match object.namespace() {
                        Some(namespace) => api.clone().namespace(namespace),
                        None => api.clone(),
                    };
                    self.one(&api, object.name(), out).await?;
                }
            }
            Err(error) => self.results.failed(error.into()),
        }
        Ok(())
    }

    async fn one(&mut self, api: &Api<Unstructured>, name: &str, out: &mut Out) -> Result<(), Fault> {
        let mut delete = api.delete(name).propagation(match self.args.cascade {
            Cascade::Background => Propagation::Background,
            Cascade::Foreground => Propagation::Foreground,
            Cascade::Orphan => Propagation::Orphan,
        });
        if let Some(period) = grace_period(self.args) {
            delete = delete.grace_period(period);
        }
        if self.args.dry_run == DryRun::Server {
            delete = delete.dry_run();
        }
        let uid = match delete.send().await {
            Ok(Deleted::Object(object)) => object.uid().map(ToOwned::to_owned),
            Ok(Deleted::Status(status)) => Some(status.details.uid).filter(|uid| !uid.is_empty()),
            Err(error) if self.args.ignore_not_found && failed_with(&error, 404) => return Ok(()),
            Err(error) => {
                self.results.failed(error.into());
                return Ok(());
            }
        };
        self.found += 1;
        self.say(api, name, out)?;
        self.gone.push((api.clone(), name.to_owned(), uid));
        Ok(())
    }

    fn say(&self, api: &Api<Unstructured>, name: &str, out: &mut Out) -> Result<(), Fault> {
        let resource_type = api.resource_type();
        let kind = kinds::label(&resource_type.kind, &resource_type.group);
        if self.args.output.is_some() {
            out.line(&format!("{kind}/{name}"))?;
        } else {
            let from =
                api.requests().namespace().map_or_else(String::new, |namespace| format!(" from {namespace} namespace"));
            let done = if self.args.force { "force deleted" } else { "deleted" };
            out.line(&format!("{kind} {name:?} {done}{from}{}", dry(self.args.dry_run)))?;
        }
        out.flush()
    }
}

fn grace_period(args: &Delete) -> Option<Duration> {
    match args.grace_period {
        _ if args.now => Some(Duration::from_secs(1)),
        -1 if args.force => Some(Duration::ZERO),
        // As with kubectl, an object is ended without its account only by --force.
        0 if !args.force => Some(Duration::from_secs(1)),
        seconds => u64::try_from(seconds).ok().map(Duration::from_secs),
    }
}

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
