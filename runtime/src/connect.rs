//! From a configuration to requests that a server takes; what every transport needs.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cloudcoil_core::config::{
    Auth, Config, ConfigError, ConfigInput, ConfigLoad, ConfigOutput, ConfigSource, ConfigView, Environment,
    Kubeconfig, ReadError, ViewOptions,
};
use cloudcoil_core::{Machine, NetworkError, NetworkErrorKind, Now, Outbox};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Uri, header};

/// Loads a configuration; `read` reads a file whole. Warnings go to `tracing`.
///
/// # Errors
/// [`ConfigError`], naming the file and field at fault.
pub async fn load_config(
    source: ConfigSource,
    environment: Environment,
    read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
) -> Result<Config, ConfigError> {
    drive(ConfigLoad::new(source, environment), read).await
}

/// Reads and merges the kubeconfig files of a source, as `kubectl config view` does; `read` reads a file whole. Warnings go
/// to `tracing`. [`Kubeconfig::to_json`] and [`Kubeconfig::to_yaml`] print the answer.
///
/// # Errors
/// [`ConfigError`], naming the file and field at fault.
pub async fn view_config(
    source: ConfigSource,
    environment: Environment,
    options: ViewOptions,
    read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
) -> Result<Kubeconfig, ConfigError> {
    drive(ConfigView::new(source, environment, options), read).await
}

async fn drive<T, M: Machine<Input = ConfigInput, Output = ConfigOutput<T>>>(
    mut machine: M,
    read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
) -> Result<T, ConfigError> {
    let mut out = Outbox::new();
    let mut input = None;
    loop {
        // Loading has no time limits, so any clock will do.
        let _ = machine.step(Now::default(), input.take(), &mut out);
        for output in out.drain() {
            match output {
                ConfigOutput::Read { ticket, path } => {
                    input = Some(ConfigInput::Read { ticket, result: read(path).await });
                }
                ConfigOutput::Warn(warning) => tracing::warn!("{warning}"),
                ConfigOutput::Loaded(result) => return result.map(|loaded| *loaded),
            }
        }
    }
}

/// The variables that matter, as the process has them.
pub fn process_environment() -> Environment {
    Environment::from_variables(|name| std::env::var_os(name))
}

/// Makes the requests of machines, which are relative and anonymous, into requests to one server from one identity.
pub struct Target {
    server: Uri,
    auth: Option<Mutex<Auth>>,
}

impl Target {
    /// The server and identity of a configuration. Credentials never go over plain `http`.
    pub fn new(config: &Config) -> Self {
        let auth = config.is_tls().then(|| Mutex::new(config.auth.clone()));
        Self { server: config.server.clone(), auth }
    }

    /// The same request with the server's address, credentials and a `User-Agent`; `read` reads a file whole.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Request`] if the request's address cannot be joined to the server's.
    pub async fn address(
        &self,
        mut request: Request<Bytes>,
        now: Now,
        read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
    ) -> Result<Request<Bytes>, NetworkError> {
        *request.uri_mut() = self.join(request.uri())?;
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        if let Some(authorization) = self.authorization(now, read).await {
            headers.entry(header::AUTHORIZATION).or_insert(authorization);
        }
        Ok(request)
    }

    async fn authorization(
        &self,
        now: Now,
        read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
    ) -> Option<HeaderValue> {
        let auth = self.auth.as_ref()?;
        let due = match &mut *lock(auth) {
            Auth::TokenFile(file) => file.due(now.mono),
            _ => None,
        };
        if let Some(path) = due {
            let content = read(path).await;
            if let Auth::TokenFile(file) = &mut *lock(auth) {
                file.reread(content.as_deref().map_err(Clone::clone));
            }
        }
        lock(auth).authorization()
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

/// A header that is replaced whole cannot be left half-written, so a panic elsewhere does no harm to it.
fn lock(auth: &Mutex<Auth>) -> MutexGuard<'_, Auth> {
    auth.lock().unwrap_or_else(PoisonError::into_inner)
}

const USER_AGENT: &str = concat!("cloudcoil/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    /// What is sent at `now`, when the token's file holds `content`.
    fn sent(target: &Target, uri: &str, now: Now, content: Result<&str, ReadError>) -> Request<Bytes> {
        let request = Request::get(uri).body(Bytes::new()).unwrap();
        let read = async |_| content.clone().map(|text| text.as_bytes().to_vec());
        target.address(request, now, read).now_or_never().unwrap().unwrap()
    }

    fn config(server: &str, auth: Auth) -> Config {
        let mut config = Config::new(server).unwrap();
        config.auth = auth;
        config
    }

    fn token_file() -> Auth {
        let files = RefCell::new(vec![
            "abc\n",
            "current-context: c
clusters: [{name: p, cluster: {server: 'https://a'}}]
contexts: [{name: c, context: {cluster: p, user: u}}]
users: [{name: u, user: {tokenFile: tok}}]",
        ]);
        let source = ConfigSource::from_kubeconfig("/k/cfg");
        let read = async |_| Ok(files.borrow_mut().pop().unwrap().as_bytes().to_vec());
        load_config(source, Environment::default(), read).now_or_never().unwrap().unwrap().auth
    }

    #[test]
    fn a_server_may_live_under_a_path() {
        for (server, joined) in [
            ("https://a:1/k8s/c/", "https://a:1/k8s/c/api/v1/pods?limit=1"),
            ("http://[::1]:1", "http://[::1]:1/api/v1/pods?limit=1"),
        ] {
            let target = Target::new(&config(server, Auth::Anonymous));
            assert_eq!(sent(&target, "/api/v1/pods?limit=1", Now::default(), Ok("")).uri(), joined);
        }
    }

    #[test]
    fn credentials_go_over_tls_only_and_do_not_replace_what_is_there() {
        let header = |server| {
            let target = Target::new(&config(server, Auth::bearer(b"abc").unwrap()));
            sent(&target, "/", Now::default(), Ok("")).headers().get(header::AUTHORIZATION).cloned()
        };
        assert_eq!(header("https://a").unwrap(), "Bearer abc");
        assert!(header("https://a").unwrap().is_sensitive());
        assert_eq!(header("http://a"), None);
    }

    #[test]
    fn a_rotated_token_is_sent_within_a_minute_and_a_lost_file_changes_nothing() {
        let target = Target::new(&config("https://a", token_file()));
        let at = |secs, content| {
            let now = Now::default().after(Duration::from_secs(secs));
            sent(&target, "/", now, content).headers()[header::AUTHORIZATION].to_str().unwrap().to_owned()
        };
        assert_eq!(at(0, Ok("def\r\n")), "Bearer abc");
        assert_eq!(at(61, Ok("def\r\n")), "Bearer def");
        assert_eq!(at(122, Err(ReadError::NotFound)), "Bearer def");
    }
}
