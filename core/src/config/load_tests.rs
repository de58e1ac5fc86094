use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::config::{Auth, Kubeconfig, Secret};
use crate::laws::{self, Move};

/// A file system, and what is read of it in which order.
struct Files(BTreeMap<&'static str, &'static str>);

impl Files {
    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        let content = self.0.get(path.to_str().unwrap());
        content.map(|text| text.as_bytes().to_vec()).ok_or(ReadError::NotFound)
    }
}

pub(in crate::config) struct Outcome {
    pub(in crate::config) read: Vec<String>,
    pub(in crate::config) warnings: Vec<ConfigWarning>,
    pub(in crate::config) result: Result<Box<Config>, ConfigError>,
}

impl Outcome {
    pub(in crate::config) fn config(self) -> Config {
        *self.result.unwrap()
    }

    pub(in crate::config) fn error(self) -> String {
        self.result.unwrap_err().to_string()
    }
}

pub(in crate::config) fn load(
    source: ConfigSource,
    environment: Environment,
    files: &[(&'static str, &'static str)],
) -> Outcome {
    let files = Files(files.iter().copied().collect());
    let mut machine = ConfigLoad::new(source, environment);
    let (mut read, mut warnings, mut out) = (Vec::new(), Vec::new(), Outbox::new());
    let _ = machine.step(Now::default(), None, &mut out);
    loop {
        match out.pop().expect("the load ends by itself") {
            ConfigOutput::Read { ticket, path } => {
                read.push(path.display().to_string());
                let input = ConfigInput::Read { ticket, result: files.read(&path) };
                let _ = machine.step(Now::default(), Some(input), &mut out);
            }
            ConfigOutput::Warn(warning) => warnings.push(warning),
            ConfigOutput::Loaded(result) => return Outcome { read, warnings, result },
        }
    }
}

pub(in crate::config) fn load_file(text: &'static str, more: &[(&'static str, &'static str)]) -> Outcome {
    let source = ConfigSource::from_kubeconfig("/k/conf/cfg");
    load(source, Environment::default(), &[&[("/k/conf/cfg", text)], more].concat())
}

pub(in crate::config) fn kubeconfig(list: &str) -> Environment {
    Environment { kubeconfig: Some(list.into()), home: Some("/home/me".into()), ..Default::default() }
}

pub(in crate::config) fn authorization(config: &Config) -> Option<String> {
    config.auth.authorization().map(|header| header.to_str().unwrap().to_owned())
}

/// One user of that YAML, with TLS.
pub(in crate::config) fn with_user(user: &str) -> &'static str {
    with_cluster("server: 'https://a:1'", user)
}

/// A cluster with those fields, and a user of that YAML.
pub(in crate::config) fn with_cluster(cluster: &str, user: &str) -> &'static str {
    let text = format!(
        "current-context: c\nclusters: [{{name: p, cluster: {{{cluster}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: p, user: u}}}}]\nusers: [{{name: u, user: {user}}}]\n"
    );
    Box::leak(text.into_boxed_str())
}

#[test]
fn a_context_without_a_known_user_is_anonymous() {
    let text = |user: &str| -> &'static str {
        let text = format!(
            "users: null\nclusters: [{{name: p, cluster: {{server: \"http://127.0.0.1:8001\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: p{user}}}}}]\ncurrent-context: c\n"
        );
        Box::leak(text.into_boxed_str())
    };
    for user in ["", ", user: null", ", user: \"\"", ", user: ghost"] {
        let outcome = load_file(text(user), &[]);
        assert_eq!(outcome.warnings.len(), usize::from(user.ends_with("ghost")));
        let config = outcome.config();
        assert_eq!((&config.auth, config.tls.identity), (&Auth::Anonymous, None), "{user}");
        assert_eq!(config.server, "http://127.0.0.1:8001/");
    }
}

const ONE: &str = "current-context: a
contexts: [{name: a, context: {cluster: far, user: dev, namespace: team}}]
users: [{name: dev, user: {token: T1}}]";
const TWO: &str = "current-context: b
clusters: [{name: far, cluster: {server: 'https://far:6443'}}]
users: [{name: dev, user: {client-certificate: x}}]";

#[test]
fn the_first_file_of_a_list_has_the_say_and_missing_ones_are_passed_over() {
    let list = kubeconfig("/k/one::/k/missing:/k/two:/k/one");
    let outcome = load(ConfigSource::default(), list, &[("/k/one", ONE), ("/k/two", TWO)]);
    assert_eq!(outcome.read, ["/k/one", "/k/missing", "/k/two"]);
    assert!(outcome.warnings.is_empty());
    let config = outcome.config();
    assert_eq!((config.server.to_string(), config.namespace.as_str()), ("https://far:6443/".to_owned(), "team"));
    assert_eq!((authorization(&config), &config.tls.identity), (Some("Bearer T1".to_owned()), &None));
}

#[test]
fn a_list_of_missing_files_hides_the_home_directory() {
    let home = [("/home/me/.kube/config", ONE)];
    let outcome = load(ConfigSource::default(), kubeconfig("/k/x:/k/y"), &home);
    assert_eq!(outcome.warnings, [ConfigWarning::NoFiles(vec!["/k/x".into(), "/k/y".into()])]);
    assert_eq!(outcome.error(), "no configuration: none in /k/x, /k/y, and not inside a cluster");
    let outcome = load(ConfigSource::default(), kubeconfig(""), &[("/home/me/.kube/config", with_user("{token: t}"))]);
    assert_eq!(authorization(&outcome.config()), Some("Bearer t".into()));
}

#[test]
fn a_file_that_is_asked_for_must_exist_and_one_that_is_listed_must_be_readable() {
    let source = ConfigSource::from_kubeconfig("/k/none");
    let error = load(source, kubeconfig("/k/one"), &[("/k/one", ONE)]).error();
    assert_eq!(error, "cannot read /k/none, named by the caller: no such file");
    let outcome = load(ConfigSource::default(), kubeconfig("/k/one:/k/bad"), &[("/k/one", ONE), ("/k/bad", "]")]);
    assert!(outcome.error().starts_with("/k/bad: "));
}

#[test]
fn relative_paths_start_at_the_file_that_names_them() {
    let text = "current-context: c
clusters: [{name: p, cluster: {server: 'https://a:1', certificate-authority: ../pki/ca.pem}}]
contexts: [{name: c, context: {cluster: p, user: u}}]
users: [{name: u, user: {tokenFile: tok, client-certificate: /abs/crt, client-key: ./key}}]";
    let files = [("/k/pki/ca.pem", "CA"), ("/k/conf/tok", "abc\n"), ("/abs/crt", "CRT"), ("/k/conf/key", "KEY")];
    let config = load_file(text, &files).config();
    assert_eq!(authorization(&config), Some("Bearer abc".into()));
    let ca = config.tls.ca.unwrap();
    assert_eq!((&*ca.origin, ca.text.expose()), ("/k/pki/ca.pem", &b"CA"[..]));
    let identity = config.tls.identity.unwrap();
    assert_eq!((identity.certificate.text.expose(), identity.key.text.expose()), (&b"CRT"[..], &b"KEY"[..]));
}

#[test]
fn data_goes_before_a_file_and_must_be_base64() {
    let text = with_user("{client-certificate: /none, client-certificate-data: Q1Q=, client-key-data: \"S0\\nVZ\\n\"}");
    let identity = load_file(text, &[]).config().tls.identity.unwrap();
    assert_eq!((identity.certificate.text.expose(), identity.key.text.expose()), (&b"CT"[..], &b"KEY"[..]));
    let error = load_file(with_user("{client-certificate-data: 'Q1Q=', client-key-data: '!s3cret'}"), &[]).error();
    assert_eq!(error, "users[0].user.client-key-data in /k/conf/cfg is not base64");
}

#[test]
fn a_token_file_goes_before_a_token_which_stands_in_for_it() {
    let both = with_user("{token: inline, tokenFile: /tok}");
    assert_eq!(authorization(&load_file(both, &[("/tok", "filed")]).config()), Some("Bearer filed".into()));
    for files in [&[][..], &[("/tok", "\n")]] {
        let config = load_file(both, files).config();
        assert_eq!(authorization(&config), Some("Bearer inline".into()));
        assert!(matches!(config.auth, Auth::TokenFile(_)), "the file may be there later");
    }
    let error = load_file(with_user("{tokenFile: /tok}"), &[]).error();
    assert_eq!(error, "cannot read /tok, named by users[u].user.tokenFile in /k/conf/cfg: no such file");
    let error = load_file(with_user("{tokenFile: /tok}"), &[("/tok", "\n")]).error();
    assert!(error.starts_with("/tok: empty"), "{error}");
}

#[test]
fn no_credentials_go_over_plain_http() {
    let text = "current-context: c
clusters: [{name: p, cluster: {server: 'http://a:1', certificate-authority: /none}}]
contexts: [{name: c, context: {cluster: p, user: u}}]
users: [{name: u, user: {tokenFile: /none, exec: {command: x}}}]";
    let outcome = load_file(text, &[]);
    assert_eq!(outcome.warnings, [ConfigWarning::PlainHttp]);
    assert_eq!(outcome.config().auth, Auth::Anonymous);
}

#[test]
fn each_missing_piece_has_its_own_error() {
    let error = |text| load_file(text, &[]).error();
    assert_eq!(error("contexts: [{name: c}]"), "no current-context in /k/conf/cfg");
    assert_eq!(error("current-context: d"), "no context \"d\" in /k/conf/cfg");
    let text = "{current-context: c, contexts: [{name: c, context: {cluster: x}}]}";
    assert_eq!(error(text), "contexts[c].context.cluster in /k/conf/cfg is \"x\", and no cluster has that name");
    let text = "{current-context: c, contexts: [{name: c}]}";
    assert_eq!(error(text), "contexts[c].context.cluster in /k/conf/cfg is missing");
    let text = "{current-context: c, contexts: [{name: c, context: {cluster: p}}], clusters: [{name: p}]}";
    assert_eq!(error(text), "clusters[p].cluster.server in /k/conf/cfg is missing");
    assert_eq!(
        error(with_user("{client-certificate-data: Q1Q=}")),
        "users[u].user.client-key in /k/conf/cfg is missing"
    );
}

#[test]
fn a_context_can_be_asked_for() {
    let source = |context: &str| ConfigSource::from_kubeconfig("/k/conf/cfg").with_context(context);
    let files = [("/k/conf/cfg", with_user("{token: t}"))];
    assert!(load(source("c"), Environment::default(), &files).result.is_ok());
    let error = load(source("d"), Environment::default(), &files).error();
    assert_eq!(error, "no context \"d\" in /k/conf/cfg");
}

const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

pub(in crate::config) fn pod(host: &str) -> Environment {
    let (service_host, service_port) = (Some(host.to_owned()), Some("443".to_owned()));
    Environment { home: Some("/home/me".into()), service_host, service_port, ..Default::default() }
}

#[test]
fn a_pod_uses_its_service_account() {
    let files = [(TOKEN, "abc\n"), (CA, "CA"), (NAMESPACE, "team\n")];
    let config = load(ConfigSource::default(), pod("fd00::1"), &files).config();
    assert_eq!((config.server.to_string(), config.namespace.as_str()), ("https://[fd00::1]:443/".to_owned(), "team"));
    assert_eq!(authorization(&config), Some("Bearer abc".into()));
    assert!(matches!(config.auth, Auth::TokenFile(_)));
    assert!(config.tls.ca.is_some_and(|ca| ca.text == Secret::new("CA")));
}

#[test]
fn a_pod_needs_its_token_but_neither_authority_nor_namespace() {
    let outcome = load(ConfigSource::default(), pod("10.0.0.1"), &[(TOKEN, "abc")]);
    assert!(matches!(&outcome.warnings[..], [ConfigWarning::NoCa { .. }]));
    assert_eq!(outcome.config().namespace, "default");
    let error = load(ConfigSource::default(), pod("10.0.0.1"), &[(CA, "CA")]).error();
    assert_eq!(error, format!("cannot read {TOKEN}, named by the pod's service account: no such file"));
}

#[test]
fn an_empty_kubeconfig_leaves_a_pod_its_service_account() {
    let files = [(TOKEN, "abc"), ("/home/me/.kube/config", "kind: Config\nclusters: []\n")];
    let config = load(ConfigSource::default(), pod("10.0.0.1"), &files).config();
    assert_eq!(config.server, "https://10.0.0.1:443/");
}

#[test]
fn debug_shows_no_secret() {
    let text = with_user("{token: s3cret, client-certificate-data: czNjcmV0, client-key-data: czNjcmV0}");
    let shown = format!("{:?}", load_file(text, &[]).config());
    assert!(!shown.contains("s3cret") && !shown.contains("czNjcmV0"), "{shown}");
}

#[test]
fn a_pod_may_be_told_its_namespace_and_a_context_asked_for_is_not_a_pod() {
    let files = [(TOKEN, "abc"), (CA, "CA"), (NAMESPACE, "team")];
    let environment = Environment { pod_namespace: Some("told".into()), ..pod("10.0.0.1") };
    let outcome = load(ConfigSource::default(), environment, &files);
    assert!(!outcome.read.contains(&NAMESPACE.to_owned()), "{:?}", outcome.read);
    assert_eq!(outcome.config().namespace, "told");
    let source = ConfigSource::default().with_context("c");
    assert_eq!(load(source, pod("10.0.0.1"), &files).error(), "no context \"c\" in no file");
}

#[test]
fn a_pod_reaches_its_server_without_or_with_a_proxy_of_the_environment() {
    let files = [(TOKEN, "abc"), (CA, "CA")];
    let environment = |none: &str| {
        let (https_proxy, no_proxy) = (Some("http://px:3128".into()), Some(none.into()));
        Environment { https_proxy, no_proxy, ..pod("10.0.0.1") }
    };
    assert_eq!(load(ConfigSource::default(), environment("10.0.0.0/8"), &files).config().proxy, None);
    let proxy = load(ConfigSource::default(), environment(""), &files).config().proxy.unwrap();
    assert_eq!((proxy.host.as_str(), proxy.port), ("px", 3128));
}

#[test]
fn the_proxy_of_the_kubeconfig_goes_before_the_environment_unless_it_is_empty() {
    let proxy = |server: &str, url: &str| {
        let text = with_cluster(&format!("server: '{server}', proxy-url: '{url}'"), "");
        let environment = Environment {
            https_proxy: Some("http://px:3128".into()),
            http_proxy: Some("http://bad:1".into()),
            no_proxy: Some(".corp.example,10.0.0.0/8".into()),
            ..Environment::default()
        };
        let proxy = load(ConfigSource::from_kubeconfig("/k"), environment, &[("/k", text)]).config().proxy;
        proxy.map_or_else(|| "direct".to_owned(), |proxy| format!("{proxy:?}"))
    };
    assert_eq!(proxy("https://k.example.org", "socks5://s:1080"), "Proxy(socks5://s:1080)");
    assert_eq!(proxy("https://10.1.2.3", "socks5://s:1080"), "Proxy(socks5://s:1080)", "NO_PROXY is the environment's");
    assert_eq!(proxy("https://127.0.0.1", "http://s"), "Proxy(http://s:80)");
    assert_eq!(proxy("https://k.example.org", ""), "Proxy(http://px:3128)");
    assert_eq!(proxy("https://10.1.2.3:6443", ""), "direct");
    assert_eq!(proxy("http://k.example.org", ""), "Proxy(http://bad:1)");
}

#[test]
fn a_proxy_that_is_none_is_refused_with_file_and_field() {
    let text = with_cluster("server: 'https://a', proxy-url: 'ftp://me:s3cret@p'", "");
    let expected = "clusters[p].cluster.proxy-url in /k/conf/cfg: the scheme must be http, https, socks5 or socks5h";
    assert_eq!(load_file(text, &[]).error(), expected);
    let environment = Environment { https_proxy: Some("ftp://me:s3cret@p".into()), ..Environment::default() };
    let files = [("/k", with_user(""))];
    let error = load(ConfigSource::from_kubeconfig("/k"), environment, &files).error();
    assert_eq!(error, "HTTPS_PROXY: the scheme must be http, https, socks5 or socks5h");
}

#[test]
fn an_authority_and_the_will_to_do_without_one_exclude_each_other() {
    let text = |server: &str, more: &str| {
        with_cluster(&format!("server: '{server}', insecure-skip-tls-verify: true{more}"), "")
    };
    for more in [", certificate-authority: /ca", ", certificate-authority-data: Y2E="] {
        let error = load_file(text("https://a", more), &[]).error();
        let expected =
            "clusters[p].cluster.insecure-skip-tls-verify in /k/conf/cfg: not together with a certificate authority";
        assert_eq!(error, expected);
        assert!(load_file(text("http://a", more), &[]).result.is_ok(), "there is nothing to verify");
    }
    let config = load_file(text("https://a", ", tls-server-name: sni"), &[]).config();
    assert!(config.tls.insecure_skip_verify && config.tls.server_name.as_deref() == Some("sni"));
}

#[test]
fn an_address_without_a_scheme_is_plain_http_as_with_kubectl() {
    let text = with_cluster("server: 'a:6443', certificate-authority-data: Y2E=", "{token: s3cret}");
    let outcome = load_file(text, &[]);
    assert_eq!(outcome.warnings, [ConfigWarning::PlainHttp]);
    assert_eq!(outcome.config().server, "http://a:6443/");
    let error = load_file(with_cluster("server: 'https://me:s3cret@a'", ""), &[]).error();
    assert_eq!(error, "clusters[p].cluster.server in /k/conf/cfg: a URL must not hold a user name or a password");
}

#[test]
fn compression_can_be_switched_off() {
    assert!(load_file(with_cluster("server: a, disable-compression: true", ""), &[]).config().disable_compression);
    assert!(!load_file(with_cluster("server: a", ""), &[]).config().disable_compression);
}

#[test]
fn files_in_other_encodings_are_read() {
    let text = with_user("{token: t}");
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [[b"\xff\xfe", &utf16[..]].concat(), utf16.clone(), [b"\xef\xbb\xbf", text.as_bytes()].concat()] {
        let kubeconfig = Kubeconfig::parse("/k".as_ref(), &bytes).unwrap();
        assert_eq!(kubeconfig.users().collect::<Vec<_>>(), ["u"]);
    }
}

#[test]
fn the_laws_of_machines_hold() {
    let make = || ConfigLoad::new(ConfigSource::from_kubeconfig("/c"), Environment::default());
    let mut other = Tickets::new(0);
    let (first, stale) = (other.issue(), (0..9).map(|_| other.issue()).last().unwrap());
    let read = |ticket, text: &str| ConfigInput::Read { ticket, result: Ok(text.as_bytes().to_vec()) };
    let script = [Move::Input(read(first, with_user("{token: t}")))];
    laws::same_inputs_same_outputs(make, &script);
    laws::stale_inputs_change_nothing(make, &script, &[read(stale, "]")]);
    laws::ended_stays_ended(&mut make(), &script, &[Move::Input(read(first, "]")), Move::Input(read(stale, ""))]);
}
