//! What kubeconfig files say together, for people and other programs: `kubectl config view`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};

use super::file::{Listed, is_empty};
use super::gather::Gather;
use super::kubeconfig::Entry;
use super::{ConfigError, ConfigInput, ConfigOutput, ConfigSource, Environment, Kubeconfig, ReadError, Secret};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

/// What to do to a kubeconfig before it is shown.
///
/// `kubectl config view --minify --flatten --raw` is all of them. Its `--flatten` shows secrets even without `--raw`; here
/// each option means what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ViewOptions {
    /// Keep the current context, and the cluster and user that it names, alone.
    pub minify: bool,
    /// Put the content of certificates and keys in place of the paths of their files.
    pub flatten: bool,
    /// Show secrets; else they are `REDACTED`, and data is `DATA+OMITTED`.
    pub raw: bool,
}

/// Reads and merges kubeconfig files, and answers with them as `kubectl config view` prints them.
///
/// Looks at the files that a [`ConfigLoad`](super::ConfigLoad) of the same source does, and takes its context for the
/// current one; its overrides have no say. Ends with one [`ConfigOutput::Loaded`]: see [`Kubeconfig::to_json`].
#[derive(Clone)]
pub struct ConfigView {
    source: ConfigSource,
    environment: Environment,
    options: ViewOptions,
    tickets: Tickets,
    state: State,
}

#[derive(Clone)]
enum State {
    Starting,
    ReadingKubeconfig { ticket: Ticket, path: PathBuf, gather: Box<Gather> },
    Flattening { ticket: Ticket, reference: Reference, rest: Vec<Reference>, kubeconfig: Box<Kubeconfig> },
    Ended,
}

/// A file that an entry names.
#[derive(Clone)]
struct Reference {
    name: String,
    what: What,
    path: PathBuf,
    origin: Box<str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Ca,
    Certificate,
    Key,
}

impl ConfigView {
    /// A view that has not begun.
    pub const fn new(source: ConfigSource, environment: Environment, options: ViewOptions) -> Self {
        Self { source, environment, options, tickets: Tickets::new(0), state: State::Starting }
    }

    fn gather(&mut self, mut gather: Box<Gather>, out: &mut Outbox<ConfigOutput<Kubeconfig>>) {
        if let Some(path) = gather.next() {
            let ticket = self.tickets.issue();
            out.push(ConfigOutput::Read { ticket, path: path.clone() });
            self.state = State::ReadingKubeconfig { ticket, path, gather };
            return;
        }
        out.extend(gather.warning().map(ConfigOutput::Warn));
        let mut kubeconfig = gather.merged;
        if self.options.minify
            && let Err(error) = kubeconfig.minify(self.source.context.as_deref())
        {
            return self.end(Err(error), out);
        }
        match if self.options.flatten { kubeconfig.references() } else { Ok(Vec::new()) } {
            Ok(rest) => self.flatten(Box::new(kubeconfig), rest, out),
            Err(error) => self.end(Err(error), out),
        }
    }

    fn flatten(
        &mut self,
        mut kubeconfig: Box<Kubeconfig>,
        mut rest: Vec<Reference>,
        out: &mut Outbox<ConfigOutput<Kubeconfig>>,
    ) {
        if let Some(reference) = rest.pop() {
            let ticket = self.tickets.issue();
            out.push(ConfigOutput::Read { ticket, path: reference.path.clone() });
            self.state = State::Flattening { ticket, reference, rest, kubeconfig };
            return;
        }
        if !self.options.raw {
            kubeconfig.redact();
        }
        self.end(Ok(kubeconfig), out);
    }

    fn end(&mut self, result: Result<Box<Kubeconfig>, ConfigError>, out: &mut Outbox<ConfigOutput<Kubeconfig>>) {
        self.state = State::Ended;
        out.push(ConfigOutput::Loaded(result));
    }

    fn file_read(
        &mut self,
        reference: Reference,
        rest: Vec<Reference>,
        mut kubeconfig: Box<Kubeconfig>,
        result: Result<Vec<u8>, ReadError>,
        out: &mut Outbox<ConfigOutput<Kubeconfig>>,
    ) {
        match result {
            Ok(bytes) => {
                kubeconfig.embed(&reference, bytes);
                self.flatten(kubeconfig, rest, out);
            }
            Err(error) => {
                let Reference { path, origin, .. } = reference;
                self.end(Err(ConfigError::Unreadable { path, origin, error }), out);
            }
        }
    }
}

impl Machine for ConfigView {
    type Input = ConfigInput;
    type Output = ConfigOutput<Kubeconfig>;

    fn on_input(&mut self, _: Now, input: ConfigInput, out: &mut Outbox<ConfigOutput<Kubeconfig>>) {
        let ConfigInput::Read { ticket: answered, result } = input;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::ReadingKubeconfig { ticket, path, mut gather } if ticket == answered => {
                match gather.read(path, result) {
                    Ok(()) => self.gather(gather, out),
                    Err(error) => self.end(Err(error), out),
                }
            }
            State::Flattening { ticket, reference, rest, kubeconfig } if ticket == answered => {
                self.file_read(reference, rest, kubeconfig, result, out);
            }
            state => self.state = state,
        }
    }

    fn on_timer(&mut self, _: Now, out: &mut Outbox<ConfigOutput<Kubeconfig>>) {
        if matches!(self.state, State::Starting) {
            self.gather(Box::new(Gather::new(&self.source, &self.environment)), out);
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        matches!(self.state, State::Starting).then_some(Deadline::new(Time::ZERO, "start"))
    }
}

impl Kubeconfig {
    /// Keeps the context of that name, or else the current one, which it makes current, and the cluster and user that it
    /// names; nothing else.
    ///
    /// # Errors
    /// [`ConfigError::NoCurrentContext`], [`ConfigError::UnknownContext`], [`ConfigError::UnknownCluster`] or
    /// [`ConfigError::UnknownUser`].
    pub fn minify(&mut self, context: Option<&str>) -> Result<(), ConfigError> {
        let (name, context) = self.context(context.filter(|name| !name.is_empty()))?;
        let (cluster, user) = (context.content.cluster.clone(), context.content.user.clone());
        if !cluster.is_empty() && !self.clusters.contains_key(&cluster) {
            return Err(ConfigError::UnknownCluster {
                origin: context.origin("context.cluster"),
                name: cluster.into(),
            });
        }
        if !user.is_empty() && !self.users.contains_key(&user) {
            return Err(ConfigError::UnknownUser { origin: context.origin("context.user"), name: user.into() });
        }
        let name = name.to_owned();
        self.contexts.retain(|key, _| *key == name);
        self.clusters.retain(|key, _| !cluster.is_empty() && *key == cluster);
        self.users.retain(|key, _| !user.is_empty() && *key == user);
        self.current_context = Some(name);
        Ok(())
    }

    /// Puts `REDACTED` in place of tokens and passwords, and `DATA+OMITTED` in place of the data of certificates and keys.
    pub fn redact(&mut self) {
        let omitted = || Some(Secret::new(STANDARD.decode("DATA+OMITTED").expect("it is base64 as it stands")));
        for Entry { content, .. } in self.users.values_mut() {
            for text in [&mut content.token, &mut content.password] {
                if !text.is_empty() {
                    "REDACTED".clone_into(text);
                }
            }
            // Even an empty key is one that was given.
            if content.client_key_data.is_some() {
                content.client_key_data = omitted();
            }
            if !is_empty(&content.client_certificate_data) {
                content.client_certificate_data = omitted();
            }
        }
        for Entry { content, .. } in self.clusters.values_mut() {
            if !is_empty(&content.certificate_authority_data) {
                content.certificate_authority_data = omitted();
            }
        }
    }

    /// All of it as JSON, as `kubectl config view -o json` prints it. Secrets are shown: see [`redact`](Self::redact).
    ///
    /// ```
    /// use cloudcoil_core::config::Kubeconfig;
    ///
    /// let mut kubeconfig = Kubeconfig::parse("/k".as_ref(), b"users: [{name: dev, user: {token: s3cret}}]")?;
    /// kubeconfig.redact();
    /// assert!(kubeconfig.to_json().contains(r#""token": "REDACTED""#));
    /// # Ok::<(), cloudcoil_core::config::ConfigError>(())
    /// ```
    pub fn to_json(&self) -> String {
        let mut json = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, formatter);
        View(self).serialize(&mut serializer).expect("keys are text, and memory does not fail");
        spelled_out(&String::from_utf8(json).expect("JSON is UTF-8"))
    }

    /// The same as YAML, with fields in alphabetical order.
    pub fn to_yaml(&self) -> String {
        let value = serde_json::to_value(View(self)).expect("keys are text");
        serde_saphyr::to_string(&value).expect("what JSON can say, YAML can")
    }

    /// The files that the entries name, last one first.
    fn references(&self) -> Result<Vec<Reference>, ConfigError> {
        let mut references = Vec::new();
        for (name, entry) in &self.clusters {
            let (file, data) = (&entry.content.certificate_authority, &entry.content.certificate_authority_data);
            references.extend(reference(name, entry, What::Ca, "cluster.certificate-authority", file, data)?);
        }
        for (name, entry) in &self.users {
            let (file, data) = (&entry.content.client_certificate, &entry.content.client_certificate_data);
            references.extend(reference(name, entry, What::Certificate, "user.client-certificate", file, data)?);
            let (file, data) = (&entry.content.client_key, &entry.content.client_key_data);
            references.extend(reference(name, entry, What::Key, "user.client-key", file, data)?);
        }
        references.reverse();
        Ok(references)
    }

    /// Puts the content of a file in place of its path.
    fn embed(&mut self, reference: &Reference, bytes: Vec<u8>) {
        let data = Some(Secret::new(bytes));
        let (cluster, user) = (self.clusters.get_mut(&reference.name), self.users.get_mut(&reference.name));
        match (reference.what, cluster, user) {
            (What::Ca, Some(cluster), _) => {
                cluster.content.certificate_authority.clear();
                cluster.content.certificate_authority_data = data;
            }
            (What::Certificate, _, Some(user)) => {
                user.content.client_certificate.clear();
                user.content.client_certificate_data = data;
            }
            (What::Key, _, Some(user)) => {
                user.content.client_key.clear();
                user.content.client_key_data = data;
            }
            _ => {}
        }
    }
}

/// A file that an entry names. Data beside it leaves open what was meant, and is refused as by `kubectl`.
fn reference<T>(
    name: &str,
    entry: &Entry<T>,
    what: What,
    field: &str,
    file: &str,
    data: &Option<Secret>,
) -> Result<Option<Reference>, ConfigError> {
    match (file.is_empty(), is_empty(data)) {
        (true, _) => Ok(None),
        (false, true) => {
            Ok(Some(Reference { name: name.to_owned(), what, path: entry.path(file), origin: entry.origin(field) }))
        }
        (false, false) => {
            let problem = "a file and data are both given, and only one of them can be shown";
            Err(ConfigError::Conflict { origin: entry.origin(field), problem })
        }
    }
}

/// The same JSON without the characters that YAML forbids or takes for the end of a line; those it can have in strings only.
fn spelled_out(json: &str) -> String {
    let mut spelled = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                spelled.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            _ => spelled.push(char),
        }
    }
    spelled
}

/// A kubeconfig in the order and form in which `kubectl` prints it.
struct View<'a>(&'a Kubeconfig);

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kubeconfig = self.0;
        let mut fields = serializer.serialize_struct("Config", 8)?;
        fields.serialize_field("kind", "Config")?;
        fields.serialize_field("apiVersion", "v1")?;
        if kubeconfig.preferences != Default::default() {
            fields.serialize_field("preferences", &kubeconfig.preferences)?;
        }
        fields.serialize_field("clusters", &Entries(&kubeconfig.clusters))?;
        fields.serialize_field("users", &Entries(&kubeconfig.users))?;
        fields.serialize_field("contexts", &Entries(&kubeconfig.contexts))?;
        fields.serialize_field("current-context", kubeconfig.current_context().unwrap_or_default())?;
        if kubeconfig.extensions != Default::default() {
            fields.serialize_field("extensions", &kubeconfig.extensions)?;
        }
        fields.end()
    }
}

/// A list by name; `null` when it is empty.
struct Entries<'a, T>(&'a BTreeMap<String, Entry<T>>);

impl<T: Listed + Serialize> Serialize for Entries<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            return serializer.serialize_none();
        }
        serializer.collect_seq(self.0.iter().map(|(name, entry)| Named { name, content: &entry.content }))
    }
}

struct Named<'a, T> {
    name: &'a str,
    content: &'a T,
}

impl<T: Listed + Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Named", 2)?;
        fields.serialize_field("name", self.name)?;
        fields.serialize_field(T::FIELD, self.content)?;
        fields.end()
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
