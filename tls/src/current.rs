//! Connections, as long as nobody renews the certificates that they were made with.

use std::sync::{Mutex, PoisonError};

use cloudcoil_core::config::{Config, ConfigError, Tls};
use cloudcoil_core::{NetworkError, NetworkErrorKind};

/// What an adapter keeps of connections to one server that were made with the certificates in use, such as a pool. When others come
/// into use it is made anew, and the old one dropped: nobody starts another exchange on the connections in it.
///
/// ```
/// use cloudcoil_core::config::Config;
/// use cloudcoil_tls::Current;
///
/// let mut config = Config::new("https://10.0.0.1:6443")?;
/// let pools = Current::new(&config, |config| Ok(config.tls.insecure_skip_verify))?;
/// config.tls.insecure_skip_verify = true;
/// assert_eq!(pools.with(&config.tls), Ok(true));
/// # Ok::<(), cloudcoil_core::config::ConfigError>(())
/// ```
pub struct Current<T> {
    make: Make<T>,
    made: Mutex<(Config, T)>,
}

type Make<T> = Box<dyn Fn(&Config) -> Result<T, ConfigError> + Send + Sync>;

impl<T: Clone> Current<T> {
    /// What `make` makes of a configuration, and later of the same with other certificates.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(
        config: &Config,
        make: impl Fn(&Config) -> Result<T, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        let made = Mutex::new((config.clone(), make(config)?));
        Ok(Self { make: Box::new(make), made })
    }

    /// What was made with these certificates, now if not before.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Tls`], if it cannot be made; the old one stays.
    pub fn with(&self, tls: &Tls) -> Result<T, NetworkError> {
        // What is in there is whole, whoever has panicked.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.0.tls != *tls {
            let mut config = made.0.clone();
            config.tls = tls.clone();
            let anew =
                (self.make)(&config).map_err(|error| NetworkError::new(NetworkErrorKind::Tls, error.to_string()))?;
            tracing::debug!("connecting anew with other certificates");
            *made = (config, anew);
        }
        Ok(made.1.clone())
    }
}
