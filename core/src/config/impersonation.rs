//! Acting as somebody else.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// The user that requests are made in the name of; nobody by default.
///
/// See <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation>.
///
/// ```
/// use cloudcoil_core::config::Impersonation;
///
/// let mut admin = Impersonation::user("admin");
/// admin.groups = vec!["system:masters".to_owned()];
/// let headers = admin.headers().unwrap();
/// assert_eq!(headers[1], ("impersonate-group".parse().unwrap(), "system:masters".parse().unwrap()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Impersonation {
    /// The user's name. Without it the other fields must be empty.
    pub user: Option<String>,
    /// The user's id.
    pub uid: Option<String>,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// More that is said about the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// The user of that name.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: Some(name.into()), ..Self::default() }
    }

    /// Whether requests are made in one's own name.
    pub fn is_empty(&self) -> bool {
        self.user.is_none() && self.uid.is_none() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// The headers that say it, in a fixed order; those of groups and extras are there once for each value.
    ///
    /// `None` if a value cannot stand in a header, or something is said about a user who is not named.
    pub fn headers(&self) -> Option<Vec<(HeaderName, HeaderValue)>> {
        if self.is_empty() {
            return Some(Vec::new());
        }
        let value = |text: &String| HeaderValue::from_bytes(text.as_bytes()).ok();
        let mut headers = vec![(USER, value(self.user.as_ref()?)?)];
        for group in &self.groups {
            headers.push((GROUP, value(group)?));
        }
        if let Some(uid) = &self.uid {
            headers.push((UID, value(uid)?));
        }
        for (key, values) in &self.extra {
            let name = format!("impersonate-extra-{}", utf8_percent_encode(&key.to_lowercase(), NO_TOKEN));
            let name: HeaderName = name.parse().ok()?;
            for text in values {
                headers.push((name.clone(), value(text)?));
            }
        }
        Some(headers)
    }
}

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");

/// What cannot stand in the name of a header (RFC 9110, section 5.6.2), and `%`, which starts an escape.
const NO_TOKEN: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'%')
    .add(b'(')
    .add(b')')
    .add(b',')
    .add(b'/')
    .add(b':')
    .add(b';')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'?')
    .add(b'@')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'{')
    .add(b'}');

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(impersonation: &Impersonation) -> Option<Vec<String>> {
        let line =
            |(name, value): (HeaderName, HeaderValue)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()));
        Some(impersonation.headers()?.into_iter().map(line).collect())
    }

    #[test]
    fn each_value_is_a_header_and_keys_are_escaped() {
        let mut someone = Impersonation::user("jane");
        someone.uid = Some("42".into());
        someone.groups = vec!["a".into(), "b".into()];
        someone.extra.insert("example.org/Scope%".into(), vec!["one".into(), "zwei ä".into()]);
        let expected = [
            "impersonate-user: jane",
            "impersonate-group: a",
            "impersonate-group: b",
            "impersonate-uid: 42",
            "impersonate-extra-example.org%2fscope%25: one",
            "impersonate-extra-example.org%2fscope%25: zwei ä",
        ];
        assert_eq!(lines(&someone).unwrap(), expected);
        assert_eq!(lines(&Impersonation::default()), Some(Vec::new()));
    }

    #[test]
    fn what_cannot_be_sent_has_no_headers() {
        assert_eq!(lines(&Impersonation::user("a\nb")), None);
        assert_eq!(lines(&Impersonation { groups: vec!["a".into()], ..Impersonation::default() }), None);
    }
}
