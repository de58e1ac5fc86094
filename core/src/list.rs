//! Lists of objects, each decoded alone.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{BodyProblem, DecodeError, Error};
use crate::exchange::Answer;
use crate::resource::Resource;
use crate::response::{self, decode_item};
use crate::status::Status;

/// One page of a list, or a whole one.
///
/// An object that does not fit its type is an error of its own and hides no other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceList<K> {
    /// The objects that fit, in the server's order.
    pub items: Vec<K>,
    /// One error for each object that does not fit.
    pub errors: Vec<DecodeError>,
    /// The version of the whole list: where a watch goes on from.
    pub resource_version: Option<String>,
    /// The token of the next page; `None` on the last.
    pub continue_token: Option<String>,
    /// How many objects come after this page, where the server knows it.
    pub remaining_item_count: Option<u64>,
}

impl<K> Default for ResourceList<K> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            errors: Vec::new(),
            resource_version: None,
            continue_token: None,
            remaining_item_count: None,
        }
    }
}

impl<K: Resource> ResourceList<K> {
    /// The list an answer carries.
    ///
    /// # Errors
    /// As [`response::decode`], but for objects that do not fit: those are in [`errors`](Self::errors).
    pub fn decode(answer: &Answer) -> Result<Self, Error> {
        let raw: RawList<'_> = response::decode_borrowed(answer)?;
        let kind = raw.kind.as_deref().unwrap_or_default();
        if raw.items.is_none() && !kind.ends_with("List") {
            return Err(response::body_error(answer, BodyProblem::NotJson));
        }
        let api_version = raw.api_version.as_deref().unwrap_or_default();
        let item_kind = kind.strip_suffix("List").unwrap_or_default();
        let metadata = raw.metadata.unwrap_or_default();
        let mut list = Self {
            resource_version: metadata.resource_version.filter(|version| !version.is_empty()),
            continue_token: metadata.continue_token.filter(|token| !token.is_empty()),
            remaining_item_count: metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok()),
            ..Self::default()
        };
        for item in raw.items.unwrap_or_default() {
            match decode_item::<K>(item.get(), item_kind) {
                Ok(mut object) => {
                    if !item_kind.is_empty() {
                        object.fill_type(api_version, item_kind);
                    }
                    list.items.push(object);
                }
                Err(error) => list.errors.push(error),
            }
        }
        Ok(list)
    }
}

impl<K> ResourceList<K> {
    /// The objects, if all fit.
    ///
    /// # Errors
    /// The first of [`errors`](Self::errors).
    pub fn all(self) -> Result<Vec<K>, DecodeError> {
        match self.errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(self.items),
        }
    }

    /// Adds the page that comes after this one.
    pub fn append(&mut self, next: Self) {
        self.items.extend(next.items);
        self.errors.extend(next.errors);
        // The pages of one list share a version; a first page may come without it.
        self.resource_version = next.resource_version.or_else(|| self.resource_version.take());
        self.continue_token = next.continue_token;
        self.remaining_item_count = next.remaining_item_count;
    }
}

/// What a deletion is answered with.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the API server answers with one of these")]
pub enum Deleted<K> {
    /// The object: as it was, or as it is while it waits for finalizers, children or the end of its grace period.
    Object(Box<K>),
    /// The account of a deletion that is complete.
    Status(Box<Status>),
}

impl<K: Resource> Deleted<K> {
    /// What the answer to a deletion carries.
    ///
    /// # Errors
    /// As [`response::decode`].
    pub fn decode(answer: &Answer) -> Result<Self, Error> {
        if response::is_status(answer)? {
            response::decode(answer).map(|status| Self::Status(Box::new(status)))
        } else {
            response::decode(answer).map(|object| Self::Object(Box::new(object)))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawList<'a> {
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    metadata: Option<RawMetadata>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMetadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unstructured;
    use http::{HeaderMap, StatusCode};
    use k8s_openapi::api::core::v1::Pod;

    fn answer(body: &str) -> Answer {
        let mut answer = Answer::new(StatusCode::OK, HeaderMap::new());
        answer.receive(body.as_bytes());
        answer
    }

    #[test]
    fn an_object_that_does_not_fit_hides_no_other() {
        let body = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":""},"items":[
            {"metadata":{"name":"a"}},{"metadata":{"name":"b","namespace":"ns"},"spec":{"containers":1}},{"metadata":{"name":"c"}}]}"#;
        let list = ResourceList::<Pod>::decode(&answer(body)).unwrap();
        assert_eq!(list.items.iter().map(Resource::name).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!((&*list.errors[0].object, &*list.errors[0].path), ("Pod ns/b", "spec.containers"));
        assert_eq!((list.resource_version.as_deref(), list.continue_token.as_deref()), (Some("7"), None));
        assert!(list.all().is_err());
    }

    #[test]
    fn objects_get_the_type_that_the_list_says() {
        let body = r#"{"kind":"OddList","apiVersion":"x/v1","items":[{"metadata":{"name":"a"}},{"kind":"Even","apiVersion":"y/v1"}]}"#;
        let list = ResourceList::<Unstructured>::decode(&answer(body)).unwrap();
        let types: Vec<_> = list.items.iter().map(|item| (item.api_version(), item.kind())).collect();
        assert_eq!(types, [("x/v1", "Odd"), ("y/v1", "Even")]);
    }

    #[test]
    fn no_items_is_an_empty_list_but_an_object_is_none() {
        let list = ResourceList::<Pod>::decode(&answer(r#"{"kind":"PodList","items":null}"#)).unwrap();
        assert!(list.items.is_empty());
        assert!(ResourceList::<Pod>::decode(&answer(r#"{"kind":"Pod","metadata":{}}"#)).is_err());
        assert!(ResourceList::<Pod>::decode(&answer("<html>")).is_err());
    }

    #[test]
    fn a_deletion_answers_with_the_object_or_a_status() {
        let object = Deleted::<Pod>::decode(&answer(r#"{"kind":"Pod","metadata":{"name":"a"}}"#)).unwrap();
        assert!(matches!(object, Deleted::Object(pod) if pod.name() == "a"));
        let status = Deleted::<Pod>::decode(&answer(r#"{"kind":"Status","status":"Success"}"#)).unwrap();
        assert!(matches!(status, Deleted::Status(status) if status.status == "Success"));
    }
}
