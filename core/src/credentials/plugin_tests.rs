use std::path::Path;

use serde_json::json;

use super::*;
use crate::credentials::fuzz;

fn config() -> ExecConfig {
    let Auth::Exec(exec) = fuzz::config().auth else { panic!() };
    *exec
}

fn printing(stdout: &str) -> Result<Fetched, CredentialsError> {
    let stdout = Secret::new(stdout);
    fetched(&config(), Ok(Finished { ending: Ending::Exited(0), stdout, stderr: Vec::new() }))
}

fn problem(result: Result<Fetched, CredentialsError>) -> String {
    let Err(error) = result else { panic!("credentials") };
    assert_eq!((&*error.origin, &*error.command), ("users[u].user.exec in /k", "login"));
    error.problem.to_string()
}

fn yaml(status: &str) -> String {
    format!("apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {status}\n")
}

#[test]
fn json_and_yaml_are_read_and_unknown_fields_passed_over() {
    for text in [
        yaml("{token: t}"),
        yaml("\n  token: t\n  expirationTimestamp: null\n  more: [1]"),
        format!("---\n# login\n{}", yaml("{token: 't'}")),
        format!("\u{feff}{}\r\n", yaml("{token: \" t \\n\"}")),
        r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false},
            "status":{"token":"\u0074","expirationTimestamp":"2099-01-01T00:00:00Z","clientKeyData":""}}"#
            .to_owned(),
        "{\t\"kind\": \"ExecCredential\",\t\"apiVersion\": \"client.authentication.k8s.io\\/v1\", \"status\": {\"token\": \"t\"}}\n"
            .to_owned(),
    ] {
        let Ok(fetched) = printing(&text) else { panic!("{text}: {}", problem(printing(&text))) };
        assert_eq!(fetched.authorization.unwrap(), "Bearer t", "{text}");
        assert!(fetched.identity.is_none());
    }
}

#[test]
fn each_fault_of_an_answer_has_its_own_error() {
    let version = "configured to speak client.authentication.k8s.io/v1, and answered in ";
    for (text, expected) in [
        ("", "printed nothing"),
        (" \n", "printed nothing"),
        ("oops", "printed no ExecCredential in JSON or YAML: see line 1"),
        ("{\"kind\": 'x", "printed no ExecCredential in JSON or YAML: see line 1"),
        ("kind: ExecCredential", &format!("{version}another version")),
        ("apiVersion: client.authentication.k8s.io/v1", "printed an object whose kind is not ExecCredential"),
        ("{apiVersion: v1, kind: Status}", "printed an object whose kind is not ExecCredential"),
        (
            "{apiVersion: client.authentication.k8s.io/v1beta1, kind: ExecCredential}",
            &format!("{version}client.authentication.k8s.io/v1beta1"),
        ),
        ("{apiVersion: s3cret, kind: ExecCredential, status: {token: t}}", &format!("{version}another version")),
        (
            "{apiVersion: client.authentication.k8s.io/v1, kind: ExecCredential}",
            "printed an ExecCredential without status",
        ),
        (&yaml("null"), "printed an ExecCredential without status"),
        (&yaml("{}"), "printed neither a token nor a client certificate"),
        (&yaml("{token: ''}"), "printed neither a token nor a client certificate"),
        (&yaml("{clientCertificateData: c}"), "printed clientCertificateData without clientKeyData"),
        (&yaml("{token: t, clientKeyData: k}"), "printed clientKeyData without clientCertificateData"),
        (&yaml("{token: \"a\\nb\"}"), "printed a token with characters that cannot be sent"),
        (
            &yaml("{token: t, expirationTimestamp: tomorrow}"),
            "printed an expirationTimestamp that is no time of RFC 3339",
        ),
        (&yaml("{token: t, expirationTimestamp: ''}"), "printed an expirationTimestamp that is no time of RFC 3339"),
        (
            r#"{"kind":"ExecCredential","status":{"token":["s3cret"]}}"#,
            "printed no ExecCredential in JSON or YAML: status.token is not of the right type",
        ),
    ] {
        assert_eq!(problem(printing(text)), expected, "{text}");
    }
    let long = yaml(&format!("{{token: {}}}", "x".repeat(Command::STDOUT)));
    assert_eq!(problem(printing(&long)), "printed more than 1048576 bytes");
    let not_text = Finished { ending: Ending::Exited(0), stdout: Secret::new(*b"\xff\xfe"), stderr: Vec::new() };
    assert_eq!(problem(fetched(&config(), Ok(not_text))), "printed no ExecCredential in JSON or YAML");
}

#[test]
fn a_failed_program_is_named_with_its_last_words_and_never_with_its_output() {
    let ended = |ending, stderr: &[u8]| {
        problem(fetched(&config(), Ok(Finished { ending, stdout: Secret::new("s3cret"), stderr: stderr.to_vec() })))
    };
    assert_eq!(ended(Ending::Exited(1), b""), "failed with exit code 1");
    assert_eq!(ended(Ending::Signalled(9), b"a\x1b[31m\r\n  b\xff\n"), "was ended by signal 9: a [31m b\u{fffd}");
    let long = ended(Ending::Exited(2), "é".repeat(9000).as_bytes());
    assert_eq!(long.chars().count(), "failed with exit code 2: ".len() + LAST_WORDS);
    let mut config = config();
    config.install_hint = Some("get it:\n  apt install login".into());
    let error = |error| problem(fetched(&config, Err(error)));
    assert_eq!(error(RunError::NotFound), "no such program; get it: apt install login");
    assert_eq!(error(RunError::NotExecutable), "not a program that may be run");
    assert_eq!(error(RunError::Failed("no memory".into())), "cannot be run: no memory");
}

fn info(command: &Command) -> Value {
    let (name, value) = command.env.last().unwrap();
    assert_eq!(name, "KUBERNETES_EXEC_INFO");
    serde_json::from_str(value).unwrap()
}

#[test]
fn a_program_is_told_of_the_cluster_only_when_it_wants_to_know() {
    let mut config = config();
    config.api_version = ExecVersion::V1Beta1;
    config.args = vec!["--now".into()];
    config.env = vec![("A".into(), "b".into())];
    let plain = command(&config, false).unwrap();
    assert_eq!((plain.program.as_path(), plain.args.len(), &plain.env[0].1), (Path::new("login"), 1, &"b".to_owned()));
    let api_version = "client.authentication.k8s.io/v1beta1";
    assert_eq!(info(&plain), json!({"apiVersion": api_version, "kind": KIND, "spec": {"interactive": false}}));
    let mut cluster = ExecCluster { server: "https://a".into(), ..ExecCluster::default() };
    config.cluster = Some(Box::new(cluster.clone()));
    let spec = |config: &ExecConfig| info(&command(config, false).unwrap())["spec"]["cluster"].clone();
    assert_eq!(spec(&config), json!({"server": "https://a"}));
    cluster.tls_server_name = Some("b".into());
    cluster.insecure_skip_tls_verify = true;
    cluster.certificate_authority = Some(Pem { origin: "ca".into(), text: Secret::new("ca") });
    cluster.proxy_url = Some("http://px".into());
    cluster.disable_compression = true;
    cluster.config = Some(json!({"audience": ["x"]}));
    config.cluster = Some(Box::new(cluster));
    let expected = json!({
        "server": "https://a",
        "tls-server-name": "b",
        "insecure-skip-tls-verify": true,
        "certificate-authority-data": "Y2E=",
        "proxy-url": "http://px",
        "disable-compression": true,
        "config": {"audience": ["x"]},
    });
    assert_eq!(spec(&config), expected);
}

#[test]
fn the_terminal_is_lent_as_the_mode_allows() {
    let mut config = config();
    for (mode, has_terminal, expected) in [
        (InteractiveMode::Never, false, Some(false)),
        (InteractiveMode::Never, true, Some(false)),
        (InteractiveMode::IfAvailable, false, Some(false)),
        (InteractiveMode::IfAvailable, true, Some(true)),
        (InteractiveMode::Always, false, None),
        (InteractiveMode::Always, true, Some(true)),
    ] {
        config.interactive_mode = mode;
        let command = command(&config, has_terminal);
        assert_eq!(command.as_ref().map(|command| command.is_interactive), expected, "{mode:?} {has_terminal}");
        if let Some(command) = command {
            assert_eq!(info(&command)["spec"]["interactive"], command.is_interactive);
        }
    }
}

#[test]
fn nothing_shows_what_a_program_is_given() {
    let mut config = config();
    config.args = vec!["s3cret".into()];
    config.env = vec![("A".into(), "s3cret".into())];
    let shown = format!("{:?}", command(&config, false));
    assert!(shown.contains("login") && !shown.contains("s3cret"), "{shown}");
}
