use super::*;
use crate::config::load::tests::{Outcome, authorization, load, load_file, with_cluster, with_user};
use crate::config::{ConfigSource, ConfigWarning, Environment, ExecCluster};

fn exec(text: &'static str) -> Result<ExecConfig, String> {
    match load_file(text, &[("/k/conf/ca", "CA")]).result {
        Ok(config) => match config.auth {
            Auth::Exec(exec) => Ok(*exec),
            auth => Err(format!("{auth:?}")),
        },
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_credential_program_is_described_whole() {
    let exec = exec(with_user(
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, args: [a, '-b'], \
         env: [{name: A, value: one}, {name: B}], interactiveMode: Always, installHint: \"get it\\e[2J\\n\"}}",
    ))
    .unwrap();
    assert_eq!(exec.command.to_str(), Some("/k/conf/bin/login"));
    assert_eq!(exec.args, ["a", "-b"]);
    assert_eq!(exec.env, [("A".to_owned(), "one".to_owned()), ("B".to_owned(), String::new())]);
    assert_eq!((exec.api_version, exec.interactive_mode), (ExecVersion::V1, InteractiveMode::Always));
    assert_eq!(exec.install_hint.as_deref(), Some("get itU+001B[2J\n"));
    assert_eq!((exec.cluster, &*exec.origin), (None, "users[u].user.exec in /k/conf/cfg"));
}

#[test]
fn names_are_looked_up_and_only_paths_are_joined() {
    for (command, expected) in
        [("cloudctl", "cloudctl"), ("./x", "/k/conf/x"), ("../x/y", "/k/x/y"), ("/bin/x", "/bin/x")]
    {
        let text = format!("{{exec: {{apiVersion: client.authentication.k8s.io/v1beta1, command: {command}}}}}");
        let exec = exec(with_user(&text)).unwrap();
        assert_eq!((exec.command.to_str(), exec.interactive_mode), (Some(expected), InteractiveMode::IfAvailable));
    }
    // Beside a kubeconfig in the current folder it is no name to be looked up either.
    let text = with_user("{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./x}}");
    let here = load(ConfigSource::from_kubeconfig("cfg"), Environment::default(), &[("cfg", text), ("ca", "CA")]);
    let Auth::Exec(exec) = here.config().auth else { panic!("a program fetches them") };
    assert_eq!(exec.command.to_str(), Some("./x"));
}

#[test]
fn a_program_is_told_about_its_cluster_if_it_asks() {
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x, provideClusterInfo: true}}";
    let told = exec(with_cluster(
        "server: 'https://a:1/path', tls-server-name: sni, certificate-authority: ca, proxy-url: 'http://p', \
         disable-compression: true, extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: [x]}}]",
        user,
    ));
    let told = *told.unwrap().cluster.unwrap();
    let ca = told.certificate_authority.clone().unwrap();
    assert_eq!(ca.text.expose(), b"CA");
    let expected = ExecCluster {
        server: "https://a:1/path".to_owned(),
        tls_server_name: Some("sni".to_owned()),
        insecure_skip_tls_verify: false,
        certificate_authority: Some(ca),
        proxy_url: Some("http://p".to_owned()),
        disable_compression: true,
        config: Some(serde_json::json!({"audience": ["x"]})),
    };
    assert!(told == expected, "{told:?}");
    let told =
        *exec(with_cluster("server: 'https://a', insecure-skip-tls-verify: true", user)).unwrap().cluster.unwrap();
    assert!(told.insecure_skip_tls_verify && told.certificate_authority.is_none() && told.config.is_none());
}

#[test]
fn a_program_that_is_not_well_described_is_refused_with_file_and_field() {
    let v1 = "apiVersion: client.authentication.k8s.io/v1";
    for (fields, field, problem) in [
        ("".to_owned(), "command", " is missing"),
        (format!("{v1}, command: ''"), "command", " is missing"),
        ("command: x".to_owned(), "apiVersion", " is missing"),
        (
            "command: x, apiVersion: v1, interactiveMode: Never".to_owned(),
            "apiVersion",
            ": neither client.authentication.k8s.io/v1 nor client.authentication.k8s.io/v1beta1",
        ),
        (
            "command: x, apiVersion: client.authentication.k8s.io/v1alpha1".to_owned(),
            "apiVersion",
            ": neither client.authentication.k8s.io/v1 nor client.authentication.k8s.io/v1beta1",
        ),
        (format!("{v1}, command: x"), "interactiveMode", " is missing"),
        (
            format!("{v1}, command: x, interactiveMode: never"),
            "interactiveMode",
            ": none of Never, IfAvailable and Always",
        ),
        (
            format!("{v1}, command: x, interactiveMode: Never, env: [{{name: A}}, {{value: s3cret}}]"),
            "env[1].name",
            " is missing",
        ),
    ] {
        let error = exec(with_user(&format!("{{exec: {{{fields}}}}}"))).unwrap_err();
        assert_eq!(error, format!("users[u].user.exec.{field} in /k/conf/cfg{problem}"), "{fields}");
    }
}

#[test]
fn what_is_at_hand_goes_before_a_program() {
    let program = "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x}";
    for (fields, expected) in [
        ("token: t", "Header"),
        ("tokenFile: /tok", "TokenFile(\"/tok\")"),
        ("username: me", "Header"),
        ("client-certificate-data: Y3J0, client-key-data: a2V5", "Anonymous"),
    ] {
        let outcome = load_file(with_user(&format!("{{{fields}, {program}}}")), &[("/tok", "t")]);
        assert_eq!(format!("{:?}", outcome.config().auth), expected);
    }
    let error = load_file(with_user("{token: t, exec: {command: x}}"), &[]).error();
    assert_eq!(error, "users[u].user.exec.apiVersion in /k/conf/cfg is missing", "it is checked all the same");
}

#[test]
fn a_token_and_a_password_exclude_each_other() {
    for (user, field) in
        [("{token: t, username: me, password: s3cret}", "username"), ("{token: t, password: s3cret}", "password")]
    {
        let error = load_file(with_user(user), &[]).error();
        assert_eq!(error, format!("users[u].user.{field} in /k/conf/cfg: a token and a password exclude each other"));
    }
    let config = load_file(with_user("{username: me, password: word}"), &[]).config();
    assert_eq!(authorization(&config).as_deref(), Some("Basic bWU6d29yZA=="));
    assert_eq!(load_file(with_user("{password: word}"), &[]).config().auth, Auth::Anonymous);
}

#[test]
fn what_kubernetes_dropped_names_what_to_use() {
    let error = load_file(with_user("{auth-provider: {name: gcp}}"), &[]).error();
    let expected = "users[u].user.auth-provider in /k/conf/cfg is not supported: Kubernetes dropped it; use an `exec` credential program";
    assert_eq!(error, expected);
}

fn headers(outcome: Outcome) -> Vec<String> {
    let headers = outcome.config().impersonation.headers().unwrap();
    headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
}

#[test]
fn impersonation_goes_over_any_connection() {
    let user = "{as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {Scope: [x, z], none: ~}}";
    let expected = [
        "impersonate-user: jane",
        "impersonate-group: a",
        "impersonate-group: b",
        "impersonate-uid: 7",
        "impersonate-extra-scope: x",
        "impersonate-extra-scope: z",
    ];
    assert_eq!(headers(load_file(with_user(user), &[])), expected);
    let plain = load_file(with_cluster("server: 'http://a'", user), &[]);
    assert_eq!(plain.warnings, [] as [ConfigWarning; 0]);
    assert_eq!(headers(plain), expected);
    assert!(headers(load_file(with_user("{as: '', as-groups: [], as-uid: '', as-user-extra: {}}"), &[])).is_empty());
}

#[test]
fn impersonation_needs_a_user_and_what_can_be_sent() {
    for (user, problem) in [
        ("{as-groups: [a]}", "as-uid, as-groups and as-user-extra need a user"),
        ("{as-uid: '1'}", "as-uid, as-groups and as-user-extra need a user"),
        ("{as-user-extra: {a: []}}", "as-uid, as-groups and as-user-extra need a user"),
        ("{as: \"a\\nb\"}", "a name or value with characters that cannot be sent"),
        ("{as: a, as-groups: [\"\\0\"]}", "a name or value with characters that cannot be sent"),
    ] {
        let text = user.replace("\\0", "\\u0001");
        let error = load_file(with_user(&text), &[]).error();
        assert_eq!(error, format!("users[u].user.as in /k/conf/cfg: {problem}"), "{user}");
    }
}
