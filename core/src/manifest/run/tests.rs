use http::{HeaderMap, StatusCode};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::laws::{self, Move};
use crate::manifest::parse;
use crate::resource::Scope;

fn answer(code: u16, body: &Value) -> Result<Answer, Error> {
    let mut answer = Answer::new(StatusCode::from_u16(code).unwrap(), HeaderMap::new());
    answer.receive(body.to_string().as_bytes());
    Ok(answer)
}

fn plain_404() -> Result<Answer, Error> {
    let mut answer = Answer::new(StatusCode::NOT_FOUND, HeaderMap::new());
    answer.receive(b"404 page not found\n");
    Ok(answer)
}

fn status(code: u16, reason: &str) -> Result<Answer, Error> {
    answer(code, &json!({"kind": "Status", "code": code, "reason": reason, "message": reason}))
}

fn apply() -> ManifestRunConfig {
    ManifestRunConfig::new(ManifestVerb::Apply { field_manager: "me".into(), force: false })
}

fn type_of(kind: &str) -> ResourceType {
    let scope = if kind == "Namespace" { Scope::Cluster } else { Scope::Namespaced };
    ResourceType::new("", "v1", kind.to_owned(), format!("{}s", kind.to_ascii_lowercase()), scope)
}

/// A driver that answers from a script.
struct Peer {
    machine: ManifestRun,
    now: Now,
    asked: VecDeque<ManifestOutput>,
    reports: Vec<ManifestOutcome>,
    is_finished: bool,
}

impl Peer {
    fn new(text: &str, config: ManifestRunConfig) -> Self {
        let machine = ManifestRun::new(parse("f", text.as_bytes()).unwrap(), config, 7);
        let (asked, reports) = Default::default();
        let mut peer = Self { machine, now: Now::default(), asked, reports, is_finished: false };
        peer.step(None);
        peer
    }

    fn step(&mut self, input: Option<ManifestInput>) {
        let mut out = Outbox::new();
        let deadline = self.machine.step(self.now, input, &mut out);
        assert!(deadline.is_none_or(|deadline| deadline.at > self.now.mono), "{deadline:?}");
        for output in out {
            match output {
                ManifestOutput::Report(outcome) => self.reports.push(*outcome),
                ManifestOutput::Finished => assert!(!std::mem::replace(&mut self.is_finished, true)),
                asked => self.asked.push_back(asked),
            }
        }
    }

    /// Answers the next question for a type with what it is.
    fn resolve(&mut self) {
        match self.asked.pop_front() {
            Some(ManifestOutput::Resolve { ticket, kind, .. }) => {
                self.step(Some(ManifestInput::Resolved { ticket, result: Ok(type_of(&kind)) }));
            }
            other => panic!("{other:?} after {:?}", self.shown()),
        }
    }

    /// Answers the next request, and says what it was.
    fn answer(&mut self, result: Result<Answer, Error>) -> String {
        if self.asked.is_empty() {
            let due = self.machine.deadline().expect("something is waited for");
            self.now = self.now.after(due.at.since(self.now.mono));
            self.step(None);
        }
        match self.asked.pop_front() {
            Some(ManifestOutput::Send { ticket, request }) => {
                self.step(Some(ManifestInput::Answered { ticket, result }));
                format!("{} {}", request.inner().method(), request.inner().uri())
            }
            other => panic!("{other:?} after {:?}", self.shown()),
        }
    }

    fn shown(&self) -> Vec<String> {
        self.reports.iter().map(ToString::to_string).collect()
    }
}

fn map(name: &str, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "resourceVersion": version}})
}

fn text(names: &[&str]) -> String {
    let documents: Vec<_> =
        names.iter().map(|name| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")).collect();
    documents.join("---\n")
}

#[test]
fn an_apply_tells_what_is_new_what_has_changed_and_what_has_not() {
    let mut peer = Peer::new(&text(&["a", "b", "c"]), apply());
    peer.resolve();
    assert_eq!(peer.answer(status(404, "NotFound")), "GET /api/v1/namespaces/default/configmaps/a");
    assert_eq!(
        peer.answer(answer(201, &map("a", "1"))),
        "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=me"
    );
    for (name, after) in [("b", "2"), ("c", "1")] {
        peer.resolve();
        peer.answer(answer(200, &map(name, "1")));
        peer.answer(answer(200, &map(name, after)));
    }
    assert_eq!(peer.shown(), ["configmap/a created", "configmap/b configured", "configmap/c unchanged"]);
    assert!(peer.is_finished && peer.machine.deadline().is_none());
    assert_eq!(peer.reports[1].place.line, 5);
}

#[test]
fn an_apply_that_stores_nothing_compares_what_would_be() {
    let mut peer = Peer::new(&text(&["a", "b"]), ManifestRunConfig { dry_run: true, ..apply() });
    for (name, changed) in [("a", json!({"k": "v"})), ("b", json!({}))] {
        let mut before = map(name, "1");
        before["metadata"]["managedFields"] = json!([{"manager": "x"}]);
        before["data"] = json!({});
        let mut after = map(name, "1");
        after["data"] = changed;
        peer.resolve();
        peer.answer(answer(200, &before));
        assert!(peer.answer(answer(200, &after)).contains("dryRun=All"));
    }
    assert_eq!(peer.shown(), ["configmap/a configured", "configmap/b unchanged"]);
}

#[test]
fn an_object_that_fails_does_not_keep_the_others_back() {
    let mut peer = Peer::new(&text(&["a", "b", "''", "d", "e"]), apply());
    peer.resolve();
    peer.answer(status(403, "Forbidden"));
    let Some(ManifestOutput::Resolve { ticket, .. }) = peer.asked.pop_front() else { panic!() };
    let result = Err(Error::Cancelled);
    peer.step(Some(ManifestInput::Resolved { ticket, result }));
    peer.resolve();
    peer.resolve();
    peer.answer(answer(200, &map("d", "1")));
    peer.answer(status(409, "Conflict"));
    peer.resolve();
    peer.answer(Err(Error::TimedOut(PAUSE)));
    let report = ManifestReport { outcomes: peer.reports.clone() };
    assert_eq!((report.is_ok(), report.failures().count(), peer.is_finished), (false, 5, true));
    assert!(matches!(peer.reports[2].result, Err(Error::Misuse(_))), "no name");
    assert!(peer.shown()[3].ends_with("(f: document 4 at line 13)"), "{}", peer.shown()[3]);
}

#[test]
fn objects_of_a_type_that_is_defined_here_wait_until_it_is_served() {
    let definition = |established: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [{"name": "v1", "served": true}, {"name": "v0", "served": false}]},
            "status": {"conditions": [{"type": "Established", "status": established}]}})
    };
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let text = format!("{widget}{}", definition("False"));
    let mut peer = Peer::new(&text, apply());
    let Some(ManifestOutput::Resolve { ticket, kind, .. }) = peer.asked.pop_front() else { panic!() };
    assert_eq!(kind, "CustomResourceDefinition", "it goes first");
    peer.step(Some(ManifestInput::Resolved { ticket, result: Ok(definitions()) }));
    peer.answer(status(404, "NotFound"));
    peer.answer(answer(201, &definition("False")));
    let path = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    assert_eq!(peer.answer(answer(200, &definition("False"))), path);
    assert_eq!(peer.answer(Err(Error::TimedOut(PAUSE))), path, "a failure that passes");
    assert_eq!(peer.answer(answer(200, &definition("True"))), path);
    assert_eq!(peer.answer(plain_404()), "GET /apis/example.com/v1/namespaces/default/widgets/w");
    peer.answer(status(404, "NotFound"));
    peer.answer(plain_404());
    peer.answer(status(404, "NotFound"));
    peer.answer(answer(201, &widget));
    assert!(peer.is_finished && peer.reports.iter().all(|report| report.result == Ok(Done::Created)));

    let mut peer = Peer::new(&text, apply());
    let Some(ManifestOutput::Resolve { ticket, .. }) = peer.asked.pop_front() else { panic!() };
    peer.step(Some(ManifestInput::Resolved { ticket, result: Ok(definitions()) }));
    peer.answer(status(404, "NotFound"));
    peer.answer(answer(201, &definition("False")));
    for _ in 0..1000 {
        if peer.is_finished {
            break;
        }
        let is_definition = matches!(&peer.asked.front(), Some(ManifestOutput::Send { request, .. }) if request.inner().uri().path().contains("definitions"));
        peer.answer(if is_definition { answer(200, &definition("False")) } else { plain_404() });
    }
    assert!(peer.is_finished, "it does not wait for ever");
    assert_eq!(peer.reports[1].result.as_ref().unwrap_err().code(), Some(404));
}

#[test]
fn namespaces_are_given_taken_away_and_compared() {
    let text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: new, namespace: odd}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n";
    let config = ManifestRunConfig { namespace: "team".into(), enforce_namespace: true, ..apply() };
    let mut peer = Peer::new(text, config.clone());
    peer.resolve();
    assert_eq!(peer.answer(status(403, "Forbidden")), "GET /api/v1/namespaces/new");
    peer.resolve();
    assert!(matches!(&peer.reports[1].result, Err(Error::Misuse(said)) if said.contains("\"other\"")));
    let mut peer = Peer::new(text, ManifestRunConfig { enforce_namespace: false, ..config });
    peer.resolve();
    assert_eq!(peer.answer(status(403, "Forbidden")), "GET /api/v1/namespaces/new");
    peer.resolve();
    assert_eq!(peer.answer(status(403, "Forbidden")), "GET /api/v1/namespaces/other/configmaps/a");
}

#[test]
fn a_name_that_yaml_takes_for_something_else_is_said_to_be_one() {
    let mut peer = Peer::new("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n}\n", apply());
    peer.resolve();
    assert!(
        matches!(&peer.reports[0].result, Err(Error::Misuse(said)) if said.contains("metadata.name must be a text"))
    );
}

#[test]
fn objects_are_created_replaced_and_deleted() {
    let run = |verb: ManifestVerb, text: &str, answers: Vec<Result<Answer, Error>>| {
        let mut peer = Peer::new(text, ManifestRunConfig::new(verb));
        let mut sent = Vec::new();
        for answer in answers {
            if matches!(peer.asked.front(), Some(ManifestOutput::Resolve { .. })) {
                peer.resolve();
            }
            sent.push(peer.answer(answer));
        }
        assert!(peer.is_finished);
        (sent, peer.reports)
    };
    let path = "/api/v1/namespaces/default/configmaps";
    let generated = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n";
    let (sent, reports) = run(ManifestVerb::Create, generated, vec![answer(201, &map("a-x", "1"))]);
    assert_eq!((&sent[0], &*reports[0].name, &reports[0].result), (&format!("POST {path}"), "a-x", &Ok(Done::Created)));
    let answers = vec![answer(200, &map("a", "1")), answer(200, &map("a", "2")), status(404, "NotFound")];
    let (sent, reports) = run(ManifestVerb::Replace, &text(&["a", "b"]), answers);
    let wanted = [format!("GET {path}/a"), format!("PUT {path}/a"), format!("GET {path}/b")];
    assert_eq!(sent, wanted, "what is to be replaced is read for its version, and nothing is made");
    assert_eq!(reports[0].result, Ok(Done::Replaced));
    assert!(reports[1].result.as_ref().unwrap_err().is_not_found());
    let versioned = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: '5'}\n";
    let (sent, _) = run(ManifestVerb::Replace, versioned, vec![answer(200, &map("a", "2"))]);
    assert_eq!(sent, [format!("PUT {path}/a")], "the version that the manifest names counts");
    let delete = |ignore_missing| ManifestVerb::Delete { params: DeleteParams::default(), ignore_missing };
    let gone = || answer(200, &json!({"kind": "Status", "status": "Success"}));
    let (sent, reports) = run(delete(true), &text(&["a", "b"]), vec![gone(), status(404, "NotFound")]);
    assert_eq!(sent, [format!("DELETE {path}/b"), format!("DELETE {path}/a")], "the last goes first");
    assert_eq!((&reports[0].result, &reports[1].result), (&Ok(Done::Deleted), &Ok(Done::Missing)));
    let (_, reports) = run(delete(false), &text(&["a"]), vec![status(404, "NotFound")]);
    assert!(reports[0].result.is_err());
}

fn inputs() -> impl Strategy<Value = Move<ManifestInput>> {
    let tickets = (1..12_u64).prop_map(|effects| {
        let mut tickets = Tickets::new(7);
        for _ in 1..effects {
            let _ = tickets.issue();
        }
        tickets.issue()
    });
    let answers = prop_oneof![
        Just(answer(200, &map("a", "1"))),
        Just(status(404, "NotFound")),
        Just(plain_404()),
        Just(Err(Error::Cancelled)),
    ];
    prop_oneof![
        tickets
            .clone()
            .prop_map(|ticket| Move::Input(ManifestInput::Resolved { ticket, result: Ok(type_of("ConfigMap")) })),
        (tickets, answers).prop_map(|(ticket, result)| Move::Input(ManifestInput::Answered { ticket, result })),
        (0..5_000_u64).prop_map(|millis| Move::Wait(Duration::from_millis(millis))),
    ]
}

proptest! {
    #[test]
    fn the_laws_hold(script in vec(inputs(), 0..40)) {
        let make = || ManifestRun::new(parse("f", text(&["a", "b"]).as_bytes()).unwrap(), apply(), 7);
        laws::same_inputs_same_outputs(make, &script);
        let stale = [ManifestInput::Answered { ticket: Tickets::new(8).issue(), result: status(404, "NotFound") }];
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let said: Vec<_> = laws::run(&mut make(), script).into_iter().flat_map(|(_, said, _)| said).collect();
        let finished = said.iter().filter(|output| matches!(output, ManifestOutput::Finished)).count();
        let reports = said.iter().filter(|output| matches!(output, ManifestOutput::Report(_))).count();
        prop_assert!(finished <= 1 && reports <= 2 && (finished == 0 || reports == 2));
    }
}
