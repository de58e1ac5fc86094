//! Reviews: questions in the form of objects. Whoever gets in may do everything.

use serde_json::{Map, Value, json};

use super::body::{self, Decoded};
use super::cluster::{Call, Cluster, place_in_namespace, whole};
use super::errors::{Fault, Outcome, invalid};
use super::object::{Draft, text_at};
use super::pages::check_write;
use super::reply::{Body, Reply};

impl Cluster {
    /// Answers a review; `None` when the resource is none.
    pub(crate) fn review(&self, call: &Call<'_>) -> Option<Outcome<Reply>> {
        let status = match (&*call.resource.of.group, &*call.resource.of.kind) {
            ("authentication.k8s.io", "SelfSubjectReview") => |_: &Self, _: &Draft| json!({"userInfo": user()}),
            ("authentication.k8s.io", "TokenReview") => Self::review_token,
            ("authorization.k8s.io", "SelfSubjectRulesReview") => |_: &Self, _: &Draft| rules(),
            ("authorization.k8s.io", _) => |_: &Self, _: &Draft| json!({"allowed": true}),
            _ => return None,
        };
        Some(self.answer_review(call, status))
    }

    fn answer_review(&self, call: &Call<'_>, status: impl Fn(&Self, &Draft) -> Value) -> Outcome<Reply> {
        check_write(call.query, "CreateOptions")?;
        let Decoded { mut fields, warnings } = body::decode(&self.kinds, call)?;
        place_in_namespace(call, &mut fields)?;
        check(call, &fields)?;
        let answer = status(self, &fields);
        fields.insert("status".to_owned(), answer);
        let of = &call.resource.of;
        let body = Body::json(201, &Value::Object(whole(&of.api_version(), &of.kind, &fields)));
        Ok(Reply::Body(Body { warnings, ..body }))
    }

    fn review_token(&self, fields: &Draft) -> Value {
        let known = self.token.as_deref().is_some_and(|token| token == text_at(fields, &["spec", "token"]));
        if known {
            json!({"authenticated": true, "user": user()})
        } else {
            json!({"user": {}, "error": "invalid bearer token"})
        }
    }
}

/// An access review asks about a resource or a path, and not about both.
fn check(call: &Call<'_>, fields: &Draft) -> Outcome<()> {
    let of = &call.resource.of;
    let asks = matches!(&*of.kind, "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview");
    if !asks {
        return Ok(());
    }
    let spec = fields.get("spec").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    if spec.contains_key("resourceAttributes") != spec.contains_key("nonResourceAttributes") {
        return Ok(());
    }
    let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let fault = Fault::invalid("spec.resourceAttributes", Value::Null, detail);
    Err(invalid(&of.group, &of.kind, "", &[fault]))
}

fn user() -> Value {
    json!({"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]})
}

fn rules() -> Value {
    json!({"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}], "incomplete": false})
}
