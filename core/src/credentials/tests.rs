use std::time::Duration;

use super::fuzz::config as exec_config;
use super::*;
use crate::config::{Auth, InteractiveMode, Secret, TokenFile};

/// A machine, what it said last, and the callers' tickets.
struct World {
    credentials: Credentials,
    now: Now,
    deadline: Option<Deadline>,
}

/// What was said, short.
#[derive(Debug, PartialEq)]
enum Said {
    /// To this caller, with this generation and header.
    Granted(u64, u64, String),
    Refused(u64, String),
    Stands(u64),
    Read,
    Run,
    Cancelled,
}
use Said::{Cancelled, Granted, Read, Refused, Run, Stands};

impl World {
    fn new(config: &Config) -> Self {
        let now = Now { mono: Time::from_secs(1000), wall: "2026-01-01T00:00:00Z".into_unix() };
        Self { credentials: Credentials::new(config, false, Tickets::new(0)), now, deadline: None }
    }

    fn program() -> Self {
        Self::new(&exec_config())
    }

    fn step(&mut self, input: Option<CredentialsInput>) -> Vec<Said> {
        let mut out = Outbox::new();
        self.deadline = self.credentials.step(self.now, input, &mut out);
        out.into_iter().map(said).collect()
    }

    fn wait(&mut self, millis: u64) -> Vec<Said> {
        self.now = self.now.after(Duration::from_millis(millis));
        self.step(None)
    }

    fn ask(&mut self, caller: u64) -> Vec<Said> {
        self.step(Some(CredentialsInput::Asked { caller: ticket(caller) }))
    }

    fn reject(&mut self, caller: u64, generation: u64) -> Vec<Said> {
        self.step(Some(CredentialsInput::Rejected { caller: ticket(caller), generation }))
    }

    fn leave(&mut self, caller: u64) -> Vec<Said> {
        self.step(Some(CredentialsInput::Left { caller: ticket(caller) }))
    }

    /// The program's end, as it was run the `run`-th time.
    fn ran(&mut self, run: u64, result: Result<&str, RunError>) -> Vec<Said> {
        let result = result.map(printing);
        self.step(Some(CredentialsInput::Ran { ticket: effect(run), result }))
    }

    fn read(&mut self, read: u64, result: Result<&str, ReadError>) -> Vec<Said> {
        let result = result.map(|text| text.as_bytes().to_vec());
        self.step(Some(CredentialsInput::Read { ticket: effect(read), result }))
    }
}

trait IntoUnix {
    fn into_unix(self) -> crate::UnixTime;
}

impl IntoUnix for &str {
    fn into_unix(self) -> crate::UnixTime {
        expiry::parse(self).unwrap()
    }
}

fn said(output: CredentialsOutput) -> Said {
    let number = |caller: Ticket| caller.effect();
    match output {
        CredentialsOutput::Grant { caller, grant } => {
            let header = grant.authorization.map(|header| header.to_str().unwrap().to_owned());
            Granted(number(caller), grant.generation, header.unwrap_or_default())
        }
        CredentialsOutput::Refuse { caller, error } => Refused(number(caller), error.problem.to_string()),
        CredentialsOutput::Stand { caller } => Stands(number(caller)),
        CredentialsOutput::Read { path, .. } => {
            assert_eq!(path, PathBuf::from("/t"));
            Read
        }
        CredentialsOutput::Run { command, .. } => {
            assert_eq!(command.program, PathBuf::from("login"));
            Run
        }
        CredentialsOutput::Check { .. } | CredentialsOutput::Warn(_) => panic!("there are no certificates: {output:?}"),
        CredentialsOutput::Cancel { .. } => Cancelled,
    }
}

fn ticket(number: u64) -> Ticket {
    nth(1, number)
}

fn effect(number: u64) -> Ticket {
    nth(0, number)
}

fn nth(machine: u32, number: u64) -> Ticket {
    let mut tickets = Tickets::new(machine);
    for _ in 1..number {
        tickets.issue();
    }
    tickets.issue()
}

fn printing(stdout: &str) -> Finished {
    Finished { ending: Ending::Exited(0), stdout: Secret::new(stdout), stderr: Vec::new() }
}

fn printed(status: &str) -> String {
    format!("apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {status}\n")
}

fn token_file() -> Config {
    let mut config = Config::new("https://a").unwrap();
    config.auth = Auth::TokenFile(TokenFile::new("/t".into(), b"abc\n").unwrap());
    config
}

fn granted(caller: u64, generation: u64, token: &str) -> Said {
    Granted(caller, generation, format!("Bearer {token}"))
}

#[test]
fn a_token_file_is_read_each_minute_and_the_last_good_token_stays() {
    let mut world = World::new(&token_file());
    assert_eq!(world.ask(1), [granted(1, 1, "abc")]);
    world.wait(59_999);
    assert_eq!(world.ask(1), [granted(1, 1, "abc")]);
    world.wait(1);
    assert_eq!(world.ask(1), [Read]);
    assert_eq!(world.ask(2), [], "one reader is enough");
    assert_eq!(world.read(1, Ok("def\r\n")), [granted(1, 2, "def"), granted(2, 2, "def")]);
    world.wait(60_000);
    assert_eq!(world.ask(1), [Read]);
    assert_eq!(world.read(2, Err(ReadError::NotFound)), [granted(1, 2, "def")]);
    world.wait(9_999);
    assert_eq!(world.ask(1), [granted(1, 2, "def")]);
    world.wait(1);
    assert_eq!(world.ask(1), [Read], "a file that is away is looked for sooner");
    assert_eq!(world.read(3, Ok("\n")), [granted(1, 2, "def")], "an empty file has no token");
}

#[test]
fn a_rejected_token_is_read_anew_and_the_same_token_is_not_sent_again() {
    let mut world = World::new(&token_file());
    assert_eq!(world.ask(1), [granted(1, 1, "abc")]);
    assert_eq!(world.reject(1, 1), [Read]);
    assert_eq!(world.ask(2), [], "a rejected token is given to nobody");
    assert_eq!(world.read(1, Ok("abc")), [Stands(1), granted(2, 1, "abc")]);
    assert_eq!(world.reject(1, 1), [Read]);
    assert_eq!(world.read(2, Ok("def")), [granted(1, 2, "def")]);
    assert_eq!(world.reject(3, 1), [granted(3, 2, "def")], "what was rejected is no longer used");
    assert_eq!(world.reject(1, 2), [Read]);
    assert_eq!(world.read(3, Err(ReadError::NotFound)), [Stands(1)]);
}

#[test]
fn what_a_configuration_holds_is_granted_and_its_rejection_stands() {
    let mut config = Config::new("https://a").unwrap();
    assert_eq!(World::new(&config).ask(1), [Granted(1, 1, String::new())]);
    config.auth = Auth::basic("me", "word");
    let mut world = World::new(&config);
    assert_eq!(world.ask(1), [Granted(1, 1, "Basic bWU6d29yZA==".into())]);
    assert_eq!(world.reject(1, 1), [Stands(1)]);
    assert_eq!(world.ask(1), [Granted(1, 1, "Basic bWU6d29yZA==".into())]);
}

#[test]
fn credentials_do_not_go_over_plain_http() {
    let mut config = exec_config();
    config.server = "http://a".parse().unwrap();
    let mut world = World::new(&config);
    assert_eq!(world.ask(1), [Granted(1, 1, String::new())]);
    assert_eq!(world.reject(1, 1), [Stands(1)]);
}

#[test]
fn a_program_runs_once_for_all_who_wait_and_again_when_its_token_is_rejected() {
    let mut world = World::program();
    let far = printed("{token: token-one, expirationTimestamp: '2099-01-01T00:00:00Z'}");
    assert_eq!(world.ask(1), [Run]);
    assert_eq!(world.ask(2), []);
    assert_eq!(world.ran(1, Ok(&far)), [granted(1, 1, "token-one"), granted(2, 1, "token-one")]);
    assert_eq!(world.reject(1, 1), [Run]);
    for caller in 2..=10 {
        assert_eq!(world.reject(caller, 1), []);
    }
    let all: Vec<_> = (1..=10).map(|caller| granted(caller, 2, "token-two")).collect();
    assert_eq!(world.ran(2, Ok(&printed("{token: token-two}"))), all);
    assert_eq!(world.reject(11, 1), [granted(11, 2, "token-two")], "it was refreshed meanwhile");
    world.wait(1 << 40);
    assert_eq!(world.ask(12), [granted(12, 2, "token-two")], "without a time of expiry it is good until rejected");
}

#[test]
fn a_program_whose_tokens_are_all_rejected_is_run_more_and_more_seldom() {
    let mut world = World::program();
    assert_eq!(world.ask(1), [Run]);
    world.ran(1, Ok(&printed("{token: t}")));
    assert_eq!(world.reject(1, 1), [Run], "the first rejection is dealt with at once");
    world.ran(2, Ok(&printed("{token: t}")));
    for (run, pause) in [(3, 100), (4, 200), (5, 400), (6, 800), (7, 1600), (8, 3200), (9, 5000), (10, 5000)] {
        assert_eq!(world.reject(1, run - 1), []);
        assert_eq!(world.deadline.map(|due| due.at), Some(world.now.mono + Duration::from_millis(pause)));
        assert_eq!(world.wait(pause - 1), []);
        assert_eq!(world.wait(1), [Run]);
        assert_eq!(world.ran(run, Ok(&printed("{token: t}"))), [granted(1, run, "t")]);
    }
    world.wait(60_000);
    assert_eq!(world.reject(1, 10), [Run], "a token that was good for a minute is another matter");
}

#[test]
fn a_failure_answers_all_who_wait_and_the_next_tries_again_after_a_pause() {
    let mut world = World::program();
    world.ask(1);
    world.ask(2);
    let failure = || Err(RunError::Failed("no memory".into()));
    let refused = |caller| Refused(caller, "cannot be run: no memory".into());
    assert_eq!(world.ran(1, failure()), [refused(1), refused(2)]);
    assert_eq!(world.ask(1), []);
    assert_eq!(world.wait(99), []);
    assert_eq!(world.wait(1), [Run]);
    assert_eq!(world.ran(2, failure()), [refused(1)]);
    world.wait(199);
    assert_eq!(world.ask(1), []);
    assert_eq!(world.wait(1), [Run]);
    assert_eq!(world.ran(3, Ok(&printed("{token: t}"))), [granted(1, 1, "t")]);
    assert_eq!(world.deadline, None);
}

#[test]
fn expiry_goes_by_the_wall_clock() {
    let mut world = World::program();
    world.ask(1);
    let soon = printed("{token: t, expirationTimestamp: '2026-01-01T01:00:00.5+00:30'}");
    assert_eq!(world.ran(1, Ok(&soon)), [granted(1, 1, "t")]);
    world.wait(30 * 60_000 + 499);
    assert_eq!(world.ask(1), [granted(1, 1, "t")]);
    world.wait(1);
    assert_eq!(world.ask(1), [Run]);
    world.ran(2, Ok(&printed("{token: u, expirationTimestamp: '9999-12-31T23:59:59Z'}")));
    world.now.wall = "2500-01-01T00:00:00Z".into_unix();
    assert_eq!(world.ask(1), [granted(1, 2, "u")]);
}

#[test]
fn what_has_expired_before_it_came_is_used_for_a_second() {
    let mut world = World::program();
    world.ask(1);
    let past = printed("{token: t, expirationTimestamp: '2025-12-31T23:59:59Z'}");
    assert_eq!(world.ran(1, Ok(&past)), [granted(1, 1, "t")]);
    world.wait(999);
    assert_eq!(world.ask(1), [granted(1, 1, "t")]);
    world.wait(1);
    assert_eq!(world.ask(1), [Run]);
}

#[test]
fn a_program_is_stopped_when_the_last_who_waits_for_it_has_left() {
    let mut world = World::program();
    world.ask(1);
    world.ask(2);
    assert_eq!(world.leave(1), []);
    assert_eq!(world.leave(1), [], "it has left already");
    assert_eq!(world.leave(2), [Cancelled]);
    assert_eq!(world.ran(1, Ok(&printed("{token: t}"))), [], "what was stopped is not heard");
    assert_eq!(world.ask(3), [Run]);
    assert_eq!(world.ran(2, Ok(&printed("{token: u}"))), [granted(3, 1, "u")]);
    assert_eq!(world.leave(3), []);
    world.reject(4, 1);
    world.ran(3, Err(RunError::NotExecutable));
    world.ask(5);
    assert!(world.deadline.is_some());
    assert_eq!(world.leave(5), []);
    assert_eq!(world.deadline, None, "nobody waits for the pause to end");
}

#[test]
fn a_program_that_insists_on_a_terminal_is_not_run_without_one() {
    let mut config = exec_config();
    let Auth::Exec(exec) = &mut config.auth else { panic!() };
    exec.interactive_mode = InteractiveMode::Always;
    let problem = "interactiveMode is Always, and standard input is not a terminal";
    let mut world = World::new(&config);
    assert_eq!(world.ask(1), [Refused(1, problem.into())]);
    assert_eq!(world.ask(2), [Refused(2, problem.into())]);
    world.credentials = Credentials::new(&config, true, Tickets::new(0));
    assert_eq!(world.ask(1), [Run]);
}

#[test]
fn a_fetched_certificate_is_a_new_identity_only_when_it_changes() {
    let mut world = World::program();
    let identity = |world: &mut World| {
        let mut out = Outbox::new();
        let asked = CredentialsInput::Asked { caller: ticket(9) };
        let _ = world.credentials.step(world.now, Some(asked), &mut out);
        let Some(CredentialsOutput::Grant { grant, .. }) = out.pop() else { panic!() };
        grant.tls
    };
    let one = printed("{token: t, clientCertificateData: c, clientKeyData: k}");
    world.ask(1);
    assert_eq!(world.ran(1, Ok(&one)), [granted(1, 1, "t")]);
    let first = identity(&mut world);
    let shown = first.identity.as_ref().unwrap();
    assert_eq!((shown.certificate.text.expose(), shown.key.text.expose()), (&b"c"[..], &b"k"[..]));
    world.reject(1, 1);
    world.ran(2, Ok(&one));
    assert!(Arc::ptr_eq(&first, &identity(&mut world)));
    world.wait(100);
    world.reject(1, 2);
    assert_eq!(
        world.ran(3, Ok(&printed("{clientCertificateData: d, clientKeyData: l}"))),
        [Granted(1, 3, String::new())]
    );
    assert_eq!(identity(&mut world).identity.as_ref().unwrap().certificate.text.expose(), b"d");
}

#[test]
fn nothing_shows_a_secret() {
    let mut world = World::program();
    let mut out = Outbox::new();
    let _ = world.credentials.step(world.now, Some(CredentialsInput::Asked { caller: ticket(1) }), &mut out);
    let stdout = printed("{token: s3cret, clientCertificateData: s3cret, clientKeyData: s3cret}");
    let ran = CredentialsInput::Ran { ticket: effect(1), result: Ok(printing(&stdout)) };
    let _ = world.credentials.step(world.now, Some(ran), &mut out);
    let shown = format!("{out:?}");
    assert!(shown.contains("Grant") && !shown.contains("s3cret"), "{shown}");
}
