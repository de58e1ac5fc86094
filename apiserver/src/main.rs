//! `cloudcoil-apiserver`: an in-memory Kubernetes API server for development and tests.

use std::path::PathBuf;
use std::process::ExitCode;

use cloudcoil_apiserver::{Anonymous, ServerConfig, ServerHandle, Tls, User, serve, serve_tls};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
Usage: cloudcoil-apiserver [OPTIONS]

An in-memory Kubernetes API server. Everything in it is gone when it ends.

Options:
  --listen ADDR      where to listen [default: 127.0.0.1:0, a free port]
  --kubeconfig FILE  write a kubeconfig for the server to FILE
  --tls              serve HTTPS, with a certificate of its own for localhost and ADDR
  --token TOKEN      the bearer token of an administrator; without it requests that bring none are an administrator's
  --user TOKEN,NAME[,GROUP...]
                     let a bearer token stand for a user; may be given again
  --client-ca FILE   with --tls: trust the clients whose certificates these authorities have signed
  --anonymous        let requests without credentials ask for the server's health and version, as a cluster does
  --help             print this
";

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(fault) => {
            eprintln!("cloudcoil-apiserver: {fault}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run(options)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("cloudcoil-apiserver: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until a signal comes.
async fn run(options: Options) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let listen = options.listen.clone();
    let listener = TcpListener::bind(&listen).await.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let server = start(&options, listener).await?;
    if let Some(file) = &options.kubeconfig {
        let written = tokio::fs::write(file, server.kubeconfig()).await;
        written.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    println!("listening on {}", server.url());
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    server.shutdown().await;
    Ok(())
}

async fn start(options: &Options, listener: TcpListener) -> Result<ServerHandle, String> {
    let anonymous = options.anonymous.then_some(Anonymous::Allowed);
    let (token, users) = (options.token.clone(), options.users.iter().cloned().collect());
    let config = ServerConfig { seed: seed(), token, users, anonymous, ..ServerConfig::default() };
    if !options.tls {
        return serve(config, listener).map_err(|error| error.to_string());
    }
    let host = options.listen.rsplit_once(':').map_or(options.listen.as_str(), |(host, _)| host);
    let names: Vec<_> =
        Some(host.trim_matches(['[', ']']).to_owned()).filter(|host| !host.is_empty()).into_iter().collect();
    let mut tls = Tls::generate(&names).map_err(|error| error.to_string())?;
    if let Some(file) = &options.client_ca {
        let pem = tokio::fs::read_to_string(file)
            .await
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        tls = tls.with_client_ca(&pem).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    serve_tls(config, listener, tls).map_err(|error| error.to_string())
}

/// No two servers give out the same uids.
fn seed() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}

#[derive(PartialEq, Default)]
struct Options {
    listen: String,
    kubeconfig: Option<PathBuf>,
    tls: bool,
    token: Option<String>,
    users: Vec<(String, User)>,
    client_ca: Option<PathBuf>,
    anonymous: bool,
}

/// Without the tokens.
impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("listen", &self.listen).field("tls", &self.tls).finish_non_exhaustive()
    }
}

impl Options {
    /// What the command line says; `None` when it asks for help.
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Self { listen: "127.0.0.1:0".to_owned(), ..Self::default() };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let mut value =
                || inline.clone().or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"));
            match name {
                "--listen" => options.listen = value()?,
                "--kubeconfig" => options.kubeconfig = Some(value()?.into()),
                "--token" => options.token = Some(value()?),
                "--user" => options.users.push(user(&value()?)?),
                "--client-ca" => options.client_ca = Some(value()?.into()),
                "--anonymous" => options.anonymous = true,
                "--tls" => options.tls = true,
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("unknown argument {argument:?}")),
            }
        }
        if options.client_ca.is_some() && !options.tls {
            return Err("--client-ca needs --tls".to_owned());
        }
        Ok(Some(options))
    }
}

/// What `--user` says.
fn user(text: &str) -> Result<(String, User), String> {
    let mut parts = text.split(',');
    match (parts.next(), parts.next()) {
        (Some(token), Some(name)) if !token.is_empty() && !name.is_empty() => {
            Ok((token.to_owned(), User::new(name, parts)))
        }
        // The token is not repeated.
        _ => Err("--user needs a token and a name, separated by a comma".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Option<Options>, String> {
        Options::parse(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn options_are_read_in_both_forms() {
        let options = parse(&["--listen", "127.0.0.1:8080", "--tls", "--token=a=b"]).unwrap().unwrap();
        assert_eq!(options.listen, "127.0.0.1:8080");
        assert_eq!((options.tls, options.token.as_deref(), options.kubeconfig), (true, Some("a=b"), None));
        assert_eq!(parse(&["--help"]), Ok(None));
        let options = parse(&["--user", "t,jane,a,b", "--user=u,joe", "--anonymous"]).unwrap().unwrap();
        let users = [("t".to_owned(), User::new("jane", ["a", "b"])), ("u".to_owned(), User::new("joe", []))];
        assert_eq!((options.users, options.anonymous), (users.to_vec(), true));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse(&["--listen"]), Err("--listen needs a value".to_owned()));
        assert_eq!(parse(&["--client-ca", "f"]), Err("--client-ca needs --tls".to_owned()));
        assert!(parse(&["--user", "token"]).is_err_and(|fault| !fault.contains("token,")));
        assert_eq!(parse(&["--lsten", "x"]), Err("unknown argument \"--lsten\"".to_owned()));
    }
}
