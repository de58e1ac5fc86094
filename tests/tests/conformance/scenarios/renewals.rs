//! Certificates and authorities in files, which others renew while a client lives.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudcoil_apiserver::Tls;
use cloudcoil_runtime::Error;
use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::core::config::{Config, ConfigSource};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::connections::{Authority, authority, certificate, secured};
use super::credentials::certified;
use super::{event, map, stored, told};
use crate::scripted::{Answer, Listening, Play, Script, Seen, Then};
use crate::servers::{real, real_certificate};
use crate::stage::{Stage, scenarios};
use crate::world::World;
use crate::world::op::{Op, maps};

scenarios! {
    SOCKETS {
        a_certificate_that_was_renewed_is_shown_by_the_next_request,
        a_certificate_that_is_refused_in_the_handshake_is_read_anew,
        connections_of_an_old_certificate_are_not_used_and_a_watch_on_one_goes_on,
        a_pair_that_is_half_written_or_missing_leaves_the_one_in_use,
        another_authority_is_trusted_by_the_next_connection_and_the_old_one_no_more,
    }
    REAL {
        a_real_server_takes_a_renewed_certificate,
    }
}

/// A folder with a kubeconfig, and the files that it names.
struct Folder(TempDir);

impl Folder {
    /// One with an authority.
    fn new(ca: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("ca.crt", ca);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Puts a client certificate and its key there, the one before the other.
    fn renew(&self, (certificate, key): &Pair) {
        self.write("client.crt", certificate);
        self.write("client.key", key);
    }

    /// How that server is reached by whom the files say.
    fn config(&self, server: &str) -> Config {
        self.config_of(server, &json!({"client-certificate": "client.crt", "client-key": "client.key"}))
    }

    fn config_of(&self, server: &str, user: &Value) -> Config {
        let kubeconfig = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": "ca.crt"}}],
            "users": [{"name": "u", "user": user}],
        });
        self.write("config", &kubeconfig.to_string());
        cloudcoil_blocking::load_config(ConfigSource::from_kubeconfig(self.path("config"))).unwrap()
    }
}

/// A certificate and its key, in PEM.
type Pair = (String, String);

/// A client's, by some authority.
fn pair(authority: &Authority) -> Pair {
    let (certificate, key) = certificate(authority, &["me"], |_| {});
    (certificate.pem(), key.serialize_pem())
}

fn whoami(world: &dyn World) -> String {
    world.must(Op::whoami()).text()
}

/// A server over TLS that refuses connections below a number, and a client of it with a certificate in files.
fn refusing(
    stage: &Stage,
    folder: &Folder,
    answer: impl Fn(&Seen) -> Answer + Send + 'static,
) -> (Play, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let limit = refused.clone();
    let script: Script = Box::new(move |seen| match seen.connection < limit.load(Ordering::SeqCst) {
        true => Answer::refusal(401, "Unauthorized", "Unauthorized"),
        false => answer(seen),
    });
    let play = stage.play_as(script, |config| {
        let ca = config.tls.ca.as_ref().unwrap().text.expose();
        folder.write("ca.crt", str::from_utf8(ca).unwrap());
        *config = folder.config(&config.server.to_string());
    });
    (play, refused)
}

fn connections(play: &Play) -> Vec<usize> {
    play.seen().iter().map(|seen| seen.connection).collect()
}

fn a_certificate_that_was_renewed_is_shown_by_the_next_request(stage: &Stage) {
    let (cluster, tls) = certified();
    let folder = Folder::new(tls.ca_pem());
    let foreign = Tls::generate(&[]).unwrap().client_certificate("jim", &[]).unwrap();
    folder.renew(&(foreign.certificate_pem, foreign.key_pem));
    let world = stage.connect(&folder.config(&cluster.handle().url()));
    assert_eq!(world.fail(Op::whoami()).code(), Some(401));
    let renewed = tls.client_certificate("jane", &[]).unwrap();
    folder.renew(&(renewed.certificate_pem, renewed.key_pem));
    for _ in 0..2 {
        assert_eq!(whoami(&*world), "jane");
    }
}

fn a_certificate_that_is_refused_in_the_handshake_is_read_anew(stage: &Stage) {
    let (servers, clients, strangers) = (authority("servers"), authority("clients"), authority("strangers"));
    let made = certificate(&servers, &["127.0.0.1"], |_| {});
    let (server, _) = secured(made, &servers, Some(&clients));
    let folder = Folder::new(&servers.pem());
    folder.renew(&pair(&strangers));
    let world = stage.connect(&folder.config(&server.url()));
    is_refused(&*world);
    folder.renew(&pair(&clients));
    world.must(maps().create(map("a", "1")));
    world.must(maps().get("a"));
}

#[track_caller]
fn is_refused(world: &dyn World) {
    match world.fail(maps().get("a")) {
        Error::Network(error) if error.kind == NetworkErrorKind::Tls => {}
        other => panic!("no failure of TLS: {other:?}"),
    }
}

fn connections_of_an_old_certificate_are_not_used_and_a_watch_on_one_goes_on(stage: &Stage) {
    let (folder, clients) = (Folder::new(""), authority("clients"));
    folder.renew(&pair(&clients));
    let (play, refused) = refusing(stage, &folder, |seen| match (seen.is_watch(), seen.path.ends_with("/a")) {
        (true, _) => {
            Answer::watch(&[event("MODIFIED", "a", 11), event("MODIFIED", "a", 12)]).pausing(Duration::from_secs(1))
        }
        // Slow enough that two at once need two connections.
        (false, true) => Answer::json(&stored("a", 5)).pausing(Duration::from_millis(500)),
        (false, false) => Answer::list("10", &[]),
    });
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 3), ["restarted", "synced", "applied a 11"]);
    play.all([maps().get("a"), maps().get("a")]).into_iter().for_each(|answer| drop(answer.unwrap()));
    let mut used = connections(&play);
    used.sort_unstable();
    assert_eq!(used, [0, 0, 1, 2], "the list and the watch have one, and two are idle");
    folder.renew(&pair(&clients));
    refused.store(3, Ordering::SeqCst);
    play.must(maps().get("a"));
    play.must(maps().get("a"));
    let used = connections(&play);
    assert!(used[4] < 3 && used[5..] == [3, 3], "one was refused, and the other is not used any more: {used:?}");
    assert_eq!(told(&events, 1), ["applied a 12"]);
    assert_eq!(play.seen().iter().filter(|seen| seen.is_watch()).count(), 1, "it is the same watch");
}

fn a_pair_that_is_half_written_or_missing_leaves_the_one_in_use(stage: &Stage) {
    let (folder, clients) = (Folder::new(""), authority("clients"));
    folder.renew(&pair(&clients));
    let (play, refused) = refusing(stage, &folder, |_| Answer::json(&stored("a", 5)));
    play.must(maps().get("a"));
    let renewed = pair(&clients);
    folder.write("client.crt", &renewed.0);
    refused.store(usize::MAX, Ordering::SeqCst);
    let mut requests = 1;
    let mut stands = || {
        requests += 1;
        assert_eq!(play.fail(maps().get("a")).code(), Some(401));
        assert_eq!(play.seen().len(), requests, "there is nothing better");
    };
    stands();
    fs::remove_file(folder.path("client.key")).unwrap();
    stands();
    folder.write("client.key", &renewed.1[..renewed.1.len() / 2]);
    stands();
    folder.write("client.crt", "");
    stands();
    refused.store(0, Ordering::SeqCst);
    play.must(maps().get("a"));
    assert_eq!(connections(&play), [0; 6], "the old pair is in use");
    refused.store(1, Ordering::SeqCst);
    folder.renew(&renewed);
    play.must(maps().get("a"));
    assert_eq!(connections(&play)[6..], [0, 1]);
}

/// Shows the certificate that was put there last.
#[derive(Debug)]
struct Shown(Mutex<Arc<CertifiedKey>>);

impl Shown {
    fn show(&self, authority: &Authority) {
        *self.0.lock().unwrap() = certified_key(authority);
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.lock().unwrap().clone())
    }
}

/// A server's certificate by that authority, and its key.
fn certified_key(authority: &Authority) -> Arc<CertifiedKey> {
    let (certificate, key) = certificate(authority, &["127.0.0.1"], |_| {});
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key).unwrap();
    Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key))
}

fn another_authority_is_trusted_by_the_next_connection_and_the_old_one_no_more(stage: &Stage) {
    let (old, new) = (authority("old"), authority("new"));
    let shown = Arc::new(Shown(Mutex::new(certified_key(&old))));
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let tls = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut tls = tls.with_cert_resolver(shown.clone());
    // Who resumes a session is not shown a certificate.
    (tls.send_tls13_tickets, tls.session_storage) = (0, Arc::new(NoServerSessionStorage {}));
    // Each request has a connection of its own.
    let (server, _told) =
        Listening::start(Some(Arc::new(tls)), Box::new(|_| Answer::json(&stored("a", 5)).then(Then::Close)));
    let folder = Folder::new(&old.pem());
    let world = stage.connect(&folder.config_of(&server.url(), &json!({"token": "t"})));
    world.must(maps().get("a"));
    shown.show(&new);
    let renewed = new.pem();
    for half in ["", &renewed[..renewed.len() / 2], &renewed[..20]] {
        folder.write("ca.crt", half);
        is_refused(&*world);
    }
    shown.show(&old);
    world.must(maps().get("a"));
    shown.show(&new);
    folder.write("ca.crt", &renewed);
    world.must(maps().create(map("a", "1")));
    shown.show(&old);
    is_refused(&*world);
    folder.write("ca.crt", &(renewed + &old.pem()));
    world.must(maps().get("a"));
}

fn a_real_server_takes_a_renewed_certificate(stage: &Stage) {
    let real = real();
    let ca = String::from_utf8(real.tls.ca.unwrap().text.expose().to_vec()).unwrap();
    let folder = Folder::new(&ca);
    folder.renew(&pair(&authority("strangers")));
    let world = stage.connect(&folder.config(&real.server.to_string()));
    assert_eq!(world.fail(Op::whoami()).code(), Some(401));
    folder.renew(&real_certificate("jane"));
    for _ in 0..2 {
        assert_eq!(whoami(&*world), "jane");
    }
    folder.write("ca.crt", &authority("strangers").pem());
    let other = stage.connect(&folder.config(&real.server.to_string()));
    is_refused(&*other);
    folder.write("ca.crt", &ca);
    assert_eq!(whoami(&*other), "jane");
}
