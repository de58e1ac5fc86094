//! What comes of passes.

use cloudcoil_core::{Object, Outcome, PassResult, Reconciled, Resource, Update};
use serde_json::Value;

use super::{Action, Stop};

/// What it comes to when a handler has returned that saw `object` as `read`.
pub(crate) fn outcome<K: Resource>(returned: Result<(Option<K>, Action), Stop>, object: &Object, read: &K) -> Outcome {
    match returned {
        Err(stop) => stop.into(),
        Ok((None, action)) => action.into(),
        Ok((Some(edited), action)) => match change(object, read, &edited) {
            Ok(update) => Outcome::from(action).with_update(update),
            Err(error) => Outcome::terminal(format!("the changed object is no JSON: {error}")),
        },
    }
}

/// The change of an object that the handler saw through its type.
fn change<K: Resource>(object: &Object, read: &K, edited: &K) -> serde_json::Result<Update> {
    let stored: Value = serde_json::from_str(object.json())?;
    Ok(Update::typed(stored, &serde_json::to_value(read)?, serde_json::to_value(edited)?))
}

/// Puts the end of a pass into the log.
pub(crate) fn report(kind: &str, reconciled: &Reconciled) {
    let Reconciled { key, result, again, failures, took, .. } = reconciled;
    match result {
        PassResult::Failed(error) => {
            tracing::warn!(kind, %key, %error, failures, ?took, ?again, "reconcile failed");
        }
        PassResult::Waiting { reason, .. } => tracing::debug!(kind, %key, reason, ?took, ?again, "reconcile waits"),
        result => tracing::debug!(kind, %key, ?result, ?took, ?again, "reconciled"),
    }
}
