//! Connections: made, used again, and refused.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::core::config::{Config, Identity, Pem, Proxy, Secret};
use cloudcoil_runtime::{Error, RetryPolicy};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::{map, stored};
use crate::scripted::{Answer, Listening, Then, in_order, listen, request};
use crate::servers::{Cluster, config_of, in_memory};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    CONNECTIONS {
        a_connection_is_used_again,
        a_connection_that_is_announced_to_close_is_not_used_again,
        what_follows_an_answer_belongs_to_no_other,
        answers_without_bodies_leave_the_next_one_alone,
        two_lengths_that_differ_are_refused,
        a_length_that_is_said_twice_is_one_length,
        chunks_without_a_size_are_refused,
        chunks_win_over_a_length,
        answers_in_http_1_0_end_with_their_connection,
    }
    SCRIPT {
        a_long_address_is_sent_whole,
        redirections_are_not_followed,
    }
    VIRTUAL {
        a_request_that_is_not_taken_up_is_sent_again_at_once,
        a_server_that_takes_nothing_up_is_asked_less_and_less_and_given_up,
    }
    SOCKETS {
        a_server_that_is_not_there_is_a_failure_to_connect,
        an_idle_connection_that_the_server_has_closed_is_not_used,
        a_read_is_repeated_when_its_connection_closes_under_it_and_a_write_is_not,
        a_read_is_not_repeated_when_its_connection_answers_nonsense,
        an_answer_before_the_end_of_the_request_is_heard,
        an_answer_is_heard_though_its_server_closes_at_once,
        an_address_may_be_ipv6,
        failures_name_the_server_and_the_proxy,
        an_unknown_authority_is_refused,
        certificates_are_checked_for_names,
        certificates_are_checked_for_their_time,
        certificates_are_not_checked_where_that_is_off,
        a_client_certificate_is_shown_where_it_is_asked_for,
    }
    DUPLEX {
        an_answer_is_heard_though_its_server_reads_no_further,
    }
}

fn a_connection_is_used_again(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::json(&stored("a", 5))));
    for _ in 0..10 {
        play.must(maps().get("a"));
    }
    assert!(play.seen().iter().all(|seen| seen.connection == 0), "one connection does for one request after the other");
}

fn a_connection_that_is_announced_to_close_is_not_used_again(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::json(&stored("a", 5)).header("connection", "close")));
    for _ in 0..3 {
        play.must(maps().get("a"));
        play.must(maps().create(map("a", "1")));
    }
    let used: Vec<_> = play.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(used, [0, 1, 2, 3, 4, 5]);
}

/// An answer as it is written, with the object `a`; `head` are more headers.
fn written(version: &str, head: &str, body: &str) -> Answer {
    let text = format!("{version} 200 OK\r\nContent-Type: application/json\r\n{head}\r\n{body}");
    Answer::raw([Bytes::from(text)]).then(Then::End)
}

fn sized(body: &str) -> String {
    format!("Content-Length: {}\r\n", body.len())
}

fn what_follows_an_answer_belongs_to_no_other(stage: &Stage) {
    let (good, evil) = (stored("a", 5).to_string(), stored("evil", 6).to_string());
    let both = {
        let second = written("HTTP/1.1", &sized(&evil), &evil).body();
        let second = String::from_utf8(second.to_vec()).unwrap();
        written("HTTP/1.1", &sized(&good), &format!("{good}{second}"))
    };
    let play = stage
        .play(Box::new(move |seen| if seen.connection == 0 { both.clone() } else { Answer::json(&stored("a", 5)) }));
    for _ in 0..3 {
        assert_eq!(play.must(maps().get("a")).value(), stored("a", 5), "nobody has asked for the other");
    }
    let last = play.seen().last().map(|seen| seen.connection);
    assert_ne!(last, Some(0), "a server that has lost count is not asked again over the same connection");
}

fn answers_without_bodies_leave_the_next_one_alone(stage: &Stage) {
    for head in ["HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n"] {
        let answers = [Answer::raw([Bytes::from(head)]).then(Then::End), Answer::json(&stored("a", 5))];
        let play = stage.play(in_order(answers));
        // What has no body is no object; what matters is that nothing of the next answer was taken for it.
        let error = play.fail(maps().get("a"));
        assert!(matches!(error.code(), Some(204 | 304)), "{error:?}");
        assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
        assert_eq!(play.seen()[1].connection, 0);
    }
}

fn two_lengths_that_differ_are_refused(stage: &Stage) {
    let body = stored("a", 5).to_string();
    for other in ["Content-Length: 5\r\n", "Content-Length: -1\r\n", "Content-Length: x\r\n"] {
        let head = format!("{}{other}", sized(&body));
        let play = stage.play(in_order([written("HTTP/1.1", &head, &body)]));
        let error = play.fail(maps().get("a"));
        assert!(is_malformed(&error), "{other}: {error:?}");
    }
}

fn a_length_that_is_said_twice_is_one_length(stage: &Stage) {
    let body = stored("a", 5).to_string();
    let head = format!("{0}{0}", sized(&body));
    let play = stage.play(in_order([written("HTTP/1.1", &head, &body)]));
    assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
}

fn chunks_without_a_size_are_refused(stage: &Stage) {
    for body in [
        "x\r\n{}\r\n0\r\n\r\n",
        "\r\n{}\r\n0\r\n\r\n",
        "-2\r\n{}\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n{}",
        "1\r\n{}\r\n0\r\n\r\n",
    ] {
        let play = stage.play(in_order([written("HTTP/1.1", "Transfer-Encoding: chunked\r\n", body)]));
        let error = play.fail(maps().get("a"));
        assert!(is_malformed(&error), "{body:?}: {error:?}");
    }
}

fn chunks_win_over_a_length(stage: &Stage) {
    let body = stored("a", 5).to_string();
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let play =
        stage.play(in_order([written("HTTP/1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", &chunked)]));
    match play.perform(maps().get("a")) {
        Ok(reply) => assert_eq!(reply.value(), stored("a", 5)),
        Err(error) => assert!(is_malformed(&error), "refused, or read to its end: {error:?}"),
    }
}

fn is_malformed(error: &Error) -> bool {
    matches!(error, Error::Network(error) if error.kind == NetworkErrorKind::Protocol)
}

fn answers_in_http_1_0_end_with_their_connection(stage: &Stage) {
    let body = stored("a", 5).to_string();
    let mut number = 0;
    let play = stage.play(Box::new(move |_| {
        number += 1;
        let head = if number % 2 == 0 { sized(&body) } else { String::new() };
        written("HTTP/1.0", &head, &body).then(Then::Finish)
    }));
    for _ in 0..4 {
        assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
    }
    let used: Vec<_> = play.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(used, [0, 1, 2, 3]);
}

fn redirections_are_not_followed(stage: &Stage) {
    for code in [301, 302, 303, 307, 308] {
        let away = Answer::new(code, "text/html", "<a>moved</a>").header("location", "/api/v1/elsewhere");
        let play = stage.play(in_order([away, Answer::json(&stored("a", 5))]));
        assert_eq!(play.fail(maps().get("a")).code(), Some(code));
        assert_eq!(play.seen().len(), 1, "credentials are for the server that was named");
    }
}

fn a_request_that_is_not_taken_up_is_sent_again_at_once(stage: &Stage) {
    let mut number = 0;
    let play = stage.play(Box::new(move |seen| {
        number += 1;
        match seen.path.ends_with("/configmaps") && seen.method == "GET" {
            _ if number % 2 == 1 => Answer::unprocessed(),
            true if seen.is_watch() => Answer::watch(&[super::event("ADDED", "b", 11)]),
            true => Answer::list("10", &[]),
            false => Answer::json(&stored("a", 5)),
        }
    }));
    let mut requests = 0;
    for op in [maps().get("a"), maps().create(map("a", "1")), maps().replace(map("a", "1")), maps().delete("a")] {
        play.must(op);
        requests += 2;
        let seen = play.seen();
        let [refused, taken] = &seen[requests - 2..] else { panic!("{seen:?}") };
        assert_eq!((&refused.method, &refused.path, &refused.body), (&taken.method, &taken.path, &taken.body));
    }
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(super::told(&events, 3), ["restarted", "synced", "applied b 11"]);
    assert_eq!(play.seen().len(), requests + 4);
    assert!(play.elapsed() < Duration::from_millis(200), "nobody has waited: {:?}", play.elapsed());
}

fn a_server_that_takes_nothing_up_is_asked_less_and_less_and_given_up(stage: &Stage) {
    let play = stage.play_with(Box::new(|_| Answer::unprocessed()), &stage.settings());
    let Error::Network(error) = play.fail(maps().create(map("a", "1"))) else { panic!("no failure of the network") };
    assert_eq!((error.kind, error.attempts), (NetworkErrorKind::Unprocessed, 6), "{error:?}");
    assert_eq!(play.seen().len(), 12, "each attempt is two at once");
    assert!(play.elapsed() >= Duration::from_secs(5), "{:?}", play.elapsed());
}

fn a_server_that_is_not_there_is_a_failure_to_connect(stage: &Stage) {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = stage.client_of(nobody).fail(maps().get("a"));
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Connect), "{error:?}");
    assert!(error.to_string().starts_with(&format!("{nobody}: cannot connect: ")), "{error}");
}

fn failures_name_the_server_and_the_proxy(stage: &Stage) {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = config_of("http://10.0.0.1:8080", None);
    config.proxy = Some(Proxy::parse(&format!("http://me:secret@{nobody}")).unwrap());
    let world = stage.executor().connect(&config, &stage.settings().once()).unwrap();
    let error = world.fail(maps().get("a")).to_string();
    let named = format!("10.0.0.1:8080: cannot connect: the proxy http://{nobody}: ");
    assert!(error.starts_with(&named), "{error}");
    // In the head, and in the midst of the body.
    for answer in [Answer::raw([]), Answer::json(&stored("a", 5)).broken_off_at(20)] {
        let error = stage.play(in_order([answer])).fail(maps().get("a")).to_string();
        assert!(error.starts_with("127.0.0.1:") && error.contains(": connection lost: "), "{error}");
    }
}

/// An answer with the object `a`, as bytes.
fn bytes() -> Vec<u8> {
    let body = stored("a", 5).to_string();
    written("HTTP/1.1", &sized(&body), &body).body().to_vec()
}

fn an_idle_connection_that_the_server_has_closed_is_not_used(stage: &Stage) {
    let (tell, told) = mpsc::channel();
    let address = listen(move |number, mut stream| {
        request(number, &mut stream)?;
        stream.write_all(&bytes())?;
        drop(stream);
        tell.send(()).map_err(io::Error::other)
    });
    let world = stage.client_of(address);
    for _ in 0..5 {
        world.must(maps().get("a"));
        told.recv().unwrap();
        world.must(maps().create(map("a", "1")));
        told.recv().unwrap();
    }
}

fn a_read_is_repeated_when_its_connection_closes_under_it_and_a_write_is_not(stage: &Stage) {
    let (tell, told) = mpsc::channel();
    // Each connection is good for one answer; the second request on it is read, and nothing more.
    let address = listen(move |number, mut stream| {
        for answers in [true, false] {
            let Some(seen) = request(number, &mut stream)? else { return Ok(()) };
            tell.send((number, seen.method)).map_err(io::Error::other)?;
            if answers {
                stream.write_all(&bytes())?;
            }
        }
        Ok(())
    });
    let world = stage.client_of(address);
    world.must(maps().get("a"));
    world.must(maps().get("a"));
    let Error::Network(error) = world.fail(maps().create(map("a", "1"))) else { panic!("no failure of the network") };
    assert_eq!(error.kind, NetworkErrorKind::Lost, "{error:?}");
    let seen: Vec<_> = told.try_iter().collect();
    let seen: Vec<_> = seen.iter().map(|(number, method)| (*number, method.as_str())).collect();
    assert_eq!(seen, [(0, "GET"), (0, "GET"), (1, "GET"), (1, "POST")]);
}

fn a_read_is_not_repeated_when_its_connection_answers_nonsense(stage: &Stage) {
    let (tell, told) = mpsc::channel();
    let address = listen(move |number, mut stream| {
        for answer in [bytes(), b"nonsense\r\n\r\n".to_vec()] {
            let Some(seen) = request(number, &mut stream)? else { return Ok(()) };
            tell.send((number, seen.method)).map_err(io::Error::other)?;
            stream.write_all(&answer)?;
        }
        Ok(())
    });
    let world = stage.client_of(address);
    world.must(maps().get("a"));
    let error = world.fail(maps().get("a"));
    assert!(is_malformed(&error), "{error:?}");
    let seen: Vec<_> = told.try_iter().collect();
    assert_eq!(seen.len(), 2, "a server that has answered is not asked again: {seen:?}");
}

fn a_long_address_is_sent_whole(stage: &Stage) {
    let names: Vec<_> = (0..5_000).map(|number| format!("name-{number}")).collect();
    let play = stage.play(Box::new(|_| Answer::list("5", &[])));
    play.must(maps().list().labels(&format!("app in ({})", names.join(","))));
    let seen = play.seen();
    let asked = seen[0].parameter("labelSelector").unwrap();
    assert!(asked.len() > 40_000 && asked.contains("name-4999"), "{asked}");
}

fn an_answer_before_the_end_of_the_request_is_heard(stage: &Stage) {
    let address = listen(|_, mut stream| {
        stream.read_exact(&mut [0; 100])?;
        let refusal = crate::scripted::refusal(413, "RequestEntityTooLarge", "too much").to_string();
        let head = "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Type: application/json\r\n";
        stream.write_all(format!("{head}{}\r\n{refusal}", sized(&refusal)).as_bytes())?;
        // It takes the rest as well, as load balancers do for a while.
        io::copy(&mut stream, &mut io::sink()).map(drop)
    });
    let error = stage.client_of(address).fail(maps().create(map("a", &"x".repeat(5_000_000))));
    assert_eq!(error.code(), Some(413), "{error:?}");
}

/// A server that refuses what is too long by its first bytes, and then does this.
fn refusing(end: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    listen(move |_, mut stream| {
        stream.read_exact(&mut [0; 100])?;
        let refusal = crate::scripted::refusal(413, "RequestEntityTooLarge", "too much").to_string();
        stream.write_all(format!("HTTP/1.1 413 Too Large\r\n{}\r\n{refusal}", sized(&refusal)).as_bytes())?;
        end(stream)
    })
}

fn an_answer_is_heard_though_its_server_closes_at_once(stage: &Stage) {
    let address = refusing(|_| Ok(()));
    let error = stage.client_of(address).fail(maps().create(map("a", &"x".repeat(5_000_000))));
    assert_eq!(error.code(), Some(413), "{error:?}");
}

fn an_answer_is_heard_though_its_server_reads_no_further(stage: &Stage) {
    let (hold, held) = mpsc::channel();
    let address = refusing(move |stream| hold.send(stream).map_err(io::Error::other));
    // More than what the system takes from its sender.
    let error = stage.client_of(address).fail(maps().create(map("a", &"x".repeat(8_000_000))));
    assert_eq!(error.code(), Some(413), "{error:?}");
    drop(held);
}

fn an_address_may_be_ipv6(stage: &Stage) {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let seen = request(0, &mut stream).unwrap().unwrap();
        stream.write_all(&bytes()).unwrap();
        tell.send(seen.header("host").map(str::to_owned)).unwrap();
    });
    stage.client_of(address).must(maps().get("a"));
    assert_eq!(told.recv().unwrap(), Some(address.to_string()));
}

fn an_unknown_authority_is_refused(stage: &Stage) {
    let (cluster, other) = (Cluster::start(true, in_memory()), Cluster::start(true, in_memory()));
    let mut config = cluster.config();
    config.tls.ca = other.config().tls.ca;
    let settings = crate::world::Settings { retry: RetryPolicy::OFF, ..stage.settings() };
    let error = stage.executor().connect(&config, &settings).unwrap().fail(maps().get("a"));
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Tls), "{error:?}");
    config.tls.ca = Some(Pem { origin: "test".into(), text: Secret::new("no pem") });
    let refused = stage.executor().connect(&config, &settings).map(drop).unwrap_err();
    assert!(
        matches!(refused, Error::Config(_)),
        "what is no certificate is found out before the first request: {refused:?}"
    );
}

pub(super) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(super) fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The certificate of a server of those names, and its key.
pub(super) fn certificate(
    authority: &Authority,
    names: &[&str],
    adjust: impl FnOnce(&mut CertificateParams),
) -> (rcgen::Certificate, KeyPair) {
    let mut params = CertificateParams::default();
    let name = |name: &&str| match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName((*name).try_into().unwrap()),
    };
    params.subject_alt_names = names.iter().map(name).collect();
    adjust(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap(), key)
}

/// A server with that certificate, which asks for those of clients if it knows an authority for them; and how it is reached.
pub(super) fn secured(
    (certificate, key): (rcgen::Certificate, KeyPair),
    authority: &Authority,
    clients: Option<&Authority>,
) -> (Listening, Config) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(clients.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let tls = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let (server, _told) = Listening::start(Some(Arc::new(tls)), Box::new(|_| Answer::json(&stored("a", 5))));
    let config = config_of(&server.url(), Some(&authority.pem()));
    (server, config)
}

/// What the handshake fails with.
#[track_caller]
fn tls_failure(stage: &Stage, config: &Config) -> String {
    match stage.connect(config).fail(maps().get("a")) {
        Error::Network(error) if error.kind == NetworkErrorKind::Tls => error.message.to_string(),
        other => panic!("no failure of TLS: {other:?}"),
    }
}

fn certificates_are_checked_for_names(stage: &Stage) {
    let authority = authority("authority");
    let made = certificate(&authority, &["cluster.example", "10.0.0.1"], |_| {});
    let (_server, mut config) = secured(made, &authority, None);
    let failure = tls_failure(stage, &config);
    assert!(failure.contains("the server's certificate is for other names"), "{failure}");
    for (name, is_good) in [("cluster.example", true), ("10.0.0.1", true), ("other.example", false)] {
        config.tls.server_name = Some(name.into());
        if is_good {
            stage.connect(&config).must(maps().get("a"));
        } else {
            tls_failure(stage, &config);
        }
    }
}

fn certificates_are_checked_for_their_time(stage: &Stage) {
    let authority = authority("authority");
    let expired = certificate(&authority, &["127.0.0.1"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let (_server, config) = secured(expired, &authority, None);
    let failure = tls_failure(stage, &config);
    assert!(failure.contains("has expired"), "{failure}");
    let early = certificate(&authority, &["127.0.0.1"], |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1));
    let (_server, config) = secured(early, &authority, None);
    let failure = tls_failure(stage, &config);
    assert!(failure.contains("is not valid yet"), "{failure}");
}

fn certificates_are_not_checked_where_that_is_off(stage: &Stage) {
    let authority = authority("authority");
    let bad = certificate(&authority, &["other.example"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let (_server, mut config) = secured(bad, &authority, None);
    (config.tls.ca, config.tls.insecure_skip_verify) = (None, true);
    stage.connect(&config).must(maps().get("a"));
}

fn a_client_certificate_is_shown_where_it_is_asked_for(stage: &Stage) {
    let (authority, clients, strangers) = (authority("authority"), authority("clients"), authority("strangers"));
    let made = certificate(&authority, &["127.0.0.1"], |_| {});
    let (_server, mut config) = secured(made, &authority, Some(&clients));
    let failure = tls_failure(stage, &config);
    assert!(failure.contains("wants a client certificate"), "{failure}");
    let pem = |text: String| Pem { origin: "test".into(), text: Secret::new(text) };
    let identity = |authority: &Authority| {
        let (certificate, key) = certificate(authority, &["me"], |_| {});
        Identity { certificate: pem(certificate.pem()), key: pem(key.serialize_pem()) }
    };
    config.tls.identity = Some(identity(&clients));
    let world = stage.connect(&config);
    world.must(maps().get("a"));
    world.must(maps().get("a"));
    config.tls.identity = Some(identity(&strangers));
    for _ in 0..10 {
        let failure = tls_failure(stage, &config);
        assert!(failure.contains("does not take the client certificate"), "{failure}");
    }
    let large = maps().create(map("a", &"x".repeat(1_000_000)));
    for _ in 0..10 {
        let error = stage.connect(&config).fail(large.clone());
        assert!(
            error.to_string().contains("does not take the client certificate"),
            "also while much is sent: {error:?}"
        );
    }
}
