//! Resource versions and continue tokens: from when a list is, and where a page begins.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::errors::{Fault, Outcome, Refusal, bad_request, expired, invalid, quote, unexplained};
use super::route::Query;

/// From when a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The newest there is.
    Newest,
    /// Whatever the cache has.
    Cached,
    /// The cache once it has got that far.
    NotOlderThan(u64),
    /// Exactly then.
    Exactly(u64),
}

/// Which part of a list is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) from: From,
    /// The most objects; `None` for all.
    pub(crate) limit: Option<usize>,
    /// The key to begin at, without the prefix of the list.
    pub(crate) start: Option<String>,
}

impl Page {
    /// Reads the parameters of a list.
    pub(crate) fn of(query: &Query) -> Outcome<Self> {
        let limit = query.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        query.number("timeoutSeconds")?;
        check_list(query)?;
        let version = query.text("resourceVersion");
        if !query.text("continue").is_empty() {
            let (start, revision) = decode(query.text("continue"))
                .map_err(|fault| bad_request(format!("invalid continue token: {fault}")))?;
            if !matches!(version, "" | "0") {
                return Err(bad_request("specifying resource version is not allowed when using continue"));
            }
            let from = u64::try_from(revision).map_or(From::Newest, From::Exactly);
            return Ok(Self { from, limit, start: Some(start) });
        }
        let parsed =
            parse_version(version).map_err(|fault| bad_request(format!("invalid resource version: {fault}")))?;
        let from = match (parsed, query.text("resourceVersionMatch")) {
            (None, _) => From::Newest,
            (Some(version), "Exact") => From::Exactly(version),
            (Some(0), _) => From::Cached,
            (Some(version), "") if limit.is_some() => From::Exactly(version),
            (Some(version), _) => From::NotOlderThan(version),
        };
        // A list from the cache comes whole, as it does from the cache of the API server.
        let limit = limit.filter(|_| from != From::Cached);
        Ok(Self { from, limit, start: None })
    }
}

/// The resource version of a read of one object, or of a watch.
pub(crate) fn version(query: &Query) -> Outcome<Option<u64>> {
    parse_version(query.text("resourceVersion")).map_err(|fault| unexplained(500, fault))
}

fn parse_version(text: &str) -> Result<Option<u64>, String> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            let quoted = quote(text);
            format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax")
        }),
    }
}

fn check_list(query: &Query) -> Outcome<()> {
    let field = "resourceVersionMatch";
    let mut faults = Vec::new();
    let wanted = query.text(field);
    if !wanted.is_empty() {
        if query.text("resourceVersion").is_empty() {
            faults
                .push(Fault::forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !query.text("continue").is_empty() {
            faults.push(Fault::forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(wanted, "Exact" | "NotOlderThan") {
            faults.push(Fault::not_supported(field, wanted, &["Exact", "NotOlderThan", ""]));
        }
        if wanted == "Exact" && query.text("resourceVersion") == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            faults.push(Fault::forbidden(field, detail));
        }
    }
    if query.has("sendInitialEvents") {
        faults.push(Fault::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    refuse_options("ListOptions", &faults)
}

/// Checks the parameters of a watch.
pub(crate) fn check_watch(query: &Query) -> Outcome<()> {
    let field = "resourceVersionMatch";
    let mut faults = Vec::new();
    let wanted = query.text(field);
    let initial = query.has("sendInitialEvents");
    if initial && wanted != "NotOlderThan" {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        faults.push(Fault::forbidden(field, detail));
    }
    if !wanted.is_empty() {
        if !initial {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            faults.push(Fault::forbidden(field, detail));
        }
        if wanted != "NotOlderThan" {
            faults.push(Fault::not_supported(field, wanted, &["NotOlderThan"]));
        }
        if !query.text("continue").is_empty() {
            faults.push(Fault::forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    refuse_options("ListOptions", &faults)
}

/// Checks what every write may say.
pub(crate) fn check_write(query: &Query, options: &str) -> Outcome<()> {
    let mut faults = Vec::new();
    let dry_run: Vec<_> = query.all("dryRun").collect();
    if dry_run.iter().any(|value| *value != "All") {
        let value = dry_run.iter().map(|value| Value::from(*value)).collect::<Value>();
        faults.push(Fault::not_supported("dryRun", value, &["All"]));
    }
    let validation = query.text("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Warn" | "Strict") {
        faults.push(Fault::not_supported("fieldValidation", validation, &["", "Ignore", "Strict", "Warn"]));
    }
    if query.text("fieldManager").len() > 128 {
        faults.push(Fault::too_long("fieldManager", 128));
    }
    refuse_options(options, &faults)
}

/// Refuses a request whose options break rules.
pub(crate) fn refuse_options(options: &str, faults: &[Fault]) -> Outcome<()> {
    if faults.is_empty() { Ok(()) } else { Err(invalid("meta.k8s.io", options, "", faults)) }
}

#[derive(Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

/// A token for the page that begins behind `last`, a key without the prefix of the list.
pub(crate) fn encode(last: &str, revision: u64) -> String {
    token(format!("{last}\0"), i64::try_from(revision).unwrap_or(i64::MAX))
}

fn token(start: String, rv: i64) -> String {
    let token = Token { v: "meta.k8s.io/v1".to_owned(), rv, start };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).expect("a token is plain text and a number"))
}

fn decode(text: &str) -> Result<(String, i64), String> {
    const INVALID: &str = "continue key is not valid";
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| format!("{INVALID}: {error}"))?;
    let token: Token = serde_json::from_slice(&bytes).map_err(|error| format!("{INVALID}: {error}"))?;
    if token.v != "meta.k8s.io/v1" {
        return Err(format!("{INVALID}: server does not recognize this encoded version {}", token.v));
    }
    if token.rv == 0 {
        return Err(format!("{INVALID}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
    }
    if token.start.is_empty() {
        return Err(format!("{INVALID}: encoded start key empty (version meta.k8s.io/v1)"));
    }
    Ok((token.start, token.rv))
}

/// A list from a revision that is not remembered any more; a page of it can go on from the newest state.
pub(crate) fn compacted(page: &Page) -> Refusal {
    const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent list result. You \
        can start a new list without the continue parameter, or use the continue token in this response to retrieve \
        the remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
        that were created, modified, or deleted between the time the first chunk was returned and now may show up in \
        the list.";
    let Some(start) = &page.start else {
        return expired("The resourceVersion for the provided list is too old.");
    };
    let mut refusal = expired(INCONSISTENT);
    refusal.metadata.continue_token = token(start.clone(), -1);
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<Page, u16> {
        Page::of(&Query::parse(query)).map_err(|refusal| refusal.code)
    }

    fn from(query: &str) -> Result<From, u16> {
        page(query).map(|page| page.from)
    }

    #[test]
    fn versions_and_matches_mean_what_the_api_concepts_say() {
        for (query, expected) in [
            ("", Ok(From::Newest)),
            ("limit=2", Ok(From::Newest)),
            ("resourceVersion=0", Ok(From::Cached)),
            ("resourceVersion=7", Ok(From::NotOlderThan(7))),
            ("resourceVersion=7&limit=2", Ok(From::Exactly(7))),
            ("resourceVersion=7&resourceVersionMatch=Exact", Ok(From::Exactly(7))),
            ("resourceVersion=7&limit=2&resourceVersionMatch=NotOlderThan", Ok(From::NotOlderThan(7))),
            ("resourceVersion=0&resourceVersionMatch=NotOlderThan", Ok(From::Cached)),
            ("resourceVersion=0&resourceVersionMatch=Exact", Err(422)),
            ("resourceVersionMatch=Exact", Err(422)),
            ("resourceVersion=1&resourceVersionMatch=exact", Err(422)),
            ("sendInitialEvents=true", Err(422)),
            ("resourceVersion=x", Err(400)),
            ("resourceVersion=-1", Err(400)),
            ("limit=x", Err(400)),
            ("continue=x", Err(400)),
        ] {
            assert_eq!(from(query), expected, "{query}");
        }
    }

    #[test]
    fn a_token_says_where_and_when_the_list_goes_on() {
        let token = encode("ns/a", 12);
        let next = page(&format!("limit=1&continue={token}")).unwrap();
        assert_eq!((next.from, next.start.as_deref()), (From::Exactly(12), Some("ns/a\0")));
        assert_eq!(page(&format!("continue={token}&resourceVersion=3")), Err(400));
        assert!(page(&format!("continue={token}&resourceVersion=0")).is_ok());
        let refusal = compacted(&next);
        let again = page(&format!("continue={}", refusal.metadata.continue_token)).unwrap();
        assert_eq!((refusal.code, again.from, again.start.as_deref()), (410, From::Newest, Some("ns/a\0")));
        assert!(compacted(&Page { start: None, ..next }).metadata.continue_token.is_empty());
    }

    #[test]
    fn a_list_from_the_cache_comes_whole() {
        assert_eq!(page("resourceVersion=0&limit=1").unwrap().limit, None);
        assert_eq!(page("limit=-1").unwrap().limit, None);
        assert_eq!(page("limit=3").unwrap().limit, Some(3));
    }

    #[test]
    fn watches_have_rules_of_their_own() {
        let code = |query: &str| check_watch(&Query::parse(query)).map_err(|refusal| refusal.code);
        assert_eq!(code("resourceVersionMatch=NotOlderThan&sendInitialEvents=true"), Ok(()));
        assert_eq!(code("sendInitialEvents=true"), Err(422));
        assert_eq!(code("resourceVersionMatch=NotOlderThan"), Err(422));
        assert_eq!(code("resourceVersionMatch=Exact&sendInitialEvents=true"), Err(422));
    }
}
