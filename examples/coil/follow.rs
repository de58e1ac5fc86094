//! `coil follow`.

use std::io::{self, Write as _};
use std::sync::Arc;

use cloudcoil_tokio::{Change, Error, Informer, Object, Unstructured, shutdown_signal};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::args::Follow;
use crate::fault::{Fault, one_line};
use crate::session::Session;

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
pub(crate) async fn run(follow: Follow, session: &mut Session) -> Result<(), Fault> {
    let kind = session.kind(&follow.kind).await?;
    let api = session.api(&kind, follow.which.all_namespaces).await?;
    let (ended, mut faults) = unbounded_channel();
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
    let stopped = tokio::select! {
        fault = faults.recv() => Err(fault.expect("a sender lives here")),
        () = shutdown_signal() => Ok(()),
    };
    drop(informer);
    stopped
}

/// Prints lines, and tells when it cannot.
struct Printer(UnboundedSender<Fault>);

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
            // When nobody listens the command has ended.
            let _ = self.0.send(error.into());
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
