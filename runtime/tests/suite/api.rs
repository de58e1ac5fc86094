//! The verbs, against a server that plays a script.

use std::time::Duration;

use crate::common::{Piece, Reply, Server, Virtual, json, text};
use cloudcoil_core::NetworkErrorKind;
use cloudcoil_runtime::{Deleted, Error, ListVersion, Patch, Propagation, Resource, ResourceType, RetryPolicy, Scope};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::{Value, json};

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}})
}

fn page(names: &[&str], token: &str) -> Reply {
    let items: Vec<_> = names.iter().map(|name| map(name)).collect();
    json(200, json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": "9", "continue": token}, "items": items}))
}

fn failure(code: u16, reason: &str) -> Reply {
    json(code, json!({"kind": "Status", "code": code, "reason": reason, "message": "no"}))
}

#[test]
fn each_verb_sends_its_request() {
    let runtime = Virtual::new();
    let server = Server::new(&runtime, |_| Some(json(200, map("a"))));
    let maps = server.client().api::<ConfigMap>();
    let object: ConfigMap = serde_json::from_value(map("a")).unwrap();
    runtime.run(async {
        maps.get("a").await.unwrap();
        maps.create(&object).dry_run().await.unwrap();
        maps.replace(&object).field_manager("me").await.unwrap();
        maps.replace_status(&object).await.unwrap();
        maps.patch("a", Patch::Json(json!([]))).await.unwrap();
        maps.patch_status("a", Patch::Merge(json!({}))).await.unwrap();
        maps.apply("me", &object).force().await.unwrap();
        maps.delete("a").propagation(Propagation::Orphan).uid("u").await.unwrap();
        maps.subresource::<Value>("a", "scale").get().await.unwrap();
    });
    let path = "/api/v1/namespaces/ns/configmaps";
    let sent: Vec<_> = server.seen().iter().map(|seen| format!("{} {}", seen.method, seen.uri)).collect();
    assert_eq!(
        sent,
        [
            format!("GET {path}/a"),
            format!("POST {path}?dryRun=All"),
            format!("PUT {path}/a?fieldManager=me"),
            format!("PUT {path}/a/status"),
            format!("PATCH {path}/a"),
            format!("PATCH {path}/a/status"),
            format!("PATCH {path}/a?fieldManager=me&force=true"),
            format!("DELETE {path}/a"),
            format!("GET {path}/a/scale"),
        ]
    );
    let seen = server.seen();
    assert_eq!(seen[4].content_type, "application/json-patch+json");
    assert_eq!(seen[7].body["propagationPolicy"], "Orphan");
    assert_eq!(server.open(), 0);
}

#[test]
fn scope_is_chosen_on_the_api_or_taken_from_the_object() {
    let runtime = Virtual::new();
    let server = Server::new(&runtime, |_| Some(json(200, map("a"))));
    let maps = server.client().api::<ConfigMap>();
    let object: ConfigMap = serde_json::from_value(map("a")).unwrap();
    runtime.run(async {
        maps.clone().namespace("other").get("a").await.unwrap();
        maps.clone().all_namespaces().create(&object).await.unwrap();
        assert!(matches!(maps.clone().all_namespaces().get("a").await, Err(Error::Misuse(_))));
        server.client().api::<Namespace>().get("a").await.unwrap_err();
        let widgets = ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
        let widget = server.client().api_for(widgets).get("a").await.unwrap();
        assert_eq!(widget.kind(), "ConfigMap", "what the server says is kept");
    });
    assert_eq!(
        server.uris(),
        [
            "/api/v1/namespaces/other/configmaps/a",
            "/api/v1/namespaces/ns/configmaps",
            "/api/v1/namespaces/a",
            "/apis/example.com/v1/namespaces/ns/widgets/a",
        ]
    );
}

#[test]
fn a_stream_reads_pages_as_they_are_needed() {
    let runtime = Virtual::new();
    let server = Server::script(&runtime, [page(&["a", "b"], "t1"), page(&["c"], "t2"), page(&["d"], "")]);
    let list = server.client().api::<ConfigMap>().list().labels("app in (web, api)").limit(2);
    let mut stream = list.version(ListVersion::Any).stream();
    runtime.run(async {
        assert_eq!(stream.try_next().await.unwrap().unwrap().name(), "a");
        assert_eq!(server.uris().len(), 1, "nothing is read ahead");
        let rest: Vec<ConfigMap> = stream.try_collect().await.unwrap();
        assert_eq!(rest.iter().map(Resource::name).collect::<Vec<_>>(), ["b", "c", "d"]);
    });
    let path = "/api/v1/namespaces/ns/configmaps?labelSelector=app%20in%20%28web,%20api%29&limit=2";
    assert_eq!(
        server.uris(),
        [format!("{path}&resourceVersion=0"), format!("{path}&continue=t1"), format!("{path}&continue=t2")]
    );
}

#[test]
fn a_stream_goes_on_after_an_object_that_does_not_fit_and_ends_after_a_failure() {
    let runtime = Virtual::new();
    let poison = json!({"metadata": {"name": "b", "namespace": "ns"}, "data": 3});
    let list = json!({"kind": "ConfigMapList", "metadata": {"continue": "t"}, "items": [map("a"), poison, map("c")]});
    let server = Server::script(&runtime, [json(200, list), failure(500, "InternalError")]);
    let stream = server.client().api::<ConfigMap>().list().stream();
    let items: Vec<_> = runtime.run(stream.collect());
    let shown: Vec<_> = items.into_iter().map(|item| item.map(|map| map.name().to_owned())).collect();
    assert!(matches!(&shown[..], [Ok(a), Ok(c), Err(Error::Decode(error)), Err(Error::Api(_))]
        if a == "a" && c == "c" && &*error.object == "ConfigMap ns/b" && &*error.path == "data"));
}

#[test]
fn an_expired_token_goes_on_by_the_servers_offer_or_starts_over() {
    let runtime = Virtual::new();
    let expired =
        || json(410, json!({"kind": "Status", "code": 410, "reason": "Expired", "metadata": {"continue": "fresh"}}));
    let server = Server::script(&runtime, [page(&["a"], "t1"), expired(), page(&["b"], "")]);
    let stream = server.client().api::<ConfigMap>().list().limit(1).stream();
    assert_eq!(runtime.run(stream.try_collect::<Vec<_>>()).unwrap().len(), 2);
    assert!(server.uris()[2].ends_with("&continue=fresh"));

    let server = Server::script(&runtime, [page(&["a"], "t1"), expired(), page(&["a", "b"], "")]);
    let list = runtime.run(server.client().api::<ConfigMap>().list().limit(1).into_future()).unwrap();
    assert_eq!((list.items.len(), list.resource_version.as_deref()), (2, Some("9")));
    assert_eq!(server.uris()[2], "/api/v1/namespaces/ns/configmaps");
}

#[test]
fn refusals_proxies_and_the_network_each_give_their_own_error() {
    let runtime = Virtual::new();
    let html = || text(503, "<html>Service Unavailable</html>");
    let broken = Reply { code: 200, headers: vec![], pieces: vec![Piece::Bytes("{\"ki".into()), Piece::Break] };
    let replies = [failure(404, "NotFound"), failure(404, "NotFound"), html(), text(404, "404 page not found"), broken];
    let server = Server::script(&runtime, replies);
    let maps = server.client().with_retry(RetryPolicy::OFF).api::<ConfigMap>();
    runtime.run(async {
        assert!(maps.get("a").await.unwrap_err().is_not_found());
        assert_eq!(maps.get_opt("a").await, Ok(None));
        assert!(matches!(maps.get_opt("a").await, Err(Error::Body(error)) if error.code == 503));
        assert!(matches!(maps.get_opt("a").await, Err(Error::Body(error)) if error.code == 404));
        assert!(matches!(maps.get("a").await, Err(Error::Network(error)) if error.kind == NetworkErrorKind::Lost));
        assert!(matches!(maps.get("a").await, Err(Error::Network(error)) if error.kind == NetworkErrorKind::Connect));
    });
}

#[test]
fn a_request_without_an_answer_ends_at_its_time_limit_and_closes() {
    let runtime = Virtual::new();
    let silent = || Reply { code: 200, headers: vec![], pieces: vec![Piece::Bytes("{".into())] };
    let server = Server::script(&runtime, [silent(), silent()]);
    let client = server.client().with_timeout(Some(Duration::from_secs(7)));
    let result = runtime.run(async { client.api::<ConfigMap>().get("a").await });
    assert_eq!(result, Err(Error::TimedOut(Duration::from_secs(7))));
    assert_eq!((runtime.elapsed(), server.open()), (Duration::from_secs(7), 0));
    let maps = client.api::<ConfigMap>();
    let mut get = maps.get("a").into_future();
    runtime.run(async { assert!(futures_util::poll!(&mut get).is_pending()) });
    assert_eq!(server.open(), 1);
    drop(get);
    assert_eq!(server.open(), 0, "a caller that goes away closes the exchange");
}

#[test]
fn deletions_answer_with_objects_or_a_status() {
    let runtime = Virtual::new();
    let success = || json(200, json!({"kind": "Status", "status": "Success"}));
    let server = Server::script(&runtime, [json(200, map("a")), success(), page(&["a", "b"], ""), success()]);
    let maps = server.client().api::<ConfigMap>();
    runtime.run(async {
        assert!(matches!(maps.delete("a").await.unwrap(), Deleted::Object(object) if object.name() == "a"));
        assert!(matches!(maps.delete("a").await.unwrap(), Deleted::Status(_)));
        assert_eq!(maps.delete_collection().labels("a=b").await.unwrap().items.len(), 2);
        assert!(maps.delete_collection().grace_period(Duration::ZERO).await.unwrap().items.is_empty());
    });
    assert_eq!(server.uris()[2], "/api/v1/namespaces/ns/configmaps?labelSelector=a%3Db");
}

#[test]
fn a_request_is_repeated_while_the_server_asks_for_time_but_a_creation_that_may_be_done_is_not() {
    let runtime = Virtual::new();
    let mut busy = failure(429, "TooManyRequests");
    busy.headers = vec![("retry-after", "2".to_owned())];
    let broken = Reply { code: 200, headers: vec![], pieces: vec![Piece::Bytes("{\"ki".into()), Piece::Break] };
    let replies = [busy, json(201, map("a")), failure(503, ""), broken, json(200, map("a")), failure(503, "")];
    let server = Server::script(&runtime, replies);
    let maps = server.client().api::<ConfigMap>();
    runtime.run(async {
        let object: ConfigMap = serde_json::from_value(map("a")).unwrap();
        maps.create(&object).await.unwrap();
        assert!(runtime.elapsed() >= Duration::from_secs(2) && server.uris().len() == 2);
        assert_eq!(maps.get("a").await.unwrap().name(), "a");
        assert_eq!(server.uris().len(), 5);
        assert_eq!(maps.create(&object).await.unwrap_err().code(), Some(503));
        let Err(Error::Network(error)) = maps.get("a").await else { panic!() };
        assert_eq!((error.kind, error.attempts), (NetworkErrorKind::Connect, 6));
    });
    assert_eq!(server.uris().len(), 6 + 6);
}

#[test]
fn each_warning_is_handed_on_once() {
    let runtime = Virtual::new();
    let server = Server::new(&runtime, |seen| {
        let mut reply = json(200, map("a"));
        reply.headers = vec![
            ("warning", r#"299 - "old", 110 - "stale""#.to_owned()),
            ("warning", format!(r#"299 - "{}""#, seen.method)),
        ];
        Some(reply)
    });
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let texts = heard.clone();
    let client = server.client().with_warning_handler(move |warning| texts.lock().unwrap().push(warning.to_string()));
    runtime.run(async {
        let maps = client.api::<ConfigMap>();
        maps.get("a").await.unwrap();
        client.clone().api::<ConfigMap>().get("a").await.unwrap();
        maps.delete("a").await.unwrap();
        let answer = client.request(maps.requests().get("a").unwrap()).await.unwrap();
        assert_eq!(answer.warnings().len(), 3);
    });
    assert_eq!(*heard.lock().unwrap(), ["old", "GET", "DELETE"]);
}

#[test]
fn a_server_tells_its_version_and_whether_it_is_ready() {
    let runtime = Virtual::new();
    let version = json!({"major": "1", "minor": "34", "gitVersion": "v1.34.1", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
    let not = text(500, "[+]ping ok\n[-]etcd failed: reason withheld\n");
    let server = Server::script(&runtime, [json(200, version), text(200, "ok"), not]);
    let client = server.client();
    runtime.run(async {
        assert_eq!(client.server_version().await.unwrap().git_version, "v1.34.1");
        assert_eq!(client.check_ready().await, Ok(()));
        let reason = client.check_ready().await.unwrap_err();
        assert!(reason.to_string().contains("etcd failed"), "{reason}");
    });
    assert_eq!(server.uris(), ["/version", "/readyz", "/readyz"]);
}

#[test]
fn a_body_that_is_not_the_api_servers_is_its_own_error_for_every_verb() {
    use cloudcoil_core::error::BodyProblem as Problem;
    let runtime = Virtual::new();
    let bodies: [(&'static [u8], Problem); 6] = [
        (b"", Problem::Empty),
        (b"<html>sign in</html>", Problem::Html),
        (b"{\"metadata\":{\"na", Problem::Truncated),
        (b"{\"kind\":\"\xff\"}", Problem::NotUtf8),
        (b"ok", Problem::NotJson),
        (b"[]", Problem::NotJson),
    ];
    for (body, problem) in bodies {
        for code in [200, 502] {
            let pieces = move || vec![Piece::Bytes(body.into()), Piece::End];
            let server = Server::new(&runtime, move |_| Some(Reply { code, headers: vec![], pieces: pieces() }));
            let maps = server.client().with_retry(RetryPolicy::OFF).api::<ConfigMap>();
            let object: ConfigMap = serde_json::from_value(map("a")).unwrap();
            let merge = || Patch::Merge(json!({}));
            let errors = runtime.run(async {
                vec![
                    ("get", maps.get("a").await.unwrap_err()),
                    ("get_opt", maps.get_opt("a").await.unwrap_err()),
                    ("list", maps.list().await.unwrap_err()),
                    ("page", maps.list().page().await.unwrap_err()),
                    ("stream", maps.list().stream().try_next().await.unwrap_err()),
                    ("create", maps.create(&object).await.unwrap_err()),
                    ("replace", maps.replace(&object).await.unwrap_err()),
                    ("patch", maps.patch("a", merge()).await.unwrap_err()),
                    ("patch_status", maps.patch_status("a", merge()).await.unwrap_err()),
                    ("apply", maps.apply("me", &object).await.unwrap_err()),
                    ("delete", maps.delete("a").await.unwrap_err()),
                    ("delete_collection", maps.delete_collection().await.unwrap_err()),
                    ("scale", maps.scale("a").get().await.unwrap_err()),
                    (
                        "discovery",
                        server.client().with_retry(RetryPolicy::OFF).discovery().catalog().await.unwrap_err(),
                    ),
                ]
            });
            for (verb, error) in errors {
                let Error::Body(error) = error else { panic!("{verb} {problem}: {error:?}") };
                assert_eq!((error.code, error.problem), (code, problem), "{verb}");
            }
        }
    }
}
