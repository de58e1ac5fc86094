//! Requests to one server from one identity.

use std::io::{self, IsTerminal as _};
use std::process::{Command as Process, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, Identity, Secret};
use cloudcoil_core::credentials::{
    Command, Credentials, CredentialsInput, CredentialsOutput, Ending, Finished, Grant, RunError,
};
use cloudcoil_core::{Gunzip, Machine as _, NetworkError, NetworkErrorKind, Outbox, Target, Tickets};
use http::{Request, Response};

use super::http::Connections;
use super::{Body, Transport};
use crate::Cancel;
use crate::clock::Clock;
use crate::connect::read_file;

/// Carries requests to the API server of one [`Config`] over HTTP/1.1. Connections are kept and shared; clones share them too.
#[derive(Clone)]
pub struct UreqTransport {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    target: Target,
    clock: Clock,
    /// Held while a file is read or a program runs, so that others wait for the same.
    credentials: Mutex<(Credentials, Tickets)>,
    /// Those of the client certificate that is in use.
    connections: Mutex<(Option<Arc<Identity>>, Connections)>,
}

impl UreqTransport {
    /// A transport that has not connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] where TLS or the impersonated user cannot be as configured.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let credentials = Credentials::new(config, io::stdin().is_terminal(), Tickets::new(0));
        let identity = config.tls.identity.clone().filter(|_| config.is_tls()).map(Arc::new);
        let shared = Shared {
            config: config.clone(),
            target: Target::new(config)?,
            clock: Clock::new(),
            credentials: Mutex::new((credentials, Tickets::new(1))),
            connections: Mutex::new((identity, Connections::new(config)?)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Shared {
    /// Credentials, or better ones than those of the generation that was rejected; `None` if there are none better.
    fn ask(&self, rejected: Option<u64>) -> Result<Option<Grant>, NetworkError> {
        let mut guard = lock(&self.credentials);
        let (credentials, callers) = &mut *guard;
        let caller = callers.issue();
        let mut input = Some(match rejected {
            None => CredentialsInput::Asked { caller },
            Some(generation) => CredentialsInput::Rejected { caller, generation },
        });
        let mut out = Outbox::new();
        loop {
            let deadline = credentials.step(self.clock.now(), input.take(), &mut out);
            match out.pop() {
                Some(CredentialsOutput::Grant { grant, .. }) => return Ok(Some(grant)),
                Some(CredentialsOutput::Stand { .. }) => return Ok(None),
                Some(CredentialsOutput::Refuse { error, .. }) => return Err(error.into()),
                Some(CredentialsOutput::Read { ticket, path }) => {
                    input = Some(CredentialsInput::Read { ticket, result: read_file(&path) });
                }
                Some(CredentialsOutput::Run { ticket, command }) => {
                    input = Some(CredentialsInput::Ran { ticket, result: run(command) });
                }
                Some(CredentialsOutput::Cancel { .. }) => {}
                None => {
                    let until = deadline.map(|deadline| deadline.at.since(self.clock.now().mono));
                    std::thread::sleep(until.unwrap_or_default());
                }
            }
        }
    }

    fn connections(&self, identity: Option<Arc<Identity>>) -> Result<Connections, ConfigError> {
        let mut current = lock(&self.connections);
        if current.0 != identity {
            let mut config = self.config.clone();
            config.tls.identity = identity.as_deref().cloned();
            *current = (identity, Connections::new(&config)?);
        }
        Ok(current.1.clone())
    }
}

impl Transport for UreqTransport {
    fn send(&self, request: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
        let shared = &self.shared;
        let mut outgoing = shared.target.outgoing(request)?;
        let mut grant = shared.ask(None)?.expect("only a rejection can stand");
        loop {
            let connections = shared
                .connections(grant.identity.clone())
                .map_err(|error| NetworkError::new(NetworkErrorKind::Tls, error.to_string()))?;
            let response = connections.send(outgoing.with(&grant), cancel)?;
            if outgoing.is_rejected(response.status())
                && let Some(better) = shared.ask(Some(grant.generation))?
            {
                grant = better;
                continue;
            }
            let (mut head, body) = response.into_parts();
            let body = match outgoing.decompression(&mut head.headers) {
                Some(gunzip) => Box::new(Plain { compressed: Some(body), gunzip }),
                None => body,
            };
            return Ok(Response::from_parts(head, body));
        }
    }
}

impl std::fmt::Debug for UreqTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UreqTransport").field(&self.shared.target).finish()
    }
}

/// A compressed body, made plain as it is read.
struct Plain {
    /// Gone when it has ended or failed.
    compressed: Option<Body>,
    gunzip: Gunzip,
}

impl Plain {
    fn plain(&mut self) -> Result<Option<Bytes>, NetworkError> {
        loop {
            if let Some(plain) = self.gunzip.pull()? {
                return Ok(Some(plain));
            }
            let Some(compressed) = &mut self.compressed else { return Ok(None) };
            match compressed.next() {
                Some(bytes) => self.gunzip.push(bytes?),
                None => {
                    self.compressed = None;
                    self.gunzip.finish()?;
                }
            }
        }
    }
}

impl Iterator for Plain {
    type Item = Result<Bytes, NetworkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.plain().transpose();
        if let Some(Err(_)) = next {
            self.compressed = None;
            self.gunzip = Gunzip::new();
        }
        next
    }
}

fn run(command: Command) -> Result<Finished, RunError> {
    let (stdin, stderr) = match command.is_interactive {
        true => (Stdio::inherit(), Stdio::inherit()),
        false => (Stdio::null(), Stdio::piped()),
    };
    let mut process = Process::new(command.program);
    process.args(command.args).envs(command.env).stdin(stdin).stderr(stderr);
    let output = process.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => RunError::NotFound,
        io::ErrorKind::PermissionDenied => RunError::NotExecutable,
        _ => RunError::Failed(error.to_string().into()),
    })?;
    Ok(Finished { ending: ending(output.status), stdout: Secret::new(output.stdout), stderr: output.stderr })
}

#[cfg(unix)]
fn ending(status: ExitStatus) -> Ending {
    use std::os::unix::process::ExitStatusExt as _;

    match (status.code(), status.signal()) {
        (None, Some(signal)) => Ending::Signalled(signal),
        (code, _) => Ending::Exited(code.unwrap_or(-1)),
    }
}

#[cfg(not(unix))]
fn ending(status: ExitStatus) -> Ending {
    Ending::Exited(status.code().unwrap_or(-1))
}

/// What is in there is whole, whoever has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
