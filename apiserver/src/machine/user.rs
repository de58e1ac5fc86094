//! Who a request comes from.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A user as the server knows one:
/// <https://kubernetes.io/docs/reference/access-authn-authz/authentication/>.
///
/// Members of `system:masters` may do everything; everybody else who is known may do everything but impersonate.
///
/// ```
/// use cloudcoil_apiserver::User;
///
/// let user = User::new("jane", ["developers"]);
/// assert_eq!((user.name.as_str(), user.groups.len()), ("jane", 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct User {
    /// The name, such as `jane` or `system:serviceaccount:default:robot`.
    pub name: String,
    /// What tells users of one name apart; may be empty.
    pub uid: String,
    /// The groups without `system:authenticated`, which the server adds.
    pub groups: Vec<String>,
    /// What else is known of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What the connection of a request says of who sends it: the driver puts it into the
/// [extensions](http::Extensions) of the request.
///
/// As at a real API server, a certificate that nobody trusts refuses only requests without a good token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a certificate is good or it is not")]
pub enum Peer {
    /// The client has shown a certificate of this user.
    Certified(User),
    /// The client has shown a certificate that is not to be trusted.
    Untrusted,
}

/// What becomes of requests that bring no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing between all, some and nothing")]
pub enum Anonymous {
    /// They may do everything, as user `admin` in `system:masters`.
    Admin,
    /// They come from `system:anonymous`, who may ask for the server's health and version.
    Allowed,
    /// They are refused, but for those after the server's health and version.
    Refused,
}

impl User {
    /// A user by name and groups.
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        let groups = groups.into_iter().map(str::to_owned).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// The user who may do everything.
    pub(crate) fn admin() -> Self {
        Self { uid: "admin".to_owned(), ..Self::new("admin", [MASTERS]) }
    }

    pub(crate) fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// The same user, known to be who it says.
    pub(crate) fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// As reviews say it: what is empty is left out.
    pub(crate) fn render(&self) -> Value {
        let mut info = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(field.to_owned(), Value::from(text.as_str()));
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}

/// The namespace and name in the user name of a service account.
pub(crate) fn service_account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let plain = |text: &str| !text.is_empty() && !text.contains(':');
    (plain(namespace) && plain(name)).then_some((namespace, name))
}

/// The groups that every service account of a namespace is in.
pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Members may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// Everybody who has shown credentials.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// Everybody who has not.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Who has shown none.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
