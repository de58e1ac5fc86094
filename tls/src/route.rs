//! The way to a server: through a proxy or not, encrypted or not.

use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::config::{Config, ConfigError, Proxy, ProxyScheme};
use cloudcoil_core::proxy::ProxyHandshake;
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use http::{HeaderValue, Uri};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::{client_config, proxy_config, server_name};

/// How connections to the server of a configuration are made: where to [dial](Self::address), and the [steps](Self::steps) after
/// that.
///
/// ```
/// use cloudcoil_core::config::{Config, Proxy};
/// use cloudcoil_tls::{Route, Step};
///
/// let mut config = Config::new("https://10.0.0.1:6443").unwrap();
/// config.proxy = Some(Proxy::parse("http://px:3128").unwrap());
/// let route = Route::new(&config, &[b"http/1.1"])?;
/// assert_eq!(route.address(), ("px", 3128));
/// assert!(matches!(route.steps().unwrap()[..], [Step::Speak(_), Step::Encrypt { .. }]));
/// # Ok::<(), cloudcoil_core::config::ConfigError>(())
/// ```
pub struct Route {
    server: Uri,
    host: String,
    port: u16,
    tls: Option<Encryption>,
    proxy: Option<(Proxy, Option<Encryption>)>,
}

type Encryption = (Arc<ClientConfig>, ServerName<'static>);

/// What is done on a connection before it is one to the server.
#[expect(clippy::exhaustive_enums, reason = "whoever connects must do both")]
pub enum Step {
    /// Encrypt it.
    Encrypt {
        /// How the other side is greeted.
        config: Arc<ClientConfig>,
        /// The name that its certificate must carry.
        name: ServerName<'static>,
        /// The other side is the proxy.
        is_proxys: bool,
    },
    /// Make it one through the proxy.
    Speak(ProxyHandshake),
}

impl Route {
    /// How long each may take: to dial one address, and each step.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// How long a connection is silent before the system looks whether the other side is still there.
    pub const KEEPALIVE: Duration = Duration::from_secs(30);

    /// The way to a server that speaks one of `protocols`, named as in ALPN and the best first.
    ///
    /// # Errors
    /// [`ConfigError`], naming what cannot be as configured.
    pub fn new(config: &Config, protocols: &[&[u8]]) -> Result<Self, ConfigError> {
        let tls = match config.is_tls() {
            true => Some((Arc::new(client_config(&config.tls, protocols)?), server_name(config)?)),
            false => None,
        };
        let host = config.server.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = config.server.port_u16().unwrap_or_else(|| if tls.is_some() { 443 } else { 80 });
        let proxy = config.proxy.as_ref().map(|proxy| through(proxy, config)).transpose()?;
        Ok(Self { server: config.server.clone(), host, port, tls, proxy })
    }

    /// Whether connections to the server are encrypted.
    pub const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether requests are to be handed to a proxy as they are, and with which header; see [`Proxy::forwards`].
    pub fn forwarding(&self) -> Option<Option<HeaderValue>> {
        let (proxy, _) = self.proxy.as_ref().filter(|(proxy, _)| proxy.forwards(&self.server))?;
        Some(proxy.authorization())
    }

    /// The host, without brackets, and the port to dial.
    pub fn address(&self) -> (&str, u16) {
        self.proxy.as_ref().map_or((&self.host, self.port), |(proxy, _)| (&proxy.host, proxy.port))
    }

    /// What is done after that, in order.
    ///
    /// # Errors
    /// As [`ProxyHandshake::new`].
    pub fn steps(&self) -> Result<Vec<Step>, NetworkError> {
        let encrypt = |(config, name): &Encryption, is_proxys| Step::Encrypt {
            config: config.clone(),
            name: name.clone(),
            is_proxys,
        };
        let mut steps = Vec::new();
        if let Some((proxy, tls)) = &self.proxy {
            steps.extend(tls.iter().map(|tls| encrypt(tls, true)));
            if !proxy.forwards(&self.server) {
                steps.push(Step::Speak(ProxyHandshake::new(proxy, &self.host, self.port)?));
            }
        }
        steps.extend(self.tls.iter().map(|tls| encrypt(tls, false)));
        Ok(steps)
    }

    /// What it means that one of them took longer than [`PATIENCE`](Self::PATIENCE).
    pub fn late() -> NetworkError {
        NetworkError::new(NetworkErrorKind::Connect, format!("nothing happened for {:?}", Self::PATIENCE))
    }

    /// A failure to dial, or of a step with the proxy, which it names.
    pub fn about(&self, error: NetworkError) -> NetworkError {
        match &self.proxy {
            Some((proxy, _)) => error.at_proxy(proxy),
            None => error,
        }
    }
}

impl Step {
    /// Whether the other side of it is the proxy.
    pub const fn is_proxys(&self) -> bool {
        !matches!(self, Self::Encrypt { is_proxys: false, .. })
    }
}

fn through(proxy: &Proxy, config: &Config) -> Result<(Proxy, Option<Encryption>), ConfigError> {
    let tls = match proxy.scheme {
        ProxyScheme::Https => {
            let problem = "its host has no valid name";
            let name = ServerName::try_from(proxy.host.clone())
                .map_err(|_| ConfigError::InvalidProxy { origin: "the proxy".into(), problem })?;
            Some((Arc::new(proxy_config(&config.tls)?), name))
        }
        ProxyScheme::Http | ProxyScheme::Socks5 | ProxyScheme::Socks5h => None,
    };
    Ok((proxy.clone(), tls))
}
