//! Tables that change.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Raw, Table};
use crate::backoff::{Backoff, BackoffPolicy};
use crate::drive::{HttpMachine, Said};
use crate::error::{Error, NetworkError};
use crate::exchange::{Answer, HttpEffect, HttpEvent, HttpRequest};
use crate::log::LogLines;
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::request::{ListParams, Requests, View, WatchParams};
use crate::response;
use crate::status::Status;
use crate::time::{Now, Time};

/// Lists objects as the server prints them and follows their changes, and ends only with a failure that will hardly pass.
///
/// What exists comes first, as one table; then a table for each change, whose columns are those of the first where it
/// has none. A watch that ends or breaks is resumed where it was; when the server has forgotten that place, what exists
/// comes again, as [`Listed`](TableEvent::Listed).
#[derive(Clone, Debug, PartialEq)]
pub struct TableWatch {
    requests: Requests,
    params: ListParams,
    tickets: Tickets,
    backoff: Backoff,
    state: State,
    /// Where a watch goes on.
    version: Option<String>,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The first step, or the end of a pause.
    Waiting { until: Time },
    /// The table of what exists, of which these pages have come.
    Listing { ticket: Ticket, give_up: Time, answer: Option<Box<Answer>>, pages: Box<Table> },
    /// The head of the answer to a watch.
    Opening { ticket: Ticket, give_up: Time },
    /// What is said in place of a watch.
    Refused { ticket: Ticket, give_up: Time, answer: Box<Answer> },
    /// Changes.
    Watching { ticket: Ticket, idle_at: Time, lines: LogLines },
    /// Nothing.
    Done,
}

/// What a [`TableWatch`] reports.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever shows tables must know all of them")]
pub enum TableEvent {
    /// What exists.
    Listed(Table),
    /// Objects are new or have changed.
    Applied(Table),
    /// Objects are gone; this is their last state.
    Deleted(Table),
    /// It failed, and will hardly succeed later; said once, and nothing after it.
    Failed(Error),
}

/// What a [`TableWatch`] hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum TableInput {
    /// Something came of a request.
    Http(HttpEvent),
}

/// What a [`TableWatch`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum TableOutput {
    /// Perform an HTTP effect.
    Http(HttpEffect),
    /// This happened.
    Event(TableEvent),
}

impl TableWatch {
    /// A watch of the objects of `requests` that `params` select; page size and selectors count, nothing else. `machine` is
    /// the number in its tickets, `seed` moves its jitter.
    pub fn new(requests: Requests, params: ListParams, machine: u32, seed: u64) -> Self {
        Self {
            requests: requests.viewed(View::Table),
            params,
            tickets: Tickets::new(machine),
            backoff: Backoff::new(BackoffPolicy::WATCH, seed),
            state: State::Waiting { until: Time::ZERO },
            version: None,
        }
    }

    /// Goes on from the version where a list or watch got to, or begins with a list.
    fn begin(&mut self, now: Now, out: &mut Outbox<TableOutput>) {
        if self.version.is_none() {
            return self.list(now, Table::default(), out);
        }
        let params = WatchParams {
            label_selector: self.params.label_selector.clone(),
            field_selector: self.params.field_selector.clone(),
            resource_version: self.version.clone(),
            timeout: Some(self.backoff.random().jitter(TIMEOUT, 20)),
            bookmarks: true,
            initial_events: false,
        };
        match self.requests.watch(&params) {
            Ok(request) => {
                let ticket = self.send(request.into(), out);
                self.state = State::Opening { ticket, give_up: now.mono + PATIENCE };
            }
            Err(error) => self.end(error, out),
        }
    }

    fn list(&mut self, now: Now, pages: Table, out: &mut Outbox<TableOutput>) {
        let params = ListParams { continue_token: pages.continue_token.clone(), ..self.params.clone() };
        match self.requests.list(&params) {
            Ok(request) => {
                let ticket = self.send(request.into(), out);
                let give_up = now.mono + PATIENCE;
                self.state = State::Listing { ticket, give_up, answer: None, pages: Box::new(pages) };
            }
            Err(error) => self.end(error, out),
        }
    }

    fn send(&mut self, request: HttpRequest, out: &mut Outbox<TableOutput>) -> Ticket {
        let ticket = self.tickets.issue();
        out.push(TableOutput::Http(HttpEffect::Send { ticket, request }));
        ticket
    }

    fn end(&mut self, error: Error, out: &mut Outbox<TableOutput>) {
        self.state = State::Done;
        out.push(TableOutput::Event(TableEvent::Failed(error)));
    }

    /// Tries again later, from a list if the server has forgotten the place; or ends.
    fn fail(&mut self, now: Now, error: Error, out: &mut Outbox<TableOutput>) {
        if error.is_permanent() {
            return self.end(error, out);
        }
        if error.is_expired() {
            self.version = None;
        }
        let asked = error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
        self.state = State::Waiting { until: now.mono + self.backoff.fail().max(asked) };
    }

    fn responded(&mut self, now: Now, status: StatusCode, headers: HeaderMap) {
        match &mut self.state {
            State::Listing { answer, .. } => *answer = Some(Box::new(Answer::new(status, headers))),
            State::Opening { ticket, give_up } => {
                let (ticket, give_up) = (*ticket, *give_up);
                self.state = if status == StatusCode::OK {
                    State::Watching { ticket, idle_at: now.mono + IDLE, lines: LogLines::limited(LINE_LIMIT) }
                } else {
                    State::Refused {
                        ticket,
                        give_up,
                        answer: Box::new(Answer::new(status, headers).limited(REFUSAL_LIMIT)),
                    }
                };
            }
            _ => {}
        }
    }

    fn received(&mut self, now: Now, bytes: &[u8], out: &mut Outbox<TableOutput>) {
        match &mut self.state {
            State::Listing { answer: Some(answer), give_up, .. } => {
                *give_up = now.mono + PATIENCE;
                answer.receive(bytes);
            }
            State::Refused { answer, .. } => answer.receive(bytes),
            State::Watching { ticket, idle_at, lines } => {
                let ticket = *ticket;
                *idle_at = now.mono + IDLE;
                for line in lines.push(bytes) {
                    if let Err(error) = self.hear(&line, out) {
                        out.push(TableOutput::Http(HttpEffect::Cancel { ticket }));
                        return self.fail(now, error, out);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes in one event of a watch; its error ends the watch.
    fn hear(&mut self, line: &str, out: &mut Outbox<TableOutput>) -> Result<(), Error> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let odd = |_| Error::from(NetworkError::new(crate::NetworkErrorKind::Protocol, "an event that is none"));
        let Event { kind, object } = serde_json::from_str(line).map_err(odd)?;
        if kind == "ERROR" {
            return Err(serde_json::from_str::<Status>(object.get()).map_err(odd)?.into());
        }
        let table = Self::table(object.get()).map_err(odd)?;
        let version =
            table.rows.iter().rev().find_map(|row| row.object.as_ref()?.pointer("/metadata/resourceVersion")?.as_str());
        if let Some(version) = version.or(table.resource_version.as_deref()).filter(|version| !version.is_empty()) {
            self.version = Some(version.to_owned());
        }
        self.backoff.reset();
        match &*kind {
            "ADDED" | "MODIFIED" => out.push(TableOutput::Event(TableEvent::Applied(table))),
            "DELETED" => out.push(TableOutput::Event(TableEvent::Deleted(table))),
            // A bookmark says how far it got, and others are not known.
            _ => {}
        }
        Ok(())
    }

    /// The table of an event, or one that is made of the object where the server prints none.
    fn table(json: &str) -> Result<Table, serde_json::Error> {
        let object: crate::Unstructured = serde_json::from_str(json)?;
        if object.kind() == "Table" {
            serde_json::from_str::<Raw>(json).map(Table::from)
        } else {
            Ok(Table::of([object]))
        }
    }

    fn closed(&mut self, now: Now, result: Result<(), NetworkError>, out: &mut Outbox<TableOutput>) {
        match (result, std::mem::replace(&mut self.state, State::Done)) {
            (_, State::Refused { answer, .. }) => {
                let error = response::check(&answer).err().unwrap_or_else(|| NetworkError::no_answer().into());
                self.fail(now, error, out);
            }
            (Err(error), _) => self.fail(now, error.into(), out),
            (Ok(()), State::Listing { answer: Some(answer), pages, .. }) => match Table::decode(&answer) {
                Ok(page) => self.listed(now, *pages, page, out),
                Err(error) => self.fail(now, error, out),
            },
            // The server ends a watch when its time is over.
            (Ok(()), State::Watching { .. }) => self.state = State::Waiting { until: now.mono + REST },
            (Ok(()), _) => self.fail(now, NetworkError::no_answer().into(), out),
        }
    }

    fn listed(&mut self, now: Now, mut whole: Table, page: Table, out: &mut Outbox<TableOutput>) {
        whole.append(page);
        if whole.continue_token.is_some() {
            return self.list(now, whole, out);
        }
        self.version = whole.resource_version.clone().filter(|version| version != "0");
        out.push(TableOutput::Event(TableEvent::Listed(whole)));
        if self.version.is_some() {
            self.backoff.reset();
            self.begin(now, out);
        } else {
            let odd = NetworkError::new(crate::NetworkErrorKind::Protocol, "a list without a version");
            self.fail(now, odd.into(), out);
        }
    }

    const fn ticket(&self) -> Option<Ticket> {
        match &self.state {
            State::Listing { ticket, .. }
            | State::Opening { ticket, .. }
            | State::Refused { ticket, .. }
            | State::Watching { ticket, .. } => Some(*ticket),
            State::Waiting { .. } | State::Done => None,
        }
    }
}

impl Machine for TableWatch {
    type Input = TableInput;
    type Output = TableOutput;

    fn on_input(&mut self, now: Now, TableInput::Http(event): TableInput, out: &mut Outbox<TableOutput>) {
        if self.ticket() != Some(event.ticket()) {
            return;
        }
        match event {
            HttpEvent::Responded { status, headers, .. } => self.responded(now, status, headers),
            HttpEvent::Received { bytes, .. } => self.received(now, &bytes, out),
            HttpEvent::Closed { result, .. } => self.closed(now, result, out),
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<TableOutput>) {
        if matches!(self.state, State::Waiting { .. }) {
            return self.begin(now, out);
        }
        if let Some(ticket) = self.ticket() {
            out.push(TableOutput::Http(HttpEffect::Cancel { ticket }));
            self.fail(now, Error::TimedOut(PATIENCE), out);
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match &self.state {
            State::Waiting { until } => Some(Deadline::new(*until, "retry")),
            State::Listing { give_up, .. } => Some(Deadline::new(*give_up, "the next piece of a table")),
            State::Opening { give_up, .. } | State::Refused { give_up, .. } => {
                Some(Deadline::new(*give_up, "an answer"))
            }
            State::Watching { idle_at, .. } => Some(Deadline::new(*idle_at, "an event")),
            State::Done => None,
        }
    }
}

impl HttpMachine for TableWatch {
    type Event = TableEvent;

    fn hear(event: HttpEvent) -> TableInput {
        TableInput::Http(event)
    }

    fn sort(output: TableOutput) -> Said<TableEvent> {
        match output {
            TableOutput::Http(effect) => Said::Effect(effect),
            TableOutput::Event(event) => Said::Event(event),
        }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// How long an answer, or the next piece of a table, may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// After which time the server is to end a watch, more or less.
const TIMEOUT: Duration = Duration::from_secs(450);
/// How long a watch may be silent before it is taken for dead. Servers send a bookmark each minute.
const IDLE: Duration = Duration::from_secs(90);
/// How long is waited before a watch that has ended is resumed.
const REST: Duration = Duration::from_millis(100);
/// The longest wait that a server can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);
/// The longest event, in bytes.
const LINE_LIMIT: usize = 16 << 20;
/// The longest refusal that is read, in bytes.
const REFUSAL_LIMIT: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bytes::Bytes;
    use k8s_openapi::api::core::v1::Pod;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::laws::{self, Move};
    use crate::resource::KnownResource;

    fn watch() -> TableWatch {
        TableWatch::new(Requests::new(Pod::resource_type(), Some("ns")), ListParams::default(), 7, 1)
    }

    fn table(name: &str, version: &str) -> Value {
        let object = json!({"kind": "PartialObjectMetadata", "metadata": {"name": name, "resourceVersion": version}});
        json!({"kind": "Table", "metadata": {"resourceVersion": version}, "columnDefinitions": [{"name": "Name"}],
            "rows": [{"cells": [name], "object": object}]})
    }

    struct Peer {
        machine: TableWatch,
        now: Now,
        sent: VecDeque<(Ticket, String)>,
        events: Vec<TableEvent>,
    }

    impl Peer {
        fn new() -> Self {
            let mut peer = Self { machine: watch(), now: Now::default(), sent: VecDeque::new(), events: Vec::new() };
            peer.step(None);
            peer
        }

        fn step(&mut self, event: Option<HttpEvent>) {
            let mut out = Outbox::new();
            let deadline = self.machine.step(self.now, event.map(TableInput::Http), &mut out);
            assert!(deadline.is_none_or(|deadline| deadline.at > self.now.mono), "{deadline:?}");
            for output in out {
                match output {
                    TableOutput::Http(HttpEffect::Send { ticket, request }) => {
                        self.sent.push_back((ticket, request.inner().uri().to_string()));
                    }
                    TableOutput::Http(HttpEffect::Cancel { .. }) => {}
                    TableOutput::Event(event) => self.events.push(event),
                }
            }
        }

        fn head(&mut self, code: u16) -> (Ticket, String) {
            while self.sent.is_empty() {
                let due = self.machine.deadline().unwrap();
                self.now = self.now.after(due.at.since(self.now.mono));
                self.step(None);
            }
            let (ticket, uri) = self.sent.pop_front().unwrap();
            let status = StatusCode::from_u16(code).unwrap();
            self.step(Some(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() }));
            (ticket, uri)
        }

        fn say(&mut self, ticket: Ticket, value: &Value) {
            self.step(Some(HttpEvent::Received { ticket, bytes: Bytes::from(format!("{value}\n")) }));
        }

        fn answer(&mut self, code: u16, value: &Value) -> String {
            let (ticket, uri) = self.head(code);
            self.say(ticket, value);
            self.step(Some(HttpEvent::Closed { ticket, result: Ok(()) }));
            uri
        }

        fn shown(&mut self) -> Vec<String> {
            let name = |table: &Table| table.rows.iter().map(|row| row.text(0)).collect::<Vec<_>>().join(",");
            std::mem::take(&mut self.events)
                .iter()
                .map(|event| match event {
                    TableEvent::Listed(table) => format!("listed {}", name(table)),
                    TableEvent::Applied(table) => format!("applied {}", name(table)),
                    TableEvent::Deleted(table) => format!("deleted {}", name(table)),
                    TableEvent::Failed(error) => format!("failed {:?}", error.code()),
                })
                .collect()
        }
    }

    #[test]
    fn what_exists_comes_first_and_then_each_change_across_watches() {
        let mut peer = Peer::new();
        let mut first = table("a", "5");
        first["metadata"]["continue"] = json!("t");
        peer.answer(200, &first);
        assert!(peer.answer(200, &table("b", "5")).contains("continue=t"));
        assert_eq!(peer.shown(), ["listed a,b"]);
        let (ticket, uri) = peer.head(200);
        assert!(uri.contains("watch=true&resourceVersion=5"), "{uri}");
        peer.say(ticket, &json!({"type": "MODIFIED", "object": table("a", "6")}));
        peer.say(ticket, &json!({"type": "DELETED", "object": table("b", "7")}));
        peer.say(
            ticket,
            &json!({"type": "BOOKMARK", "object": {"kind": "Table", "metadata": {"resourceVersion": "9"}, "rows": []}}),
        );
        peer.step(Some(HttpEvent::Closed { ticket, result: Ok(()) }));
        assert_eq!(peer.shown(), ["applied a", "deleted b"]);
        let (ticket, uri) = peer.head(200);
        assert!(uri.contains("resourceVersion=9"), "{uri}");
        peer.say(ticket, &json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}));
        assert!(!peer.answer(200, &table("c", "20")).contains("watch"), "a new list");
        assert_eq!(peer.shown(), ["listed c"]);
    }

    #[test]
    fn what_will_not_pass_ends_it_and_the_rest_is_tried_again() {
        let mut peer = Peer::new();
        peer.answer(503, &json!({"kind": "Status", "code": 503}));
        peer.answer(200, &table("a", "5"));
        peer.answer(500, &json!({"kind": "Status", "code": 500}));
        let (_, uri) = peer.head(200);
        assert!(uri.contains("resourceVersion=5"));
        let due = peer.machine.deadline().unwrap();
        peer.now = peer.now.after(due.at.since(peer.now.mono));
        peer.step(None);
        let refusal = json!({"kind": "Status", "code": 403, "reason": "Forbidden"});
        assert!(peer.answer(403, &refusal).contains("watch=true"), "a silent watch is resumed");
        assert_eq!(peer.shown(), ["listed a", "failed Some(403)"]);
        assert_eq!(peer.machine.deadline(), None);
    }

    #[test]
    fn a_server_that_prints_no_tables_is_followed_all_the_same() {
        let mut peer = Peer::new();
        let pod =
            |name: &str| json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": "6"}});
        peer.answer(
            200,
            &json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": [pod("a")]}),
        );
        let (ticket, _) = peer.head(200);
        peer.say(ticket, &json!({"type": "ADDED", "object": pod("b")}));
        assert_eq!(peer.shown(), ["listed a", "applied b"]);
    }

    fn inputs() -> impl Strategy<Value = Move<TableInput>> {
        let tickets = (1..8_u64).prop_map(|effects| {
            let mut tickets = Tickets::new(7);
            for _ in 1..effects {
                let _ = tickets.issue();
            }
            tickets.issue()
        });
        let texts = prop_oneof![
            Just(format!("{}\n", table("a", "5"))),
            Just(format!("{}\n", json!({"type": "ADDED", "object": table("a", "6")}))),
            Just("odd\n".to_owned()),
        ];
        prop_oneof![
            (tickets.clone(), prop_oneof![Just(200_u16), Just(410), Just(403), Just(500)]).prop_map(
                |(ticket, code)| {
                    let status = StatusCode::from_u16(code).unwrap();
                    Move::Input(TableInput::Http(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() }))
                }
            ),
            (tickets.clone(), texts).prop_map(|(ticket, text)| {
                Move::Input(TableInput::Http(HttpEvent::Received { ticket, bytes: text.into() }))
            }),
            tickets.prop_map(|ticket| Move::Input(TableInput::Http(HttpEvent::Closed { ticket, result: Ok(()) }))),
            (0..120_000_u64).prop_map(|millis| Move::Wait(Duration::from_millis(millis))),
        ]
    }

    proptest! {
        #[test]
        fn the_laws_hold(script in vec(inputs(), 0..30)) {
            laws::same_inputs_same_outputs(watch, &script);
            let stale = [TableInput::Http(HttpEvent::Closed { ticket: Tickets::new(8).issue(), result: Ok(()) })];
            laws::stale_inputs_change_nothing(watch, &script, &stale);
        }
    }
}
