//! From raw chunks to objects: the lines of a watch, the items of a list.
//!
//! Chunks may be cut anywhere: one big chunk and one byte at a time give the same objects. Only what is not yet whole
//! is kept, and no chunk is kept alive by an object.

mod event;
pub(crate) mod fuzz;
mod lines;
mod list;

use crate::error::DecodeError;
use crate::object::{Identity, Trim, TypeMeta};
use crate::resource::ResourceKey;

pub use event::{Bookmark, Frame, Frames};
pub use list::{ListBody, ListItem, ListMeta};

/// How objects are read from a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct FrameOptions {
    /// The longest event, or item of a list, in bytes; a longer one is passed over and reported.
    pub limit: usize,
    /// What is left out of each object.
    pub trim: Trim,
    /// The `apiVersion` and `kind` of objects that do not say theirs.
    pub types: Option<TypeMeta>,
}

impl FrameOptions {
    /// The longest event unless another limit is given: 16 MiB, ten times what etcd stores.
    pub const LIMIT: usize = 16 << 20;
}

impl Default for FrameOptions {
    fn default() -> Self {
        Self { limit: Self::LIMIT, trim: Trim::default(), types: None }
    }
}

/// An object that cannot be taken in, while everything around it can.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "which and why is all there is to say")]
pub struct Faulty {
    /// Which object it is, if that can be read.
    pub key: Option<ResourceKey>,
    /// What is wrong with it.
    pub error: DecodeError,
}

impl Faulty {
    fn of(text: &str, types: Option<&TypeMeta>, message: &str) -> Self {
        let identity = Identity::of(text);
        Self { key: identity.key(), error: identity.error(types, message) }
    }

    /// What is known of an object from the beginning of its text.
    fn too_long(prefix: &str, options: &FrameOptions) -> Self {
        Self::of(prefix, options.types.as_ref(), &format!("is longer than the limit of {} bytes", options.limit))
    }
}

#[cfg(test)]
mod tests;
