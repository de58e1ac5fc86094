//! Clients from configurations, as every adapter has them.

/// Writes an adapter's trait `Connect`, whose functions are called as if they were [`Client`](crate::Client)'s own, and its functions
/// `load_config` and `view_config`.
///
/// It is a trait of each adapter's own, because a program may have several, and one of them has to say which it means. `$client` makes a client
/// of a configuration (`fn(&Config) -> Result<Client, Error>`), `$read` reads a file whole
/// (`async fn(PathBuf) -> Result<Vec<u8>, ReadError>`), and `$executor` is what the adapter is named after.
#[macro_export]
macro_rules! connect {
    ($executor:literal, $client:path, $read:path) => {
        #[doc = concat!("Makes clients that run on ", $executor, ": in scope with the [`prelude`](crate::prelude), its functions are called")]
        #[doc = "as if they were [`Client`](crate::Client)'s own."]
        pub trait Connect: Sized {
            /// A client for the current context of the kubeconfig, or inside a cluster for the pod's service account.
            ///
            /// Looks at the files in `KUBECONFIG`, else at `~/.kube/config`, else at the service account. Does not connect yet.
            ///
            /// # Errors
            /// [`Error::Config`](crate::Error::Config), naming the file and field at fault.
            fn try_default() -> impl ::core::future::Future<Output = Result<Self, $crate::Error>> + Send;

            /// A client for the current context of one kubeconfig file.
            ///
            /// # Errors
            /// As [`try_default`](Self::try_default).
            fn try_from_kubeconfig(
                path: impl Into<::std::path::PathBuf> + Send,
            ) -> impl ::core::future::Future<Output = Result<Self, $crate::Error>> + Send;

            /// A client for a configuration at hand; see [`load_config`]. Must be called where the executor runs, if it runs in one
            /// place only.
            ///
            /// # Errors
            /// [`Error::Config`](crate::Error::Config) where TLS cannot be set up as configured.
            fn try_from_config(config: &$crate::core::config::Config) -> Result<Self, $crate::Error>;
        }

        impl Connect for $crate::Client {
            async fn try_default() -> Result<Self, $crate::Error> {
                $client(&load_config($crate::core::config::ConfigSource::default()).await?)
            }

            async fn try_from_kubeconfig(
                path: impl Into<::std::path::PathBuf> + Send,
            ) -> Result<Self, $crate::Error> {
                let source = $crate::core::config::ConfigSource::from_kubeconfig(path);
                $client(&load_config(source).await?)
            }

            fn try_from_config(config: &$crate::core::config::Config) -> Result<Self, $crate::Error> {
                $client(config)
            }
        }

        /// The configuration of a file or context, or with
        /// [`ConfigSource::default`](crate::ConfigSource::default) the one that the environment leads to.
        ///
        /// # Errors
        /// [`Error::Config`](crate::Error::Config), naming the file and field at fault.
        pub async fn load_config(
            source: $crate::core::config::ConfigSource,
        ) -> Result<$crate::core::config::Config, $crate::Error> {
            Ok($crate::load_config(source, $crate::process_environment(), $read).await?)
        }

        /// The kubeconfig files of a source, read and merged, as `kubectl config view` shows them.
        ///
        /// # Errors
        /// [`Error::Config`](crate::Error::Config), naming the file and field at fault.
        pub async fn view_config(
            source: $crate::core::config::ConfigSource,
            options: $crate::core::config::ViewOptions,
        ) -> Result<$crate::core::config::Kubeconfig, $crate::Error> {
            Ok($crate::view_config(source, $crate::process_environment(), options, $read).await?)
        }
    };
}
