use super::*;
use crate::config::load::tests::{Outcome, authorization, load, pod};
use crate::config::{Auth, Config, ConfigWarning, Environment};

const FILE: &str = "current-context: a
clusters:
- {name: p, cluster: {server: 'https://p', tls-server-name: sni, certificate-authority: ca, proxy-url: 'http://px'}}
- {name: q, cluster: {server: 'https://q', insecure-skip-tls-verify: true}}
contexts:
- {name: a, context: {cluster: p, user: u, namespace: team}}
- {name: b, context: {cluster: q, user: v}}
users:
- {name: u, user: {token: one, client-certificate-data: Y3J0, client-key-data: a2V5, as: jane, as-groups: [g]}}
- {name: v, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x}}}
";

fn outcome(source: ConfigSource) -> Outcome {
    let files =
        [("/k/cfg", FILE), ("/k/ca", "CA"), ("ca", "other CA"), ("/tok", "filed"), ("crt", "CRT"), ("key", "KEY")];
    load(source, Environment::default(), &files)
}

fn with(overrides: Overrides) -> Config {
    outcome(ConfigSource::from_kubeconfig("/k/cfg").with_overrides(overrides)).config()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn ca(config: &Config) -> Option<&[u8]> {
    config.tls.ca.as_ref().map(|ca| ca.text.expose())
}

#[test]
fn without_overrides_the_kubeconfig_has_the_say() {
    let config = with(Overrides::default());
    assert_eq!((config.server.to_string().as_str(), config.namespace.as_str()), ("https://p/", "team"));
    assert_eq!((config.tls.server_name.as_deref(), ca(&config)), (Some("sni"), Some(&b"CA"[..])));
    assert_eq!(authorization(&config).as_deref(), Some("Bearer one"));
}

#[test]
fn another_context_or_file_leaves_nothing_of_the_one_before() {
    let source = ConfigSource::from_kubeconfig("/k/cfg").with_context("b");
    let config = outcome(source.clone()).config();
    assert_eq!((config.server.to_string().as_str(), config.namespace.as_str()), ("https://q/", "default"));
    assert!(config.tls.insecure_skip_verify && config.tls.ca.is_none() && config.tls.identity.is_none());
    assert!(matches!(config.auth, Auth::Exec(_)) && config.impersonation.is_empty() && config.proxy.is_none());
    let source = source.with_namespace("mine");
    let again = outcome(source.clone().with_context("a")).config();
    assert_eq!((again.namespace.as_str(), authorization(&again).as_deref()), ("mine", Some("Bearer one")));
    assert_eq!(source.with_kubeconfig("/k/other").context, None, "it is a context of the old file");
}

#[test]
fn a_server_asked_for_has_a_name_of_its_own() {
    let config = with(Overrides { server: some("https://s:1"), ..Overrides::default() });
    assert_eq!((config.server.to_string().as_str(), config.tls.server_name), ("https://s:1/", None));
    assert_eq!(authorization(&with(Overrides { server: some("http://s"), ..Overrides::default() })), None);
    let config = with(Overrides { tls_server_name: some("m"), ..Overrides::default() });
    assert_eq!(config.tls.server_name.as_deref(), Some("m"));
}

#[test]
fn an_authority_and_going_without_one_replace_each_other() {
    let config = with(Overrides { insecure_skip_tls_verify: true, ..Overrides::default() });
    assert!(config.tls.insecure_skip_verify && config.tls.ca.is_none());
    let overrides = Overrides { certificate_authority: Some("ca".into()), ..Overrides::default() };
    let config = outcome(ConfigSource::from_kubeconfig("/k/cfg").with_context("b").with_overrides(overrides)).config();
    assert!(!config.tls.insecure_skip_verify && ca(&config) == Some(b"other CA"));
    let data = Some(Secret::new("data"));
    assert_eq!(ca(&with(Overrides { certificate_authority_data: data, ..Overrides::default() })), Some(&b"data"[..]));
}

#[test]
fn a_cluster_and_a_user_may_be_asked_for_by_name() {
    let config = with(Overrides { cluster: some("q"), ..Overrides::default() });
    assert_eq!(
        (config.server.to_string().as_str(), authorization(&config).as_deref()),
        ("https://q/", Some("Bearer one"))
    );
    assert!(matches!(with(Overrides { user: some("v"), ..Overrides::default() }).auth, Auth::Exec(_)));
    for (overrides, expected) in [
        (
            Overrides { cluster: some("z"), ..Overrides::default() },
            "the cluster asked for is \"z\", and no cluster has that name",
        ),
        (
            Overrides { user: some("z"), ..Overrides::default() },
            "the user asked for is \"z\", and no user has that name",
        ),
    ] {
        assert_eq!(outcome(ConfigSource::from_kubeconfig("/k/cfg").with_overrides(overrides)).error(), expected);
    }
}

#[test]
fn credentials_asked_for_replace_those_of_their_kind() {
    let token = with(Overrides { token: some("mine"), ..Overrides::default() });
    assert_eq!(authorization(&token).as_deref(), Some("Bearer mine"));
    assert!(token.tls.identity.is_some(), "a certificate is another kind");
    let file = with(Overrides { token_file: Some("/tok".into()), ..Overrides::default() });
    assert_eq!(authorization(&file).as_deref(), Some("Bearer filed"));
    let password = Overrides { username: some("me"), password: some("word"), ..Overrides::default() };
    assert_eq!(authorization(&with(password)).as_deref(), Some("Basic bWU6d29yZA=="));
    let overrides = Overrides { user: some("v"), token: some("mine"), ..Overrides::default() };
    assert_eq!(authorization(&with(overrides)).as_deref(), Some("Bearer mine"), "in place of a program");
    let overrides =
        Overrides { client_certificate: Some("crt".into()), client_key: Some("key".into()), ..Overrides::default() };
    let identity = with(overrides).tls.identity.unwrap();
    assert_eq!((identity.certificate.text.expose(), identity.key.text.expose()), (&b"CRT"[..], &b"KEY"[..]));
}

#[test]
fn impersonation_asked_for_goes_field_by_field() {
    let mut someone = Impersonation::user("joe");
    someone.uid = some("7");
    let config = with(Overrides { impersonation: someone, ..Overrides::default() });
    let found = &config.impersonation;
    assert_eq!(
        (found.user.as_deref(), found.uid.as_deref(), &found.groups[..]),
        (Some("joe"), Some("7"), &["g".to_owned()][..])
    );
}

#[test]
fn who_asks_for_an_impersonation_that_cannot_be_is_told_so_and_not_the_file() {
    let asked = |groups: &[&str], user: Option<&str>| {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let impersonation = Impersonation { user: user.map(ToOwned::to_owned), groups, ..Impersonation::default() };
        let source = ConfigSource::from_kubeconfig("/k/cfg").with_context("b");
        outcome(source.with_overrides(Overrides { impersonation, ..Overrides::default() })).error()
    };
    let by_caller = "impersonation as the caller gives it: ";
    assert_eq!(asked(&["g"], None), format!("{by_caller}as-uid, as-groups and as-user-extra need a user"));
    let odd = format!("{by_caller}a name or value with characters that cannot be sent");
    assert_eq!([asked(&["a\nb"], Some("jane")), asked(&[], Some("\n"))], [odd.clone(), odd]);
}

#[test]
fn a_server_asked_for_needs_no_kubeconfig() {
    let overrides = Overrides { server: some("https://s"), token: some("t"), ..Overrides::default() };
    let source = ConfigSource::default().with_overrides(overrides);
    let config = load(source.clone(), Environment::default(), &[]).config();
    assert_eq!(
        (config.server.to_string().as_str(), authorization(&config).as_deref()),
        ("https://s/", Some("Bearer t"))
    );
    let config = load(source, pod("10.0.0.1"), &[]).config();
    assert_eq!(config.server.to_string(), "https://s/", "not even in a pod");
}

#[test]
fn a_pod_can_be_overridden_too() {
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    let [token, ca_file, namespace] =
        ["token", "ca.crt", "namespace"].map(|file| -> &'static str { Box::leak(format!("{account}/{file}").into()) });
    let files = [(token, "abc"), (ca_file, "CA"), (namespace, "team"), ("ca", "other CA")];
    let overrides = Overrides {
        namespace: some("mine"),
        token: some("t"),
        certificate_authority: Some("ca".into()),
        ..Overrides::default()
    };
    let outcome = load(ConfigSource::default().with_overrides(overrides), pod("10.0.0.1"), &files);
    assert_eq!((&outcome.warnings[..], &outcome.read[1..]), (&[] as &[ConfigWarning], &["ca".to_owned()][..]));
    let config = outcome.config();
    assert_eq!((config.namespace.as_str(), ca(&config)), ("mine", Some(&b"other CA"[..])));
    assert_eq!(authorization(&config).as_deref(), Some("Bearer t"));
}

#[test]
fn errors_say_that_the_caller_is_at_fault_and_debug_shows_no_secret() {
    let overrides = Overrides {
        proxy_url: some("ftp://s3cret"),
        token: some("s3cret"),
        password: some("s3cret"),
        client_key_data: Some(Secret::new("s3cret")),
        ..Overrides::default()
    };
    let source = ConfigSource::from_kubeconfig("/k/cfg").with_overrides(overrides);
    assert!(!format!("{source:?}").contains("s3cret"), "{source:?}");
    let error = outcome(source).error();
    assert_eq!(error, "proxy-url as the caller gives it: the scheme must be http, https, socks5 or socks5h");
}
