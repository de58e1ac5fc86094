//! Who may come in, as whom, and what they may do.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::{Anonymous, Peer, ServerConfig, User};
use common::{World, request};
use http::Request;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn world() -> World {
    let users = [("bob".to_owned(), User::new("bob", ["devs"]))].into();
    World::with(ServerConfig { token: Some("root".to_owned()), users, ..ServerConfig::default() })
}

fn with(method: &str, path: &str, token: &str) -> Request<Bytes> {
    let mut request = request(method, path, "application/json", Bytes::from_static(b"{}"));
    if !token.is_empty() {
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    request
}

fn code(world: &mut World, request: Request<Bytes>) -> u16 {
    world.exchange(request).code
}

fn who(world: &mut World, request: Request<Bytes>) -> Value {
    let reply = world.exchange(request);
    assert_eq!(reply.code, 201, "{}", reply.json());
    reply.json()["status"]["userInfo"].clone()
}

#[test]
fn a_token_can_be_revoked_and_given_to_another() {
    let mut world = world();
    assert_eq!(who(&mut world, with("POST", WHO, "bob"))["groups"], json!(["devs", "system:authenticated"]));
    assert!(world.act(|server, _, _| server.revoke_token("bob")));
    assert!(!world.act(|server, _, _| server.revoke_token("bob")));
    assert_eq!(code(&mut world, with("GET", MAPS, "bob")), 401);
    world.act(|server, _, _| server.set_token("bob", User::new("eve", [])));
    assert_eq!(who(&mut world, with("POST", WHO, "bob"))["username"], "eve");
}

#[test]
fn who_shows_nothing_is_treated_as_configured() {
    let mut refused = world();
    assert_eq!(code(&mut refused, with("GET", MAPS, "")), 401);
    assert_eq!(code(&mut refused, with("GET", "/version", "")), 200);
    assert_eq!(code(&mut refused, with("GET", "/version", "odd")), 401);
    let anonymous = Some(Anonymous::Allowed);
    let mut allowed = World::with(ServerConfig { anonymous, ..ServerConfig::default() });
    assert_eq!(code(&mut allowed, with("GET", MAPS, "")), 403);
    assert_eq!(code(&mut allowed, with("GET", "/readyz", "")), 200);
    let mut open = World::new();
    assert_eq!(who(&mut open, with("POST", WHO, ""))["username"], "admin");
}

#[test]
fn a_certificate_comes_before_a_token_and_a_bad_one_does_not_spoil_a_good_token() {
    let mut world = world();
    let mut request = with("POST", WHO, "root");
    request.extensions_mut().insert(Peer::Certified(User::new("alice", ["ops"])));
    assert_eq!(who(&mut world, request)["username"], "alice");
    for (token, expected) in [("", 401), ("odd", 401), ("bob", 200)] {
        let mut request = with("GET", MAPS, token);
        request.extensions_mut().insert(Peer::Untrusted);
        assert_eq!(code(&mut world, request), expected, "{token:?}");
    }
}

#[test]
fn only_administrators_impersonate() {
    let mut world = world();
    let mut asked = |token: &str, name: &'static str, value: &str| {
        let mut request = with("POST", WHO, token);
        request.headers_mut().insert(name, value.parse().unwrap());
        let reply = world.exchange(request);
        (reply.code, reply.json())
    };
    assert_eq!(asked("root", "impersonate-user", "jane").1["status"]["userInfo"]["username"], "jane");
    assert_eq!(asked("bob", "impersonate-user", "jane").0, 403);
    assert_eq!(asked("root", "impersonate-group", "x").0, 400);
    assert_eq!(asked("root", "impersonate-user", "system:anonymous").0, 403);
}

#[test]
fn a_token_of_a_service_account_ends_with_its_time_and_with_the_account() {
    let mut world = World::with(ServerConfig {
        anonymous: Some(Anonymous::Refused),
        token: Some("root".to_owned()),
        ..ServerConfig::default()
    });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let mut create = with("POST", accounts, "root");
    *create.body_mut() = json!({"metadata": {"name": "sa"}}).to_string().into();
    assert_eq!(code(&mut world, create), 201);
    let issue = |world: &mut World, query: &str| {
        let reply = world.exchange(with("POST", &format!("{accounts}/sa/token{query}"), "root"));
        assert_eq!(reply.code, 201, "{}", reply.json());
        reply.json()["status"]["token"].as_str().unwrap().to_owned()
    };
    let token = issue(&mut world, "");
    assert_eq!(token.split('.').count(), 3);
    assert_eq!(who(&mut world, with("POST", WHO, &token))["username"], "system:serviceaccount:default:sa");
    world.wait(Duration::from_secs(3599));
    assert_eq!(code(&mut world, with("GET", MAPS, &token)), 200);
    world.wait(Duration::from_secs(2));
    assert_eq!(code(&mut world, with("GET", MAPS, &token)), 401);

    let tried = issue(&mut world, "?dryRun=All");
    assert_eq!(code(&mut world, with("GET", MAPS, &tried)), 401);
    let token = issue(&mut world, "");
    assert_eq!(code(&mut world, with("DELETE", &format!("{accounts}/sa"), "root")), 200);
    assert_eq!(code(&mut world, with("GET", MAPS, &token)), 401);
}

#[test]
fn a_request_that_waits_stays_its_users() {
    let mut world = world();
    world.act(|server, _, _| server.freeze());
    let next = world.server.revision() + 1;
    let waiting = world.send(with("GET", &format!("{MAPS}?resourceVersion={next}"), "bob"));
    assert_eq!(world.reply(waiting).code, 0);
    let mut create = with("POST", MAPS, "root");
    *create.body_mut() = json!({"metadata": {"name": "a"}}).to_string().into();
    assert_eq!(code(&mut world, create), 201);
    world.act(|server, now, out| server.thaw(now, out));
    assert_eq!(world.reply(waiting).code, 200);
}
