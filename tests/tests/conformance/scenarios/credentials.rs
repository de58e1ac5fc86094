//! Who a client is: tokens, and programs that fetch them.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cloudcoil_apiserver::{ClientCertificate, ServerConfig, Tls};
use cloudcoil_runtime::Error;
use cloudcoil_runtime::core::config::{Auth, Config, ConfigSource, Impersonation, TokenFile};
use cloudcoil_runtime::core::credentials::{CredentialsProblem, Ending};
use serde_json::{Value, json};

use super::{event, map, stored, told};
use crate::scripted::{Answer, Listening, Play, Script, Seen, Then, in_order};
use crate::servers::{Cluster, in_memory};
use crate::stage::{Stage, scenarios};
use crate::world::op::{Op, maps};

scenarios! {
    PLAIN {
        a_token_is_said_with_every_request,
        a_token_may_be_long_and_of_any_letters,
        a_name_and_a_password_are_said_with_every_request,
        an_impersonated_user_is_said_with_every_request,
        a_token_file_is_read_again_when_its_token_is_rejected,
        a_rejection_stands_where_there_is_nothing_better,
        a_second_rejection_stands,
        a_rejected_token_is_fetched_anew_once_for_all_who_wait,
        an_expired_token_is_fetched_anew,
        a_token_that_does_not_expire_is_fetched_once,
        a_watch_goes_on_with_a_new_token,
        a_program_that_fails_is_named_with_what_it_said,
        what_is_no_credential_is_refused_and_not_shown,
        a_program_that_fails_is_run_again_for_the_next_call,
    }
    SOCKETS {
        a_token_does_not_go_without_tls,
        a_certificate_that_a_program_fetches_is_shown,
        another_certificate_is_shown_by_another_connection,
        a_program_that_hangs_ends_with_its_call,
        a_program_that_leaves_something_behind_is_not_waited_for,
        what_nobody_takes_is_in_no_error,
    }
}

/// A server that knows nobody but who has this token.
fn guarded(token: &str) -> Cluster {
    Cluster::start(true, ServerConfig { token: Some(token.to_owned()), ..in_memory() })
}

/// A user that is whom a shell script says, which runs in that folder.
fn scripted(folder: &Path, script: &str) -> Auth {
    program(folder, "sh", &["-c", &format!("cd {}; {script}", folder.display())])
}

/// A user that is whom a program says.
fn program(folder: &Path, command: &str, args: &[&str]) -> Auth {
    let kubeconfig = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": command, "args": args, "installHint": "get it elsewhere",
        }}}],
    });
    fs::write(folder.join("config"), kubeconfig.to_string()).unwrap();
    let source = ConfigSource::from_kubeconfig(folder.join("config"));
    cloudcoil_blocking::load_config(source).unwrap().auth
}

/// How the cluster is reached by whom a shell script says.
fn plugin(folder: &Path, cluster: &Cluster, script: &str) -> Config {
    let mut config = cluster.config();
    config.auth = scripted(folder, script);
    config
}

/// What prints a credential, with what the shell has to make within single quotes.
fn prints(status: &Value) -> String {
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
    });
    format!("printf %s '{credential}'")
}

/// What prints a credential with this token, which the shell may still have to make.
fn credential(token: &str) -> String {
    prints(&json!({"token": format!("'{token}'")}))
}

/// A token that counts the runs of its program.
fn counting() -> String {
    format!("echo run >> runs; {}", credential(COUNTED))
}

const COUNTED: &str = "token-$(wc -l < runs | tr -d ' ')";

fn runs(folder: &Path) -> usize {
    fs::read_to_string(folder.join("runs")).unwrap().lines().count()
}

/// Whose request it is.
fn authorization(seen: &Seen) -> &str {
    seen.header("authorization").unwrap_or_default()
}

/// A server that takes requests with this token alone.
fn only(token: &'static str, answer: impl Fn() -> Answer + Send + 'static) -> Script {
    Box::new(move |seen| {
        let is_known = authorization(seen).strip_prefix("Bearer ") == Some(token);
        if is_known { answer() } else { unauthorized() }
    })
}

fn unauthorized() -> Answer {
    Answer::refusal(401, "Unauthorized", "Unauthorized")
}

fn is_refused(play: &Play, op: Op) -> bool {
    play.fail(op).code() == Some(401)
}

fn a_token_is_said_with_every_request(stage: &Stage) {
    let bearer = |config: &mut Config| config.auth = Auth::bearer(b"token").unwrap();
    let play = stage.play_as(Box::new(|_| Answer::json(&stored("a", 5))), bearer);
    play.must(maps().get("a"));
    play.must(maps().create(map("a", "1")));
    assert!(play.seen().iter().all(|seen| authorization(seen) == "Bearer token"));
}

fn a_token_may_be_long_and_of_any_letters(stage: &Stage) {
    for token in ["t".repeat(100_000), "jörg".to_owned()] {
        let script = Box::new(|_: &Seen| Answer::json(&stored("a", 5)));
        let play = stage.play_as(script, |config| config.auth = Auth::bearer(token.as_bytes()).unwrap());
        play.must(maps().get("a"));
        assert_eq!(authorization(&play.seen()[0]), format!("Bearer {token}"));
    }
}

fn a_token_does_not_go_without_tls(stage: &Stage) {
    let (server, told) = Listening::start(None, Box::new(|_| Answer::json(&stored("a", 5))));
    let mut config = crate::servers::config_of(&server.url(), None);
    config.auth = Auth::bearer(b"token").unwrap();
    stage.connect(&config).must(maps().get("a"));
    let crate::scripted::Told::Requested(seen) = told.recv().unwrap() else { panic!("no request") };
    assert_eq!(seen.header("authorization"), None, "who listens on the way would have it");
}

fn a_name_and_a_password_are_said_with_every_request(stage: &Stage) {
    let script = Box::new(|_: &Seen| Answer::json(&stored("a", 5)));
    let play = stage.play_as(script, |config| config.auth = Auth::basic("me", "pass:word"));
    play.must(maps().get("a"));
    play.must(maps().create(map("a", "1")));
    assert!(play.seen().iter().all(|seen| authorization(seen) == "Basic bWU6cGFzczp3b3Jk"));
}

fn an_impersonated_user_is_said_with_every_request(stage: &Stage) {
    let play = stage.play_as(
        in_order([Answer::json(&stored("a", 5)), Answer::list("10", &[]), Answer::watch(&[])]),
        |config| {
            config.impersonation = Impersonation::user("jane");
            config.impersonation.groups = vec!["developers".into(), "admins".into()];
            config.impersonation.extra = [("Reason".to_owned(), vec!["a test".to_owned()])].into();
        },
    );
    play.must(maps().get("a"));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 2), ["restarted", "synced"]);
    for seen in play.wait_for(3) {
        let said: Vec<_> = seen.headers.iter().filter(|(name, _)| name.starts_with("impersonate-")).collect();
        let mut said: Vec<_> = said.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        // Between headers of different names, the order means nothing.
        said.sort_by_key(|line| line.split(':').next().unwrap_or_default().to_owned());
        let expected = [
            "impersonate-extra-reason: a test",
            "impersonate-group: developers",
            "impersonate-group: admins",
            "impersonate-user: jane",
        ];
        assert_eq!(said, expected);
    }
}

/// A user whose token is in a file, which has just been read.
fn token_file(folder: &Path, token: &str) -> Auth {
    let path = folder.join("token");
    fs::write(&path, token).unwrap();
    Auth::TokenFile(TokenFile::new(path, token.as_bytes()).unwrap())
}

fn a_token_file_is_read_again_when_its_token_is_rejected(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let auth = token_file(folder.path(), "one\n");
    let play = stage.play_as(only("two", || Answer::json(&stored("a", 5))), |config| config.auth = auth);
    fs::write(folder.path().join("token"), "two\n").unwrap();
    play.must(maps().get("a"));
    // The next finds the good one at once; and is not told to the server that took the other.
    let body = map("b", &"x".repeat(100_000));
    play.must(maps().create(body.clone()));
    let said: Vec<_> = play.seen().iter().map(|seen| format!("{} {}", seen.method, authorization(seen))).collect();
    assert_eq!(said, ["GET Bearer one", "GET Bearer two", "POST Bearer two"]);

    let auth = token_file(folder.path(), "one");
    let play = stage.play_as(only("two", || Answer::json(&stored("a", 5))), |config| config.auth = auth);
    fs::write(folder.path().join("token"), "two").unwrap();
    play.must(maps().create(body.clone()));
    let seen = play.seen();
    let said: Vec<_> = seen.iter().map(authorization).collect();
    assert_eq!(said, ["Bearer one", "Bearer two"], "a write that was rejected has done nothing");
    assert_eq!((&seen[0].body, &seen[0].path), (&seen[1].body, &seen[1].path));
    let sent: Value = serde_json::from_slice(&seen[1].body).unwrap();
    assert_eq!(sent["data"], body["data"]);
}

fn a_rejection_stands_where_there_is_nothing_better(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    for auth in
        [token_file(folder.path(), "one"), Auth::bearer(b"one").unwrap(), Auth::basic("me", "one"), Auth::Anonymous]
    {
        let play = stage.play_as(Box::new(|_| unauthorized()), |config| config.auth = auth);
        assert!(is_refused(&play, maps().get("a")));
        assert_eq!(play.seen().len(), 1, "the same would be rejected again");
    }
}

fn a_second_rejection_stands(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let auth = scripted(folder.path(), &counting());
    let play = stage.play_as(Box::new(|_| unauthorized()), |config| config.auth = auth);
    assert!(is_refused(&play, maps().create(map("a", "1"))));
    let seen = play.seen();
    let said: Vec<_> = seen.iter().map(authorization).collect();
    assert_eq!(said, ["Bearer token-1", "Bearer token-2"]);
    assert_eq!(runs(folder.path()), 2);
}

fn a_rejected_token_is_fetched_anew_once_for_all_who_wait(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let auth = scripted(folder.path(), &counting());
    let play = stage.play_as(only("token-2", || Answer::list("10", &[])), |config| config.auth = auth);
    play.all((0..10).map(|_| maps().page())).into_iter().for_each(|answer| drop(answer.unwrap()));
    assert_eq!(runs(folder.path()), 2, "one run for the first token, and one after it was rejected");
}

fn an_expired_token_is_fetched_anew(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let status = json!({"token": format!("'{COUNTED}'"), "expirationTimestamp": "2020-01-01T00:00:00Z"});
    let auth = scripted(folder.path(), &format!("echo run >> runs; {}", prints(&status)));
    // What has expired before it came is good for a second, for clocks may disagree; the first answer takes longer.
    let slow = Answer::json(&stored("a", 5)).pausing(Duration::from_millis(1100));
    let play = stage.play_as(in_order([slow, Answer::json(&stored("a", 5))]), |config| config.auth = auth);
    play.must(maps().get("a"));
    play.must(maps().get("a"));
    let seen = play.seen();
    assert_eq!((authorization(&seen[0]), authorization(&seen[1])), ("Bearer token-1", "Bearer token-2"));
}

fn a_token_that_does_not_expire_is_fetched_once(stage: &Stage) {
    for status in [json!({"token": "t", "expirationTimestamp": "9999-12-31T23:59:59Z"}), json!({"token": "t"})] {
        let folder = tempfile::tempdir().unwrap();
        let auth = scripted(folder.path(), &format!("echo run >> runs; {}", prints(&status)));
        let play = stage.play_as(only("t", || Answer::json(&stored("a", 5))), |config| config.auth = auth);
        play.all((0..10).map(|_| maps().get("a"))).into_iter().for_each(|answer| drop(answer.unwrap()));
        play.must(maps().get("a"));
        assert_eq!((runs(folder.path()), play.seen().len()), (1, 11));
    }
}

fn a_watch_goes_on_with_a_new_token(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let auth = scripted(folder.path(), &counting());
    let mut watches = 0;
    // The first watch ends as its token does.
    let script: Script = Box::new(move |seen| {
        if !seen.is_watch() {
            return Answer::list("10", &[stored("a", 5)]);
        }
        watches += 1;
        match (watches, authorization(seen)) {
            (1, "Bearer token-1") => Answer::watch(&[event("MODIFIED", "a", 11)]).then(Then::End),
            (2, "Bearer token-1") => unauthorized(),
            (3, "Bearer token-2") => Answer::watch(&[event("MODIFIED", "a", 12)]),
            (number, who) => panic!("watch {number} by {who}"),
        }
    });
    let play = stage.play_as(script, |config| config.auth = auth);
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 5), ["restarted", "listed a 5", "synced", "applied a 11", "applied a 12"]);
    let seen = play.seen();
    let places: Vec<_> = seen.iter().filter_map(|seen| seen.version().filter(|_| seen.is_watch())).collect();
    assert_eq!(places, ["10", "11", "11"]);
}

/// What prints a client certificate.
fn certificate(made: &ClientCertificate) -> String {
    prints(&json!({"clientCertificateData": made.certificate_pem, "clientKeyData": made.key_pem}))
}

/// A server that knows its clients by certificates alone.
pub(super) fn certified() -> (Cluster, Tls) {
    let tls = Tls::generate(&[]).unwrap();
    let config = ServerConfig { token: Some("nobody's".into()), ..in_memory() };
    (Cluster::with_keys(Some(tls.clone()), config), tls)
}

fn a_certificate_that_a_program_fetches_is_shown(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, tls) = certified();
    let made = tls.client_certificate("jane", &["developers"]).unwrap();
    let config = plugin(folder.path(), &cluster, &certificate(&made));
    let world = stage.connect(&config);
    for _ in 0..2 {
        assert_eq!(world.must(Op::whoami()).text(), "jane");
    }
    let error = stage.connect(&cluster.config()).fail(Op::whoami());
    assert_eq!(error.code(), Some(401), "nobody else gets in: {error:?}");
}

fn another_certificate_is_shown_by_another_connection(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, tls) = certified();
    // The server knows nothing of the first one's authority.
    let first = Tls::generate(&[]).unwrap().client_certificate("jim", &[]).unwrap();
    let second = tls.client_certificate("jane", &[]).unwrap();
    let script = format!(
        "echo run >> runs; if [ $(wc -l < runs) -eq 1 ]; then {}; else {}; fi",
        certificate(&first),
        certificate(&second)
    );
    let config = plugin(folder.path(), &cluster, &script);
    let world = stage.connect(&config);
    for _ in 0..2 {
        assert_eq!(world.must(Op::whoami()).text(), "jane");
    }
    assert_eq!(runs(folder.path()), 2);
}

/// What is wrong with the program of a user, of whom the server never hears.
#[track_caller]
fn problem(stage: &Stage, auth: Auth) -> (CredentialsProblem, String) {
    let play = stage.play_as(Box::new(|_| Answer::json(&stored("a", 5))), |config| config.auth = auth);
    let error = play.fail(maps().get("a"));
    assert_eq!(play.seen(), [], "without credentials nothing is sent");
    let text = format!("{error} {error:?}");
    match error {
        Error::Credentials(error) => (error.problem, text),
        other => panic!("no failure of the program: {other:?}"),
    }
}

fn a_program_that_fails_is_named_with_what_it_said(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo s3cret; echo 'log in first' >&2; exit 3";
    let (failure, text) = problem(stage, scripted(folder.path(), script));
    let expected = CredentialsProblem::Failed { ending: Ending::Exited(3), stderr: "log in first".into() };
    assert_eq!(failure, expected);
    assert!(text.contains("users[u].user.exec") && !text.contains("s3cret"), "{text}");
    let (failure, _) = problem(stage, scripted(folder.path(), "kill -9 $$"));
    assert!(matches!(failure, CredentialsProblem::Failed { ending: Ending::Signalled(9), .. }), "{failure:?}");
    let (failure, _) = problem(stage, program(folder.path(), "cloudcoil-no-such-program", &[]));
    assert_eq!(failure, CredentialsProblem::NotFound { hint: "get it elsewhere".into() });
    let (failure, _) = problem(stage, program(folder.path(), "./config", &[]));
    assert_eq!(failure, CredentialsProblem::NotExecutable);
}

fn what_is_no_credential_is_refused_and_not_shown(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let version = r#""apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential""#;
    let rows = [
        (String::new(), CredentialsProblem::Silent),
        (r#"{"kind": "s3cret"}"#.to_owned(), CredentialsProblem::WrongKind),
        (format!("{{{version}}}"), CredentialsProblem::NoStatus),
        (format!("{{{version}, \"status\": {{}}}}"), CredentialsProblem::NoCredentials),
        (
            format!("{{{version}, \"status\": {{\"clientKeyData\": \"s3cret\"}}}}"),
            CredentialsProblem::KeyWithoutCertificate,
        ),
        (
            format!("{{{version}, \"status\": {{\"token\": \"s3cret\", \"expirationTimestamp\": \"soon\"}}}}"),
            CredentialsProblem::InvalidExpiry,
        ),
        (format!("{{{version}, \"status\": {{\"token\": \"s3cret\\u0001\"}}}}"), CredentialsProblem::InvalidToken),
    ];
    for (printed, expected) in rows {
        let (failure, text) = problem(stage, program(folder.path(), "printf", &["%s", &printed]));
        assert_eq!(failure, expected, "{printed}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    let (failure, text) = problem(stage, program(folder.path(), "printf", &["%s", "[s3cret"]));
    assert!(matches!(failure, CredentialsProblem::Undecodable { .. }) && !text.contains("s3cret"), "{text}");
}

fn a_program_that_fails_is_run_again_for_the_next_call(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("echo run >> runs; [ $(wc -l < runs) -gt 1 ] || exit 1; {}", credential("token"));
    let auth = scripted(folder.path(), &script);
    let play = stage.play_as(only("token", || Answer::json(&stored("a", 5))), |config| config.auth = auth);
    assert!(matches!(play.fail(maps().get("a")), Error::Credentials(_)));
    play.must(maps().get("a"));
    assert_eq!((runs(folder.path()), play.seen().len()), (2, 1));
}

fn a_program_that_hangs_ends_with_its_call(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let (tell, ended) = mpsc::channel();
    // The gate is at its end when nothing that has opened it for writing is left.
    thread::spawn(move || {
        let mut text = String::new();
        fs::File::open(&gate).and_then(|mut gate| gate.read_to_string(&mut text)).unwrap();
        tell.send(text).unwrap();
    });
    let config = plugin(folder.path(), &guarded("token"), "exec 3> gate; echo up >&3; exec sleep 1000 >&3");
    let limit = Duration::from_secs(3);
    let world = stage.executor().connect(&config, &stage.settings().timeout(limit)).unwrap();
    assert_eq!(world.fail(maps().get("a")), Error::TimedOut(limit));
    assert_eq!(ended.recv_timeout(Duration::from_secs(30)).as_deref(), Ok("up\n"), "nobody waits for it any more");
}

fn a_program_that_leaves_something_behind_is_not_waited_for(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let cluster = guarded("token");
    // What is left behind holds the program's output open until this test writes to the pipe, which is when all is over.
    let script = format!("mkfifo gate; cat gate & {}", credential("token"));
    let config = plugin(folder.path(), &cluster, &script);
    let world = stage.executor().connect(&config, &stage.settings()).unwrap();
    let listed = world.perform(maps().page());
    fs::write(folder.path().join("gate"), "over").unwrap();
    listed.unwrap();
}

fn what_nobody_takes_is_in_no_error(stage: &Stage) {
    let answers = [unauthorized(), Answer::raw([]), Answer::raw(["s".into()]), Answer::new(200, "text/html", "<html>")];
    let play = stage.play_as(in_order(answers), |config| config.auth = Auth::bearer(b"s3cret").unwrap());
    for _ in 0..4 {
        let error = play.fail(maps().get("a"));
        let text = format!("{error} {error:?} {}", cloudcoil_runtime::core::error::chain(&error));
        assert!(!text.contains("s3cret"), "{text}");
    }
}
