//! What each machine hears and says, as it may be shown.

use super::{Entry, Recorded, described};
use crate::call::{Call, CallInput, CallOutput, Retry};
use crate::discovery::{Catalog, Discovery, DiscoveryInput, DiscoveryOutput};
use crate::error::Error;
use crate::exchange::Answer;
use crate::informer::{Informer, InformerEvent, InformerInput, InformerOutput};
use crate::list_watch::{ListWatch, WatchEvent, WatchInput, WatchOutput};
use crate::log::{LogInput, LogOutput, LogStream};
use crate::manifest::{ManifestInput, ManifestOutput, ManifestRun};
use crate::pass::{ObjectVersion, Outcome, PassError, PassResult, Verdict};
use crate::reconciler::{Reconciled, Reconciler, ReconcilerInput, ReconcilerOutput};
use crate::table::{Table, TableEvent, TableInput, TableOutput, TableWatch};
use crate::wait_for::{WaitFor, WaitInput, WaitOutput};

impl Recorded for Call {
    const NAME: &'static str = "Call";

    fn heard(input: &CallInput) -> Entry {
        match input {
            CallInput::Http(event) => described::event(event),
            CallInput::Cancelled => Entry::new("Cancelled"),
        }
    }

    fn said(output: &CallOutput) -> Entry {
        match output {
            CallOutput::Http(effect) => described::effect(effect),
            CallOutput::Retrying(retry) => retrying(retry),
            CallOutput::Done(result) => ended(result.as_ref().map(described::answer)),
        }
    }
}

impl Recorded for Discovery {
    const NAME: &'static str = "Discovery";

    fn heard(input: &DiscoveryInput) -> Entry {
        match input {
            DiscoveryInput::Http(event) => described::event(event),
            DiscoveryInput::Cancelled => Entry::new("Cancelled"),
        }
    }

    fn said(output: &DiscoveryOutput) -> Entry {
        let found = |catalog: &Catalog| {
            let (groups, types) = (catalog.groups().len(), catalog.resources().count());
            format!("{groups} groups, {types} types, {} failures", catalog.failures().len())
        };
        match output {
            DiscoveryOutput::Http(effect) => described::effect(effect),
            DiscoveryOutput::Retrying(retry) => retrying(retry),
            DiscoveryOutput::Done(result) => ended(result.as_ref().map(found)),
        }
    }
}

impl Recorded for ListWatch {
    const NAME: &'static str = "ListWatch";

    fn heard(input: &WatchInput) -> Entry {
        match input {
            WatchInput::Http(event) => described::event(event),
            WatchInput::Stopped => Entry::new("Stopped"),
        }
    }

    fn said(output: &WatchOutput) -> Entry {
        match output {
            WatchOutput::Http(effect) => described::effect(effect),
            WatchOutput::Event(event) => match event {
                WatchEvent::Restarted => Entry::new("Restarted"),
                WatchEvent::Listed(object) => described::object(Entry::new("Listed"), object),
                WatchEvent::Synced { resource_version } => {
                    Entry::new("Synced").text(format!("version {}", resource_version.as_deref().unwrap_or("unknown")))
                }
                WatchEvent::Applied(object) => described::object(Entry::new("Applied"), object),
                WatchEvent::Deleted(object) => described::object(Entry::new("Deleted"), object),
                WatchEvent::Faulty(faulty) => Entry::new("Faulty").text(described::key(faulty.key.as_ref())),
                WatchEvent::Failed { error, .. } => described::failure(Entry::new("Failed"), error),
                WatchEvent::Warned(warning) => Entry::new("Warned").text(&**warning),
            },
        }
    }
}

impl Recorded for Informer {
    const NAME: &'static str = "Informer";

    fn heard(input: &InformerInput) -> Entry {
        match input {
            InformerInput::Http(event) => described::event(event),
            InformerInput::Stopped => Entry::new("Stopped"),
        }
    }

    fn said(output: &InformerOutput) -> Entry {
        match output {
            InformerOutput::Http(effect) => described::effect(effect),
            InformerOutput::Event(event) => match event {
                InformerEvent::Added(object) => described::object(Entry::new("Added"), object),
                InformerEvent::Updated { new, .. } => described::object(Entry::new("Updated"), new),
                InformerEvent::Deleted(object) => described::object(Entry::new("Deleted"), object),
                InformerEvent::Synced => Entry::new("Synced"),
                InformerEvent::Resynced(object) => described::object(Entry::new("Resynced"), object),
                InformerEvent::Faulty(faulty) => Entry::new("Faulty").text(described::key(faulty.key.as_ref())),
                InformerEvent::Failed { error, .. } => described::failure(Entry::new("Failed"), error),
                InformerEvent::Warned(warning) => Entry::new("Warned").text(&**warning),
            },
        }
    }
}

impl Recorded for Reconciler {
    const NAME: &'static str = "Reconciler";

    fn heard(input: &ReconcilerInput) -> Entry {
        let version = |version: &ObjectVersion| format!("version {}", version.resource_version);
        match input {
            ReconcilerInput::Synced => Entry::new("Synced"),
            ReconcilerInput::Enqueued(key) => Entry::new("Enqueued").text(key.to_string()),
            ReconcilerInput::EnqueuedAfter(key, delay) => {
                Entry::new("EnqueuedAfter").text(key.to_string()).detail(format!("{delay:?}"))
            }
            ReconcilerInput::Observed { key, version: seen } => {
                let seen = seen.as_ref().map_or_else(|| "gone".to_owned(), version);
                Entry::new("Observed").text(format!("{key} {seen}"))
            }
            ReconcilerInput::Ran { ticket, outcome } => ran(outcome).ticket(*ticket),
            ReconcilerInput::Http(event) => described::event(event),
            ReconcilerInput::ShutDown { drain } => {
                Entry::new("ShutDown").text(if *drain { "when all is worked off" } else { "at once" })
            }
        }
    }

    fn said(output: &ReconcilerOutput) -> Entry {
        match output {
            ReconcilerOutput::Run { ticket, key } => Entry::new("Run").ticket(*ticket).text(key.to_string()),
            ReconcilerOutput::Cancel { ticket } => Entry::new("Cancel").ticket(*ticket),
            ReconcilerOutput::Http(effect) => described::effect(effect),
            ReconcilerOutput::Reconciled(reconciled) => self::reconciled(reconciled),
            ReconcilerOutput::CacheLagged { key } => Entry::new("CacheLagged").text(key.to_string()),
            ReconcilerOutput::Resync => Entry::new("Resync"),
            ReconcilerOutput::Stopped => Entry::new("Stopped"),
        }
    }
}

impl Recorded for WaitFor {
    const NAME: &'static str = "WaitFor";

    fn heard(input: &WaitInput) -> Entry {
        match input {
            WaitInput::Http(event) => described::event(event),
            WaitInput::Cancelled => Entry::new("Cancelled"),
        }
    }

    fn said(output: &WaitOutput) -> Entry {
        match output {
            WaitOutput::Http(effect) => described::effect(effect),
            WaitOutput::Done(result) => ended(result.as_ref().map(|awaited| {
                let object = awaited.object.as_deref().map_or_else(|| "no object".to_owned(), described::version);
                format!("{}: {object}", awaited.predicate)
            })),
        }
    }
}

impl Recorded for TableWatch {
    const NAME: &'static str = "TableWatch";

    fn heard(input: &TableInput) -> Entry {
        match input {
            TableInput::Http(event) => described::event(event),
        }
    }

    fn said(output: &TableOutput) -> Entry {
        let table = |name, table: &Table| {
            let version = table.resource_version.as_deref().unwrap_or("unknown");
            Entry::new(name).text(format!("{} rows, version {version}", table.rows.len()))
        };
        match output {
            TableOutput::Http(effect) => described::effect(effect),
            TableOutput::Event(TableEvent::Listed(rows)) => table("Listed", rows),
            TableOutput::Event(TableEvent::Applied(rows)) => table("Applied", rows),
            TableOutput::Event(TableEvent::Deleted(rows)) => table("Deleted", rows),
            TableOutput::Event(TableEvent::Failed(error)) => described::failure(Entry::new("Failed"), error),
        }
    }
}

impl Recorded for LogStream {
    const NAME: &'static str = "LogStream";

    fn heard(input: &LogInput) -> Entry {
        match input {
            LogInput::Http(event) => described::event(event),
            LogInput::Cancelled => Entry::new("Cancelled"),
        }
    }

    fn said(output: &LogOutput) -> Entry {
        match output {
            LogOutput::Http(effect) => described::effect(effect),
            LogOutput::Received(bytes) => Entry::new(super::PIECE).body(bytes.clone()),
            LogOutput::Ended(Ok(())) => Entry::new("Ended"),
            LogOutput::Ended(Err(error)) => described::failure(Entry::new("Ended"), error),
        }
    }
}

impl Recorded for ManifestRun {
    const NAME: &'static str = "ManifestRun";

    fn heard(input: &ManifestInput) -> Entry {
        let answered = |result: &Result<Answer, Error>| match result {
            Ok(answer) => Entry::new("Answered").text(described::answer(answer)),
            Err(error) => described::failure(Entry::new("Answered"), error),
        };
        match input {
            ManifestInput::Resolved { ticket, result: Ok(found) } => {
                Entry::new("Resolved").ticket(*ticket).text(found.to_string())
            }
            ManifestInput::Resolved { ticket, result: Err(error) } => {
                described::failure(Entry::new("Resolved").ticket(*ticket), error)
            }
            ManifestInput::Answered { ticket, result } => answered(result).ticket(*ticket),
        }
    }

    fn said(output: &ManifestOutput) -> Entry {
        match output {
            ManifestOutput::Resolve { ticket, api_version, kind } => {
                Entry::new("Resolve").ticket(*ticket).text(format!("{api_version} {kind}"))
            }
            ManifestOutput::Send { ticket, request } => described::sending(request).ticket(*ticket),
            ManifestOutput::Report(outcome) => match &outcome.result {
                Ok(done) => Entry::new("Report").text(format!("{} {} {done}", outcome.kind, outcome.name)),
                Err(error) => described::failure(Entry::new("Report"), error),
            },
            ManifestOutput::Finished => Entry::new("Finished"),
        }
    }
}

fn retrying(retry: &Retry) -> Entry {
    described::failure(Entry::new("Retrying"), &retry.cause)
}

fn ended(result: Result<String, &Error>) -> Entry {
    match result {
        Ok(text) => Entry::new("Done").text(text),
        Err(error) => described::failure(Entry::new("Done"), error),
    }
}

/// The end of a handler.
fn ran(outcome: &Outcome) -> Entry {
    let (word, detail) = match &outcome.verdict {
        Verdict::Done { requeue_after } => {
            ("done".to_owned(), requeue_after.map(|after| format!("again in {after:?}")))
        }
        Verdict::Waiting { reason, message, .. } => (format!("waiting: {reason}"), Some(message.clone())),
        Verdict::Failed { message, .. } => ("failed".to_owned(), Some(message.clone())),
        Verdict::Terminal { message } => ("failed for good".to_owned(), Some(message.clone())),
        Verdict::Panicked { message } => ("panicked".to_owned(), Some(message.clone())),
        Verdict::Conflict => ("conflict".to_owned(), None),
        Verdict::Gone => ("gone".to_owned(), None),
        Verdict::Cancelled => ("cancelled".to_owned(), None),
    };
    let text = if outcome.update.is_some() { format!("{word}, with a change") } else { word };
    Entry::new("Ran").text(text).detail(detail.unwrap_or_default())
}

/// The end of a pass.
fn reconciled(reconciled: &Reconciled) -> Entry {
    let Reconciled { key, result, again, failures, took } = reconciled;
    let entry = Entry::new("Reconciled");
    let (word, detail) = match result {
        PassResult::Succeeded { .. } => ("succeeded".to_owned(), String::new()),
        PassResult::Waiting { reason, message, .. } => (format!("waiting: {reason}"), message.clone()),
        PassResult::Gone => ("gone".to_owned(), String::new()),
        PassResult::Conflict => ("conflict".to_owned(), String::new()),
        PassResult::Cancelled => ("cancelled".to_owned(), String::new()),
        PassResult::Failed(error) => failed(error),
    };
    let text = format!("{key} {word}, {failures} failures in a row");
    let detail = if detail.is_empty() { detail } else { format!("{detail}, ") };
    entry.text(text).detail(format!("{detail}took {took:?}, again in {again:?}"))
}

/// What kind of failure of a pass it is, and how it is worded.
fn failed(error: &PassError) -> (String, String) {
    match error {
        PassError::Handler { message, .. } => ("failed".to_owned(), message.clone()),
        PassError::Terminal { message } => ("failed for good".to_owned(), message.clone()),
        PassError::Panicked { message } => ("panicked".to_owned(), message.clone()),
        PassError::TimedOut(limit) => ("timed out".to_owned(), format!("{limit:?}")),
        PassError::Change(error) => ("cannot write its change".to_owned(), error.to_string()),
        PassError::Write(error) => {
            let Entry { text, detail, .. } = described::failure(Entry::new("write"), error);
            (format!("did not write its change: {text}"), detail)
        }
    }
}
