//! The kubeconfig files that a source leads to, read one after the other and merged.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use super::{ConfigError, ConfigSource, ConfigWarning, Environment, Kubeconfig, ReadError};

/// Files that are read one by one.
#[derive(Clone)]
pub(super) struct Gather {
    /// Who names the files.
    naming: Naming,
    rest: VecDeque<PathBuf>,
    pub(super) missing: Vec<PathBuf>,
    pub(super) merged: Kubeconfig,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Caller,
    Variable,
    Home,
}

impl Gather {
    pub(super) fn new(source: &ConfigSource, environment: &Environment) -> Self {
        let (naming, rest) = match (&source.path, environment.kubeconfig.as_deref().filter(|list| !list.is_empty())) {
            (Some(path), _) => (Naming::Caller, VecDeque::from([path.clone()])),
            (None, Some(list)) => (Naming::Variable, listed(list)),
            (None, None) => {
                let home = environment.home.iter().filter(|home| !home.as_os_str().is_empty());
                (Naming::Home, home.map(|home| home.join(".kube").join("config")).collect())
            }
        };
        Self { naming, rest, missing: Vec::new(), merged: Kubeconfig::default() }
    }

    /// The next file to read, if there is one left.
    pub(super) fn next(&mut self) -> Option<PathBuf> {
        self.rest.pop_front()
    }

    /// Takes what a file holds. One that does not exist is passed over unless it was asked for.
    pub(super) fn read(&mut self, path: PathBuf, result: Result<Vec<u8>, ReadError>) -> Result<(), ConfigError> {
        match result {
            Ok(bytes) => {
                let file = Kubeconfig::parse(&path, &bytes)?;
                self.merged = std::mem::take(&mut self.merged).merge(file);
                Ok(())
            }
            Err(ReadError::NotFound) if self.naming != Naming::Caller => {
                self.missing.push(path);
                Ok(())
            }
            Err(error) => Err(ConfigError::Unreadable { path, origin: self.naming.text().into(), error }),
        }
    }

    /// What is odd once all files have been read.
    pub(super) fn warning(&self) -> Option<ConfigWarning> {
        let is_odd = self.naming == Naming::Variable && self.merged.files().is_empty() && !self.missing.is_empty();
        is_odd.then(|| ConfigWarning::NoFiles(self.missing.clone()))
    }

    /// Whether another source may stand in: no file says anything, and none was asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.naming != Naming::Caller && self.merged.is_empty()
    }
}

impl Naming {
    const fn text(self) -> &'static str {
        match self {
            Self::Caller => "the caller",
            Self::Variable => "KUBECONFIG",
            Self::Home => "the home directory",
        }
    }
}

/// The files in a list, each of them once.
fn listed(list: &str) -> VecDeque<PathBuf> {
    let mut seen = BTreeSet::new();
    let named = list.split(LIST_SEPARATOR).filter(|path| !path.is_empty());
    named.filter(|path| seen.insert(*path)).map(PathBuf::from).collect()
}

const LIST_SEPARATOR: char = if cfg!(windows) { ';' } else { ':' };
