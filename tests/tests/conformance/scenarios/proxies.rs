//! Ways to the server through others.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};

use cloudcoil_apiserver::Tls;
use cloudcoil_runtime::Error;
use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::core::config::{Config, ConfigSource, Proxy};
use serde_json::json;

use super::{map, stored};
use crate::scripted::{Answer, Listening, Told, head, listen, server_config, tunnel};
use crate::servers::{Cluster, config_of, in_memory};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    SOCKETS {
        requests_go_through_a_proxy,
        a_proxy_that_is_told_no_name_hears_none,
        a_proxy_may_answer_in_any_pieces,
        a_proxy_that_refuses_is_named_with_its_reason,
        a_proxy_that_breaks_off_anywhere_makes_no_connection,
        a_proxy_that_is_not_there_is_named,
        requests_without_tls_are_handed_to_the_proxy_whole,
        a_proxy_may_be_spoken_to_over_tls,
        a_proxy_over_tls_is_checked,
        the_servers_name_is_checked_behind_a_proxy,
        a_socks_proxy_looks_names_up,
        a_socks_proxy_may_want_a_password,
        a_socks_proxy_may_answer_in_any_pieces,
        a_socks_proxy_that_refuses_is_named_with_its_reason,
        a_socks_proxy_that_breaks_off_anywhere_makes_no_connection,
        the_proxy_of_a_kubeconfig_is_used,
        a_watch_goes_through_a_proxy_and_ends_with_its_flow,
    }
}

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\nX-Proxy: \r\n\r\n";

/// A proxy by HTTP whose connection of a number is answered by `answer`; if it says yes, all ways lead to `server`.
fn by_http(
    server: SocketAddr,
    answer: impl Fn(usize) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> (SocketAddr, Receiver<String>) {
    let (tell, told) = teller();
    let address = listen(move |number, mut client| {
        tell(head(&mut client)?);
        let pieces = answer(number);
        say(&mut client, &pieces)?;
        if pieces.concat() != ESTABLISHED {
            return Ok(());
        }
        tunnel(&client, server)
    });
    (address, told)
}

fn say(client: &mut TcpStream, pieces: &[Vec<u8>]) -> io::Result<()> {
    client.set_nodelay(true)?;
    pieces.iter().try_for_each(|piece| client.write_all(piece))
}

fn teller() -> (impl Fn(String) + Send + Sync + 'static, Receiver<String>) {
    let (tell, told): (Sender<String>, _) = mpsc::channel();
    let tell = Mutex::new(tell);
    // The test may have heard enough.
    (move |text| drop(tell.lock().unwrap().send(text)), told)
}

fn whole(answer: &[u8]) -> Vec<Vec<u8>> {
    vec![answer.to_vec()]
}

/// The pieces of the answer to a connection of that number: byte by byte first, then cut at every byte.
fn pieces(answer: &[u8], number: usize) -> Vec<Vec<u8>> {
    match number {
        0 => answer.iter().map(|byte| vec![*byte]).collect(),
        at => vec![answer[..at].to_vec(), answer[at..].to_vec()],
    }
}

fn through(mut config: Config, proxy: &str) -> Config {
    config.proxy = Some(Proxy::parse(proxy).unwrap());
    config
}

fn cluster() -> Cluster {
    Cluster::start(true, in_memory())
}

/// Why there is no connection.
#[track_caller]
fn refused(stage: &Stage, config: &Config) -> String {
    let error = stage.connect(config).fail(maps().page());
    let text = format!("{error} {error:?}");
    assert!(!text.contains("s3cret"), "{text}");
    let proxy = config.proxy.as_ref().unwrap();
    for name in [config.server.authority().unwrap().to_string(), format!("the proxy {proxy}:")] {
        assert_eq!(error.to_string().matches(&name).count(), 1, "{name} is named once: {error}");
    }
    match error {
        Error::Network(error) if error.kind == NetworkErrorKind::Connect => error.message.to_string(),
        other => panic!("no failure to connect: {other:?}"),
    }
}

fn requests_go_through_a_proxy(stage: &Stage) {
    let cluster = cluster();
    let (address, told) = by_http(cluster.handle().address(), |_| whole(ESTABLISHED));
    let config = through(cluster.config(), &format!("http://me:s3cret@{address}"));
    let world = stage.connect(&config);
    world.must(maps().create(map("a", "1")).within("default"));
    world.must(maps().get("a").within("default"));
    let asked = told.recv().unwrap();
    let server = cluster.handle().address();
    assert!(asked.starts_with(&format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n")), "{asked}");
    assert!(asked.contains("\r\nProxy-Authorization: Basic bWU6czNjcmV0\r\n"), "{asked}");
    assert!(told.try_recv().is_err(), "one connection does for both");
}

fn a_proxy_that_is_told_no_name_hears_none(stage: &Stage) {
    let cluster = cluster();
    let (address, told) = by_http(cluster.handle().address(), |_| whole(ESTABLISHED));
    stage.connect(&through(cluster.config(), &format!("http://{address}"))).must(maps().page());
    let asked = told.recv().unwrap().to_lowercase();
    assert!(!asked.contains("authorization"), "{asked}");
}

fn a_proxy_may_answer_in_any_pieces(stage: &Stage) {
    let cluster = cluster();
    let (address, _told) = by_http(cluster.handle().address(), |number| pieces(ESTABLISHED, number));
    let config = through(cluster.config(), &format!("http://{address}"));
    for _ in 0..ESTABLISHED.len() {
        // Each client makes a connection of its own.
        stage.connect(&config).must(maps().page());
    }
}

fn a_proxy_that_refuses_is_named_with_its_reason(stage: &Stage) {
    let cluster = cluster();
    let rows = [
        ("", "HTTP/1.1 403 Forbidden\r\n\r\n", "it answers 403 Forbidden"),
        ("", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno", "it answers 502 Bad Gateway"),
        ("", "HTTP/1.1 407 Who?\r\n\r\n", "it asks for a user name and a password"),
        ("me:s3cret@", "HTTP/1.1 407 Who?\r\n\r\n", "it does not take the user name and the password"),
        ("", "HTTP/1.1 302 Found\r\nLocation: http://login.example/\r\n\r\n", "it answers 302 Found"),
        ("", "SSH-2.0-OpenSSH\r\n\r\n", "it does not speak HTTP"),
        ("", "HTTP/1.1 200 OK\r\n\r\nhello", "it says more than it was asked"),
        ("", "", "it has closed the connection"),
    ];
    for (user, answer, reason) in rows {
        let (address, told) = by_http(cluster.handle().address(), move |_| whole(answer.as_bytes()));
        let message = refused(stage, &through(cluster.config(), &format!("http://{user}{address}")));
        assert!(message.contains(&address.to_string()) && message.contains(reason), "{message}");
        assert_eq!(told.try_iter().count(), 1, "it was asked once");
    }
}

fn a_proxy_that_breaks_off_anywhere_makes_no_connection(stage: &Stage) {
    let cluster = cluster();
    let (address, _told) = by_http(cluster.handle().address(), |at| whole(&ESTABLISHED[..at]));
    let config = through(cluster.config(), &format!("http://{address}"));
    for at in 0..ESTABLISHED.len() {
        let message = refused(stage, &config);
        assert!(message.contains("it has closed the connection"), "after {at}: {message}");
    }
}

fn a_proxy_that_is_not_there_is_named(stage: &Stage) {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "https", "socks5", "socks5h"] {
        let config = through(Config::new("https://10.0.0.1:6443").unwrap(), &format!("{scheme}://me:s3cret@{nobody}"));
        let message = refused(stage, &config);
        assert!(message.contains(&format!("{scheme}://{nobody}")), "{message}");
    }
}

/// A server that is in the place of a proxy, and answers all that it is asked to forward.
fn forwarding(tls: Option<&Tls>) -> (Listening, Receiver<Told>) {
    Listening::start(tls.map(server_config), Box::new(|_| Answer::json(&stored("a", 5))))
}

#[track_caller]
fn assert_forwarded(told: &Receiver<Told>) {
    for method in ["GET", "POST"] {
        let Told::Requested(seen) = told.recv().unwrap() else { panic!("no request") };
        assert_eq!((seen.connection, seen.method.as_str()), (0, method));
        assert!(seen.path.starts_with("http://cluster.example:8080/api/v1/namespaces/"), "{}", seen.path);
        assert_eq!(seen.header("host"), Some("cluster.example:8080"));
        assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6czNjcmV0"));
    }
}

fn requests_without_tls_are_handed_to_the_proxy_whole(stage: &Stage) {
    let (server, told) = forwarding(None);
    let config = config_of("http://cluster.example:8080", None);
    let world = stage.connect(&through(config, &format!("http://me:s3cret@{}", server.address())));
    world.must(maps().get("a"));
    world.must(maps().create(map("a", "1")));
    assert_forwarded(&told);
}

fn a_proxy_may_be_spoken_to_over_tls(stage: &Stage) {
    let tls = Tls::generate(&[]).unwrap();
    let (server, told) = forwarding(Some(&tls));
    let config = config_of("http://cluster.example:8080", Some(tls.ca_pem()));
    let world = stage.connect(&through(config, &format!("https://me:s3cret@{}", server.address())));
    world.must(maps().get("a"));
    world.must(maps().create(map("a", "1")));
    assert_forwarded(&told);
}

fn a_proxy_over_tls_is_checked(stage: &Stage) {
    let (server, _told) = forwarding(Some(&Tls::generate(&[]).unwrap()));
    let config = config_of("http://cluster.example:8080", Some(Tls::generate(&[]).unwrap().ca_pem()));
    let error = stage.connect(&through(config, &format!("https://{}", server.address()))).fail(maps().get("a"));
    let Error::Network(error) = error else { panic!("no failure of the network: {error:?}") };
    assert_eq!(error.kind, NetworkErrorKind::Tls);
    let named = format!("cluster.example:8080: TLS handshake failed: the proxy https://{}: ", server.address());
    assert!(error.to_string().starts_with(&named), "{error}");
}

fn the_servers_name_is_checked_behind_a_proxy(stage: &Stage) {
    let cluster = cluster();
    let (address, _told) = by_http(cluster.handle().address(), |_| whole(ESTABLISHED));
    let mut config = config_of("https://cluster.example:6443", cluster.handle().ca_pem());
    config = through(config, &format!("http://{address}"));
    let error = stage.connect(&config).fail(maps().page());
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Tls), "{error:?}");
    let named = format!("cluster.example:6443 through the proxy http://{address}: TLS handshake failed: ");
    assert!(error.to_string().starts_with(&named), "{error}");
    config.tls.server_name = Some("localhost".into());
    stage.connect(&config).must(maps().page());
}

/// What a proxy by SOCKS says after each thing that is said to it.
#[derive(Clone, Copy)]
struct Socks {
    method: &'static [u8],
    verdict: &'static [u8],
    reply: &'static [u8],
}

/// A yes, with the address that the connection has on the proxy's side.
const YES: &[u8] = &[5, 0, 0, 3, 4, b'h', b'o', b's', b't', 0x12, 0x34];
const OPEN: Socks = Socks { method: &[5, 0], verdict: &[], reply: YES };
const GUARDED: Socks = Socks { method: &[5, 2], verdict: &[1, 0], reply: YES };

/// A proxy by SOCKS; says the name that it was given, with the password before it.
fn by_socks(
    server: SocketAddr,
    socks: Socks,
    cut: impl Fn(&[u8], usize) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> (SocketAddr, Receiver<String>) {
    let (tell, told) = teller();
    let address = listen(move |number, mut client| {
        let some = |client: &mut TcpStream, count: u8| -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; count.into()];
            client.read_exact(&mut bytes).map(|()| bytes)
        };
        let methods = some(&mut client, 2)?[1];
        some(&mut client, methods)?;
        say(&mut client, &cut(socks.method, number))?;
        let mut heard = String::new();
        if socks.method == [5, 2] {
            for _ in 0..2 {
                // The version of what is said about the user, and how long the name is; how long the password is.
                let length = if heard.is_empty() { some(&mut client, 2)?[1] } else { some(&mut client, 1)?[0] };
                heard += &format!("{} ", String::from_utf8_lossy(&some(&mut client, length)?));
            }
            say(&mut client, &cut(socks.verdict, number))?;
        }
        let length = some(&mut client, 5)?[4];
        let rest = some(&mut client, length + 2)?;
        let (name, port) = rest.split_at(length.into());
        tell(format!("{heard}{}:{}", String::from_utf8_lossy(name), u16::from_be_bytes([port[0], port[1]])));
        let reply = cut(socks.reply, number);
        say(&mut client, &reply)?;
        if reply.concat() == YES { tunnel(&client, server) } else { Ok(()) }
    });
    (address, told)
}

/// A cluster by a name that nobody but the proxy knows.
fn named(cluster: &Cluster) -> Config {
    let mut config = config_of("https://cluster.invalid:6443", cluster.handle().ca_pem());
    config.tls.server_name = Some("localhost".into());
    config
}

fn a_socks_proxy_looks_names_up(stage: &Stage) {
    let cluster = cluster();
    for scheme in ["socks5", "socks5h"] {
        let (address, told) = by_socks(cluster.handle().address(), OPEN, |words, _| whole(words));
        stage.connect(&through(named(&cluster), &format!("{scheme}://{address}"))).must(maps().page());
        assert_eq!(told.recv().as_deref(), Ok("cluster.invalid:6443"));
    }
    // Without TLS as well.
    let (server, _told) = Listening::start(None, Box::new(|_| Answer::json(&stored("a", 5))));
    let (address, told) = by_socks(server.address(), OPEN, |words, _| whole(words));
    let config = config_of("http://cluster.invalid", None);
    stage.connect(&through(config, &format!("socks5://{address}"))).must(maps().get("a"));
    assert_eq!(told.recv().as_deref(), Ok("cluster.invalid:80"));
}

fn a_socks_proxy_may_want_a_password(stage: &Stage) {
    let cluster = cluster();
    let (address, told) = by_socks(cluster.handle().address(), GUARDED, |words, _| whole(words));
    stage.connect(&through(named(&cluster), &format!("socks5://me:s3cret@{address}"))).must(maps().page());
    assert_eq!(told.recv().as_deref(), Ok("me s3cret cluster.invalid:6443"));
}

fn a_socks_proxy_may_answer_in_any_pieces(stage: &Stage) {
    let cluster = cluster();
    // What is shorter than the cut comes whole.
    let cut = |words: &[u8], number| if number < words.len() { pieces(words, number) } else { whole(words) };
    let (address, _told) = by_socks(cluster.handle().address(), GUARDED, cut);
    let config = through(named(&cluster), &format!("socks5://me:s3cret@{address}"));
    for _ in 0..YES.len() {
        stage.connect(&config).must(maps().page());
    }
}

fn a_socks_proxy_that_refuses_is_named_with_its_reason(stage: &Stage) {
    let cluster = cluster();
    let rows = [
        ("", Socks { method: &[5, 0xff], ..OPEN }, "it asks for a user name and a password"),
        ("me:s3cret@", Socks { method: &[5, 0xff], ..OPEN }, "it knows no way to prove who one is"),
        ("me:s3cret@", Socks { verdict: &[1, 1], ..GUARDED }, "it does not take the user name and the password"),
        ("", Socks { reply: &[5, 2, 0, 1, 0, 0, 0, 0, 0, 0], ..OPEN }, "it does not allow it"),
        ("", Socks { reply: &[5, 4, 0, 1, 0, 0, 0, 0, 0, 0], ..OPEN }, "it cannot reach the host"),
        ("", Socks { reply: &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0], ..OPEN }, "the server refuses the connection"),
        ("", Socks { method: &[4, 0], ..OPEN }, "it does not speak SOCKS version 5"),
        ("", Socks { method: b"HTTP/1.1 400 Bad Request\r\n\r\n", ..OPEN }, "it does not speak SOCKS version 5"),
    ];
    for (user, socks, reason) in rows {
        let (address, _told) = by_socks(cluster.handle().address(), socks, |words, _| whole(words));
        let message = refused(stage, &through(named(&cluster), &format!("socks5://{user}{address}")));
        assert!(message.contains(&address.to_string()) && message.contains(reason), "{message}");
    }
}

fn a_socks_proxy_that_breaks_off_anywhere_makes_no_connection(stage: &Stage) {
    let cluster = cluster();
    // Its last words are cut short.
    let cut = |words: &[u8], at| if words == YES { whole(&words[..at]) } else { whole(words) };
    let (address, _told) = by_socks(cluster.handle().address(), OPEN, cut);
    let config = through(named(&cluster), &format!("socks5://{address}"));
    for at in 0..YES.len() {
        let message = refused(stage, &config);
        assert!(message.contains("it has closed the connection"), "after {at}: {message}");
    }
}

fn the_proxy_of_a_kubeconfig_is_used(stage: &Stage) {
    let (server, told) = forwarding(None);
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {
            "server": "http://cluster.example:8080", "proxy-url": format!("http://me:s3cret@{}", server.address()),
        }}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(folder.path().join("config"), kubeconfig.to_string()).unwrap();
    let source = ConfigSource::from_kubeconfig(folder.path().join("config"));
    let world = stage.connect(&cloudcoil_blocking::load_config(source).unwrap());
    world.must(maps().get("a"));
    world.must(maps().create(map("a", "1")));
    assert_forwarded(&told);
}

fn a_watch_goes_through_a_proxy_and_ends_with_its_flow(stage: &Stage) {
    let (server, told) = Listening::start(
        None,
        Box::new(|seen| {
            if seen.is_watch() { Answer::watch(&[super::event("ADDED", "b", 11)]) } else { Answer::list("10", &[]) }
        }),
    );
    let (address, _told) = by_socks(server.address(), OPEN, |words, _| whole(words));
    let config = through(config_of("http://cluster.invalid", None), &format!("socks5://{address}"));
    let world = stage.connect(&config);
    let events = world.watch(maps().follow().in_pages_of(500));
    assert_eq!(super::told(&events, 3), ["restarted", "synced", "applied b 11"]);
    drop(events);
    let left = told.iter().find_map(|told| if let Told::Left(connection) = told { Some(connection) } else { None });
    assert_eq!(left, Some(0), "the proxy passes on that the client has gone");
}
