//! Certificates in files, in virtual time: what a TLS library would say of them is the test's to say.

use std::time::Duration;

use super::fuzz::config as exec_config;
use super::*;
use crate::config::{Auth, ConfigInput, ConfigLoad, ConfigOutput, ConfigSource, Environment, Pem, Secret, TokenFile};

/// A machine, its files, and what its callers hear.
struct World {
    credentials: Credentials,
    now: Now,
    files: Vec<(&'static str, &'static str)>,
    /// How often a file was read.
    reads: usize,
    callers: Tickets,
    heard: Vec<String>,
}

impl World {
    /// A machine for a kubeconfig with that cluster and user, whose files are as they were read last.
    fn new(cluster: &str, user: &str, files: &[(&'static str, &'static str)]) -> Self {
        let mut world = Self::of(&loaded(cluster, user, files));
        world.files = files.to_vec();
        world
    }

    fn of(config: &Config) -> Self {
        let credentials = Credentials::new(config, false, Tickets::new(0));
        Self { credentials, now: Now::default(), files: vec![], reads: 0, callers: Tickets::new(1), heard: vec![] }
    }

    /// The client certificate, its key and the authority in files.
    fn in_files() -> Self {
        Self::new(CLUSTER, USER, &[("/k/ca", "A1"), ("/k/crt", "C1"), ("/k/key", "K1")])
    }

    fn write(&mut self, files: &[(&'static str, &'static str)]) {
        self.files.retain(|(path, _)| files.iter().all(|(written, _)| path != written));
        self.files.extend(files);
    }

    fn remove(&mut self, path: &str) {
        self.files.retain(|(there, _)| *there != path);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        self.step(None);
    }

    /// What a caller is answered: the generation, the certificate, the key and the authority.
    fn ask(&mut self) -> String {
        let caller = self.callers.issue();
        self.hear(CredentialsInput::Asked { caller })
    }

    fn reject(&mut self, generation: u64) -> String {
        let caller = self.callers.issue();
        self.hear(CredentialsInput::Rejected { caller, generation })
    }

    fn fail(&mut self, generation: u64) -> String {
        let caller = self.callers.issue();
        self.hear(CredentialsInput::Failed { caller, generation })
    }

    /// All that comes of an input, and how many files were read for it.
    fn hear(&mut self, input: CredentialsInput) -> String {
        self.reads = 0;
        self.step(Some(input));
        std::mem::take(&mut self.heard).join(", ")
    }

    fn step(&mut self, mut input: Option<CredentialsInput>) {
        loop {
            let mut out = Outbox::new();
            let _ = self.credentials.step(self.now, input.take(), &mut out);
            for output in out {
                match output {
                    CredentialsOutput::Grant { grant, .. } => self.heard.push(granted(&grant)),
                    CredentialsOutput::Stand { .. } => self.heard.push("stand".into()),
                    CredentialsOutput::Warn(warning) => self.heard.push(warning.to_string()),
                    CredentialsOutput::Read { ticket, path } => {
                        self.reads += 1;
                        let content = self.files.iter().find(|(there, _)| path == std::path::Path::new(there));
                        let result = content.map(|(_, text)| text.as_bytes().to_vec()).ok_or(ReadError::NotFound);
                        input = Some(CredentialsInput::Read { ticket, result });
                    }
                    CredentialsOutput::Check { ticket, tls } => {
                        input = Some(CredentialsInput::Checked { ticket, result: checked(&tls) });
                    }
                    other => panic!("{other:?}"),
                }
            }
            if input.is_none() {
                return;
            }
        }
    }
}

const CLUSTER: &str = "certificate-authority: ca";
const USER: &str = "client-certificate: crt, client-key: key";

fn loaded(cluster: &str, user: &str, files: &[(&str, &str)]) -> Config {
    let kubeconfig = format!(
        "{{current-context: c, clusters: [{{name: p, cluster: {{server: 'https://a', {cluster}}}}}],
        contexts: [{{name: c, context: {{cluster: p, user: u}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
    );
    let mut load = ConfigLoad::new(ConfigSource::from_kubeconfig("/k/config"), Environment::default());
    let (mut out, mut input) = (Outbox::new(), None);
    loop {
        let _ = load.step(Now::default(), input.take(), &mut out);
        match out.pop() {
            Some(ConfigOutput::Read { ticket, path }) => {
                let named = files.iter().find(|(file, _)| path == std::path::Path::new(file));
                let content = named.map_or(kubeconfig.as_str(), |(_, content)| content);
                input = Some(ConfigInput::Read { ticket, result: Ok(content.into()) });
            }
            Some(ConfigOutput::Loaded(result)) => return *result.unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

/// A certificate goes with the key of the same number; what is good has two characters.
fn checked(tls: &Tls) -> Result<(), ConfigError> {
    let invalid =
        |pem: &Pem, problem: &str| Err(ConfigError::InvalidPem { origin: pem.origin.clone(), problem: problem.into() });
    let is_good = |pem: &Pem| pem.text.expose().len() == 2;
    match (&tls.ca, &tls.identity) {
        (Some(ca), _) if !is_good(ca) => invalid(ca, "no authority"),
        (_, Some(Identity { certificate, .. })) if !is_good(certificate) => invalid(certificate, "no certificate"),
        (_, Some(Identity { certificate, key })) if certificate.text.expose()[1] != key.text.expose()[1] => {
            invalid(key, "another's key")
        }
        _ => Ok(()),
    }
}

fn granted(grant: &Grant) -> String {
    let text = |pem: &Pem| String::from_utf8(pem.text.expose().to_vec()).unwrap();
    let identity = grant.tls.identity.iter().flat_map(|identity| [text(&identity.certificate), text(&identity.key)]);
    let authorization = grant.authorization.iter().map(|header| header.to_str().unwrap().to_owned());
    let all = identity.chain(grant.tls.ca.iter().map(text)).chain(authorization).collect::<Vec<_>>();
    format!("{} {}", grant.generation, all.join(" "))
}

#[test]
fn certificates_in_files_are_read_each_minute_and_taken_up_with_their_key() {
    let mut world = World::in_files();
    assert_eq!((world.ask(), world.reads), ("1 C1 K1 A1".into(), 0));
    world.write(&[("/k/crt", "C2"), ("/k/key", "K2")]);
    world.wait(59_999);
    assert_eq!((world.ask(), world.reads), ("1 C1 K1 A1".into(), 0));
    world.wait(1);
    assert_eq!((world.ask(), world.reads), ("2 C2 K2 A1".into(), 3));
    world.wait(60_000);
    assert_eq!((world.ask(), world.reads), ("2 C2 K2 A1".into(), 3), "nothing has changed");
    world.write(&[("/k/ca", "A2")]);
    world.wait(60_000);
    assert_eq!(world.ask(), "3 C2 K2 A2");
}

#[test]
fn what_has_not_changed_is_the_same_so_that_connections_are_kept() {
    let mut world = World::in_files();
    let first = world.credentials.tls.clone();
    world.ask();
    world.wait(60_000);
    world.ask();
    assert!(world.reads == 3 && Arc::ptr_eq(&first, &world.credentials.tls));
}

#[test]
fn a_certificate_that_is_not_taken_is_read_anew_at_once() {
    let mut world = World::in_files();
    world.ask();
    assert_eq!((world.reject(1), world.reads), ("stand".into(), 3), "the same would be rejected again");
    world.write(&[("/k/crt", "C2"), ("/k/key", "K2")]);
    assert_eq!(world.reject(1), "2 C2 K2 A1");
    assert_eq!((world.reject(1), world.reads), ("2 C2 K2 A1".into(), 0), "that has been dealt with");
    world.write(&[("/k/crt", "C3"), ("/k/key", "K3")]);
    assert_eq!(world.fail(2), "3 C3 K3 A1");
}

#[test]
fn an_authority_that_does_not_vouch_is_read_anew_after_a_handshake_and_not_after_a_401() {
    let mut world = World::new(CLUSTER, "token: t", &[("/k/ca", "A1")]);
    assert_eq!(world.ask(), "1 A1 Bearer t");
    world.write(&[("/k/ca", "A2")]);
    assert_eq!((world.reject(1), world.reads), ("stand".into(), 0), "an authority has no part in it");
    assert_eq!((world.fail(1), world.reads), ("2 A2 Bearer t".into(), 1));
    assert_eq!((world.fail(2), world.reads), ("stand".into(), 1));
}

#[test]
fn a_pair_that_is_half_written_is_left_until_it_is_whole_and_that_is_said_once() {
    let mut world = World::in_files();
    world.ask();
    world.write(&[("/k/crt", "C2")]);
    world.wait(60_000);
    let said = "/k/key: another's key; what was there before stays in use";
    assert_eq!(world.ask(), format!("{said}, 1 C1 K1 A1"));
    world.wait(9_999);
    assert_eq!((world.ask(), world.reads), ("1 C1 K1 A1".into(), 0));
    world.wait(1);
    assert_eq!((world.ask(), world.reads), ("1 C1 K1 A1".into(), 3), "it is looked at sooner, and said no more");
    world.write(&[("/k/crt", "C")]);
    world.wait(10_000);
    assert_eq!(world.ask(), "/k/crt: no certificate; what was there before stays in use, 1 C1 K1 A1");
    world.write(&[("/k/crt", "C2"), ("/k/key", "K2")]);
    world.wait(10_000);
    assert_eq!(world.ask(), "2 C2 K2 A1");
    world.write(&[("/k/crt", "C3")]);
    world.wait(60_000);
    assert_eq!(world.ask(), format!("{said}, 2 C2 K2 A1"));
    world.write(&[("/k/key", "K3")]);
    world.wait(10_000);
    assert_eq!(world.ask(), "3 C3 K3 A1");
    world.write(&[("/k/crt", "C4")]);
    world.wait(60_000);
    assert_eq!(world.ask(), format!("{said}, 3 C3 K3 A1"), "it is another time");
}

#[test]
fn a_file_that_is_missing_for_a_moment_leaves_what_it_held() {
    let mut world = World::in_files();
    world.ask();
    world.remove("/k/key");
    world.write(&[("/k/crt", "C2")]);
    let said = "cannot read /k/key: no such file; what it held before stays in use";
    assert_eq!(world.reject(1), format!("{said}, stand"));
    world.wait(10_000);
    assert_eq!(world.ask(), "1 C1 K1 A1");
    world.write(&[("/k/key", "K2")]);
    assert_eq!(world.fail(1), "2 C2 K2 A1");
}

#[test]
fn a_bad_authority_does_not_hold_up_a_good_certificate_nor_the_other_way_round() {
    let mut world = World::in_files();
    world.ask();
    world.write(&[("/k/ca", ""), ("/k/crt", "C2"), ("/k/key", "K2")]);
    assert_eq!(world.fail(1), "/k/ca: no authority; what was there before stays in use, 2 C2 K2 A1");
    world.write(&[("/k/ca", "A2"), ("/k/crt", "")]);
    assert_eq!(world.fail(2), "/k/crt: no certificate; what was there before stays in use, 3 C2 K2 A2");
}

#[test]
fn a_certificate_and_key_in_one_file_are_read_at_once() {
    let user = "client-certificate: pem, client-key: pem";
    let mut world = World::new("tls-server-name: a", user, &[("/k/pem", "P1")]);
    world.ask();
    world.write(&[("/k/pem", "P2")]);
    assert_eq!((world.reject(1), world.reads), ("2 P2 P2".into(), 1));
}

#[test]
fn what_is_not_in_a_file_is_not_read() {
    let data = "certificate-authority-data: QTE=, certificate-authority: ca";
    let user = "client-certificate: crt, client-key-data: SzE=";
    let mut world = World::new(data, user, &[("/k/crt", "C1"), ("/k/ca", "A2")]);
    assert_eq!(world.ask(), "1 C1 K1 A1");
    assert_eq!((world.reject(1), world.reads), ("stand".into(), 1), "only the certificate is in a file");
    let user = "client-certificate-data: QzE=, client-key-data: SzE=";
    let mut world = World::new(data, user, &[]);
    assert_eq!(
        (world.ask(), world.fail(1), world.reject(1), world.reads),
        ("1 C1 K1 A1".into(), "stand".into(), "stand".into(), 0)
    );
    world.wait(60_000);
    assert_eq!((world.ask(), world.reads), ("1 C1 K1 A1".into(), 0));
}

#[test]
fn what_was_put_in_the_place_of_a_file_stays() {
    let mut config = loaded(CLUSTER, USER, &[("/k/ca", "A1"), ("/k/crt", "C1"), ("/k/key", "K1")]);
    let own = |text: &str| Pem { origin: "mine".into(), text: Secret::new(text) };
    config.tls.identity = Some(Identity { certificate: own("M1"), key: own("M1") });
    let mut world = World::of(&config);
    world.write(&[("/k/ca", "A2"), ("/k/crt", "C2"), ("/k/key", "K2")]);
    world.ask();
    world.wait(60_000);
    assert_eq!((world.ask(), world.reads), ("2 M1 M1 A2".into(), 1));
    config.tls.insecure_skip_verify = true;
    let mut world = World::of(&config);
    assert_eq!((world.ask(), world.fail(1), world.reads), ("1 M1 M1 A1".into(), "stand".into(), 0));
}

#[test]
fn a_token_and_certificates_are_read_for_the_same_caller() {
    let mut config = loaded(CLUSTER, USER, &[("/k/ca", "A1"), ("/k/crt", "C1"), ("/k/key", "K1")]);
    config.auth = Auth::TokenFile(TokenFile::new("/t".into(), b"one").unwrap());
    let mut world = World::of(&config);
    world.write(&[("/k/ca", "A2"), ("/k/crt", "C2"), ("/k/key", "K2"), ("/t", "two")]);
    assert_eq!(world.ask(), "1 C1 K1 A1 Bearer one");
    let renewed = world.reject(1);
    assert!(renewed.ends_with(" C2 K2 A2 Bearer two") && world.reads == 4, "{renewed}");
    world.wait(60_000);
    world.write(&[("/t", "three")]);
    let renewed = world.ask();
    assert!(renewed.ends_with(" C2 K2 A2 Bearer three") && world.reads == 4, "{renewed}");
}

#[test]
fn a_program_is_told_of_the_authority_that_is_in_use() {
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never, provideClusterInfo: true}";
    let config = loaded(CLUSTER, exec, &[("/k/ca", "A1")]);
    let mut credentials = Credentials::new(&config, false, Tickets::new(0));
    let (mut callers, mut out) = (Tickets::new(1), Outbox::new());
    let mut step = |input| {
        let _ = credentials.step(Now::default(), Some(input), &mut out);
        out.pop().unwrap()
    };
    let told = |output: CredentialsOutput| match output {
        CredentialsOutput::Run { ticket, command } => {
            let info: serde_json::Value = serde_json::from_str(&command.env.last().unwrap().1).unwrap();
            (ticket, info["spec"]["cluster"]["certificate-authority-data"].as_str().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    };
    let (ticket, authority) = told(step(CredentialsInput::Asked { caller: callers.issue() }));
    assert_eq!(authority, "QTE=");
    let text = "{apiVersion: client.authentication.k8s.io/v1, kind: ExecCredential, status: {clientCertificateData: c, clientKeyData: k}}";
    let finished = Finished { ending: Ending::Exited(0), stdout: Secret::new(text), stderr: Vec::new() };
    let CredentialsOutput::Grant { grant, .. } = step(CredentialsInput::Ran { ticket, result: Ok(finished) }) else {
        panic!("no grant")
    };
    assert_eq!(granted(&grant), "1 c k A1");
    let failed = CredentialsInput::Failed { caller: callers.issue(), generation: 1 };
    let CredentialsOutput::Read { ticket, .. } = step(failed) else { panic!("no reading") };
    let read = CredentialsInput::Read { ticket, result: Ok(b"A2".to_vec()) };
    let CredentialsOutput::Check { ticket, .. } = step(read) else { panic!("no check") };
    let CredentialsOutput::Grant { grant, .. } = step(CredentialsInput::Checked { ticket, result: Ok(()) }) else {
        panic!("no grant")
    };
    assert_eq!(granted(&grant), "2 c k A2", "what was fetched stays");
    let (_, authority) = told(step(CredentialsInput::Rejected { caller: callers.issue(), generation: 2 }));
    assert_eq!(authority, "QTI=");
}

#[test]
fn reading_is_given_up_with_the_last_who_waits_and_done_once_for_all() {
    let mut credentials = Credentials::new(
        &loaded(CLUSTER, USER, &[("/k/ca", "A1"), ("/k/crt", "C1"), ("/k/key", "K1")]),
        false,
        Tickets::new(0),
    );
    let (mut callers, mut out) = (Tickets::new(1), Outbox::new());
    let mut step = |input| {
        let _ = credentials.step(Now::default(), Some(input), &mut out);
        out.drain().collect::<Vec<_>>()
    };
    let (one, other) = (callers.issue(), callers.issue());
    let reading = step(CredentialsInput::Failed { caller: one, generation: 1 });
    let [CredentialsOutput::Read { ticket, .. }] = reading[..] else { panic!("{reading:?}") };
    assert_eq!(step(CredentialsInput::Asked { caller: other }), [], "one reader is enough");
    assert_eq!(step(CredentialsInput::Left { caller: one }), []);
    assert_eq!(step(CredentialsInput::Left { caller: other }), [CredentialsOutput::Cancel { ticket }]);
    assert_eq!(step(CredentialsInput::Read { ticket, result: Ok(b"C2".to_vec()) }), [], "nobody waits for it");
    let again = step(CredentialsInput::Asked { caller: one });
    assert!(matches!(again[..], [CredentialsOutput::Read { .. }]), "what has failed is given to nobody: {again:?}");
}

#[test]
fn certificates_play_no_part_without_tls() {
    let mut config = exec_config();
    config.server = "http://a".parse().unwrap();
    config.tls = loaded(CLUSTER, USER, &[("/k/ca", "A1"), ("/k/crt", "C1"), ("/k/key", "K1")]).tls;
    let mut world = World::of(&config);
    assert_eq!((world.ask(), world.fail(1), world.reads), ("1 C1 K1 A1".into(), "stand".into(), 0));
}
