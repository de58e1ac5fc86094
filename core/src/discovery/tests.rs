use http::{HeaderMap, header};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{NetworkError, NetworkErrorKind};
use crate::laws::{self, Move};

/// What a server answers: a code and a body; no connection if there is none.
type Reply = Option<(u16, String)>;

fn ok(body: Value) -> Reply {
    Some((200, body.to_string()))
}

fn code(code: u16) -> Reply {
    Some((code, "404 page not found\n".to_owned()))
}

/// A request as the server sees it.
struct Asked {
    path: String,
    is_aggregated: bool,
    etag: Option<String>,
}

/// What came of a discovery.
struct Played {
    result: Result<Catalog, Error>,
    paths: Vec<String>,
    /// How many requests were under way at once.
    most: usize,
    took: Duration,
}

impl Played {
    fn catalog(self) -> Catalog {
        self.result.unwrap()
    }

    fn failures(&self) -> Vec<String> {
        self.result.as_ref().unwrap().failures().iter().map(ToString::to_string).collect()
    }
}

fn play(previous: Option<Catalog>, answer: impl Fn(&Asked) -> Reply) -> Played {
    play_as(DiscoveryConfig::default(), previous, answer)
}

/// Answers requests in the order in which they come, each only once all that can be sent are. A reply of code 0 never comes.
fn play_as(config: DiscoveryConfig, previous: Option<Catalog>, answer: impl Fn(&Asked) -> Reply) -> Played {
    let mut discovery = Discovery::new(config, previous.map(Arc::new), 1);
    let (mut out, mut now, mut open) = (Outbox::new(), Now::default(), VecDeque::new());
    let (mut paths, mut most) = (Vec::new(), 0);
    let mut deadline = discovery.step(now, None, &mut out);
    loop {
        for output in out.drain() {
            match output {
                DiscoveryOutput::Http(HttpEffect::Send { ticket, request }) => {
                    let request = request.into_inner();
                    let text = |name| request.headers().get(name).map(|text| text.to_str().unwrap().to_owned());
                    let is_aggregated = text(header::ACCEPT).unwrap().contains("as=APIGroupDiscoveryList");
                    let path = request.uri().to_string();
                    paths.push(path.clone());
                    open.push_back((ticket, Asked { path, is_aggregated, etag: text(header::IF_NONE_MATCH) }));
                }
                DiscoveryOutput::Http(HttpEffect::Cancel { ticket }) => open.retain(|(other, _)| *other != ticket),
                DiscoveryOutput::Retrying(_) => {}
                DiscoveryOutput::Done(result) => {
                    assert!(open.is_empty() && discovery.is_done());
                    return Played { result, paths, most, took: now.mono.since(Time::ZERO) };
                }
            }
        }
        most = most.max(open.len());
        let next = open.iter().position(|(_, asked)| answer(asked).is_none_or(|(code, _)| code != 0));
        deadline = match next.and_then(|at| open.remove(at)) {
            None => {
                now = now.after(deadline.unwrap().at.since(now.mono));
                discovery.step(now, None, &mut out)
            }
            Some((ticket, asked)) => {
                for event in events(ticket, answer(&asked)) {
                    deadline = discovery.step(now, Some(DiscoveryInput::Http(event)), &mut out);
                }
                deadline
            }
        };
    }
}

fn events(ticket: crate::Ticket, reply: Reply) -> Vec<HttpEvent> {
    let Some((code, body)) = reply else {
        let error = NetworkError::new(NetworkErrorKind::Connect, "refused");
        return vec![HttpEvent::Closed { ticket, result: Err(error) }];
    };
    let etag = HeaderValue::from_str(&format!("\"{}\"", body.len())).unwrap();
    let headers: HeaderMap = [(header::ETAG, etag)].into_iter().collect();
    let status = StatusCode::from_u16(code).unwrap();
    vec![
        HttpEvent::Responded { ticket, status, headers },
        HttpEvent::Received { ticket, bytes: body.into() },
        HttpEvent::Closed { ticket, result: Ok(()) },
    ]
}

/// `plural/Kind/short,short/category,category` as the aggregated document has it.
fn resource(text: &str) -> Value {
    let parts: Vec<_> = text.split('/').collect();
    let list = |at: usize| parts.get(at).map(|list| list.split(',').filter(|one| !one.is_empty()).collect::<Vec<_>>());
    json!({"resource": parts[0], "responseKind": {"group": "", "version": "", "kind": parts[1]}, "scope": "Namespaced",
        "singularResource": parts[1].to_lowercase(), "verbs": ["get", "list"], "shortNames": list(2), "categories": list(3)})
}

fn group(name: &str, versions: &[(&str, &[&str])]) -> Value {
    let version = |(version, resources): &(&str, &[&str])| {
        let resources: Vec<_> = resources.iter().map(|text| resource(text)).collect();
        json!({"version": version, "freshness": "Current", "resources": resources})
    };
    json!({"metadata": {"name": name}, "versions": versions.iter().map(version).collect::<Vec<_>>()})
}

fn document(groups: &[Value]) -> Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups})
}

fn core() -> Value {
    let resources =
        ["pods/Pod/po/all", "services/Service/svc/all", "events/Event/ev", "endpoints/Endpoints/ep", "nodes/Node/no"];
    document(&[group("", &[("v1", &resources)])])
}

fn others() -> Value {
    document(&[
        group("apps", &[("v1", &["deployments/Deployment/deploy/all", "statefulsets/StatefulSet/sts/all"])]),
        group("events.k8s.io", &[("v1", &["events/Event/ev"])]),
        group("autoscaling", &[("v2", &["scalers/Scaler/hpa/all"]), ("v1", &["scalers/Scaler/hpa/all", "olds/Old/"])]),
        group("metrics.k8s.io", &[("v1beta1", &["pods/PodMetrics/", "nodes/NodeMetrics/"])]),
        group("stable.example.com", &[("v1", &["gadgets/Gadget/gd/all,mine", "policies/Policy/po"])]),
        group("example.com", &[("v1", &["widgets/Widget/wd/mine", "boxen/Box/bx"]), ("stable", &["widgets/Widget/"])]),
    ])
}

fn catalog() -> Catalog {
    let played = play(None, |asked| ok(if asked.path == "/api" { core() } else { others() }));
    assert_eq!((played.failures(), &*played.paths), (vec![], &["/api".to_owned(), "/apis".to_owned()][..]));
    played.catalog()
}

fn shown(resource: &ApiResource) -> String {
    let of = &resource.resource_type;
    format!("{}.{}.{}", of.plural, of.version, of.group)
}

#[test]
fn names_mean_what_kubectl_takes_them_for() {
    let catalog = catalog();
    for (name, meant) in [
        ("pods", "pods.v1."),
        ("pod", "pods.v1."),
        ("Pod", "pods.v1."),
        ("PODS", "pods.v1."),
        ("po", "pods.v1."),
        ("po.stable.example.com", "policies.v1.stable.example.com"),
        ("pods.metrics.k8s.io", "pods.v1beta1.metrics.k8s.io"),
        ("pods.metrics", "pods.v1beta1.metrics.k8s.io"),
        ("pods.v1.", "pods.v1."),
        ("PodMetrics", "pods.v1beta1.metrics.k8s.io"),
        ("endpoints", "endpoints.v1."),
        ("deploy", "deployments.v1.apps"),
        ("deploy.apps", "deployments.v1.apps"),
        ("deploy.app", "deployments.v1.apps"),
        ("deployments.apps", "deployments.v1.apps"),
        ("deployments.v1.apps", "deployments.v1.apps"),
        ("Deployment.v1.apps", "deployments.v1.apps"),
        ("Deployment.apps", "deployments.v1.apps"),
        ("events", "events.v1."),
        ("ev", "events.v1."),
        ("events.events.k8s.io", "events.v1.events.k8s.io"),
        ("scalers", "scalers.v2.autoscaling"),
        ("scalers.v1.autoscaling", "scalers.v1.autoscaling"),
        ("hpa.v1.autoscaling", "scalers.v1.autoscaling"),
        ("olds", "olds.v1.autoscaling"),
        ("widgets", "widgets.v1.example.com"),
        ("widgets.stable.example.com", "widgets.stable.example.com"),
        ("gadgets.stable.example.com", "gadgets.v1.stable.example.com"),
        ("box", "boxen.v1.example.com"),
        ("Box", "boxen.v1.example.com"),
    ] {
        assert_eq!(catalog.find(name).map(shown), Ok(meant.to_owned()), "{name}");
    }
    for name in [
        "",
        ".",
        "x",
        "PO",
        "Po",
        "pods.v2.",
        "pods.apps",
        "deployments.v2.apps",
        "deploy.core",
        "pods/log",
        "boxes",
        "all",
        "é",
    ] {
        assert!(matches!(catalog.find(name), Err(Error::NotServed(_))), "{name}");
    }
}

#[test]
fn categories_and_lists_mean_every_type_once() {
    let catalog = catalog();
    let resolved = |names| catalog.resolve(names).map(|found| found.into_iter().map(shown).collect::<Vec<_>>());
    let all = [
        "pods.v1.",
        "services.v1.",
        "deployments.v1.apps",
        "statefulsets.v1.apps",
        "scalers.v2.autoscaling",
        "gadgets.v1.stable.example.com",
    ];
    assert_eq!(resolved("all").unwrap(), all);
    assert_eq!(resolved("mine,po,gadgets").unwrap(), [all[5], "widgets.v1.example.com", all[0]]);
    assert_eq!(resolved("pods,x").unwrap_err().to_string(), "the server doesn't have a resource type \"x\"");
    assert!(resolved("pods,").is_err());
}

#[test]
fn a_kind_is_found_by_what_objects_carry() {
    let catalog = catalog();
    let found = |version, kind| catalog.find_kind(version, kind).map(shown);
    assert_eq!(found("v1", "Event").unwrap(), "events.v1.");
    assert_eq!(found("events.k8s.io/v1", "Event").unwrap(), "events.v1.events.k8s.io");
    assert_eq!(found("autoscaling/v1", "Scaler").unwrap(), "scalers.v1.autoscaling");
    for (version, kind) in [("v2", "Event"), ("apps/v1", "Pod"), ("v1", "event"), ("", "Pod"), ("apps", "Deployment")] {
        assert!(found(version, kind).is_err(), "{version} {kind}");
    }
}

/// A server that knows no aggregated documents. One that does not know the header answers 200 with what it has.
fn legacy(refusal: u16) -> impl Fn(&Asked) -> Reply {
    let list = |version: &str, resources: Value| {
        ok(json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources}))
    };
    move |asked| match &*asked.path {
        _ if asked.is_aggregated && refusal != 200 => code(refusal),
        "/api" => ok(json!({"kind": "APIVersions", "versions": ["v1"]})),
        "/apis" => ok(json!({"kind": "APIGroupList", "groups": [
            {"name": "metrics.k8s.io", "versions": [{"groupVersion": "metrics.k8s.io/v1beta1", "version": "v1beta1"}]},
            {"name": "apps", "versions": [{"groupVersion": "apps/v1beta1"}, {"version": "v1"}], "preferredVersion": {"version": "v1"}},
            {"name": "../../secrets", "versions": [{"version": "v1"}]},
            {"name": "odd", "versions": [{"version": "v1?x"}, {"version": "v2"}], "preferredVersion": null}]})),
        "/api/v1" => list(
            "v1",
            json!([
            {"name": "pods", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"], "shortNames": ["po"]},
            {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1", "verbs": ["create"]},
            {"name": "pods/log", "kind": "Pod", "verbs": ["get"]},
            {"name": "orphans/scale", "kind": "Scale", "verbs": ["get"]},
            {"name": "nodes", "singularName": "node", "namespaced": false, "kind": "Node", "verbs": null}]),
        ),
        "/apis/apps/v1" => list(
            "apps/v1",
            json!([{"name": "deployments", "namespaced": true, "kind": "Deployment"},
            {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"}]),
        ),
        "/apis/apps/v1beta1" => {
            list("apps/v1beta1", json!([{"name": "deployments", "namespaced": true, "kind": "Deployment"}]))
        }
        "/apis/odd/v2" => list("odd/v2", Value::Null),
        "/apis/metrics.k8s.io/v1beta1" => Some((503, "service unavailable".to_owned())),
        path => panic!("{path}"),
    }
}

#[test]
fn a_server_without_aggregated_documents_is_asked_group_by_group() {
    for refusal in [200, 404, 406] {
        let played = play(None, legacy(refusal));
        let paths = &played.paths;
        assert_eq!(paths.iter().filter(|path| *path == "/apis").count(), if refusal == 200 { 1 } else { 2 });
        assert_eq!(paths.iter().filter(|path| path.contains("metrics")).count(), 2, "one more attempt: {paths:?}");
        let failures = played.failures();
        assert_eq!(failures.len(), 3, "{failures:?}");
        assert!(failures[0].starts_with("../../secrets: ") && failures[2].starts_with("odd/v1?x: "), "{failures:?}");
        assert!(failures[1].starts_with("metrics.k8s.io/v1beta1: HTTP 503 "), "{failures:?}");
        let catalog = played.catalog();
        let pods = catalog.find("po").unwrap();
        assert_eq!((&*pods.singular, pods.resource_type.is_namespaced()), ("pod", true));
        let eviction = pods.subresource("eviction").unwrap();
        assert_eq!((&*eviction.group, &*eviction.version, &*eviction.kind), ("policy", "v1", "Eviction"));
        let log = pods.subresource("log").unwrap();
        assert_eq!((&*log.group, &*log.version, &*log.kind), ("", "v1", "Pod"));
        assert!(!catalog.find("nodes").unwrap().resource_type.is_namespaced());
        assert_eq!(shown(catalog.find("deployment").unwrap()), "deployments.v1.apps");
        assert_eq!(shown(catalog.find("deployments.v1beta1.apps").unwrap()), "deployments.v1beta1.apps");
        let missing = catalog.find("podmetrics.metrics.k8s.io").unwrap_err().to_string();
        assert!(missing.contains("metrics.k8s.io/v1beta1: HTTP 503") && !missing.contains("odd"), "{missing}");
        assert!(catalog.find("x").unwrap_err().to_string().contains("odd/v1?x"), "any group may have it");
    }
}

#[test]
fn only_so_many_requests_are_under_way_at_once() {
    let groups: Vec<_> = (0..40).map(|n| json!({"name": format!("g{n}"), "versions": [{"version": "v1"}]})).collect();
    let played = play(None, |asked| match &*asked.path {
        "/api" => code(404),
        "/apis" => ok(json!({"kind": "APIGroupList", "groups": groups})),
        _ => ok(json!({"kind": "APIResourceList", "resources": [{"name": "as", "kind": "A"}]})),
    });
    assert_eq!((played.failures(), played.most), (vec![], 10));
    assert_eq!(played.catalog().resources().count(), 40, "a server may have no core group");
}

#[test]
fn a_stale_group_is_named_and_what_it_still_lists_is_there() {
    let mut stale = group("old.io", &[("v1", &["olds/Old/"])]);
    stale["versions"][0]["freshness"] = json!("Stale");
    let gone = json!({"metadata": {"name": "gone.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]});
    let empty = json!({"metadata": {"name": "empty.io"}, "versions": null});
    let odd = json!({"metadata": {"name": "odd.io"}, "versions": {"no": "list"}});
    let groups =
        document(&[stale, gone, empty, odd, Value::Null, group("apps", &[("v1", &["deployments/Deployment/"])])]);
    let played = play(None, |asked| ok(if asked.path == "/api" { core() } else { groups.clone() }));
    let failures = played.failures();
    let named: Vec<_> = failures.iter().map(|failure| failure.split(": ").next().unwrap()).collect();
    assert_eq!(named, ["the list of groups", "empty.io", "gone.io/v1", "odd.io", "old.io/v1"], "{failures:?}");
    let catalog = played.catalog();
    assert!(catalog.find("deployments").is_ok() && catalog.find("olds").is_ok());
    let missing = catalog.find("x.gone.io").unwrap_err().to_string();
    assert!(missing.ends_with("gone.io/v1: the server behind it does not answer the API server"), "{missing}");
}

#[test]
fn one_root_that_fails_does_not_hide_the_other_and_two_are_an_error() {
    let half = |broken: &'static str, reply: Reply| {
        move |asked: &Asked| match &*asked.path {
            path if path == broken => reply.clone(),
            "/api" => ok(core()),
            _ => ok(others()),
        }
    };
    for reply in [code(403), code(503), None, Some((200, "<html>".to_owned())), Some((200, "{}".to_owned()))] {
        let played = play(None, half("/api", reply.clone()));
        assert!(played.failures()[0].starts_with("the core group: "), "{:?}", played.failures());
        assert!(played.result.unwrap().find("deployments").is_ok());
        let played = play(None, half("/apis", reply.clone()));
        assert!(played.failures()[0].starts_with("the list of groups: "), "{:?}", played.failures());
        let missing = played.catalog().find("deployments").unwrap_err().to_string();
        assert!(missing.contains("the list of groups"), "{missing}");
        assert!(play(None, |_| reply.clone()).result.is_err(), "{reply:?}");
    }
    assert!(play(None, |_| code(404)).result.unwrap_err().is_not_found());
    let html = Some((404, "<html>no".to_owned()));
    assert!(play(None, |_| html.clone()).result.is_err(), "never taken for an empty server");
}

#[test]
fn a_failure_that_passes_is_not_one() {
    use std::cell::Cell;
    let failing = Cell::new(3);
    let played = play(None, |asked| match &*asked.path {
        // Asked twice for each answer, to look and to answer.
        "/apis" if failing.get() > 0 => {
            failing.set(failing.get() - 1);
            code(503)
        }
        "/api" => ok(core()),
        _ => ok(others()),
    });
    assert_eq!(played.failures(), [""; 0]);
    assert!(played.catalog().find("deployments").is_ok());
}

#[test]
fn what_has_not_changed_is_kept() {
    let first = catalog();
    let bare = |asked: &Asked| asked.etag.as_deref().map(|etag| etag.trim_matches('"').parse::<usize>().unwrap());
    let played = play(Some(first.clone()), |asked| {
        assert!(bare(asked).is_some());
        code(304)
    });
    assert_eq!(played.catalog(), first);
    let played = play(Some(first.clone()), |asked| match &*asked.path {
        "/api" => code(304),
        _ => ok(document(&[group("new.io", &[("v1", &["news/New/"])])])),
    });
    let second = played.catalog();
    assert!(second.find("pods").is_ok() && second.find("news").is_ok() && second.find("deployments").is_err());
    assert_ne!(second.etags, first.etags);
    assert!(play(None, |_| code(304)).result.is_err(), "nothing is known that could be kept");
}

#[test]
fn silence_costs_no_more_than_the_time_there_is() {
    let silent = |asked: &Asked| match &*asked.path {
        "/api" => ok(core()),
        _ => Some((0, String::new())),
    };
    let played = play(None, silent);
    assert_eq!(played.took, Call::TIMEOUT);
    assert_eq!(played.failures(), ["the list of groups: no answer within 30s"]);
    assert_eq!(play(None, |_| Some((0, String::new()))).result, Err(Error::TimedOut(Call::TIMEOUT)));
    let slow = |asked: &Asked| match &*asked.path {
        "/apis/metrics.k8s.io/v1beta1" => Some((0, String::new())),
        _ => legacy(406)(asked),
    };
    let played = play(None, slow);
    assert_eq!(played.took, DiscoveryConfig::default().group_timeout);
    assert!(
        played.failures()[1].starts_with("metrics.k8s.io/v1beta1: no answer within 10s"),
        "{:?}",
        played.failures()
    );
}

#[test]
fn any_bodies_are_taken_and_names_in_them_go_nowhere_else() {
    let bodies = [
        "",
        "null",
        "[]",
        "{}",
        "\"\"",
        "{\"kind\":3}",
        "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[[],{},3,\"\"]}",
        "{\"kind\":\"APIVersions\",\"versions\":[\"..\",\"\",\"v1/../../x\",\"v 1\",{},\"%2e\"]}",
        "{\"kind\":\"APIGroupList\",\"groups\":[{},{\"name\":\"a\\u0000\",\"versions\":[\"v1\"]}]}",
    ];
    for one in bodies {
        for other in bodies {
            let played = play(None, |asked| Some((200, if asked.path == "/api" { one } else { other }.to_owned())));
            assert!(played.paths.iter().all(|path| path == "/api" || path == "/apis"), "{:?}", played.paths);
            assert!(played.result.is_err() || !played.failures().is_empty() || played.catalog().groups().is_empty());
        }
    }
}

fn moves() -> impl Strategy<Value = Move<DiscoveryInput>> {
    let ticket = || {
        (0..4_u32, 1..3_usize).prop_map(|(machine, nth)| {
            let mut tickets = Tickets::new(machine);
            (0..nth).map(|_| tickets.issue()).last().unwrap()
        })
    };
    let hear = |event: HttpEvent| Move::Input(DiscoveryInput::Http(event));
    prop_oneof![
        4 => (ticket(), prop_oneof![Just(200), Just(404), Just(503)]).prop_map(move |(ticket, code)| {
            let status = StatusCode::from_u16(code).unwrap();
            hear(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() })
        }),
        3 => (ticket(), prop_oneof![Just(core()), Just(others()), Just(json!({"kind": "APIVersions", "versions": ["v1"]}))])
            .prop_map(move |(ticket, body)| hear(HttpEvent::Received { ticket, bytes: body.to_string().into() })),
        4 => ticket().prop_map(move |ticket| hear(HttpEvent::Closed { ticket, result: Ok(()) })),
        1 => Just(Move::Input(DiscoveryInput::Cancelled)),
        1 => (0..20_000_u64).prop_map(|millis| Move::Wait(Duration::from_millis(millis))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_laws_hold(script in vec(moves(), 0..20)) {
        let make = || Discovery::new(DiscoveryConfig::default(), None, 5);
        laws::same_inputs_same_outputs(make, &script);
        let ticket = Tickets::new(1000).issue();
        let stale = [DiscoveryInput::Http(HttpEvent::Closed { ticket, result: Ok(()) })];
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let ending: Vec<_> = script.iter().cloned().chain([Move::Wait(Duration::from_secs(31))]).collect();
        laws::ended_stays_ended(&mut make(), &ending, &script);
        let said = laws::run(&mut make(), ending).into_iter().flat_map(|(_, said, _)| said);
        prop_assert_eq!(said.filter(|output| matches!(output, DiscoveryOutput::Done(_))).count(), 1);
    }

    #[test]
    fn any_documents_are_taken(data: Vec<u8>, bodies in vec(prop_oneof![
        Just(core().to_string()), Just(others().to_string()),
        Just(r#"{"kind":"APIGroupList","groups":[{"name":"a","versions":[{"version":"v1"}]}]}"#.to_owned()),
        Just(r#"{"kind":"APIResourceList","resources":[{"name":"as","kind":"A"},{"name":"as/b","kind":"B"}]}"#.to_owned()),
        Just(r#"{"kind":"APIVersions","versions":["v1"]}"#.to_owned()),
    ], 0..8), codes: [u8; 8]) {
        fuzz::discovery(&data);
        let parts = bodies.iter().zip(codes).map(|(body, code)| [&[code % 6], body.as_bytes()].concat());
        fuzz::discovery(&parts.collect::<Vec<_>>().join(&0xFF));
    }
}
