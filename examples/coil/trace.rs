//! `-v`: one line for each request, and for each time that something is tried again.

use std::fmt::{Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::fault::one_line;
use crate::out::note;

/// From now on, what the library does is told on standard error.
pub(crate) fn start() {
    // Nobody else can have set one: this is the only call, and the first thing that the process does.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(Told));
}

struct Told;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Told {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("cloudcoil") && *metadata.level() <= tracing::Level::DEBUG
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            record.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let request = context.event_span(event).filter(|span| span.name() == "request");
        let extensions = request.as_ref().map(|span| span.extensions());
        let request = extensions.as_ref().and_then(|extensions| extensions.get::<Fields>());
        note(&one_line(&line(request, &fields)));
    }
}

/// What an event says, in the request it belongs to.
fn line(request: Option<&Fields>, event: &Fields) -> String {
    let mut line = String::new();
    if let Some(request) = request {
        for name in ["method", "url", "path", "code"] {
            if let Some(value) = request.value(name) {
                line.push_str(value);
                line.push(' ');
            }
        }
    }
    let message = event.value("message").unwrap_or_default();
    let message = if request.is_some() && message == "answered" { "" } else { message };
    line.push_str(message);
    for (name, value) in event.0.iter().filter(|(name, _)| *name != "message") {
        let separator = if line.is_empty() || line.ends_with(' ') { "" } else { " " };
        let _ = match (request.is_some(), *name) {
            (true, "elapsed") => write!(line, "{separator}in {value}"),
            _ => write!(line, "{separator}{name}={value}"),
        };
    }
    line.trim_end().to_owned()
}

#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    fn set(&mut self, field: &Field, value: String) {
        match self.0.iter_mut().find(|(known, _)| *known == field.name()) {
            Some((_, known)) => *known = value,
            None => self.0.push((field.name(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_one_line() {
        let fields = |pairs: &[(&'static str, &str)]| {
            Fields(pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
        };
        let request = fields(&[("method", "GET"), ("path", "/version"), ("code", "200")]);
        let answered = fields(&[("message", "answered"), ("elapsed", "3ms")]);
        assert_eq!(line(Some(&request), &answered), "GET /version 200 in 3ms");
        let failed = fields(&[("message", "failed"), ("error", "connection lost")]);
        assert_eq!(line(Some(&request), &failed), "GET /version 200 failed error=connection lost");
    }
}
