//! `coil follow`.

use std::io::{self, Write as _};
use std::sync::Arc;

use cloudcoil_core::{Error, Object, Unstructured};
use cloudcoil_runtime::Change;
use serde::Serialize;

use super::session::Session;
use super::world::{Informer, Sender, dual, mailbox};
use crate::args::Follow;
use crate::fault::{Fault, one_line};

/// One line: every key is there in each, and `null` where it does not apply.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    event: &'a str,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    uid: Option<&'a str>,
    resource_version: Option<&'a str>,
    message: Option<&'a str>,
}

/// Prints the events of an informer until it is asked to stop, or nobody reads them any more.
#[dual]
pub(crate) async fn run(follow: Follow, session: &mut Session) -> Result<(), Fault> {
    let kind = session.kind(&follow.kind).await?;
    let api = session.api(&kind, follow.which.all_namespaces).await?;
    let shutdown = session.world().listen_for_shutdown().await;
    let (ended, faults) = mailbox();
    let [changes, synced, errors] = [(); 3].map(|()| Printer(ended.clone()));
    let mut informer = Informer::<Unstructured>::new(api);
    if let Some(labels) = &follow.which.labels {
        informer = informer.labels(labels);
    }
    if let Some(fields) = &follow.which.fields {
        informer = informer.fields(fields);
    }
    let informer = informer
        .on_change(move |change| changes.change(change))
        .on_synced(move || synced.plain("synced", None))
        .on_error(move |error| errors.error(error))
        .start();
    let fault = shutdown.or_next(faults).await;
    drop(informer);
    fault.map_or(Ok(()), Err)
}

/// Prints lines, and tells when it cannot.
struct Printer(Sender<Fault>);

impl Printer {
    fn change(&self, change: &Change) {
        match change {
            Change::Added(object) => self.object("added", object),
            Change::Updated { new, .. } => self.object("updated", new),
            Change::Deleted(object) => self.object("deleted", object),
        }
    }

    fn object(&self, event: &str, object: &Arc<Object>) {
        self.print(&Line {
            event,
            namespace: object.namespace(),
            name: Some(object.name()),
            uid: object.uid(),
            resource_version: object.resource_version(),
            message: None,
        });
    }

    fn error(&self, error: &Error) {
        self.plain("error", Some(&one_line(&error.to_string())));
    }

    fn plain(&self, event: &str, message: Option<&str>) {
        self.print(&Line { event, namespace: None, name: None, uid: None, resource_version: None, message });
    }

    fn print(&self, line: &Line<'_>) {
        if let Err(error) = write(line) {
            self.0.send(error.into());
        }
    }
}

/// Writes a line at once, so that a reader has it as soon as it happened.
fn write(line: &Line<'_>) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
