//! What listeners do.

use std::net::TcpListener;

use bytes::Bytes;
use cloudcoil_apiserver::Tls as Authority;
use cloudcoil_runtime::core::config::{Config, Identity};
use cloudcoil_runtime::core::listen::{ListenConfig, ListenError, Peer};
use cloudcoil_runtime::core::{RetryPolicy, http};
use http::{Response, Version};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use crate::raw::{Raw, pem, served, trusting};
use crate::worlds::{World, echo, handler, local};

pub(crate) fn requests_are_served_over_tcp_and_tls<W: World>() {
    let authority = Authority::generate(&[]).unwrap();
    let plain = W::listen(local(), echo()).unwrap();
    let secure = W::listen(ListenConfig { tls: Some(served(&authority)), ..local() }, echo()).unwrap();
    let connections = [Raw::plain(plain.address()), Raw::tls(secure.address(), &trusting(&authority)).unwrap()];
    for mut raw in connections {
        raw.send(b"GET /healthz?verbose HTTP/1.1\r\nHost: a\r\n\r\n");
        let said = raw.answer();
        assert_eq!((said.status, &*said.text(), said.closes()), (200, "GET /healthz?verbose ", false));
        assert!(said.head.contains("\r\ndate: "), "{}", said.head);
        raw.send(b"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
        raw.send(b"llo");
        assert_eq!(raw.answer().text(), "POST /validate hello");
        raw.send(b"BREW /pot HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nte\r\n1\r\na\r\n0\r\n\r\n");
        assert_eq!(raw.answer().text(), "BREW /pot tea");
        raw.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(raw.read_to("\r\n\r\n").unwrap().contains("\r\ncontent-length: 7\r\n"));
        raw.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(raw.answer().closes() && raw.has_ended());
    }
}

pub(crate) fn requests_may_be_sent_before_the_answers_to_others<W: World>() {
    let server = W::listen(local(), echo()).unwrap();
    let mut raw = Raw::plain(server.address());
    let requests: String = (0..100).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    raw.send(requests.as_bytes());
    raw.finish();
    for number in 0..100 {
        assert_eq!(raw.answer().text(), format!("GET /{number} "));
    }
    assert!(raw.has_ended(), "a client that says no more is answered, and then it is over");
}

pub(crate) fn a_client_that_asks_first_is_told_to_go_on<W: World>() {
    let server = W::listen(local(), echo()).unwrap();
    let mut raw = Raw::plain(server.address());
    let post = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ";
    raw.send(format!("{post}2\r\n\r\n").as_bytes());
    assert_eq!(raw.read_to("\r\n\r\n").unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    raw.send(b"hi");
    assert_eq!(raw.answer().text(), "POST / hi");
    raw.send(format!("{post}99999999\r\n\r\n").as_bytes());
    assert_eq!(raw.answer().status, 413);
    assert!(raw.has_ended());
}

pub(crate) fn a_handler_that_panics_is_answered_for_and_the_rest_goes_on<W: World>() {
    let panics = handler(|request| match request.uri().path() {
        "/panic" => panic!("as it was told to"),
        _ => Response::new("fine".into()),
    });
    let server = W::listen(local(), panics).unwrap();
    let (mut one, mut other) = (Raw::plain(server.address()), Raw::plain(server.address()));
    for _ in 0..3 {
        one.send(b"GET /panic HTTP/1.1\r\nHost: a\r\n\r\n");
        let said = one.answer();
        assert_eq!((said.status, said.closes()), (500, false));
        assert!(!said.text().contains("as it was told to"), "what is wrong inside is not the client's business");
        for raw in [&mut one, &mut other] {
            raw.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(raw.answer().text(), "fine");
        }
    }
}

pub(crate) fn what_could_be_read_in_two_ways_is_refused<W: World>() {
    let server = W::listen(local(), echo()).unwrap();
    let smuggled = "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    for head in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n",
        "POST / HTTP/1.1\nHost: a\n\n",
        "POST / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ] {
        let mut raw = Raw::plain(server.address());
        raw.send(format!("{head}{smuggled}").as_bytes());
        let said = raw.answer();
        assert!(matches!(said.status, 400 | 501) && said.closes() && raw.has_ended(), "{head:?}: {said:?}");
    }
}

pub(crate) fn a_certificate_is_replaced_while_connections_are_open<W: World>() {
    let (old, new) = (Authority::generate(&[]).unwrap(), Authority::generate(&[]).unwrap());
    let server = W::listen(ListenConfig { tls: Some(served(&old)), ..local() }, echo()).unwrap();
    let mut before = Raw::tls(server.address(), &trusting(&old)).unwrap();
    let mut mixed = served(&new);
    mixed.identity.key = served(&old).identity.key;
    let error = server.reload(&mixed).unwrap_err();
    assert!(error.to_string().contains("not usable with its certificate"), "{error}");
    assert!(Raw::tls(server.address(), &trusting(&old)).is_ok(), "what cannot be used changes nothing");

    server.reload(&served(&new)).unwrap();
    assert!(Raw::tls(server.address(), &trusting(&old)).is_err());
    let mut after = Raw::tls(server.address(), &trusting(&new)).unwrap();
    assert_ne!(before.certificate(), after.certificate());
    for raw in [&mut before, &mut after] {
        raw.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(raw.answer().status, 200);
    }
}

pub(crate) fn clients_are_known_by_their_certificates<W: World>() {
    let (authority, other) = (Authority::generate(&[]).unwrap(), Authority::generate(&[]).unwrap());
    let who = handler(|request| {
        let peer = request.extensions().get::<Peer>().unwrap();
        let text = match &peer.subject {
            Some(subject) => format!("{} of {}", subject.common_name, subject.organizations.join(",")),
            None => format!("somebody at {}", peer.address.ip()),
        };
        Response::new(text.into())
    });
    let mut tls = served(&authority);
    tls.client_ca = Some(pem(authority.ca_pem()));
    let server = W::listen(ListenConfig { tls: Some(tls), ..local() }, who).unwrap();
    let with = |signer: &Authority| {
        let shown = signer.client_certificate("ann", &["a", "b"]).unwrap();
        let identity = Identity { certificate: pem(&shown.certificate_pem), key: pem(&shown.key_pem) };
        let mut tls = trusting(&authority);
        tls.identity = Some(identity);
        tls
    };
    let said = |tls: &_| {
        let mut raw = Raw::tls(server.address(), tls)?;
        raw.try_send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
        raw.try_answer().map(|said| said.text())
    };
    assert_eq!(said(&with(&authority)).unwrap(), "ann of a,b");
    assert_eq!(said(&trusting(&authority)).unwrap(), "somebody at 127.0.0.1");
    let error = said(&with(&other)).unwrap_err();
    assert!(error.to_string().contains("received fatal alert"), "{error}");
}

pub(crate) fn the_clients_of_all_adapters_are_served<W: World>() {
    let authority = Authority::generate(&[]).unwrap();
    let answers = handler(|request| {
        let version = if request.version() == Version::HTTP_2 { "2" } else { "1.1" };
        let host = request.headers()["host"].to_str().unwrap();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"path": request.uri().to_string(), "version": version, "host": host, "length": request.body().len().to_string()},
        });
        let mut response = Response::new(Bytes::from(map.to_string()));
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        response
    });
    let server = W::listen(ListenConfig { tls: Some(served(&authority)), ..local() }, answers).unwrap();
    let mut config = Config::new(&format!("https://{}", server.address())).unwrap();
    config.tls = trusting(&authority);
    let large = || ConfigMap {
        metadata: ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() },
        data: Some([("x".to_owned(), "y".repeat(3 << 20))].into()),
        ..ConfigMap::default()
    };
    let check = |map: ConfigMap, created: bool| {
        let data = map.data.unwrap();
        assert_eq!(data["host"], server.address().to_string());
        assert!(data["path"].starts_with("/api/v1/namespaces/default/configmaps"), "{data:?}");
        assert_eq!(created, data["length"].parse::<usize>().unwrap() > 3 << 20, "{data:?}");
        data["version"].clone()
    };
    let talk = |client: cloudcoil_runtime::Client| async move {
        let client = client.with_retry(RetryPolicy::OFF);
        let read = client.api::<ConfigMap>().get("a").await.unwrap();
        let created = client.api::<ConfigMap>().create(&large()).await.unwrap();
        (read, created)
    };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (read, created) =
        tokio.block_on(async { talk(<_ as cloudcoil_tokio::Connect>::try_from_config(&config).unwrap()).await });
    // HTTP/2 wherever both sides speak it.
    assert_eq!(check(read, false), check(created, true));
    for client in [
        <cloudcoil_runtime::Client as cloudcoil_async_std::Connect>::try_from_config(&config).unwrap(),
        <cloudcoil_runtime::Client as cloudcoil_smol::Connect>::try_from_config(&config).unwrap(),
    ] {
        let (read, created) = futures_executor::block_on(talk(client));
        assert_eq!((check(read, false), check(created, true)), ("1.1".to_owned(), "1.1".to_owned()));
    }
}

pub(crate) fn what_cannot_listen_says_why<W: World>() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = W::listen(ListenConfig::new(address), echo()).err().unwrap();
    assert!(matches!(&error, ListenError::Bind { address: named, .. } if *named == address), "{error:?}");
    assert!(error.to_string().starts_with(&format!("cannot listen on {address}: ")), "{error}");
    let mut tls = served(&Authority::generate(&[]).unwrap());
    tls.identity.certificate = pem("no certificate");
    let error = W::listen(ListenConfig { tls: Some(tls), ..local() }, echo()).err().unwrap();
    assert!(matches!(&error, ListenError::Tls(_)), "{error:?}");
    assert!(error.to_string().contains("test"), "{error}");
}

pub(crate) fn many_connections_at_once<W: World>() {
    let server = W::listen(local(), echo()).unwrap();
    let address = server.address();
    std::thread::scope(|scope| {
        for client in 0..20 {
            scope.spawn(move || {
                let mut raws: Vec<_> = (0..5).map(|_| Raw::plain(address)).collect();
                for round in 0..10 {
                    for raw in &mut raws {
                        raw.send(format!("GET /{client}/{round} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
                    }
                    for raw in &mut raws {
                        assert_eq!(raw.answer().text(), format!("GET /{client}/{round} "));
                    }
                }
            });
        }
    });
}
