//! Kubeconfig files, one or several merged.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::ConfigError;
use super::file::{self, Cluster, Context, Extensions, Listed, Named, Preferences, User};

/// What kubeconfig files say. The first file that has an entry of a name, or a current context, has the say.
///
/// ```
/// use cloudcoil_core::config::Kubeconfig;
///
/// let one = Kubeconfig::parse("/k/one".as_ref(), b"{current-context: a, contexts: [{name: a, context: {}}]}")?;
/// let two = Kubeconfig::parse("/k/two".as_ref(), b"{current-context: b, contexts: [{name: b, context: {}}]}")?;
/// let both = one.merge(two);
/// assert_eq!((both.current_context(), both.contexts().collect::<Vec<_>>()), (Some("a"), vec!["a", "b"]));
/// # Ok::<(), cloudcoil_core::config::ConfigError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Kubeconfig {
    files: Vec<PathBuf>,
    pub(super) current_context: Option<String>,
    pub(super) preferences: Preferences,
    pub(super) extensions: Extensions,
    pub(super) clusters: BTreeMap<String, Entry<Cluster>>,
    pub(super) contexts: BTreeMap<String, Entry<Context>>,
    pub(super) users: BTreeMap<String, Entry<User>>,
}

impl Kubeconfig {
    /// Reads one file, YAML or JSON. `path` names it in errors and is what relative paths in it start from.
    ///
    /// # Errors
    /// [`ConfigError::Undecodable`], [`ConfigError::InvalidBase64`] or [`ConfigError::Duplicate`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ConfigError> {
        let file = file::parse(path, bytes)?;
        Ok(Self {
            current_context: Some(file.current_context).filter(|name| !name.is_empty()),
            preferences: file.preferences,
            extensions: file.extensions,
            clusters: index(path, file.clusters)?,
            contexts: index(path, file.contexts)?,
            users: index(path, file.users)?,
            files: vec![path.to_owned()],
        })
    }

    /// Adds what `later` has and this has not; an entry is taken whole or not at all.
    ///
    /// Merging is associative, and nothing changes when a file is merged a second time.
    ///
    /// See <https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/#merging-kubeconfig-files>.
    #[must_use]
    pub fn merge(mut self, later: Self) -> Self {
        self.files.extend(later.files);
        self.current_context = self.current_context.or(later.current_context);
        self.preferences.colors |= later.preferences.colors;
        add_absent(&mut self.preferences.extensions.0, later.preferences.extensions.0);
        add_absent(&mut self.extensions.0, later.extensions.0);
        add_absent(&mut self.clusters, later.clusters);
        add_absent(&mut self.contexts, later.contexts);
        add_absent(&mut self.users, later.users);
        self
    }

    /// The context that is used when none is asked for.
    pub fn current_context(&self) -> Option<&str> {
        self.current_context.as_deref()
    }

    /// The names of all contexts, in order.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.contexts.keys().map(String::as_str)
    }

    /// The names of all clusters, in order.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        self.clusters.keys().map(String::as_str)
    }

    /// The names of all users, in order.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.users.keys().map(String::as_str)
    }

    /// The files it was read from, first to last.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The context of that name, or else the current one, and its name.
    ///
    /// # Errors
    /// [`ConfigError::NoCurrentContext`] or [`ConfigError::UnknownContext`].
    pub(super) fn context<'a>(&'a self, name: Option<&'a str>) -> Result<(&'a str, &'a Entry<Context>), ConfigError> {
        let Some(name) = name.or_else(|| self.current_context()) else {
            return Err(ConfigError::NoCurrentContext { files: self.files.clone() });
        };
        let unknown = || ConfigError::UnknownContext { name: name.into(), files: self.files.clone() };
        Ok((name, self.contexts.get(name).ok_or_else(unknown)?))
    }

    /// Whether the files say nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self { files: self.files.clone(), ..Self::default() }
    }
}

/// Names only: what is in the entries may be secret.
impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("files", &self.files)
            .field("current_context", &self.current_context)
            .field("clusters", &self.clusters.keys())
            .field("contexts", &self.contexts.keys())
            .field("users", &self.users.keys())
            .finish()
    }
}

/// An entry of a list, and where it is from.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry<T> {
    pub(super) place: Place,
    pub(super) content: T,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Place {
    File {
        list: &'static str,
        name: String,
        file: PathBuf,
    },
    /// What the caller puts in place of the fields of an entry.
    Caller,
    /// What a pod knows of its cluster and of itself.
    Pod,
}

impl<T> Entry<T> {
    /// A field of the entry, for people: `users[dev].user.client-key in /k/config`.
    pub(super) fn origin(&self, field: &str) -> Box<str> {
        match &self.place {
            Place::File { list, name, file } => format!("{list}[{name}].{field} in {}", file.display()).into(),
            Place::Caller => format!("{} as the caller gives it", field.rsplit('.').next().unwrap_or(field)).into(),
            Place::Pod => "the pod's service account".into(),
        }
    }

    /// A path in the entry: one that is relative starts where the file is.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        let folder = match &self.place {
            Place::File { file, .. } => file.parent().map(Path::to_owned).unwrap_or_default(),
            Place::Caller | Place::Pod => return path.into(),
        };
        clean(&folder.join(path))
    }
}

/// Takes `.` and `..` out of a path, without asking whether a step leads through a link.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match (component, cleaned.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                cleaned.pop();
            }
            (Component::ParentDir, Some(Component::RootDir)) => {}
            _ => cleaned.push(component),
        }
    }
    cleaned
}

fn index<T: Listed>(path: &Path, entries: Vec<Named<T>>) -> Result<BTreeMap<String, Entry<T>>, ConfigError> {
    let list = T::LIST;
    let mut index = BTreeMap::new();
    for Named { name, content } in entries {
        let place = Place::File { list, name: name.clone(), file: path.to_owned() };
        let entry = Entry { place, content };
        if index.insert(name.clone(), entry).is_some() {
            return Err(ConfigError::Duplicate { path: path.to_owned(), list, name: name.into() });
        }
    }
    Ok(index)
}

fn add_absent<T>(entries: &mut BTreeMap<String, T>, later: BTreeMap<String, T>) {
    for (name, entry) in later {
        entries.entry(name).or_insert(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Kubeconfig, ConfigError> {
        Kubeconfig::parse("/k/cfg".as_ref(), text.as_bytes())
    }

    #[test]
    fn nulls_nothing_and_unknown_fields_are_read_as_absent() {
        for text in ["", "# nothing\n", "---\n", "null", "{}", "users: null\nclusters:\ncontexts: ~\npreferences: {}\n"]
        {
            assert!(parse(text).unwrap().is_empty(), "{text:?}");
        }
        let config =
            parse("\u{feff}users: [{name: a, user: null}, {name: b}, {name: c, user: {odd: [1]}}]\nx: {}").unwrap();
        assert_eq!(config.users().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn numbers_and_flags_are_no_text() {
        for text in
            ["current-context: 1", "users: [{name: a, user: {token: 12}}]", "users: [{name: a, user: {password: on}}]"]
        {
            assert!(matches!(parse(text), Err(ConfigError::Undecodable { line: 1, .. })), "{text}");
        }
    }

    #[test]
    fn json_with_escapes_that_yaml_does_not_know_is_read() {
        let config = parse(r#"{"users":[{"name":"\ud83d\ude00\/","user":{"token":"t"}}]}"#).unwrap();
        assert_eq!(config.users().collect::<Vec<_>>(), ["😀/"]);
    }

    #[test]
    fn errors_name_file_line_and_field_but_not_what_it_holds() {
        let error = parse("users:\n- name: a\n  user:\n    token: [s3cret]\n").unwrap_err();
        assert_eq!(error.to_string(), "/k/cfg: line 4: users[0].user.token: not of the right type");
        let error = parse("users: [{name: a, user: {token: \"s3cret}}]\n").unwrap_err();
        assert!(error.to_string().starts_with("/k/cfg: line "), "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        assert!(Kubeconfig::parse("/k/cfg".as_ref(), b"\xff\xff").is_err());
    }

    #[test]
    fn two_entries_of_a_name_are_refused() {
        let error = parse("users: [{name: a}, {name: a}]").unwrap_err();
        assert_eq!(error.to_string(), "/k/cfg: users has two entries named \"a\"");
    }

    #[test]
    fn paths_are_cleaned_and_stay_absolute() {
        for (path, cleaned) in
            [("/k/conf/../pki/./ca", "/k/pki/ca"), ("/../a", "/a"), ("../a", "../a"), ("a/../../b", "../b")]
        {
            assert_eq!(clean(path.as_ref()), PathBuf::from(cleaned));
        }
    }
}
