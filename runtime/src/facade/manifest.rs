//! Bringing the objects of manifests to a cluster.

use std::time::Duration;

use cloudcoil_core::manifest::{
    ManifestInput, ManifestObject, ManifestOutcome, ManifestOutput, ManifestReport, ManifestRun, ManifestRunConfig,
    ManifestVerb,
};
use cloudcoil_core::{Deadline, DeleteParams, FieldValidation, Machine as _, Outbox, Propagation};

use super::Client;
use super::world::{ManifestStream, dual};
use crate::plain::Recording;

#[dual]
impl Client {
    /// Something that is done with the objects of manifests, which need not be in any order: applying them, creating,
    /// replacing or deleting them.
    ///
    /// ```no_run
    /// use cloudcoil_runtime::core::manifest;
    /// use cloudcoil_runtime::{Client, Error};
    ///
    /// async fn apply(client: Client, yaml: &str) -> Result<(), Box<dyn std::error::Error>> {
    ///     let objects = manifest::parse("app.yaml", yaml.as_bytes())?;
    ///     let report = client.manifests(objects).apply("me").force().send().await;
    ///     for outcome in &report.outcomes {
    ///         println!("{outcome}");
    ///     }
    ///     assert!(report.is_ok());
    ///     Ok(())
    /// }
    /// ```
    pub fn manifests(&self, objects: impl IntoIterator<Item = ManifestObject>) -> Manifests {
        Manifests { client: self.clone(), objects: objects.into_iter().collect() }
    }
}

/// Objects of manifests, to be brought to a cluster; see [`Client::manifests`].
#[derive(Debug)]
#[must_use = "choose what is done with them"]
pub struct Manifests {
    client: Client,
    objects: Vec<ManifestObject>,
}

impl Manifests {
    /// Has them created, or brought to what they say, by server-side apply; `field_manager` owns the fields then. New types
    /// among them are waited for before objects of these types are applied.
    pub fn apply(self, field_manager: &str) -> ManifestRequest {
        self.done(ManifestVerb::Apply { field_manager: field_manager.to_owned(), force: false })
    }

    /// Has them created; those that exist are failures.
    pub fn create(self) -> ManifestRequest {
        self.done(ManifestVerb::Create)
    }

    /// Has those that exist replaced whole.
    pub fn replace(self) -> ManifestRequest {
        self.done(ManifestVerb::Replace)
    }

    /// Has them deleted, the last that were installed first.
    pub fn delete(self) -> ManifestRequest {
        self.done(ManifestVerb::Delete { params: DeleteParams::default(), ignore_missing: false })
    }

    fn done(self, verb: ManifestVerb) -> ManifestRequest {
        let namespace = self.client.default_namespace().to_owned();
        let config = ManifestRunConfig { namespace, ..ManifestRunConfig::new(verb) };
        ManifestRequest { client: self.client, objects: self.objects, config }
    }
}

/// Something that is done with the objects of manifests: [`send`](Self::send) it to have the report, or read what comes of each as
/// a [`stream`](Self::stream).
#[derive(Debug)]
#[must_use = "call `send` or `stream`"]
pub struct ManifestRequest {
    client: Client,
    objects: Vec<ManifestObject>,
    config: ManifestRunConfig,
}

#[dual]
impl ManifestRequest {
    /// The namespace of objects that name none; the client's unless this is called.
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.config.namespace);
        self
    }

    /// Objects that name another namespace are failures.
    pub fn enforce_namespace(mut self) -> Self {
        self.config.enforce_namespace = true;
        self
    }

    /// Check and answer as if it were done, but store nothing.
    pub fn dry_run(mut self) -> Self {
        self.config.dry_run = true;
        self
    }

    /// For an apply: take fields over from other managers where they conflict.
    pub fn force(mut self) -> Self {
        if let ManifestVerb::Apply { force, .. } = &mut self.config.verb {
            *force = true;
        }
        self
    }

    /// Who is writing, for creations and replacements.
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        match &mut self.config.verb {
            ManifestVerb::Apply { field_manager, .. } => *field_manager = name,
            _ => self.config.field_manager = Some(name),
        }
        self
    }

    /// What becomes of fields that a type does not have.
    pub fn field_validation(mut self, validation: FieldValidation) -> Self {
        self.config.field_validation = Some(validation);
        self
    }

    /// For a deletion: what becomes of the objects that are owned.
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        if let ManifestVerb::Delete { params, .. } = &mut self.config.verb {
            params.propagation = Some(propagation);
        }
        self
    }

    /// For a deletion: how long each may take to end, in whole seconds; zero ends it at once.
    pub fn grace_period(mut self, period: Duration) -> Self {
        if let ManifestVerb::Delete { params, .. } = &mut self.config.verb {
            params.grace_period = Some(period);
        }
        self
    }

    /// For a deletion: an object that does not exist is no failure.
    pub fn ignore_missing(mut self) -> Self {
        if let ManifestVerb::Delete { ignore_missing, .. } = &mut self.config.verb {
            *ignore_missing = true;
        }
        self
    }

    /// How long it may take until a type that one of the objects defines is served; a minute unless this is called.
    pub fn establish_timeout(mut self, timeout: Duration) -> Self {
        self.config.establish_timeout = timeout;
        self
    }

    /// Does it with all objects, and answers what came of each; those that failed are in the
    /// report.
    pub async fn send(self) -> ManifestReport {
        let mut report = ManifestReport::default();
        let mut run = self.run();
        while let Some(outcome) = run.next().await {
            report.outcomes.push(outcome);
        }
        report
    }

    /// What comes of each object, as it is seen to. Nothing is sent but as the next is asked for.
    pub fn stream(self) -> ManifestStream {
        ManifestStream::new(self.run())
    }

    fn run(self) -> Installing {
        let machine = ManifestRun::new(self.objects, self.config, 0);
        let (recording, deadline) = (self.client.recording::<ManifestRun>(), machine.deadline());
        Installing { client: self.client, deadline, machine, recording, out: Outbox::new() }
    }
}

/// The work, one object after the other.
pub(crate) struct Installing {
    client: Client,
    deadline: Option<Deadline>,
    machine: ManifestRun,
    recording: Recording,
    out: Outbox<ManifestOutput>,
}

#[dual]
impl Installing {
    pub(crate) async fn next(&mut self) -> Option<ManifestOutcome> {
        let mut input = None;
        loop {
            while let Some(output) = self.out.pop() {
                match output {
                    // Whoever reads is told before the next object is begun with.
                    ManifestOutput::Report(outcome) => return Some(*outcome),
                    ManifestOutput::Finished => return None,
                    effect => input = self.perform(effect).await,
                }
            }
            if let (None, Some(deadline)) = (&input, self.deadline) {
                self.client.clock().sleep_until(deadline.at).await;
            }
            let now = self.client.clock().now();
            self.deadline = self.recording.step(&mut self.machine, now, input.take(), &mut self.out);
        }
    }

    async fn perform(&self, effect: ManifestOutput) -> Option<ManifestInput> {
        match effect {
            ManifestOutput::Send { ticket, request } => {
                let result = self.client.request(request.into_inner()).await;
                Some(ManifestInput::Answered { ticket, result })
            }
            ManifestOutput::Resolve { ticket, api_version, kind } => {
                let found = self.client.discovery().find_kind(&api_version, &kind).await;
                let result = found.map(|resource| resource.resource_type);
                Some(ManifestInput::Resolved { ticket, result })
            }
            ManifestOutput::Report(_) | ManifestOutput::Finished => None,
        }
    }
}
