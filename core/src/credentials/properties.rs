//! The laws of machines, and that no caller is forgotten.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::fuzz::config;
use super::*;
use crate::config::{Auth, Pem, Secret, TokenFile};
use crate::laws::{self, Move};

fn machine((is_file, has_certificates): (bool, bool)) -> Credentials {
    let mut config = config();
    if is_file {
        config.auth = Auth::TokenFile(TokenFile::new("/t".into(), b"token").unwrap());
    }
    if has_certificates {
        let read = |path: &str| (Pem::of_file(path.as_ref(), "one"), Some(path.into()));
        let ((certificate, certificate_file), (key, key_file), (ca, ca_file)) = (read("/c"), read("/k"), read("/a"));
        config.tls.identity = Some(Identity { certificate, key });
        config.tls.ca = Some(ca);
        (config.tls.files.certificate, config.tls.files.key, config.tls.files.ca) =
            (certificate_file, key_file, ca_file);
    }
    Credentials::new(&config, false, Tickets::new(3))
}

fn tickets(machine: u32) -> Vec<Ticket> {
    let mut tickets = Tickets::new(machine);
    (0..8).map(|_| tickets.issue()).collect()
}

fn outcome() -> impl Strategy<Value = Result<Finished, RunError>> {
    let printed = |status: &str| {
        let text = format!("{{apiVersion: client.authentication.k8s.io/v1, kind: ExecCredential, status: {status}}}");
        Ok(Finished { ending: Ending::Exited(0), stdout: Secret::new(text), stderr: Vec::new() })
    };
    prop_oneof![
        Just(printed("{token: t}")),
        Just(printed("{token: u, expirationTimestamp: '1970-01-01T00:00:30Z'}")),
        Just(printed("{token: u, expirationTimestamp: '1969-01-01T00:00:30Z'}")),
        Just(printed("{}")),
        Just(Err(RunError::NotFound)),
    ]
}

fn input() -> impl Strategy<Value = CredentialsInput> {
    let caller = || (0_usize..6).prop_map(|at| tickets(1)[at]);
    let ticket = || (0_usize..8).prop_map(|at| tickets(3)[at]);
    let content = prop_oneof![Just(Ok(b"one".to_vec())), Just(Ok(b"two".to_vec())), Just(Err(ReadError::NotFound))];
    let unusable = ConfigError::InvalidPem { origin: "/k".into(), problem: "no key".into() };
    let checked = prop_oneof![Just(Ok(())), Just(Err(unusable))];
    prop_oneof![
        caller().prop_map(|caller| CredentialsInput::Asked { caller }),
        (caller(), 0_u64..5).prop_map(|(caller, generation)| CredentialsInput::Rejected { caller, generation }),
        (caller(), 0_u64..5).prop_map(|(caller, generation)| CredentialsInput::Failed { caller, generation }),
        caller().prop_map(|caller| CredentialsInput::Left { caller }),
        (ticket(), checked).prop_map(|(ticket, result)| CredentialsInput::Checked { ticket, result }),
        (ticket(), content).prop_map(|(ticket, result)| CredentialsInput::Read { ticket, result }),
        (ticket(), outcome()).prop_map(|(ticket, result)| CredentialsInput::Ran { ticket, result }),
    ]
}

fn script() -> impl Strategy<Value = Vec<Move<CredentialsInput>>> {
    let wait = (0_u64..40_000).prop_map(|millis| Move::Wait(Duration::from_millis(millis)));
    vec(prop_oneof![1 => wait, 3 => input().prop_map(Move::Input)], 0..40)
}

/// Answers that nobody has asked for.
fn stale() -> Vec<CredentialsInput> {
    let ticket = tickets(7)[0];
    let finished = Finished { ending: Ending::Exited(0), stdout: Secret::new("x"), stderr: Vec::new() };
    vec![
        CredentialsInput::Read { ticket, result: Ok(b"stale".to_vec()) },
        CredentialsInput::Ran { ticket, result: Ok(finished) },
        CredentialsInput::Checked { ticket, result: Ok(()) },
        CredentialsInput::Left { caller: ticket },
    ]
}

proptest! {
    #[test]
    fn whatever_is_printed_is_credentials_or_an_error_that_does_not_show_it(
        (head, status) in (prop_oneof![Just("{"), Just(""), Just("{\"kind\": \"ExecCredential\", ")], "[\\PC\n]{0,60}"),
    ) {
        let valid = "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: ";
        fuzz::exec_output(format!("{head}{status}").as_bytes());
        fuzz::exec_output(format!("{valid}{status}").as_bytes());
    }

    #[test]
    fn the_laws_hold(is_file: (bool, bool), script in script()) {
        laws::same_inputs_same_outputs(|| machine(is_file), &script);
        laws::stale_inputs_change_nothing(|| machine(is_file), &script, &stale());
    }

    #[test]
    fn every_question_is_answered_once_and_one_effect_is_in_flight(is_file: (bool, bool), inputs in vec((input(), 0_u64..9_000), 0..60)) {
        let mut model = Model { machine: machine(is_file), now: Now::default(), waiting: BTreeSet::new(), flight: None };
        for (input, millis) in inputs {
            match &input {
                // A caller asks one thing at a time, as it promises.
                CredentialsInput::Asked { caller } | CredentialsInput::Rejected { caller, .. } | CredentialsInput::Failed { caller, .. } => {
                    if !model.waiting.insert(*caller) {
                        continue;
                    }
                }
                CredentialsInput::Left { caller } => drop(model.waiting.remove(caller)),
                CredentialsInput::Read { .. } | CredentialsInput::Checked { .. } | CredentialsInput::Ran { .. } => {}
            }
            model.step(Some(model.in_flight(input)));
            model.now = model.now.after(Duration::from_millis(millis));
            model.step(None);
            let is_awaited = model.flight.is_some() || model.machine.deadline().is_some();
            prop_assert_eq!(is_awaited, !model.waiting.is_empty());
        }
    }
}

/// A machine, and what is known of it from outside.
struct Model {
    machine: Credentials,
    now: Now,
    waiting: BTreeSet<Ticket>,
    flight: Option<Ticket>,
}

impl Model {
    /// An outcome becomes that of the effect in flight.
    fn in_flight(&self, input: CredentialsInput) -> CredentialsInput {
        match (input, self.flight) {
            (CredentialsInput::Read { result, .. }, Some(ticket)) => CredentialsInput::Read { ticket, result },
            (CredentialsInput::Checked { result, .. }, Some(ticket)) => CredentialsInput::Checked { ticket, result },
            (CredentialsInput::Ran { result, .. }, Some(ticket)) => CredentialsInput::Ran { ticket, result },
            (input, _) => input,
        }
    }

    fn step(&mut self, input: Option<CredentialsInput>) {
        let is_answered = match (&input, &self.machine.state) {
            (Some(CredentialsInput::Read { .. }), State::Reading { .. })
            | (Some(CredentialsInput::Checked { .. }), State::Checking { .. }) => true,
            (Some(CredentialsInput::Read { .. }), State::Fetching { .. }) => self.machine.source.is_file(),
            (Some(CredentialsInput::Ran { .. }), State::Fetching { .. }) => !self.machine.source.is_file(),
            _ => false,
        };
        if is_answered {
            self.flight = None;
        }
        let mut out = Outbox::new();
        let _ = self.machine.step(self.now, input, &mut out);
        for output in out {
            match output {
                CredentialsOutput::Grant { caller, .. }
                | CredentialsOutput::Refuse { caller, .. }
                | CredentialsOutput::Stand { caller } => assert!(self.waiting.remove(&caller), "answered twice"),
                CredentialsOutput::Warn(_) => {}
                CredentialsOutput::Read { ticket, .. }
                | CredentialsOutput::Check { ticket, .. }
                | CredentialsOutput::Run { ticket, .. } => {
                    assert_eq!(self.flight.replace(ticket), None, "two at once");
                }
                CredentialsOutput::Cancel { ticket } => assert_eq!(self.flight.take(), Some(ticket)),
            }
        }
    }
}
