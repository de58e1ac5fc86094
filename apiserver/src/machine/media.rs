//! Which form an answer takes, and which form a body has.

use http::{HeaderMap, header};

use super::errors::{Outcome, not_acceptable};

/// The form of an answer that carries objects. All of them are JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects themselves.
    Whole,
    /// Their metadata alone.
    Metadata,
    /// The metadata alone, of each object of a list.
    MetadataList,
    /// Rows for people.
    Table,
}

/// Which form of discovery is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// One document for each group and version.
    Separate,
    /// All in one document, of this version of its type.
    Aggregated(&'static str),
}

/// The form that `Accept` asks for first among those that can be given.
pub(crate) fn form(headers: &HeaderMap) -> Outcome<Form> {
    choose(headers, |clause| match (clause.kind, clause.group, clause.version) {
        ("", "", "") => Some(Form::Whole),
        ("Table", "meta.k8s.io", "v1" | "v1beta1") => Some(Form::Table),
        ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => Some(Form::Metadata),
        ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => Some(Form::MetadataList),
        _ => None,
    })
}

/// The form of discovery that `Accept` asks for first among those that can be given.
pub(crate) fn discovery(headers: &HeaderMap) -> Outcome<Discovery> {
    choose(headers, |clause| match (clause.kind, clause.group, clause.version) {
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Discovery::Aggregated("v2")),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => Some(Discovery::Aggregated("v2beta1")),
        ("", "", "") => Some(Discovery::Separate),
        _ => None,
    })
}

/// The media type of a body without parameters, lower case; JSON when nothing is said.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match value.split(';').next().unwrap_or_default().trim() {
        "" => "application/json".to_owned(),
        media_type => media_type.to_ascii_lowercase(),
    }
}

/// One media range of `Accept`, as far as it matters.
#[derive(Clone, Copy, Debug, Default)]
struct Clause<'a> {
    media_type: &'a str,
    kind: &'a str,
    group: &'a str,
    version: &'a str,
    quality: u32,
}

fn choose<T>(headers: &HeaderMap, can: impl Fn(Clause<'_>) -> Option<T>) -> Outcome<T> {
    let all = headers.get_all(header::ACCEPT);
    let values: Vec<_> = all.iter().filter_map(|value| value.to_str().ok()).collect();
    let joined = values.join(",");
    let mut clauses: Vec<_> = match joined.trim() {
        "" => vec![clause("*/*")],
        text => text.split(',').map(clause).collect(),
    };
    clauses.sort_by_key(|clause| std::cmp::Reverse(clause.quality));
    clauses
        .into_iter()
        .filter(|clause| matches!(clause.media_type, "application/json" | "application/*" | "*/*"))
        .find_map(can)
        .ok_or_else(not_acceptable)
}

fn clause(text: &str) -> Clause<'_> {
    let mut parts = text.split(';').map(str::trim);
    let mut clause = Clause { media_type: parts.next().unwrap_or_default(), quality: 1000, ..Clause::default() };
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => clause.kind = value,
            "g" => clause.group = value,
            "v" => clause.version = value,
            "q" => clause.quality = value.parse::<f32>().map_or(0, |quality| (quality.clamp(0.0, 1.0) * 1000.0) as u32),
            _ => {}
        }
    }
    clause
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, header::HeaderValue::from_static(value))])
    }

    #[test]
    fn the_first_form_that_can_be_given_is_taken() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (value, expected) in [
            ("", Form::Whole),
            ("*/*", Form::Whole),
            ("application/vnd.kubernetes.protobuf,application/json", Form::Whole),
            (table, Form::Table),
            ("application/json;as=Unknown;v=v1;g=x, application/json", Form::Whole),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Form::Metadata),
            ("application/json;q=0.1, application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5", Form::Table),
        ] {
            assert_eq!(form(&accept(value)), Ok(expected), "{value}");
        }
        assert_eq!(form(&accept("text/html")).map_err(|refusal| refusal.code), Err(406));
        assert_eq!(form(&accept("application/vnd.kubernetes.protobuf")).map_err(|refusal| refusal.code), Err(406));
    }

    #[test]
    fn discovery_comes_in_one_document_when_asked_for() {
        let both = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(discovery(&accept(both)), Ok(Discovery::Aggregated("v2")));
        assert_eq!(discovery(&accept("application/json")), Ok(Discovery::Separate));
    }
}
