//! Credentials that go into a header.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use super::ExecConfig;

/// Bytes that are not to be shown: no `Debug`, no `Display`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// Keeps bytes from being shown.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into().into_boxed_slice())
    }

    /// The bytes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// What a request says about who sends it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// Nothing, or a client certificate that says it.
    Anonymous,
    /// This header, made from a token or from a user name and a password.
    Header(HeaderValue),
    /// A token that a file holds, and that changes from time to time.
    TokenFile(TokenFile),
    /// What a program prints: a token, a client certificate or both.
    Exec(Box<ExecConfig>),
}

impl Auth {
    /// A bearer token; surrounding white space is cut off. `None` if it cannot stand in a header.
    pub fn bearer(token: &[u8]) -> Option<Self> {
        bearer(token).map(Self::Header)
    }

    /// A user name and a password.
    pub fn basic(username: &str, password: &str) -> Self {
        let text = STANDARD.encode(format!("{username}:{password}"));
        let mut header = HeaderValue::from_str(&format!("Basic {text}")).expect("base64 is visible ASCII");
        header.set_sensitive(true);
        Self::Header(header)
    }

    /// The `Authorization` header to send now, marked as sensitive. `None` too while a program has yet to be run for it.
    pub fn authorization(&self) -> Option<HeaderValue> {
        match self {
            Self::Anonymous | Self::Exec(_) => None,
            Self::Header(header) => Some(header.clone()),
            Self::TokenFile(file) => Some(file.header.clone()),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Header(_) => f.write_str("Header"),
            Self::TokenFile(file) => f.debug_tuple("TokenFile").field(&file.path).finish(),
            Self::Exec(exec) => f.debug_tuple("Exec").field(exec).finish(),
        }
    }
}

/// A token in a file, such as a projected service account token, which the kubelet replaces before it expires.
/// [`Credentials`](crate::credentials::Credentials) keep it current.
///
/// See <https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken>.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenFile {
    path: PathBuf,
    header: HeaderValue,
}

impl TokenFile {
    /// How long a token is used before the file is read again.
    pub const PERIOD: Duration = Duration::from_secs(60);

    /// The file at `path`, which has just been read. `None` if its content cannot stand in a header.
    pub fn new(path: PathBuf, content: &[u8]) -> Option<Self> {
        Some(Self { path, header: bearer(content)? })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// `Bearer` and the token; `None` when there is none, or one that would end the header early.
fn bearer(token: &[u8]) -> Option<HeaderValue> {
    let token = token.trim_ascii();
    if token.is_empty() {
        return None;
    }
    let mut header = HeaderValue::from_bytes(&[b"Bearer ", token].concat()).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(auth: &Auth) -> Option<String> {
        auth.authorization().map(|header| header.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_token_is_trimmed_and_must_fit_a_header() {
        assert_eq!(text(&Auth::bearer(b" abc\r\n").unwrap()), Some("Bearer abc".into()));
        assert!(Auth::bearer(b"\n").is_none());
        assert!(Auth::bearer(b"a\nb").is_none());
        assert!(Auth::bearer("a\u{1b}b".as_bytes()).is_none());
    }

    #[test]
    fn basic_credentials_are_encoded() {
        assert_eq!(text(&Auth::basic("me", "pass:word")), Some("Basic bWU6cGFzczp3b3Jk".into()));
    }

    #[test]
    fn nothing_shows_a_secret() {
        let file = TokenFile::new("/t".into(), b"s3cret").unwrap();
        let shown = format!("{:?} {:?}", Auth::TokenFile(file), Auth::bearer(b"s3cret"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
