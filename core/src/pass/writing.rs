//! Which patches a pass has still to send, and what their answers make of it.

use bytes::Bytes;
use http::Request;

use super::PassConfig;
use super::outcome::{Outcome, PassError, PassResult, Verdict};
use super::update::{ObjectVersion, StatusEndpoint, guard_anew, guarded_version, written};
use crate::error::Error;
use crate::exchange::Answer;
use crate::patch::JsonPatch;
use crate::request::{Patch, PatchParams, Requests, WriteParams};
use crate::resource::ResourceKey;

/// The patches of one pass, in the order in which they are sent: of the object, then of its status.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    verdict: Verdict,
    object: Option<JsonPatch>,
    status: Option<JsonPatch>,
    endpoint: StatusEndpoint,
    sent: Sent,
    /// The version that the handler was given.
    read: Option<Box<str>>,
    written: Option<ObjectVersion>,
}

/// The patch that waits for its answer.
#[derive(Clone, Debug)]
enum Sent {
    Nothing,
    Object,
    /// Kept until it is known that there is a place for it.
    Status(JsonPatch),
}

impl Writing {
    /// What an outcome wants written. A run that was stopped, or had no object, has nothing to write.
    pub(super) fn start(outcome: Outcome, config: &PassConfig) -> Result<Self, PassResult> {
        let Outcome { verdict, update } = outcome;
        let update = update.filter(|_| !matches!(verdict, Verdict::Gone | Verdict::Cancelled));
        let (object, status) = match update.map(|update| update.patches(config.status)) {
            None => (None, None),
            Some(Ok(patches)) => patches,
            Some(Err(error)) => return Err(failed(verdict, PassError::Change(error).into())),
        };
        let read = object.as_ref().or(status.as_ref()).and_then(guarded_version).map(Into::into);
        Ok(Self { verdict, object, status, endpoint: config.status, sent: Sent::Nothing, read, written: None })
    }

    /// The next patch as a request; `None` when all is written.
    pub(super) fn request(&mut self, key: &ResourceKey, config: &PassConfig) -> Option<Result<Request<Bytes>, Error>> {
        let requests = Requests::new(config.resource_type.clone(), key.namespace());
        let write = WriteParams { field_manager: config.field_manager.clone(), ..WriteParams::default() };
        let params = PatchParams { write, force: false };
        let send = |patch: JsonPatch, part| requests.patch(key.name(), part, &Patch::from(patch), &params);
        if let Some(patch) = self.object.take() {
            self.sent = Sent::Object;
            return Some(send(patch, None));
        }
        let patch = self.status.take()?;
        self.sent = Sent::Status(patch.clone());
        Some(send(patch, Some("status").filter(|_| self.endpoint != StatusEndpoint::Object)))
    }

    /// Takes the answer to the patch that was sent; an error ends the pass.
    pub(super) fn answered(&mut self, answer: Result<Answer, Error>) -> Result<(), PassResult> {
        let sent = std::mem::replace(&mut self.sent, Sent::Nothing);
        match answer.and_then(|answer| written(&answer)) {
            Ok(version) => {
                if let Some(version) = version {
                    self.status = self.status.take().map(|patch| guard_anew(patch, &version.resource_version));
                    self.written = Some(version);
                }
                Ok(())
            }
            Err(error) => self.refused(sent, error),
        }
    }

    fn refused(&mut self, sent: Sent, error: Error) -> Result<(), PassResult> {
        let gone = error.status().is_some_and(|status| status.code == 404);
        if let (true, Sent::Status(patch), StatusEndpoint::Detect) = (gone, sent, self.endpoint) {
            // The answer is the same whether the object is gone or its type has no such subresource; a patch of the
            // object itself tells.
            self.endpoint = StatusEndpoint::Object;
            self.status = Some(patch);
            return Ok(());
        }
        let result = if gone {
            PassResult::Gone
        } else if error.is_failed_guard() {
            PassResult::Conflict
        } else {
            PassError::Write(error).into()
        };
        Err(failed(self.verdict.clone(), result))
    }

    /// The version that the patches have led to, if it is another than the one the handler was given.
    pub(super) fn written(&self) -> Option<ObjectVersion> {
        self.written.clone().filter(|written| self.read.as_ref() != Some(&written.resource_version))
    }

    /// What the pass has come to, now that all is written.
    pub(super) fn into_result(self) -> PassResult {
        self.verdict.into()
    }
}

/// The result of a pass whose change could not be written. A failure of the handler comes first; but a failure that
/// is not to be retried is, as its report is not written.
fn failed(verdict: Verdict, result: PassResult) -> PassResult {
    match (&verdict, &result) {
        (Verdict::Failed { .. } | Verdict::Panicked { .. }, _) | (Verdict::Terminal { .. }, PassResult::Gone) => {
            verdict.into()
        }
        _ => result,
    }
}

impl From<PassError> for PassResult {
    fn from(error: PassError) -> Self {
        Self::Failed(error)
    }
}
