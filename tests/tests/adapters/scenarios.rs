//! What happens on each executor.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudcoil_runtime::Deleted;
use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::core::RetryPolicy;
use cloudcoil_runtime::core::config::Secret as Hidden;
use cloudcoil_runtime::core::config::{Config, ConfigSource, Environment, Pem, Proxy, ReadError};
use cloudcoil_runtime::prelude::*;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::json;

use crate::Adapter;
use crate::servers::{Cluster, config_of, head, pod_answer, raw, write};

fn map(name: &str, value: &str) -> ConfigMap {
    let mut map = ConfigMap { data: Some([("key".to_owned(), value.to_owned())].into()), ..ConfigMap::default() };
    map.metadata.name = Some(name.to_owned());
    map
}

fn verbs<A: Adapter>(cluster: &Cluster) {
    let client = A::client(&cluster.config());
    A::block_on(async {
        let maps = client.api::<ConfigMap>();
        let made = maps.create(&map("a", "1")).await.unwrap();
        assert!(maps.create(&map("a", "1")).await.unwrap_err().is_already_exists());
        let patched = maps.patch("a", Patch::Merge(json!({"data": {"more": "2"}}))).await.unwrap();
        assert_eq!(patched.data.as_ref().map(std::collections::BTreeMap::len), Some(2));
        assert!(maps.replace(&made).await.unwrap_err().is_conflict());
        assert_eq!(maps.replace(&patched).await.unwrap().resource_version(), patched.resource_version());
        assert_eq!(maps.get("a").await.unwrap(), patched);
        assert!(maps.get("b").await.unwrap_err().is_not_found());
        assert!(matches!(maps.delete("a").await.unwrap(), Deleted::Status(_)));
        assert_eq!(maps.get_opt("a").await.unwrap(), None);
    });
}

pub(crate) fn every_verb_over_tcp<A: Adapter>() {
    verbs::<A>(&Cluster::start());
}

pub(crate) fn every_verb_over_tls<A: Adapter>() {
    verbs::<A>(&Cluster::start_tls());
}

pub(crate) fn pages_and_watches_show_the_same_objects<A: Adapter>() {
    let cluster = Cluster::start_tls();
    let client = A::client(&cluster.config());
    A::block_on(async {
        let secrets = client.api::<Secret>();
        let names: Vec<_> = (0..25).map(|number| format!("s{number:02}")).collect();
        for name in &names {
            let mut secret = Secret::default();
            secret.metadata.name = Some(name.clone());
            secrets.create(&secret).await.unwrap();
        }
        let listed: Vec<_> = secrets.list().limit(7).stream().try_collect().await.unwrap();
        assert!(listed.iter().map(Resource::name).eq(names.iter().map(String::as_str)));
        let mut watched = secrets.watch().stream();
        let mut seen = Vec::new();
        loop {
            match watched.try_next().await.unwrap().unwrap() {
                WatchEvent::Listed(object) => seen.push(object.name().to_owned()),
                WatchEvent::Synced => break,
                WatchEvent::Restarted => {}
                other => panic!("{other:?}"),
            }
        }
        secrets.delete("s00").await.unwrap();
        let gone = watched.try_next().await.unwrap().unwrap();
        assert!(matches!(gone, WatchEvent::Deleted(object) if object.name() == "s00"));
        seen.sort();
        assert_eq!(seen, names);
    });
}

pub(crate) fn a_controller_does_its_work<A: Adapter>() {
    async fn reconcile(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<(), Stop> {
        let mut child = Secret::default();
        child.metadata.name = Some(format!("{}-child", map.name()));
        ctx.ensure(child).await?;
        Ok(())
    }
    let cluster = Cluster::start_tls();
    let client = A::client(&cluster.config());
    A::block_on(async {
        let controller = Controller::<ConfigMap>::new().owns::<Secret>().workers(2).reconcile(reconcile);
        let running = controller.start(client.clone()).unwrap();
        client.api::<ConfigMap>().create(&map("a", "1")).await.unwrap();
        let mut watched = client.api::<Secret>().watch().fields("metadata.name=a-child").stream();
        loop {
            if let WatchEvent::Listed(_) | WatchEvent::Applied(_) = watched.try_next().await.unwrap().unwrap() {
                break;
            }
        }
        running.stop();
        running.stopped().await.unwrap();
    });
}

/// Reads the Pod `a` from a server that answers each request with `pieces`, and then closes if `closes`.
fn read<A: Adapter>(pieces: Vec<Vec<u8>>, closes: bool) -> Result<Pod, Error> {
    let address = raw(move |_, mut stream| {
        while head(&mut stream).is_some() {
            pieces.iter().for_each(|piece| write(&mut stream, piece));
            if closes {
                return;
            }
        }
    });
    let client = A::client(&config_of(address)).with_retry(RetryPolicy::OFF);
    A::block_on(async { client.api::<Pod>().get("a").await })
}

pub(crate) fn an_answer_may_be_cut_anywhere<A: Adapter>() {
    let answer = pod_answer();
    let chunked = {
        let body = answer.split(|byte| *byte == b'{').next().map(<[u8]>::len).unwrap();
        let (head, body) = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), &answer[body..]);
        let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        [head, body.chunks(5).flat_map(chunk).collect(), b"0\r\n\r\n".to_vec()].concat()
    };
    for answer in [answer, chunked] {
        let whole = read::<A>(vec![answer.clone()], false).unwrap();
        assert_eq!(whole.annotation("x"), Some("naïve → 完了"));
        let bytes = answer.iter().map(|byte| vec![*byte]).collect();
        assert_eq!(read::<A>(bytes, false).unwrap(), whole);
    }
}

pub(crate) fn an_answer_without_a_length_ends_with_its_connection<A: Adapter>() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"metadata\":{\"name\":\"a\"}}";
    assert_eq!(read::<A>(vec![answer.to_vec()], true).unwrap().name(), "a");
}

pub(crate) fn an_answer_that_breaks_off_is_an_error<A: Adapter>() {
    let answer = pod_answer();
    for length in [0, 10, answer.len() - 1] {
        let error = read::<A>(vec![answer[..length].to_vec()], true).unwrap_err();
        assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Lost), "{length}: {error:?}");
    }
    let error = read::<A>(vec![b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()], true).unwrap_err();
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Protocol), "{error:?}");
}

pub(crate) fn connections_are_used_again<A: Adapter>() {
    let (tell, told) = mpsc::channel();
    let address = raw(move |number, mut stream| {
        while head(&mut stream).is_some() {
            tell.send(number).unwrap();
            write(&mut stream, &pod_answer());
        }
    });
    let client = A::client(&config_of(address));
    A::block_on(async {
        for _ in 0..10 {
            client.api::<Pod>().get("a").await.unwrap();
        }
    });
    assert_eq!(told.try_iter().max(), Some(0), "one connection does for one request after the other");
}

pub(crate) fn a_dropped_watch_closes_its_connection<A: Adapter>() {
    let (tell, told) = mpsc::channel();
    let address = raw(move |_, mut stream| {
        let Some(head) = head(&mut stream) else { return };
        let begun = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        write(&mut stream, begun);
        tell.send(head).unwrap();
        // With a reset, if the client has not read what was sent to it.
        let ended =
            stream.read(&mut [0]).map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |read| read == 0);
        tell.send(ended.to_string()).unwrap();
    });
    let client = A::client(&config_of(address));
    A::block_on(async {
        let mut watch = client.api::<Pod>().watch().stream();
        while told.try_recv().is_err() {
            let _ = futures_util::poll!(watch.try_next());
            std::thread::yield_now();
        }
    });
    assert_eq!(told.recv().unwrap(), "true", "the server sees the end of the connection");
}

pub(crate) fn a_silent_server_is_given_up<A: Adapter>() {
    let address = raw(|_, mut stream| while head(&mut stream).is_some() {});
    let client = A::client(&config_of(address)).with_timeout(Some(Duration::from_millis(200)));
    let error = A::block_on(async { client.api::<Pod>().get("a").await }).unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
}

pub(crate) fn a_server_that_is_not_there_is_a_failure_to_connect<A: Adapter>() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = A::client(&config_of(nobody)).with_retry(RetryPolicy::OFF);
    let error = A::block_on(async { client.api::<Pod>().get("a").await }).unwrap_err();
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Connect), "{error:?}");
}

pub(crate) fn large_objects_pass_whole<A: Adapter>() {
    let cluster = Cluster::start_tls();
    let client = A::client(&cluster.config());
    let large = map("large", &"x".repeat(1_000_000));
    A::block_on(async {
        client.api::<ConfigMap>().create(&large).await.unwrap();
        assert_eq!(client.api::<ConfigMap>().get("large").await.unwrap().data, large.data);
    });
}

pub(crate) fn many_watches_at_once<A: Adapter>() {
    let cluster = Cluster::start();
    let client = A::client(&cluster.config());
    A::block_on(async {
        let mut watches: Vec<_> = (0..100).map(|_| client.api::<Secret>().watch().stream()).collect();
        let synced =
            join_all(
                watches.iter_mut().map(async |watch| {
                    while !matches!(watch.try_next().await.unwrap().unwrap(), WatchEvent::Synced) {}
                }),
            );
        synced.await;
        let mut secret = Secret::default();
        secret.metadata.name = Some("a".into());
        client.api::<Secret>().create(&secret).await.unwrap();
        for event in join_all(watches.iter_mut().map(TryStreamExt::try_next)).await {
            assert!(matches!(event.unwrap().unwrap(), WatchEvent::Applied(object) if object.name() == "a"));
        }
    });
}

pub(crate) fn an_unknown_authority_is_refused<A: Adapter>() {
    let (cluster, other) = (Cluster::start_tls(), Cluster::start_tls());
    let mut config = cluster.config();
    config.tls.ca = other.config().tls.ca;
    let client = A::client(&config).with_retry(RetryPolicy::OFF);
    let error = A::block_on(async { client.api::<Pod>().get("a").await }).unwrap_err();
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Tls), "{error:?}");
    config.tls.ca = Some(Pem { origin: "test".into(), text: Hidden::new("no pem") });
    let refused = std::panic::catch_unwind(|| A::client(&config));
    assert!(refused.is_err(), "what is no certificate is found out before the first request");
}

/// A kubeconfig in a folder, whose user runs a shell script.
fn plugin(folder: &Path, server: &str, ca: &str, script: &str) -> ConfigSource {
    let kubeconfig = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(ca)}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "sh", "args": ["-c", format!("cd {}; {script}", folder.display())],
        }}}],
    });
    std::fs::write(folder.join("config"), kubeconfig.to_string()).unwrap();
    ConfigSource::from_kubeconfig(folder.join("config"))
}

pub(crate) fn a_rejected_token_is_fetched_anew_once_for_all_who_wait<A: Adapter>() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::with_token("token-2");
    // Each run counts itself, and gives out a token of that number.
    let script = "echo run >> runs; echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"token-'$(wc -l < runs | tr -d \" \")'\"}}'";
    let source = plugin(folder.path(), &cluster.url(), &cluster.ca(), script);
    let config = A::block_on(loaded(source));
    let client = A::client(&config);
    A::block_on(async {
        let answers = join_all((0..10).map(|_| async { client.api::<ConfigMap>().list().page().await })).await;
        answers.into_iter().for_each(|answer| drop(answer.unwrap()));
    });
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    assert_eq!(runs.lines().count(), 2, "one run for the first token, and one after it was rejected");
}

/// Follows what is read from files to the configuration, on no executor in particular.
async fn loaded(source: ConfigSource) -> Config {
    let read = async |path: PathBuf| std::fs::read(path).map_err(|error| ReadError::Failed(error.to_string().into()));
    cloudcoil_runtime::load_config(source, Environment::default(), read).await.unwrap()
}

pub(crate) fn requests_go_through_a_proxy<A: Adapter>() {
    let cluster = Cluster::start_tls();
    let (tell, told) = mpsc::channel();
    let proxy = raw(move |_, mut stream| {
        let Some(asked) = head(&mut stream) else { return };
        let to = asked.split(' ').nth(1).unwrap().to_owned();
        tell.send(asked).unwrap();
        let mut server = std::net::TcpStream::connect(&to).unwrap();
        write(&mut stream, b"HTTP/1.1 200 Connection established\r\n\r\n");
        let (mut there, mut back) = (server.try_clone().unwrap(), stream.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut stream, &mut there));
        let _ = std::io::copy(&mut server, &mut back);
    });
    let mut config = cluster.config();
    config.proxy = Some(Proxy::parse(&format!("http://me:secret@{proxy}")).unwrap());
    let client = A::client(&config);
    A::block_on(async {
        client.api::<ConfigMap>().create(&map("a", "1")).await.unwrap();
    });
    let asked = told.recv().unwrap();
    assert!(asked.starts_with("CONNECT 127.0.0.1:"), "{asked}");
    assert!(asked.to_lowercase().contains("proxy-authorization: basic"), "{asked}");
}

pub(crate) fn a_program_that_leaves_something_behind_is_not_waited_for<A: Adapter>() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::with_token("token");
    // What is left behind holds the program's output open until this test writes to the pipe, which is when all is over.
    let script = "mkfifo gate; cat gate & echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"token\"}}'";
    let source = plugin(folder.path(), &cluster.url(), &cluster.ca(), script);
    let client = A::client(&A::block_on(loaded(source)));
    let listed = A::block_on(async { client.api::<ConfigMap>().list().page().await });
    std::fs::write(folder.path().join("gate"), "over").unwrap();
    listed.unwrap();
}
