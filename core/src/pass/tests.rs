use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{Error, NetworkError, NetworkErrorKind};
use crate::laws::{self, Move};
use crate::resource::Scope;

const SEC: Duration = Duration::from_secs(1);

fn config() -> PassConfig {
    PassConfig::new(ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced))
}

fn pass(config: PassConfig) -> Pass {
    Pass::new(key(), Arc::new(config), Tickets::new(3))
}

fn key() -> ResourceKey {
    ResourceKey::new(Some("ns"), "w").unwrap()
}

/// The ticket of the `number`th effect: the run is the first.
fn ticket(number: usize) -> Ticket {
    let mut tickets = Tickets::new(3);
    (0..number).map(|_| tickets.issue()).last().unwrap()
}

fn object(version: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "ns", "uid": "u", "resourceVersion": version},
        "spec": {"size": 1}, "status": {"phase": "New"},
    })
}

/// The change of a widget of version 7 by JSON pointer.
fn update(changes: &[(&str, Value)]) -> Update {
    let mut new = object("7");
    for (pointer, value) in changes {
        *new.pointer_mut(pointer).unwrap() = value.clone();
    }
    Update::new(object("7"), new)
}

fn ran(outcome: Outcome) -> PassInput {
    PassInput::Ran { ticket: ticket(1), outcome }
}

fn answer(number: usize, code: u16, body: &Value) -> [PassInput; 3] {
    let ticket = ticket(number);
    let (status, headers) = (StatusCode::from_u16(code).unwrap(), HeaderMap::new());
    let bytes = Bytes::from(body.to_string());
    [
        PassInput::Http(HttpEvent::Responded { ticket, status, headers }),
        PassInput::Http(HttpEvent::Received { ticket, bytes }),
        PassInput::Http(HttpEvent::Closed { ticket, result: Ok(()) }),
    ]
}

fn refusal(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "details": {},
        "message": "the server rejected our request due to an error in our request"})
}

struct Driven {
    pass: Pass,
    now: Now,
    out: Outbox<PassOutput>,
}

/// A pass whose handler has been started.
fn started(config: PassConfig) -> Driven {
    let mut driven = Driven { pass: pass(config), now: Now::default(), out: Outbox::new() };
    driven.feed([]);
    let _ = driven.pass.step(driven.now, None, &mut driven.out);
    assert_eq!(driven.out.pop(), Some(PassOutput::Run { ticket: ticket(1), key: key() }));
    driven
}

impl Driven {
    fn feed(&mut self, inputs: impl IntoIterator<Item = PassInput>) -> &mut Self {
        for input in inputs {
            let _ = self.pass.step(self.now, Some(input), &mut self.out);
        }
        self
    }

    fn wait(&mut self, duration: Duration) -> &mut Self {
        self.now = self.now.after(duration);
        let _ = self.pass.step(self.now, None, &mut self.out);
        self
    }

    /// The request of the next output.
    fn sent(&mut self) -> Request<Bytes> {
        match self.out.pop() {
            Some(PassOutput::Http(HttpEffect::Send { request, .. })) => request.into_inner(),
            other => panic!("no request: {other:?}"),
        }
    }

    /// The path of the next request, and its patch.
    fn patched(&mut self) -> (String, Value) {
        let request = self.sent();
        assert_eq!(request.headers()["content-type"], "application/json-patch+json");
        (request.uri().to_string(), serde_json::from_slice(request.body()).unwrap())
    }

    #[track_caller]
    fn finished(&mut self) -> (PassResult, Option<ObjectVersion>) {
        let Some(PassOutput::Finished(Finished { key: of, result, written })) = self.out.pop() else {
            panic!("not finished");
        };
        assert_eq!((of, self.out.is_empty(), self.pass.deadline()), (key(), true, None));
        (result, written)
    }
}

fn guarded(version: &str, path: &str, value: Value) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": path, "value": value},
    ])
}

fn version(resource_version: &str) -> Option<ObjectVersion> {
    Some(ObjectVersion { uid: "u".into(), resource_version: resource_version.into() })
}

const SUCCEEDED: PassResult = PassResult::Succeeded { requeue_after: None };
const WIDGET: &str = "/apis/example.com/v1/namespaces/ns/widgets/w";
const STATUS: &str = "/apis/example.com/v1/namespaces/ns/widgets/w/status";

#[test]
fn nothing_changed_is_nothing_sent() {
    for outcome in [Outcome::done(), Outcome::done().with_update(update(&[]))] {
        assert_eq!(started(config()).feed([ran(outcome)]).finished(), (SUCCEEDED, None));
    }
}

#[test]
fn a_change_is_one_patch_of_the_version_that_was_read() {
    let mut driven = started(PassConfig { field_manager: Some("me".into()), ..config() });
    driven.feed([ran(Outcome::done().with_update(update(&[("/spec/size", json!(2))])))]);
    assert_eq!(driven.patched(), (format!("{WIDGET}?fieldManager=me"), guarded("7", "/spec/size", json!(2))));
    assert_eq!(driven.feed(answer(2, 200, &object("8"))).finished(), (SUCCEEDED, version("8")));
}

#[test]
fn a_change_of_the_status_goes_to_its_subresource() {
    let mut driven = started(config());
    driven.feed([ran(Outcome::done().with_update(update(&[("/status/phase", json!("Old"))])))]);
    assert_eq!(driven.patched(), (STATUS.to_owned(), guarded("7", "/status/phase", json!("Old"))));
    assert_eq!(driven.feed(answer(2, 200, &object("8"))).finished(), (SUCCEEDED, version("8")));
}

#[test]
fn a_change_of_both_is_two_patches_and_the_second_guards_what_the_first_made() {
    let mut driven = started(config());
    let both = update(&[("/spec/size", json!(2)), ("/status/phase", json!("Old"))]);
    driven.feed([ran(Outcome::done().with_update(both))]);
    assert_eq!(driven.patched(), (WIDGET.to_owned(), guarded("7", "/spec/size", json!(2))));
    driven.feed(answer(2, 200, &object("8")));
    assert_eq!(driven.patched(), (STATUS.to_owned(), guarded("8", "/status/phase", json!("Old"))));
    assert_eq!(driven.feed(answer(3, 200, &object("9"))).finished(), (SUCCEEDED, version("9")));
}

#[test]
fn a_status_without_a_subresource_is_written_with_the_object() {
    let changed = || ran(Outcome::done().with_update(update(&[("/status/phase", json!("Old"))])));
    let patch = guarded("7", "/status/phase", json!("Old"));
    let mut known = started(PassConfig { status: StatusEndpoint::Object, ..config() });
    assert_eq!(known.feed([changed()]).patched(), (WIDGET.to_owned(), patch.clone()));

    let mut found = started(config());
    found.feed([changed()]).sent();
    found.feed(answer(2, 404, &refusal(404, "NotFound")));
    assert_eq!(found.patched(), (WIDGET.to_owned(), patch));
    assert_eq!(found.feed(answer(3, 200, &object("8"))).finished(), (SUCCEEDED, version("8")));
}

#[test]
fn an_object_that_is_gone_ends_the_pass_well() {
    for outcome in [Outcome::done(), Outcome::waiting("Rolling", "")] {
        let mut driven = started(config());
        driven.feed([ran(outcome.with_update(update(&[("/status/phase", json!("Old"))])))]).sent();
        driven.feed(answer(2, 404, &refusal(404, "NotFound"))).sent();
        driven.feed(answer(3, 404, &refusal(404, "NotFound")));
        assert_eq!(driven.finished(), (PassResult::Gone, None));
    }
    let mut strict = started(PassConfig { status: StatusEndpoint::Subresource, ..config() });
    strict.feed([ran(Outcome::done().with_update(update(&[("/status/phase", json!("Old"))])))]).sent();
    assert_eq!(strict.feed(answer(2, 404, &refusal(404, "NotFound"))).finished(), (PassResult::Gone, None));
    assert_eq!(started(config()).feed([ran(Outcome::new(Verdict::Gone))]).finished(), (PassResult::Gone, None));
    assert_eq!(PassResult::Gone.next(), Next::Forget);
}

/// What a change of the size comes to when the API server answers so.
fn result_of(outcome: Outcome, code: u16, body: &Value) -> PassResult {
    let mut driven = started(config());
    driven.feed([ran(outcome.with_update(update(&[("/spec/size", json!(2))])))]).sent();
    driven.feed(answer(2, code, body)).finished().0
}

#[test]
fn a_newer_object_is_a_conflict_and_no_failure() {
    for (code, reason) in [(409, "Conflict"), (422, "Invalid")] {
        assert_eq!(result_of(Outcome::done(), code, &refusal(code, reason)), PassResult::Conflict);
    }
    assert_eq!(started(config()).feed([ran(Outcome::new(Verdict::Conflict))]).finished().0, PassResult::Conflict);
    assert_eq!(PassResult::Conflict.next(), Next::Retry(None));
}

#[test]
fn an_object_that_would_be_invalid_is_a_failure_and_no_conflict() {
    let mut named = refusal(422, "Invalid");
    named["details"] = json!({"name": "w", "group": "example.com", "kind": "Widget"});
    let mut causes = refusal(422, "Invalid");
    causes["details"] = json!({"causes": [{"reason": "FieldValueInvalid", "field": "spec.size"}]});
    let mut webhook = refusal(422, "Invalid");
    webhook["message"] = json!("admission webhook \"x.example.com\" denied the request: too large");
    for body in [named, causes, webhook] {
        let result = result_of(Outcome::done(), 422, &body);
        assert!(matches!(result, PassResult::Failed(PassError::Write(Error::Api(_)))), "{body}: {result:?}");
    }
}

#[test]
fn a_server_that_cannot_now_is_asked_again_when_it_says() {
    for (code, reason) in [(429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable")] {
        let mut body = refusal(code, reason);
        assert_eq!(result_of(Outcome::done(), code, &body).next(), Next::Retry(None));
        body["details"]["retryAfterSeconds"] = json!(7);
        assert_eq!(result_of(Outcome::done(), code, &body).next(), Next::Retry(Some(7 * SEC)));
    }
    for code in [403, 413] {
        assert_eq!(result_of(Outcome::done(), code, &refusal(code, "x")).next(), Next::Retry(None));
    }
}

#[test]
fn a_proxy_in_place_of_the_server_does_not_say_that_the_object_is_gone() {
    let result = result_of(Outcome::done(), 404, &json!("page not found"));
    assert!(matches!(result, PassResult::Failed(PassError::Write(Error::Body(_)))), "{result:?}");
}

#[test]
fn a_network_that_fails_is_a_failure() {
    let mut driven = started(config());
    driven.feed([ran(Outcome::done().with_update(update(&[("/spec/size", json!(2))])))]).sent();
    let lost = NetworkError::new(NetworkErrorKind::Lost, "reset");
    driven.feed([PassInput::Http(HttpEvent::Closed { ticket: ticket(2), result: Err(lost.clone()) })]);
    assert_eq!(driven.finished(), (PassError::Write(lost.into()).into(), None));
}

#[test]
fn a_write_that_changed_nothing_is_not_reported_as_one() {
    let mut driven = started(config());
    driven.feed([ran(Outcome::done().with_update(update(&[("/spec/size", json!(2))])))]).sent();
    assert_eq!(driven.feed(answer(2, 200, &object("7"))).finished(), (SUCCEEDED, None));
}

#[test]
fn a_change_of_identity_fails_and_sends_nothing() {
    let changed = update(&[("/metadata/uid", json!("other"))]);
    let (result, _) = started(config()).feed([ran(Outcome::done().with_update(changed))]).finished();
    assert!(matches!(result, PassResult::Failed(PassError::Change(_))), "{result:?}");
}

#[test]
fn what_the_handler_says_decides_what_comes_next() {
    let (message, wait) = (|| "m".to_owned(), Outcome::WAIT);
    let waiting = |after| PassResult::Waiting { reason: "R".into(), message: message(), after };
    let handler = |retry_after| PassError::Handler { message: message(), retry_after }.into();
    for (outcome, result, next) in [
        (Outcome::done(), SUCCEEDED, Next::Forget),
        (Outcome::done().requeue_after(SEC), PassResult::Succeeded { requeue_after: Some(SEC) }, Next::Requeue(SEC)),
        (Outcome::waiting("R", "m"), waiting(wait), Next::Requeue(wait)),
        (Outcome::waiting("R", "m").requeue_after(Duration::ZERO), waiting(wait), Next::Requeue(wait)),
        (Outcome::waiting("R", "m").requeue_after(SEC), waiting(SEC), Next::Requeue(SEC)),
        (Outcome::failed("m"), handler(None), Next::Retry(None)),
        (Outcome::failed("m").requeue_after(SEC), handler(Some(SEC)), Next::Retry(Some(SEC))),
        (Outcome::terminal("m"), PassError::Terminal { message: message() }.into(), Next::Forget),
        (Outcome::panicked("m"), PassError::Panicked { message: message() }.into(), Next::Retry(None)),
        (Outcome::new(Verdict::Cancelled), PassResult::Cancelled, Next::Retry(None)),
    ] {
        let (said, written) = started(config()).feed([ran(outcome)]).finished();
        assert_eq!((said.next(), written), (next, None), "{said:?}");
        assert_eq!(said, result);
    }
}

#[test]
fn what_changed_is_written_however_the_handler_ended() {
    for outcome in [Outcome::waiting("R", "m"), Outcome::failed("m"), Outcome::terminal("m"), Outcome::panicked("m")] {
        let expected = PassResult::from(outcome.verdict.clone());
        assert_eq!(result_of(outcome, 200, &object("8")), expected);
    }
    for verdict in [Verdict::Gone, Verdict::Cancelled] {
        let outcome = Outcome::new(verdict).with_update(update(&[("/spec/size", json!(2))]));
        assert!(matches!(started(config()).feed([ran(outcome)]).finished(), (_, None)));
    }
}

#[test]
fn a_terminal_failure_is_retried_when_its_report_was_not_written() {
    assert_eq!(result_of(Outcome::terminal("m"), 409, &refusal(409, "Conflict")), PassResult::Conflict);
    assert_eq!(result_of(Outcome::terminal("m"), 500, &refusal(500, "x")).next(), Next::Retry(None));
    assert_eq!(result_of(Outcome::terminal("m"), 404, &refusal(404, "NotFound")).next(), Next::Forget);
    let failed = PassResult::from(Outcome::failed("m").verdict);
    assert_eq!(result_of(Outcome::failed("m"), 500, &refusal(500, "x")), failed);
}

#[test]
fn a_handler_that_takes_too_long_is_stopped_and_waited_for() {
    let mut driven = started(PassConfig { timeout: Some(5 * SEC), ..config() });
    assert_eq!(driven.pass.deadline().map(|due| due.at), Some(Time::from_secs(5)));
    driven.wait(5 * SEC);
    assert_eq!(driven.out.drain().collect::<Vec<_>>(), [PassOutput::Cancel { ticket: ticket(1) }]);
    driven.wait(100 * SEC);
    assert!(driven.out.is_empty(), "the handler may still be running");
    driven.feed([PassInput::Cancelled]);
    assert!(driven.out.is_empty(), "it has been told already");
    driven.feed([ran(Outcome::done().with_update(update(&[("/spec/size", json!(2))])))]);
    assert_eq!(driven.finished(), (PassError::TimedOut(5 * SEC).into(), None));
}

#[test]
fn writing_counts_as_part_of_the_pass() {
    let mut driven = started(PassConfig { timeout: Some(5 * SEC), ..config() });
    driven.wait(4 * SEC).feed([ran(Outcome::done().with_update(update(&[("/spec/size", json!(2))])))]).sent();
    assert_eq!(driven.pass.deadline().map(|due| due.at), Some(Time::from_secs(5)));
    driven.wait(SEC);
    assert_eq!(driven.out.pop(), Some(PassOutput::Http(HttpEffect::Cancel { ticket: ticket(2) })));
    assert_eq!(driven.finished(), (PassError::TimedOut(5 * SEC).into(), None));
}

#[test]
fn a_write_has_a_time_limit_of_its_own() {
    let mut driven = started(config());
    driven.feed([ran(Outcome::done().with_update(update(&[("/spec/size", json!(2))])))]).sent();
    driven.wait(Call::TIMEOUT);
    assert_eq!(driven.out.pop(), Some(PassOutput::Http(HttpEffect::Cancel { ticket: ticket(2) })));
    assert_eq!(driven.finished(), (PassError::Write(Error::TimedOut(Call::TIMEOUT)).into(), None));
}

#[test]
fn a_cancelled_pass_ends_wherever_it_stands() {
    let mut unborn = Driven { pass: pass(config()), now: Now::default(), out: Outbox::new() };
    unborn.pass.on_input(unborn.now, PassInput::Cancelled, &mut unborn.out);
    assert_eq!(unborn.finished(), (PassResult::Cancelled, None));

    let mut running = started(config());
    running.feed([PassInput::Cancelled]);
    assert_eq!(running.out.drain().collect::<Vec<_>>(), [PassOutput::Cancel { ticket: ticket(1) }]);
    assert_eq!(running.feed([ran(Outcome::failed("stopped"))]).finished(), (PassResult::Cancelled, None));

    let mut writing = started(config());
    let both = update(&[("/spec/size", json!(2)), ("/status/phase", json!("Old"))]);
    writing.feed([ran(Outcome::done().with_update(both))]).sent();
    writing.feed(answer(2, 200, &object("8"))).sent();
    writing.feed([PassInput::Cancelled]);
    assert_eq!(writing.out.pop(), Some(PassOutput::Http(HttpEffect::Cancel { ticket: ticket(3) })));
    assert_eq!(writing.finished(), (PassResult::Cancelled, version("8")));
}

fn inputs() -> impl Strategy<Value = Vec<Move<PassInput>>> {
    let both = update(&[("/spec/size", json!(2)), ("/status/phase", json!("Old"))]);
    let answers = |bodies: [(u16, Value); 4]| {
        let answers = bodies.map(|(code, body)| (2..5).map(move |number| answer(number, code, &body)));
        proptest::sample::select(answers.into_iter().flatten().collect::<Vec<_>>())
            .prop_map(|inputs| inputs.into_iter().map(Move::Input).collect())
    };
    prop_oneof![
        Just(vec![Move::Input(ran(Outcome::done().with_update(both.clone())))]),
        Just(vec![Move::Input(ran(Outcome::failed("m").with_update(both)))]),
        answers([
            (200, object("8")),
            (404, refusal(404, "NotFound")),
            (409, refusal(409, "Conflict")),
            (500, json!("no")),
        ]),
        Just(vec![Move::Input(PassInput::Cancelled)]),
        (0..20_u32).prop_map(|seconds| vec![Move::Wait(seconds * SEC)]),
    ]
}

proptest! {
    #[test]
    fn the_laws_hold(script in vec(inputs(), 0..12)) {
        let script = script.concat();
        let make = || pass(PassConfig { timeout: Some(60 * SEC), ..config() });
        laws::same_inputs_same_outputs(make, &script);
        let mut stale = Vec::from(answer(9, 200, &object("99")));
        stale.extend([1, 9].map(|number| PassInput::Ran {
            ticket: { let mut other = Tickets::new(4); (0..number).map(|_| other.issue()).last().unwrap() },
            outcome: Outcome::done(),
        }));
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let ending: Vec<_> = script.iter().cloned()
            .chain([PassInput::Cancelled, ran(Outcome::done())].map(Move::Input))
            .collect();
        laws::ended_stays_ended(&mut make(), &ending, &script);
        let said: Vec<_> = laws::run(&mut make(), ending).into_iter().flat_map(|(_, said, _)| said).collect();
        let finished = |output: &&PassOutput| matches!(output, PassOutput::Finished(_));
        prop_assert_eq!(said.iter().filter(finished).count(), 1);
        let run = |output: &&PassOutput| matches!(output, PassOutput::Run { .. });
        prop_assert!(said.iter().filter(run).count() <= 1);
    }
}
