//! What is wrong with a configuration: in which file, at which field. No message holds a secret.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No file says anything, and this is not a pod.
    #[error("no configuration: none in {}, and not inside a cluster", Paths(.tried))]
    NotFound {
        /// The files that were looked for.
        tried: Vec<PathBuf>,
    },
    /// A file that is needed cannot be read.
    #[error("cannot read {}, named by {origin}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What names it.
        origin: Box<str>,
        /// Why not.
        error: ReadError,
    },
    /// A file is no kubeconfig. The place is told, the text is not: it may be a secret.
    #[error("{}: {}{problem}", .path.display(), Place(*.line, .field))]
    Undecodable {
        /// The file.
        path: PathBuf,
        /// The field that does not fit; empty when the file is no YAML at all.
        field: Box<str>,
        /// The line, counted from 1; 0 when it is not known.
        line: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// Two entries of a file have the same name.
    #[error("{}: {list} has two entries named {name:?}", .path.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// `clusters`, `contexts` or `users`.
        list: &'static str,
        /// The name.
        name: Box<str>,
    },
    /// No context was asked for, and the files choose none.
    #[error("no current-context in {}", Paths(.files))]
    NoCurrentContext {
        /// The files that were read.
        files: Vec<PathBuf>,
    },
    /// No file has the context that was asked for, or that is current.
    #[error("no context {name:?} in {}", Paths(.files))]
    UnknownContext {
        /// The context.
        name: Box<str>,
        /// The files that were read.
        files: Vec<PathBuf>,
    },
    /// A context names a cluster that no file has.
    #[error("{origin} is {name:?}, and no cluster has that name")]
    UnknownCluster {
        /// The field that names it.
        origin: Box<str>,
        /// The cluster.
        name: Box<str>,
    },
    /// A user that is asked for is in no file. One that a context names may be absent; requests are anonymous then.
    #[error("{origin} is {name:?}, and no user has that name")]
    UnknownUser {
        /// The field that names it.
        origin: Box<str>,
        /// The user.
        name: Box<str>,
    },
    /// Two fields exclude each other.
    #[error("{origin}: {problem}")]
    Conflict {
        /// One of the fields and its file.
        origin: Box<str>,
        /// The other, and why.
        problem: &'static str,
    },
    /// A field that is needed is absent or empty.
    #[error("{origin} is missing")]
    Missing {
        /// The field and its file.
        origin: Box<str>,
    },
    /// A field should hold base64 and does not.
    #[error("{origin} is not base64")]
    InvalidBase64 {
        /// The field and its file.
        origin: Box<str>,
    },
    /// A server's address cannot be used.
    #[error("{origin}: {problem}")]
    InvalidServer {
        /// The field and its file.
        origin: Box<str>,
        /// What is wrong.
        problem: Box<str>,
    },
    /// A credential cannot be sent.
    #[error("{origin}: {problem}")]
    InvalidCredential {
        /// The field and its file.
        origin: Box<str>,
        /// What is wrong.
        problem: Box<str>,
    },
    /// A certificate or key cannot be used; found by whoever sets up TLS.
    #[error("{origin}: {problem}")]
    InvalidPem {
        /// The file, or the field and its file.
        origin: Box<str>,
        /// What is wrong.
        problem: Box<str>,
    },
    /// A proxy's address cannot be used.
    #[error("{origin}: {problem}")]
    InvalidProxy {
        /// The field and its file, or the variable.
        origin: Box<str>,
        /// What is wrong.
        problem: &'static str,
    },
    /// A program that is to fetch credentials is not described as it has to be.
    #[error("{origin}: {problem}")]
    InvalidExec {
        /// The field and its file.
        origin: Box<str>,
        /// What is wrong.
        problem: &'static str,
    },
    /// Impersonation that cannot be asked for, such as that of a group without a user.
    #[error("{origin}: {problem}")]
    InvalidImpersonation {
        /// The field and its file.
        origin: Box<str>,
        /// What is wrong.
        problem: &'static str,
    },
    /// A field asks for what this version cannot do, and passing over it would do something else.
    #[error("{origin} is not supported{instead}")]
    Unsupported {
        /// The field and its file.
        origin: Box<str>,
        /// What to use in its place, beginning with `: `; empty if there is nothing.
        instead: &'static str,
    },
}

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(clippy::exhaustive_enums, reason = "absence is told from every other failure, and no more")]
pub enum ReadError {
    /// There is none.
    #[error("no such file")]
    NotFound,
    /// The system's words.
    #[error("{0}")]
    Failed(Box<str>),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            _ => Self::Failed(error.to_string().into()),
        }
    }
}

/// What is odd about a configuration that can be used all the same.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigWarning {
    /// None of the files that `KUBECONFIG` lists exists.
    #[error("none of the files in KUBECONFIG exists: {}", Paths(.0))]
    NoFiles(Vec<PathBuf>),
    /// A context names a user that no file has; requests are anonymous.
    #[error("{origin} is {name:?}, and no user has that name: requests will be anonymous")]
    UnknownUser {
        /// The field that names it.
        origin: Box<str>,
        /// The user.
        name: Box<str>,
    },
    /// A user has credentials that are not sent because the connection is not encrypted.
    #[error("the server's address is plain http: no credentials will be sent")]
    PlainHttp,
    /// The service account has no certificate authority.
    #[error("cannot read {}: {error}; the system's authorities are used", .path.display())]
    NoCa {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: ReadError,
    },
}

struct Paths<'a>(&'a [PathBuf]);

impl std::fmt::Display for Paths<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no file");
        }
        for (i, path) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{}", path.display())?;
        }
        Ok(())
    }
}

struct Place<'a>(u64, &'a str);

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 > 0 {
            write!(f, "line {}: ", self.0)?;
        }
        if self.1.is_empty() { Ok(()) } else { write!(f, "{}: ", self.1) }
    }
}
