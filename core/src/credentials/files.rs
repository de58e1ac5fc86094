//! Certificates, keys and authorities in files, which others renew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::CredentialsWarning;
use crate::config::{Config, Identity, Pem, ReadError, Tls};
use crate::time::{Now, Time};

/// How connections are made, and the files that say so.
pub(super) struct Files {
    /// What was read last and is good, in place of what the configuration began with.
    tls: Arc<Tls>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    /// When they are due to be read; without a time, a period from the first use on.
    due: Option<Time>,
    /// A server has not taken what is in use, or was not trusted.
    is_suspect: bool,
    /// What has been said of each part, so that it is not said each time.
    told: BTreeMap<Part, CredentialsWarning>,
}

/// What is taken up together, or stays together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// A client certificate goes with its key.
    Identity,
    Authority,
}

/// Reading all files once, one after the other.
pub(super) struct Round {
    /// Those to be read yet, the next one last.
    paths: Vec<PathBuf>,
    contents: BTreeMap<PathBuf, Result<Vec<u8>, ReadError>>,
    /// Those to be judged yet, the next one last.
    parts: Vec<Part>,
    /// Whether each file was read, and is good.
    is_good: bool,
}

impl Files {
    pub(super) fn of(config: &Config) -> Self {
        let Tls { ca, identity, files, .. } = &config.tls;
        let (certificate, key) = identity.as_ref().map(|identity| (&identity.certificate, &identity.key)).unzip();
        let followed = |path: &Option<PathBuf>, pem: Option<&Pem>| {
            path.clone().filter(|path| config.is_tls() && pem.is_some_and(|pem| *pem.origin == *path.to_string_lossy()))
        };
        Self {
            tls: Arc::new(config.tls.clone()),
            ca: followed(&files.ca, ca.as_ref().filter(|_| !config.tls.insecure_skip_verify)),
            certificate: followed(&files.certificate, certificate),
            key: followed(&files.key, key),
            due: None,
            is_suspect: false,
            told: BTreeMap::new(),
        }
    }

    /// How connections are made, but for a client certificate that a program fetches.
    pub(super) const fn tls(&self) -> &Arc<Tls> {
        &self.tls
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.ca.is_none() && !self.has_identity()
    }

    /// Whether a client certificate or its key is in a file.
    pub(super) const fn has_identity(&self) -> bool {
        self.certificate.is_some() || self.key.is_some()
    }

    /// What is in use has failed: the files are to be read before it is used again.
    pub(super) const fn suspect(&mut self) {
        self.is_suspect = true;
    }

    /// Whether the files are to be read now. The first use starts their period.
    pub(super) fn is_due(&mut self, now: Now) -> bool {
        let due = *self.due.get_or_insert(now.mono + super::PERIOD);
        !self.is_empty() && (self.is_suspect || now.mono >= due)
    }

    pub(super) fn round(&self) -> Round {
        let mut paths: Vec<_> = [&self.ca, &self.key, &self.certificate].into_iter().flatten().cloned().collect();
        // A certificate and its key may be in one file, which must not change between the one and the other.
        paths.dedup();
        let parts = [(Part::Authority, self.ca.is_some()), (Part::Identity, self.has_identity())];
        let parts = parts.into_iter().filter_map(|(part, is_there)| is_there.then_some(part)).collect();
        Round { paths, contents: BTreeMap::new(), parts, is_good: true }
    }

    /// How connections would be made with what was read of a part; `None` if nothing has changed.
    pub(super) fn candidate(&self, part: Part, round: &Round) -> Result<Option<Arc<Tls>>, CredentialsWarning> {
        let mut tls = Tls::clone(&self.tls);
        match part {
            Part::Authority => round.replace(&self.ca, tls.ca.as_mut())?,
            Part::Identity => {
                let identity = tls.identity.as_mut();
                let (certificate, key) = identity.map(|Identity { certificate, key }| (certificate, key)).unzip();
                round.replace(&self.certificate, certificate)?;
                round.replace(&self.key, key)?;
            }
        }
        Ok((tls != *self.tls).then(|| Arc::new(tls)))
    }

    /// Takes up what was found to be good.
    pub(super) fn adopt(&mut self, tls: Arc<Tls>) {
        self.tls = tls;
    }

    /// A part is as it should be.
    pub(super) fn approve(&mut self, part: Part) {
        self.told.remove(&part);
    }

    /// What is to be said of a part that stays as it was, unless it has been said.
    pub(super) fn keep(&mut self, part: Part, warning: CredentialsWarning) -> Option<CredentialsWarning> {
        let told = self.told.insert(part, warning.clone());
        (told.as_ref() != Some(&warning)).then_some(warning)
    }

    pub(super) fn finish(&mut self, now: Now, round: &Round) {
        let next = if round.is_good { super::PERIOD } else { super::RETRY };
        self.due = Some(now.mono + next);
        self.is_suspect = false;
    }
}

impl Round {
    pub(super) fn next_path(&self) -> Option<&Path> {
        self.paths.last().map(PathBuf::as_path)
    }

    /// What came of reading the [next](Self::next_path) file.
    pub(super) fn read(&mut self, result: Result<Vec<u8>, ReadError>) {
        if let Some(path) = self.paths.pop() {
            self.contents.insert(path, result);
        }
    }

    pub(super) fn next_part(&mut self) -> Option<Part> {
        self.parts.pop()
    }

    pub(super) const fn fail(&mut self) {
        self.is_good = false;
    }

    /// Puts what was read of a file in place of what is there.
    fn replace(&self, path: &Option<PathBuf>, pem: Option<&mut Pem>) -> Result<(), CredentialsWarning> {
        let Some((path, pem)) = path.as_ref().zip(pem) else { return Ok(()) };
        match self.contents.get(path) {
            Some(Ok(content)) => *pem = Pem::of_file(path, content.as_slice()),
            Some(Err(error)) => {
                return Err(CredentialsWarning::Unreadable { path: path.clone(), error: error.clone() });
            }
            None => {}
        }
        Ok(())
    }
}
