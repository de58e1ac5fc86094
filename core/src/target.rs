//! From the requests of machines, which are relative and anonymous, to requests that one server takes from one client.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};

use crate::config::{Config, ConfigError};
use crate::credentials::Grant;
use crate::error::{NetworkError, NetworkErrorKind};
use crate::gzip::Gunzip;

/// One server, and what every request to it says: `User-Agent`, whom it is made in the name of, which encodings are welcome.
#[derive(Clone, Debug)]
pub struct Target {
    server: Uri,
    /// What failures call it.
    name: Box<str>,
    /// The proxy on the way to it.
    proxy: Option<Box<str>>,
    impersonation: Vec<(HeaderName, HeaderValue)>,
    is_compressed: bool,
}

impl Target {
    /// The server of a configuration.
    ///
    /// # Errors
    /// [`ConfigError::InvalidImpersonation`], if what is said about the impersonated user cannot stand in headers.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let impersonation = config.impersonation.headers().ok_or_else(|| ConfigError::InvalidImpersonation {
            origin: "impersonation".into(),
            problem: "no user, or a name or value with characters that cannot be sent",
        })?;
        let (server, is_compressed) = (config.server.clone(), !config.disable_compression);
        let proxy = config.proxy.as_ref().map(|proxy| proxy.to_string().into());
        Ok(Self { name: name(config).into(), proxy, server, impersonation, is_compressed })
    }

    /// A request that is ready to be sent with whatever credentials there are.
    ///
    /// Headers that it has already stay as they are.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Request`] if the request's address cannot be joined to the server's.
    pub fn outgoing(&self, mut request: Request<Bytes>) -> Result<Outgoing, NetworkError> {
        *request.uri_mut() = self.join(request.uri())?;
        let is_whole = !request.headers().contains_key(header::RANGE) && *request.method() != Method::HEAD;
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            for (name, value) in &self.impersonation {
                headers.append(name, value.clone());
            }
        }
        let takes_any = headers.contains_key(header::ACCEPT_ENCODING);
        if self.is_compressed && is_whole && !takes_any {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let is_own = headers.contains_key(header::AUTHORIZATION);
        Ok(Outgoing {
            may_replay: !is_own,
            may_reconnect: true,
            may_resend: true,
            is_own,
            is_plain_wanted: !takes_any && is_whole,
            request,
        })
    }

    /// The same failure, naming this server where the way to it is at fault.
    ///
    /// ```
    /// use cloudcoil_core::config::Config;
    /// use cloudcoil_core::{NetworkError, NetworkErrorKind, Target};
    ///
    /// let target = Target::new(&Config::new("https://10.0.0.1:6443/k8s")?)?;
    /// let error = target.blame(NetworkError::new(NetworkErrorKind::Connect, "connection refused"));
    /// assert_eq!(error.to_string(), "10.0.0.1:6443: cannot connect: connection refused");
    /// # Ok::<(), cloudcoil_core::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn blame(&self, error: NetworkError) -> NetworkError {
        match error.kind {
            NetworkErrorKind::Request | NetworkErrorKind::Credentials => error,
            NetworkErrorKind::Connect
            | NetworkErrorKind::Tls
            | NetworkErrorKind::Unprocessed
            | NetworkErrorKind::Lost
            | NetworkErrorKind::Protocol => {
                let server = match self.proxy.as_ref().filter(|_| !error.is_proxys()) {
                    Some(proxy) => format!("{} through the proxy {proxy}", self.name).into(),
                    None => self.name.clone(),
                };
                error.of(server)
            }
        }
    }

    fn join(&self, uri: &Uri) -> Result<Uri, NetworkError> {
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let mut parts = self.server.clone().into_parts();
        let joined = format!("{}{path}", self.server.path().trim_end_matches('/'));
        let unusable = |error: &dyn std::fmt::Display| {
            NetworkError::new(NetworkErrorKind::Request, format!("the request's address is not usable: {error}"))
        };
        parts.path_and_query = Some(joined.parse().map_err(|error: http::uri::InvalidUri| unusable(&error))?);
        Uri::from_parts(parts).map_err(|error| unusable(&error))
    }
}

/// A request on its way: sent once, once more with other credentials if the server does not take the first, and once more as it
/// is if the server has not taken it up at all.
///
/// ```
/// use bytes::Bytes;
/// use cloudcoil_core::config::Config;
/// use cloudcoil_core::{Target, http};
///
/// let target = Target::new(&Config::new("https://10.0.0.1:6443/k8s")?)?;
/// let request = http::Request::get("/api/v1/pods").body(Bytes::new()).unwrap();
/// let mut outgoing = target.outgoing(request).unwrap();
/// assert!(outgoing.is_rejected(http::StatusCode::UNAUTHORIZED));
/// assert!(!outgoing.is_rejected(http::StatusCode::UNAUTHORIZED), "the second 401 is the answer");
/// # Ok::<(), cloudcoil_core::config::ConfigError>(())
/// ```
pub struct Outgoing {
    request: Request<Bytes>,
    /// Whether it brings its own `Authorization`.
    is_own: bool,
    may_replay: bool,
    may_reconnect: bool,
    may_resend: bool,
    is_plain_wanted: bool,
}

impl Outgoing {
    /// The request with these credentials; it goes over a connection made as [`Grant::tls`] says.
    pub fn with(&self, grant: &Grant) -> Request<Bytes> {
        let mut request = self.request.clone();
        if let Some(authorization) = grant.authorization.as_ref().filter(|_| !self.is_own) {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        request
    }

    /// Whether an answer of this code asks for other credentials, and for the request to be sent once more with them.
    ///
    /// A server that answers 401 has done nothing, so that any request can be sent again. The second 401 is the answer, and so
    /// is the first to a request that brings its own `Authorization`.
    pub fn is_rejected(&mut self, status: StatusCode) -> bool {
        status == StatusCode::UNAUTHORIZED && std::mem::replace(&mut self.may_replay, false)
    }

    /// Whether one side may have refused the other, for the first time: certificates may have been renewed meanwhile.
    ///
    /// In TLS 1.3 a server looks at a client's certificate when the client has taken the handshake for done and sends its request,
    /// and what it says of it may be lost with the connection. So a connection that is lost before there is an answer counts, too.
    pub fn is_untrusted(&mut self, error: &NetworkError) -> bool {
        let may_be =
            matches!(error.kind, NetworkErrorKind::Tls | NetworkErrorKind::Unprocessed | NetworkErrorKind::Lost);
        may_be && std::mem::replace(&mut self.may_reconnect, false)
    }

    /// Whether the request can be sent once more after such a failure, with other certificates: nobody has taken it up, or it does
    /// not matter how often it is.
    pub fn may_reconnect(&self, error: &NetworkError) -> bool {
        matches!(error.kind, NetworkErrorKind::Tls | NetworkErrorKind::Unprocessed) || self.request.method().is_safe()
    }

    /// Whether a request that failed so is to be sent once more, at once and over another connection.
    ///
    /// Servers close connections now and then while others are open, to spread their clients, and one by one when they shut down;
    /// what crosses that on its way is not looked at, so that any request can be sent again. A second time it is left to whoever
    /// sent it, and waits.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use cloudcoil_core::config::Config;
    /// use cloudcoil_core::{NetworkError, NetworkErrorKind, Target, http};
    ///
    /// let target = Target::new(&Config::new("https://10.0.0.1:6443")?)?;
    /// let mut outgoing = target.outgoing(http::Request::post("/api/v1/nodes").body(Bytes::new()).unwrap()).unwrap();
    /// assert!(!outgoing.is_unprocessed(&NetworkError::new(NetworkErrorKind::Lost, "reset")), "it may have been done");
    /// let refused = NetworkError::new(NetworkErrorKind::Unprocessed, "refused");
    /// assert!(outgoing.is_unprocessed(&refused) && !outgoing.is_unprocessed(&refused));
    /// # Ok::<(), cloudcoil_core::config::ConfigError>(())
    /// ```
    pub fn is_unprocessed(&mut self, error: &NetworkError) -> bool {
        error.kind == NetworkErrorKind::Unprocessed && std::mem::replace(&mut self.may_resend, false)
    }

    /// What the body of the answer has to go through, if it is compressed and nobody but this side has asked for it. The
    /// headers then speak of the plain body.
    pub fn decompression(&self, headers: &mut HeaderMap) -> Option<Gunzip> {
        let encoding = headers.get(header::CONTENT_ENCODING)?.as_bytes().trim_ascii();
        let is_gzip = encoding.eq_ignore_ascii_case(b"gzip") || encoding.eq_ignore_ascii_case(b"x-gzip");
        if !is_gzip || !self.is_plain_wanted {
            return None;
        }
        headers.remove(header::CONTENT_ENCODING);
        headers.remove(header::CONTENT_LENGTH);
        Some(Gunzip::new())
    }
}

/// The host and port of the server.
fn name(config: &Config) -> String {
    let usual = if config.is_tls() { 443 } else { 80 };
    let port = config.server.port_u16().unwrap_or(usual);
    format!("{}:{port}", config.server.host().unwrap_or_default())
}

const USER_AGENT: &str = concat!("cloudcoil/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Auth, Impersonation};
    use crate::credentials::{Credentials, CredentialsInput, CredentialsOutput};
    use crate::{Machine as _, Now, Outbox, Tickets};

    fn grant(config: &Config) -> Grant {
        let mut credentials = Credentials::new(config, false, Tickets::new(0));
        let (caller, mut out) = (Tickets::new(1).issue(), Outbox::new());
        let _ = credentials.step(Now::default(), Some(CredentialsInput::Asked { caller }), &mut out);
        let Some(CredentialsOutput::Grant { grant, .. }) = out.pop() else { panic!() };
        grant
    }

    fn get(uri: &str) -> Request<Bytes> {
        Request::get(uri).body(Bytes::new()).unwrap()
    }

    fn sent(config: &Config, request: Request<Bytes>) -> Request<Bytes> {
        Target::new(config).unwrap().outgoing(request).unwrap().with(&grant(config))
    }

    fn config(server: &str) -> Config {
        let mut config = Config::new(server).unwrap();
        config.auth = Auth::bearer(b"abc").unwrap();
        config
    }

    #[test]
    fn failures_of_the_way_to_a_server_name_it_and_no_secret() {
        let named = |server: &str, proxy: Option<&str>, kind| {
            let mut config = Config::new(server).unwrap();
            config.proxy = proxy.map(|proxy| crate::config::Proxy::parse(proxy).unwrap());
            Target::new(&config).unwrap().blame(NetworkError::new(kind, "why")).to_string()
        };
        use NetworkErrorKind::{Connect, Lost, Request, Tls};
        assert_eq!(named("http://a", None, Connect), "a:80: cannot connect: why");
        assert_eq!(named("https://[fd00::1]/k8s", None, Tls), "[fd00::1]:443: TLS handshake failed: why");
        assert_eq!(named("https://a:1", None, Request), "cannot send: why");
        let through = "a:1 through the proxy http://[fd00::2]:3128: connection lost: why";
        assert_eq!(named("https://a:1", Some("http://me:hunter2@[fd00::2]:3128"), Lost), through);
        let mut config = Config::new("https://a:1").unwrap();
        let proxy = config.proxy.insert(crate::config::Proxy::parse("http://me:hunter2@px:3128").unwrap());
        let error = NetworkError::new(Connect, "why").at_proxy(proxy);
        let error = Target::new(&config).unwrap().blame(error).to_string();
        assert_eq!(error, "a:1: cannot connect: the proxy http://px:3128: why", "each is named once");
    }

    #[test]
    fn a_server_may_live_under_a_path() {
        for (server, joined) in [
            ("https://a:1/k8s/c/", "https://a:1/k8s/c/api/v1/pods?limit=1"),
            ("http://[::1]:1", "http://[::1]:1/api/v1/pods?limit=1"),
        ] {
            assert_eq!(sent(&config(server), get("/api/v1/pods?limit=1")).uri(), joined);
        }
    }

    #[test]
    fn credentials_go_over_tls_only_and_do_not_replace_what_is_there() {
        let header = |server| sent(&config(server), get("/")).headers().get(header::AUTHORIZATION).cloned();
        assert_eq!(header("https://a").unwrap(), "Bearer abc");
        assert!(header("https://a").unwrap().is_sensitive());
        assert_eq!(header("http://a"), None);
        let own = Request::get("/").header(header::AUTHORIZATION, "Own").body(Bytes::new()).unwrap();
        assert_eq!(sent(&config("https://a"), own.clone()).headers()[header::AUTHORIZATION], "Own");
        let mut outgoing = Target::new(&config("https://a")).unwrap().outgoing(own).unwrap();
        assert!(!outgoing.is_rejected(StatusCode::UNAUTHORIZED), "other credentials would not be used");
    }

    #[test]
    fn a_request_is_sent_once_more_after_a_401_and_after_nothing_else() {
        let mut outgoing = Target::new(&config("https://a")).unwrap().outgoing(get("/")).unwrap();
        assert!(!outgoing.is_rejected(StatusCode::FORBIDDEN));
        assert!(!outgoing.is_rejected(StatusCode::OK));
        assert!(outgoing.is_rejected(StatusCode::UNAUTHORIZED));
        assert!(!outgoing.is_rejected(StatusCode::UNAUTHORIZED));
    }

    #[test]
    fn a_request_is_sent_once_more_after_a_failed_handshake_and_after_no_other_failure() {
        let mut outgoing = Target::new(&config("https://a")).unwrap().outgoing(get("/")).unwrap();
        let mut is_untrusted = |kind| outgoing.is_untrusted(&NetworkError::new(kind, "why"));
        assert!(!is_untrusted(NetworkErrorKind::Protocol) && !is_untrusted(NetworkErrorKind::Connect));
        assert!(is_untrusted(NetworkErrorKind::Tls));
        assert!(!is_untrusted(NetworkErrorKind::Tls) && !is_untrusted(NetworkErrorKind::Lost));
        assert!(outgoing.is_rejected(StatusCode::UNAUTHORIZED), "a token is another matter");
        let post = Request::post("/").body(Bytes::new()).unwrap();
        for (request, kind, may) in [
            (get("/"), NetworkErrorKind::Lost, true),
            (post.clone(), NetworkErrorKind::Lost, false),
            (post.clone(), NetworkErrorKind::Tls, true),
            (post, NetworkErrorKind::Unprocessed, true),
        ] {
            let outgoing = Target::new(&config("https://a")).unwrap().outgoing(request).unwrap();
            assert_eq!(outgoing.may_reconnect(&NetworkError::new(kind, "why")), may, "it may have been done");
        }
    }

    #[test]
    fn every_value_of_an_impersonated_user_is_sent() {
        let mut config = config("http://a");
        config.impersonation = Impersonation::user("jane");
        config.impersonation.groups = vec!["a".into(), "b".into()];
        let request = sent(&config, get("/"));
        let groups: Vec<_> = request.headers().get_all("impersonate-group").iter().collect();
        assert_eq!(groups, ["a", "b"]);
        assert_eq!(request.headers()["impersonate-user"], "jane");
        config.impersonation.user = None;
        assert!(matches!(Target::new(&config), Err(ConfigError::InvalidImpersonation { .. })));
    }

    #[test]
    fn compression_is_asked_for_unless_it_is_off_or_the_caller_has_a_wish() {
        let wish = |config: &Config, request| sent(config, request).headers().get(header::ACCEPT_ENCODING).cloned();
        let mut config = config("https://a");
        assert_eq!(wish(&config, get("/")).unwrap(), "gzip");
        let own = Request::get("/").header(header::ACCEPT_ENCODING, "br").body(Bytes::new()).unwrap();
        assert_eq!(wish(&config, own.clone()).unwrap(), "br");
        assert_eq!(wish(&config, Request::head("/").body(Bytes::new()).unwrap()), None);
        config.disable_compression = true;
        assert_eq!(wish(&config, get("/")), None);
        let target = Target::new(&config).unwrap();
        let headers = || -> HeaderMap {
            let pairs = [(header::CONTENT_ENCODING, "GZIP"), (header::CONTENT_LENGTH, "9")];
            pairs.into_iter().map(|(name, value)| (name, value.parse().unwrap())).collect()
        };
        let (mut plain, mut compressed) = (headers(), headers());
        assert!(target.outgoing(get("/")).unwrap().decompression(&mut plain).is_some());
        assert!(plain.is_empty());
        assert!(target.outgoing(own).unwrap().decompression(&mut compressed).is_none());
        assert_eq!(compressed, headers());
    }
}
