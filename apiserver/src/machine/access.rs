//! Who may come in, as whom, and what they may do.

use std::collections::BTreeMap;
use std::fmt;

use cloudcoil_core::{Now, UnixTime};
use http::{HeaderMap, Method, header};
use percent_encoding::percent_decode_str;

use super::cluster::Cluster;
use super::config::ServerConfig;
use super::errors::{Outcome, Refusal, bad_request, forbidden_path, forbidden_verb, quote, unauthorized};
use super::route::{Query, Route, Target};
use super::store::{Key, Place};
use super::user::{
    ANONYMOUS, AUTHENTICATED, Anonymous, MASTERS, Peer, UNAUTHENTICATED, User, service_account, service_account_groups,
};

/// The credentials that the server knows.
pub(crate) struct Access {
    tokens: BTreeMap<String, User>,
    issued: BTreeMap<String, Issued>,
    anonymous: Anonymous,
}

/// What a token of a service account stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Issued {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
    pub(crate) expires: UnixTime,
    /// The objects without which the token is worth nothing: the account, and what the token is bound to.
    pub(crate) needs: Vec<(Place, Key, String)>,
}

impl Access {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut tokens = config.users.clone();
        if let Some(token) = &config.token {
            tokens.insert(token.clone(), User::admin());
        }
        let unless_said = if tokens.is_empty() { Anonymous::Admin } else { Anonymous::Refused };
        Self { anonymous: config.anonymous.unwrap_or(unless_said), tokens, issued: BTreeMap::new() }
    }

    pub(crate) fn insert(&mut self, token: String, user: User) {
        self.tokens.insert(token, user);
    }

    pub(crate) fn remove(&mut self, token: &str) -> bool {
        let table = self.tokens.remove(token).is_some();
        self.issued.remove(token).is_some() || table
    }

    /// Remembers a token of a service account, and forgets those that have expired.
    pub(crate) fn issue(&mut self, now: Now, token: String, issued: Issued) {
        self.issued.retain(|_, issued| issued.expires > now.wall);
        self.issued.insert(token, issued);
    }
}

/// Without the tokens.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("users", &self.tokens.values().map(|user| &user.name).collect::<Vec<_>>())
            .field("issued", &self.issued.len())
            .field("anonymous", &self.anonymous)
            .finish()
    }
}

impl Cluster {
    /// Who sends a request: the certificate decides, then the token.
    pub(crate) fn authenticate(&self, now: Now, headers: &HeaderMap, peer: Option<&Peer>) -> Outcome<User> {
        if let Some(Peer::Certified(user)) = peer {
            return Ok(user.clone().authenticated());
        }
        let token = bearer(headers);
        if let Some((user, _)) = token.and_then(|token| self.identify(now, token)) {
            return Ok(user);
        }
        match self.access.anonymous {
            _ if token.is_some() || peer.is_some() => Err(unauthorized()),
            Anonymous::Admin => Ok(User::admin().authenticated()),
            Anonymous::Allowed => Ok(User::anonymous()),
            Anonymous::Refused => Err(unauthorized()),
        }
    }

    /// Whom a token stands for, and where it is good.
    pub(crate) fn identify(&self, now: Now, token: &str) -> Option<(User, Vec<String>)> {
        if let Some(user) = self.access.tokens.get(token) {
            return Some((user.clone().authenticated(), vec![ISSUER.to_owned()]));
        }
        let issued = self.access.issued.get(token)?;
        let is_there = |(place, key, uid): &(Place, Key, String)| {
            self.store.get(place, key).is_some_and(|object| object.uid() == uid)
        };
        let good = issued.expires > now.wall && issued.needs.iter().all(is_there);
        good.then(|| (issued.user.clone().authenticated(), issued.audiences.clone()))
    }
}

/// The token of a request. What else is in `Authorization` is nobody's credentials.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let mut parts = value.trim().split(' ');
    let scheme = parts.next()?;
    parts.next().filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

/// What a client is told of how it shows its token.
pub(crate) fn remark(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let mut parts = value.trim().split(' ');
    let spaced = parts.next()?.eq_ignore_ascii_case("bearer") && parts.next()?.is_empty();
    let words = "the provided Authorization header contains extra space before the bearer token, and is ignored";
    spaced.then(|| words.to_owned())
}

/// The user that a request wants to be taken for; `None` for itself.
pub(crate) fn impersonated(headers: &HeaderMap) -> Outcome<Option<User>> {
    let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let mut user = User { name: text("impersonate-user").unwrap_or_default(), ..User::default() };
    user.uid = text("impersonate-uid").unwrap_or_default();
    let groups = headers.get_all("impersonate-group").into_iter();
    user.groups = groups.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            // A key that is badly escaped is taken as it is.
            let key = match is_escaped(key).then(|| percent_decode_str(key).decode_utf8_lossy()) {
                Some(decoded) => decoded.into_owned(),
                None => key.to_owned(),
            };
            user.extra.entry(key).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == User::default() { Ok(None) } else { Err(bad_request(nameless(&user))) }
}

fn is_escaped(key: &str) -> bool {
    let hex = |part: &str| part.len() >= 2 && part.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    key.split('%').skip(1).all(hex)
}

/// As Go shows what was asked for.
fn nameless(user: &User) -> String {
    let texts = |texts: &[String]| {
        let quoted: Vec<_> = texts.iter().map(|text| quote(text)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { texts(&user.groups) };
    let extra: Vec<_> = user.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), texts(values))).collect();
    let extra = if extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        format!("map[string][]string{{{}}}", extra.join(", "))
    };
    format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}} without impersonating a user name",
        quote(&user.uid)
    )
}

/// The user that a request is taken for once it may be.
pub(crate) fn assume(mut wanted: User) -> User {
    let groups_given = !wanted.groups.is_empty();
    if let Some((namespace, _)) = service_account(&wanted.name).filter(|_| !groups_given) {
        wanted.groups = service_account_groups(namespace);
    }
    let only_named = !groups_given && wanted.uid.is_empty() && wanted.extra.is_empty();
    if only_named && is_node(&wanted.name) {
        wanted.groups = vec!["system:nodes".to_owned()];
    }
    if wanted.name == ANONYMOUS {
        if !wanted.is_in(UNAUTHENTICATED) {
            wanted.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !wanted.is_in(UNAUTHENTICATED) {
        wanted = wanted.authenticated();
    }
    wanted
}

fn is_node(name: &str) -> bool {
    name.strip_prefix("system:node:").is_some_and(|node| !node.is_empty())
}

/// Refuses to take a request of `user` for one of `wanted`, unless it comes from an administrator.
pub(crate) fn check_impersonation(user: &User, wanted: &User, attributes: &Attributes<'_>) -> Outcome<()> {
    if user.is_in(MASTERS) {
        return Ok(());
    }
    let only_named = wanted.groups.is_empty() && wanted.uid.is_empty() && wanted.extra.is_empty();
    let mode = match service_account(&wanted.name) {
        _ if is_node(&wanted.name) && only_named => "arbitrary-node",
        _ if is_node(&wanted.name) => return Err(refuse_identity(user, "users", None, &wanted.name)),
        Some(_) if only_named => "serviceaccount",
        Some((namespace, name)) => return Err(refuse_identity(user, "serviceaccounts", Some(namespace), name)),
        None => "user-info",
    };
    Err(attributes.refuse(user, &format!("impersonate-on:{mode}:{}", attributes.verb)))
}

/// Nodes and service accounts are impersonated in ways of their own, or in the old way, which asks for the identity.
fn refuse_identity(user: &User, plural: &str, namespace: Option<&str>, name: &str) -> Refusal {
    let namespace = namespace.map(str::to_owned);
    let target = Target { plural: plural.to_owned(), namespace, name: Some(name.to_owned()), ..Target::default() };
    forbidden_verb(&target, &user.name, "impersonate")
}

/// What a request wants to do, as access rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    verb: &'static str,
    route: &'a Route,
    path: &'a str,
}

impl<'a> Attributes<'a> {
    pub(crate) fn of(method: &Method, route: &'a Route, path: &'a str, query: &Query) -> Self {
        let verb = match route {
            Route::Other(_) => path_verb(method),
            Route::Resource(target) => resource_verb(method, target, query),
        };
        Self { verb, route, path }
    }

    /// Refuses what the user may not do.
    pub(crate) fn authorize(&self, user: &User) -> Outcome<()> {
        if user.is_in(MASTERS) || user.is_in(AUTHENTICATED) || self.is_open() {
            return Ok(());
        }
        Err(self.refuse(user, self.verb))
    }

    /// Whether anybody may ask: after the server's health and version.
    pub(crate) fn is_open(&self) -> bool {
        let Route::Other(path) = self.route else { return false };
        let first = path.first().map(String::as_str);
        self.verb == "get" && matches!(first, Some("healthz" | "livez" | "readyz" | "version"))
    }

    fn refuse(&self, user: &User, verb: &str) -> Refusal {
        match self.route {
            Route::Other(_) => {
                forbidden_path(&format!("User {} cannot {verb} path {}", quote(&user.name), quote(self.path)))
            }
            Route::Resource(target) => forbidden_verb(target, &user.name, verb),
        }
    }
}

fn path_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}

fn resource_verb(method: &Method, target: &Target, query: &Query) -> &'static str {
    let whole = target.name.is_none();
    match *method {
        Method::GET | Method::HEAD if target.watch => "watch",
        Method::GET | Method::HEAD if whole && query.flag("watch") => "watch",
        Method::GET | Method::HEAD if whole => "list",
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if whole => "deletecollection",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// Who signs tokens, and for whom they are good unless said otherwise.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_token_is_the_second_word() {
        for (value, token) in [
            ("Bearer a", Some("a")),
            ("bearer a b", Some("a")),
            ("Bearer  a", None),
            ("Bearer", None),
            ("Basic YTpi", None),
            ("", None),
        ] {
            assert_eq!(bearer(&headers(&[("authorization", value)])), token, "{value:?}");
        }
    }

    #[test]
    fn extra_keys_are_unescaped_where_they_can_be() {
        let asked = headers(&[
            ("impersonate-user", "jane"),
            ("impersonate-extra-acme.com%2fproject", "a%20b"),
            ("impersonate-extra-odd%zz", "1"),
            ("impersonate-extra-odd%zz", "2"),
        ]);
        let user = impersonated(&asked).unwrap().unwrap();
        let values = |key: &str| user.extra[key].clone();
        assert_eq!(
            (values("acme.com/project"), values("odd%zz")),
            (vec!["a%20b".into()], vec!["1".into(), "2".into()])
        );
    }

    #[test]
    fn nobody_is_impersonated_without_a_name() {
        assert_eq!(impersonated(&HeaderMap::new()), Ok(None));
        for (name, shown) in [
            ("impersonate-group", "Groups:[]string{\"x\"}, Extra:map[string][]string(nil)"),
            ("impersonate-uid", "UID:\"x\", Groups:[]string(nil)"),
            ("impersonate-extra-k", "Extra:map[string][]string{\"k\":[]string{\"x\"}}"),
        ] {
            let refused = impersonated(&headers(&[(name, "x")])).unwrap_err();
            assert!(refused.code == 400 && refused.message.contains(shown), "{}", refused.message);
        }
    }

    #[test]
    fn who_is_impersonated_gets_the_groups_of_its_kind() {
        let groups =
            |name: &str, groups: &[&'static str]| assume(User::new(name, groups.iter().copied())).groups.join(" ");
        assert_eq!(groups("jane", &[]), "system:authenticated");
        assert_eq!(groups("jane", &["a"]), "a system:authenticated");
        assert_eq!(groups("jane", &["system:unauthenticated"]), "system:unauthenticated");
        assert_eq!(groups(ANONYMOUS, &[]), "system:unauthenticated");
        assert_eq!(groups("system:node:a", &[]), "system:nodes system:authenticated");
        let account = "system:serviceaccount:a:b";
        assert_eq!(groups(account, &[]), "system:serviceaccounts system:serviceaccounts:a system:authenticated");
        assert_eq!(groups(account, &["x"]), "x system:authenticated");
    }
}
