//! Reviews: questions in the form of objects.

use serde_json::{Map, Value, json};

use super::body::{self, Decoded};
use super::cluster::{Call, Cluster, place_in_namespace, whole};
use super::errors::{Fault, Outcome, bad_request, invalid};
use super::object::{self, Draft, set_meta, text_at};
use super::pages::check_write;
use super::reply::{Body, Reply};
use super::user::{AUTHENTICATED, MASTERS, User};

impl Cluster {
    /// Answers a review; `None` when the resource is none.
    pub(crate) fn review(&self, call: &Call<'_>) -> Option<Outcome<Reply>> {
        let answer = match (&*call.resource.of.group, &*call.resource.of.kind) {
            ("authentication.k8s.io", "SelfSubjectReview") => review_self,
            ("authentication.k8s.io", "TokenReview") => Self::review_token,
            ("authorization.k8s.io", "SelfSubjectRulesReview") => review_rules,
            ("authorization.k8s.io", "SelfSubjectAccessReview") => review_own_access,
            ("authorization.k8s.io", "SubjectAccessReview" | "LocalSubjectAccessReview") => review_access,
            _ => return None,
        };
        Some(self.answer_review(call, answer))
    }

    fn answer_review(
        &self,
        call: &Call<'_>,
        answer: fn(&Self, &Call<'_>, &mut Draft) -> Outcome<Value>,
    ) -> Outcome<Reply> {
        check_write(call.query, "CreateOptions")?;
        let Decoded { mut fields, warnings } = body::decode(&self.kinds, call)?;
        place_in_namespace(call, &mut fields)?;
        let status = answer(self, call, &mut fields)?;
        self.track(call, None, &mut fields);
        fields.insert("status".to_owned(), status);
        let of = &call.resource.of;
        let body = Body::json(201, &Value::Object(whole(&of.api_version(), &of.kind, &fields)));
        Ok(Reply::Body(Body { warnings, ..body }))
    }

    fn review_token(&self, call: &Call<'_>, fields: &mut Draft) -> Outcome<Value> {
        let token = text_at(fields, &["spec", "token"]);
        if token.is_empty() {
            return Err(bad_request("token is required for TokenReview in authentication"));
        }
        let wanted = object::at(fields, &["spec", "audiences"]).and_then(Value::as_array).cloned().unwrap_or_default();
        let Some((user, audiences)) = self.identify(call.now, token) else {
            return Ok(json!({"user": {}, "error": "invalid bearer token"}));
        };
        let good: Vec<_> =
            audiences.iter().filter(|audience| wanted.is_empty() || wanted.contains(&json!(audience))).collect();
        if good.is_empty() {
            let error = format!("token audiences {audiences:?} is invalid for the target audiences {wanted:?}");
            return Ok(json!({"user": {}, "error": error}));
        }
        Ok(json!({"authenticated": true, "user": user.render(), "audiences": good}))
    }
}

fn review_self(_: &Cluster, call: &Call<'_>, fields: &mut Draft) -> Outcome<Value> {
    set_meta(fields, "creationTimestamp", Some(Value::from(call.now.wall.to_rfc3339())));
    Ok(json!({"userInfo": call.user.render()}))
}

/// Everything may be done by whoever gets in; see [`access`](super::access).
fn review_rules(_: &Cluster, _: &Call<'_>, _: &mut Draft) -> Outcome<Value> {
    Ok(json!({"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}], "incomplete": false}))
}

fn review_own_access(_: &Cluster, call: &Call<'_>, fields: &mut Draft) -> Outcome<Value> {
    check(call, fields, &[])?;
    Ok(json!({"allowed": may(call.user, fields)}))
}

fn review_access(_: &Cluster, call: &Call<'_>, fields: &mut Draft) -> Outcome<Value> {
    let spec = fields.get("spec").cloned().unwrap_or_else(|| json!({}));
    let groups = || spec["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let user = User::new(spec["user"].as_str().unwrap_or_default(), groups());
    let nobody = user.name.is_empty() && user.groups.is_empty();
    let detail = "at least one of user or group must be specified";
    let faults: Vec<_> = nobody.then(|| Fault::invalid("spec.user", "", detail)).into_iter().collect();
    check(call, fields, &faults)?;
    Ok(json!({"allowed": may(&user, fields)}))
}

/// What the server's own rules say: see [`User`].
fn may(user: &User, fields: &Draft) -> bool {
    if user.is_in(MASTERS) {
        return true;
    }
    let verb = text_at(fields, &["spec", "resourceAttributes", "verb"]);
    let path = text_at(fields, &["spec", "nonResourceAttributes", "path"]);
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let open = matches!(first, "healthz" | "livez" | "readyz" | "version")
        && text_at(fields, &["spec", "nonResourceAttributes", "verb"]) == "get";
    open || (user.is_in(AUTHENTICATED) && !verb.starts_with("impersonate") && verb != "*")
}

/// An access review asks about a resource or a path, and not about both.
fn check(call: &Call<'_>, fields: &Draft, more: &[Fault]) -> Outcome<()> {
    let of = &call.resource.of;
    let spec = fields.get("spec").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    let mut faults = Vec::new();
    let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    match (spec.get("resourceAttributes").is_some(), spec.get("nonResourceAttributes").is_some()) {
        (true, true) => {
            // As Go shows the fields.
            let text = |name| text_at(&spec, &["nonResourceAttributes", name]);
            let value = json!({"Path": text("path"), "Verb": text("verb")});
            faults.push(Fault::invalid("spec", value, detail));
        }
        (false, false) => faults.push(Fault::invalid("spec", Value::Null, detail)),
        _ => {}
    }
    faults.extend_from_slice(more);
    let namespace = text_at(&spec, &["resourceAttributes", "namespace"]);
    if of.kind == "LocalSubjectAccessReview" && namespace != call.namespace().unwrap_or_default() {
        let fault = Fault::invalid("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace");
        faults.push(fault);
    }
    // The API server does not say the kind here.
    if faults.is_empty() { Ok(()) } else { Err(invalid(&of.group, "", "", &faults)) }
}
