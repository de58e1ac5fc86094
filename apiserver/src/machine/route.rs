//! From the path and query of a request to what it is about.

use percent_encoding::percent_decode_str;

use super::errors::{Outcome, bad_request};

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Something other than resources: discovery, health, the version.
    Other(Vec<String>),
    /// Resources of one type, or one of them.
    Resource(Target),
}

/// Resources of one type, or one of them, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// Whether the path itself asks to watch, as it did long ago: `/api/v1/watch/pods`.
    pub(crate) watch: bool,
}

/// What `path` names; `None` when nothing can be there.
pub(crate) fn route(path: &str) -> Option<Route> {
    let segments: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(|segment| percent_decode_str(segment).decode_utf8().ok().map(|text| text.into_owned()))
        .collect::<Option<_>>()?;
    let (group, rest) = match segments.first().map(String::as_str) {
        Some("api") if segments.len() > 2 => (String::new(), &segments[1..]),
        Some("apis") if segments.len() > 3 => (segments[1].clone(), &segments[2..]),
        _ => return Some(Route::Other(segments)),
    };
    target(group, rest).map(Route::Resource)
}

fn target(group: String, segments: &[String]) -> Option<Target> {
    let (version, mut rest) = segments.split_first()?;
    let mut target = Target { group, version: version.clone(), ..Target::default() };
    if rest.first().is_some_and(|first| first == "watch") && rest.len() > 1 {
        target.watch = true;
        rest = &rest[1..];
    }
    if let [first, namespace, deeper @ ..] = rest
        && first == "namespaces"
    {
        let of_namespace = deeper.first().is_none_or(|first| matches!(first.as_str(), "status" | "finalize"));
        if !of_namespace {
            target.namespace = Some(namespace.clone());
            rest = deeper;
        }
    }
    let mut rest = rest.iter().cloned();
    target.plural = rest.next()?;
    target.name = rest.next();
    let subresource: Vec<_> = rest.collect();
    target.subresource = (!subresource.is_empty()).then(|| subresource.join("/"));
    let named = [&target.namespace, &target.name, &target.subresource];
    let empty = target.plural.is_empty() || named.into_iter().flatten().any(String::is_empty);
    if empty { None } else { Some(target) }
}

/// The query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query; what is no UTF-8 in it is replaced.
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect(),
        )
    }

    /// The first value of a parameter; empty when it is not there.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Whether a parameter is there and does not say no.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.text(name).to_ascii_lowercase().as_str(), "false" | "0")
    }

    /// A parameter that must be a whole number if it is there.
    pub(crate) fn number(&self, name: &str) -> Outcome<Option<i64>> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", super::errors::quote(text)))
            }),
        }
    }

    /// Whether nothing is to be stored.
    pub(crate) fn dry_run(&self) -> bool {
        self.all("dryRun").any(|value| value == "All")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> Target {
        match route(path) {
            Some(Route::Resource(target)) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        let pods = resource("/api/v1/namespaces/a/pods/p/log");
        assert_eq!((pods.group.as_str(), pods.version.as_str(), pods.plural.as_str()), ("", "v1", "pods"));
        assert_eq!((pods.namespace.as_deref(), pods.name.as_deref()), (Some("a"), Some("p")));
        assert_eq!(pods.subresource.as_deref(), Some("log"));
        let all = resource("/apis/apps/v1/deployments");
        assert_eq!((all.group.as_str(), all.namespace, all.name), ("apps", None, None));
        let deep = resource("/api/v1/namespaces/a/services/s/proxy/x/y");
        assert_eq!(deep.subresource.as_deref(), Some("proxy/x/y"));
        assert!(resource("/api/v1/watch/namespaces/a/pods").watch);
    }

    #[test]
    fn a_namespace_is_an_object_itself() {
        for (path, subresource) in [
            ("/api/v1/namespaces/a", None),
            ("/api/v1/namespaces/a/status", Some("status")),
            ("/api/v1/namespaces/a/finalize", Some("finalize")),
        ] {
            let target = resource(path);
            assert_eq!((target.plural.as_str(), target.name.as_deref()), ("namespaces", Some("a")), "{path}");
            assert_eq!((target.namespace, target.subresource.as_deref()), (None, subresource), "{path}");
        }
    }

    #[test]
    fn odd_paths_name_nothing() {
        for path in ["/api/v1/pods//log", "/api/v1/namespaces//pods", "/api/v1/%ff"] {
            assert!(!matches!(route(path), Some(Route::Resource(Target { name: Some(_), .. }))), "{path}");
        }
        assert_eq!(route("/apis/apps/v1"), Some(Route::Other(vec!["apis".into(), "apps".into(), "v1".into()])));
    }

    #[test]
    fn a_query_is_decoded_and_its_flags_are_lenient() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&fieldSelector=x+y&watch&allowWatchBookmarks=0&limit=x");
        assert_eq!((query.text("labelSelector"), query.text("fieldSelector")), ("a=b,c", "x y"));
        assert_eq!((query.flag("watch"), query.flag("allowWatchBookmarks"), query.flag("none")), (true, false, false));
        assert!(query.number("limit").is_err() && query.number("none") == Ok(None));
    }
}
