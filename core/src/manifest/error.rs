//! What can be wrong with a manifest.

use std::fmt;

use thiserror::Error;

/// A document that holds no object, and where it is. Says nothing of what the values are, as they may be secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{source_name}{}{problem}", Where(*document, *line))]
#[non_exhaustive]
pub struct ManifestError {
    /// Where the text is from, such as the path of a file.
    pub source_name: Box<str>,
    /// Which document of the text, from 1 and without those that are empty; 0 when it is about all of them.
    pub document: usize,
    /// Which line of the text, from 1; 0 when it is about no line.
    pub line: usize,
    /// What is wrong.
    pub problem: ManifestProblem,
}

impl ManifestError {
    pub(super) fn new(source: &str, document: usize, line: usize, problem: ManifestProblem) -> Self {
        Self { source_name: source.into(), document, line, problem }
    }
}

/// What is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ManifestProblem {
    /// The text is no UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// The text is neither YAML nor JSON.
    #[error("{0}")]
    Syntax(Box<str>),
    /// A key occurs twice in one object.
    #[error("the key {0:?} occurs twice")]
    DuplicateKey(Box<str>),
    /// There is no object where one was asked for.
    #[error("there is no object in it")]
    Empty,
    /// There are so many objects where one was asked for.
    #[error("there are {0} objects in it, where one is asked for")]
    Several(usize),
    /// A document, or an item of a list, is something else than an object.
    #[error("{0} is no object")]
    NotAnObject(&'static str),
    /// The object does not say the version of its type.
    #[error("the object has no apiVersion")]
    MissingApiVersion,
    /// The object does not say its type.
    #[error("the object has no kind")]
    MissingKind,
    /// The object is of another type than was asked for.
    #[error("it is a {found}, where a {wanted} is asked for")]
    WrongType {
        /// The `apiVersion` and kind that were asked for.
        wanted: Box<str>,
        /// The `apiVersion` and kind that it has.
        found: Box<str>,
    },
    /// A field does not fit the type.
    #[error("{path}: {message}")]
    Misfit {
        /// The field.
        path: Box<str>,
        /// What does not fit.
        message: Box<str>,
    },
}

struct Where(usize, usize);

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(document, line) = *self;
        if document > 0 {
            write!(f, ": document {document}")?;
        }
        match line {
            0 => {}
            line if document > 0 => write!(f, " at line {line}")?,
            line => write!(f, ": line {line}")?,
        }
        f.write_str(": ")
    }
}
