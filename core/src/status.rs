//! `metav1.Status`: how the API server says what went wrong.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

/// The API server's own account of a failure, or of a deletion that succeeded.
///
/// Read leniently: what is missing or `null` is empty. See
/// <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/>.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Status {
    /// The HTTP code; 0 when the body has none.
    #[serde(deserialize_with = "or_default")]
    pub code: u16,
    /// `Success` or `Failure`.
    #[serde(deserialize_with = "or_default")]
    pub status: String,
    /// Why, for programs: `NotFound`, `AlreadyExists`, `Conflict`, `Expired` and so on.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Why, for people.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// What it is about.
    #[serde(deserialize_with = "or_default")]
    pub details: StatusDetails,
    /// The metadata of a list that could not be continued.
    #[serde(deserialize_with = "or_default")]
    pub metadata: StatusMetadata,
}

/// What a [`Status`] is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct StatusDetails {
    /// The object's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The object's API group.
    #[serde(deserialize_with = "or_default")]
    pub group: String,
    /// The object's kind, or the plural name of its type.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// The object's uid.
    #[serde(deserialize_with = "or_default")]
    pub uid: String,
    /// Single faults, such as one for each invalid field.
    #[serde(deserialize_with = "or_default")]
    pub causes: Vec<StatusCause>,
    /// Seconds after which the request may be sent again; 0 when nothing is said.
    #[serde(deserialize_with = "or_default")]
    pub retry_after_seconds: u32,
}

/// One of the faults behind a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct StatusCause {
    /// Why, for programs: `FieldValueInvalid`, `ResourceVersionTooLarge` and so on.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Why, for people.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// The path of the field at fault.
    #[serde(deserialize_with = "or_default")]
    pub field: String,
}

/// The list metadata of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct StatusMetadata {
    /// With an expired continue token: a token that goes on inconsistently from the newest version.
    #[serde(rename = "continue", deserialize_with = "or_default")]
    pub continue_token: String,
}

impl Status {
    /// A failure that the API server would report with `code` and `reason`.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            status: "Failure".to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// The same, with what it is about.
    #[must_use]
    pub fn with_details(self, details: StatusDetails) -> Self {
        Self { details, ..self }
    }

    /// Whether the object, or the path, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code == 404 || self.reason == "NotFound"
    }

    /// Whether the server has no such path, as that of a type which it does not serve. What does not exist then is more than
    /// an object.
    pub fn is_not_served(&self) -> bool {
        self.is_not_found() && self.details == StatusDetails::default() && self.message == NOT_SERVED
    }

    /// Whether an object of that name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// Whether the write was refused because the object has changed (and not because it exists already).
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict" || (self.code == 409 && !self.is_already_exists())
    }

    /// Whether a resource version or continue token is too old: list anew.
    ///
    /// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses>.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }

    /// Whether the server has not seen the asked resource version yet; an old server says so only in its message.
    pub fn is_resource_version_too_large(&self) -> bool {
        const MESSAGE: &str = "Too large resource version";
        let timed_out = self.code == 504 || self.reason == "Timeout";
        timed_out
            && (self.message.contains(MESSAGE)
                || self
                    .details
                    .causes
                    .iter()
                    .any(|cause| cause.reason == "ResourceVersionTooLarge" || cause.message.contains(MESSAGE)))
    }

    /// How long the server asks to wait before the request is sent again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.details.retry_after_seconds {
            0 => None,
            secs => Some(Duration::from_secs(secs.into())),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message.as_str(), self.reason.as_str()) {
            ("", "") => f.write_str("the API server gave no reason")?,
            ("", reason) => f.write_str(reason)?,
            (message, "") => f.write_str(message)?,
            (message, reason) => write!(f, "{message} ({reason})")?,
        }
        match self.code {
            0 => Ok(()),
            code => write!(f, " [{code}]"),
        }
    }
}

/// Takes `null`, and what does not fit, as absent: a status is read to report a failure, and must not hide it.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + serde::de::DeserializeOwned,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// What the API server says of a path that it does not have.
const NOT_SERVED: &str = "the server could not find the requested resource";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Status {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn odd_bodies_are_read_as_far_as_they_go() {
        let status = parse(r#"{"code":"410","reason":"Expired","details":null,"metadata":{"continue":"x"}}"#);
        assert_eq!((status.code, status.is_expired()), (0, true));
        assert_eq!(status.metadata.continue_token, "x");
    }

    #[test]
    fn too_large_is_known_by_cause_cause_message_or_message() {
        for text in [
            r#"{"code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#,
            r#"{"code":504,"details":{"causes":[{"message":"Too large resource version"}]}}"#,
            r#"{"reason":"Timeout","message":"Too large resource version: 5000, current: 12"}"#,
        ] {
            assert!(parse(text).is_resource_version_too_large(), "{text}");
        }
        assert!(!parse(r#"{"code":504,"reason":"Timeout","message":"slow"}"#).is_resource_version_too_large());
    }

    #[test]
    fn what_is_not_served_is_known_by_what_the_server_says() {
        let text = r#"{"reason":"NotFound","details":{},"code":404,"message":"the server could not find the requested resource"}"#;
        assert!(parse(text).is_not_served() && parse(text).is_not_found());
        assert!(!parse(&text.replace("{}", r#"{"name":"a"}"#)).is_not_served());
        assert!(!parse(r#"{"reason":"NotFound","code":404}"#).is_not_served());
    }

    #[test]
    fn an_object_that_exists_is_no_conflict_of_versions() {
        assert!(!parse(r#"{"code":409,"reason":"AlreadyExists"}"#).is_conflict());
        assert!(parse(r#"{"code":409,"reason":"Conflict"}"#).is_conflict());
    }
}
