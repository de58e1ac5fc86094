//! A scripted server in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};

use cloudcoil_apiserver::ServerInput;
use cloudcoil_runtime::core::{
    Deadline, HttpEvent, HttpRequest, Machine, NetworkError, NetworkErrorKind, Now, Outbox, Ticket, Time,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Answer, Framing, Script, Seen, Then, Told};

pub(super) struct Scripted {
    script: Script,
    tell: Sender<Told>,
    open: BTreeMap<Ticket, usize>,
    exchanges: usize,
    /// What is still to be said.
    later: BTreeMap<(Time, usize), HttpEvent>,
    said: usize,
}

impl Scripted {
    pub(super) fn new(script: Script) -> (Self, Receiver<Told>) {
        let (tell, told) = channel();
        let (open, later) = (BTreeMap::new(), BTreeMap::new());
        (Self { script, tell, open, exchanges: 0, later, said: 0 }, told)
    }

    fn tell(&self, told: Told) {
        // The test may have seen enough.
        let _ = self.tell.send(told);
    }

    fn answer(&mut self, now: Now, ticket: Ticket, request: &HttpRequest) {
        let connection = self.exchanges;
        self.exchanges += 1;
        self.open.insert(ticket, connection);
        let seen = seen(connection, request);
        let answer = (self.script)(&seen);
        self.tell(Told::Requested(seen));
        self.say(now, ticket, answer);
    }

    fn say(&mut self, now: Now, ticket: Ticket, answer: Answer) {
        let ends = answer.is_whole();
        let Answer { status, headers, framing, pieces, pause, then, .. } = answer;
        let mut at = now.mono;
        if framing != Framing::Raw {
            let status = StatusCode::from_u16(status).expect("scripts have codes that there are");
            self.at(at, HttpEvent::Responded { ticket, status, headers: map(headers) });
        }
        for bytes in pieces.into_iter().filter(|bytes| !bytes.is_empty()) {
            at = at + pause;
            self.at(at, HttpEvent::Received { ticket, bytes });
        }
        let lost = |message| Err(NetworkError::new(NetworkErrorKind::Lost, message));
        let result = match then {
            _ if ends => Ok(()),
            Then::Silence => return,
            Then::Refuse => Err(NetworkError::new(NetworkErrorKind::Unprocessed, "it is refused")),
            Then::Reset => lost("connection reset by peer"),
            Then::Close | Then::Finish | Then::End => lost("the connection was closed before the end of the answer"),
        };
        self.at(at, HttpEvent::Closed { ticket, result });
    }

    fn at(&mut self, at: Time, event: HttpEvent) {
        self.said += 1;
        self.later.insert((at, self.said), event);
    }

    fn say_what_is_due(&mut self, now: Now, out: &mut Outbox<HttpEvent>) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= now.mono) {
            let event = entry.remove();
            if matches!(event, HttpEvent::Closed { .. }) {
                self.open.remove(&event.ticket());
            }
            out.push(event);
        }
    }
}

impl Machine for Scripted {
    type Input = ServerInput;
    type Output = HttpEvent;

    fn on_input(&mut self, now: Now, input: ServerInput, out: &mut Outbox<HttpEvent>) {
        match input {
            ServerInput::Requested { ticket, request } => self.answer(now, ticket, &request),
            ServerInput::Cancelled { ticket } => {
                self.later.retain(|_, event| event.ticket() != ticket);
                if let Some(connection) = self.open.remove(&ticket) {
                    self.tell(Told::Left(connection));
                }
            }
        }
        self.say_what_is_due(now, out);
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<HttpEvent>) {
        self.say_what_is_due(now, out);
    }

    fn deadline(&self) -> Option<Deadline> {
        self.later.keys().next().map(|(at, _)| Deadline::new(*at, "the next piece"))
    }
}

fn seen(connection: usize, request: &HttpRequest) -> Seen {
    let request = request.inner();
    let value = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let names: BTreeSet<_> = request.headers().keys().map(HeaderName::as_str).collect();
    let header = |name: &str| {
        let values = request.headers().get_all(name).iter();
        values.map(|text| (name.to_owned(), value(text))).collect::<Vec<_>>()
    };
    Seen {
        connection,
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        headers: names.into_iter().flat_map(header).collect(),
        body: request.body().clone(),
    }
}

fn map(headers: Vec<(String, String)>) -> HeaderMap {
    let header = |(name, value): (String, String)| {
        let name: HeaderName = name.parse().expect("scripts have headers that there are");
        (name, HeaderValue::from_str(&value).expect("scripts have headers that can be sent"))
    };
    headers.into_iter().map(header).collect()
}
