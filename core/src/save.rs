//! Creating or replacing, whichever it takes.

use crate::error::Error;
use crate::resource::Resource;

/// The next request of a save: an object that has no name yet, or that nobody has created, is created, and any other replaced
/// by what it is to be, on the condition that nobody else changes it meanwhile.
///
/// ```
/// use cloudcoil_core::{Resource, SaveStep};
/// use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut map = ConfigMap::default();
/// assert_eq!(SaveStep::first(&map), SaveStep::Create);
/// map.metadata_mut().set_name("a");
/// assert_eq!(SaveStep::first(&map), SaveStep::Fetch);
/// map.metadata_mut().set_resource_version(Some("7"));
/// assert_eq!(SaveStep::first(&map), SaveStep::Replace);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever saves must know all of them")]
pub enum SaveStep {
    /// Create the object.
    Create,
    /// Replace the object, which carries the version that it is based on.
    Replace,
    /// Read the object that is stored, and go on with [`fetched`](Self::fetched).
    Fetch,
}

impl SaveStep {
    /// How the save of an object begins.
    pub fn first(object: &impl Resource) -> Self {
        if object.name().is_empty() {
            Self::Create
        } else if object.resource_version().is_some() {
            Self::Replace
        } else {
            Self::Fetch
        }
    }

    /// What follows a [`Fetch`](Self::Fetch). An object that exists gives `object` its version.
    ///
    /// # Errors
    /// Why the object could not be read, unless there is none.
    pub fn fetched<K: Resource>(object: &mut K, stored: Result<K, Error>) -> Result<Self, Error> {
        match stored {
            Ok(stored) => {
                object.metadata_mut().set_resource_version(stored.resource_version());
                Ok(Self::Replace)
            }
            // A path that is not served is 404 too.
            Err(Error::Api(status)) if status.is_not_found() && !status.is_not_served() => Ok(Self::Create),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::status::Status;

    #[test]
    fn what_is_not_there_is_created_and_what_is_replaced_as_it_was_read() {
        let mut map = ConfigMap::default();
        let mut stored = ConfigMap::default();
        stored.metadata_mut().set_resource_version(Some("7"));
        assert_eq!(SaveStep::fetched(&mut map, Ok(stored)), Ok(SaveStep::Replace));
        assert_eq!(map.resource_version(), Some("7"));
        let gone = Status::failure(404, "NotFound", "");
        assert_eq!(SaveStep::fetched(&mut map, Err(gone.into())), Ok(SaveStep::Create));
        let refused = Error::from(Status::failure(403, "Forbidden", ""));
        assert_eq!(SaveStep::fetched(&mut map, Err(refused.clone())), Err(refused));
    }
}
