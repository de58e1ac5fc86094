//! Tokens of service accounts, as `kubectl create token` asks for them.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloudcoil_core::UnixTime;
use serde_json::{Value, json};

use super::access::{ISSUER, Issued};
use super::body;
use super::cluster::{Call, Cluster, whole};
use super::errors::{Fault, Outcome, bad_request, conflict_of_kind, invalid, not_found, quote};
use super::object::{self, Draft, Object, child_mut, meta, set_meta, text_at};
use super::pages::check_write;
use super::reply::{Body, Reply};
use super::store::{Key, Place};
use super::user::{User, service_account_groups};

impl Cluster {
    /// Gives out a token that stands for a service account for some time.
    pub(crate) fn create_token(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        check_write(call.query, "CreateOptions")?;
        let mut asked = body::read(&self.kinds, call, (GROUP, "v1", KIND))?;
        check_body(call, &asked)?;
        let Some(account) = self.store.get(&call.resource.place, &call.key()).cloned() else {
            return Err(not_found(call.resource, call.name()));
        };
        let uid = meta(&asked, "uid");
        if !uid.is_empty() && uid != account.uid() {
            let why = format!(
                "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                account.uid()
            );
            return Err(conflict_of_kind(GROUP, KIND, call.name(), &why));
        }
        let seconds = complete(call, &account, &mut asked)?;
        let bound = self.bound(call, &asked)?;
        let dry = call.query.dry_run();
        let token = self.make_token(call, &account, &asked, seconds, &bound);
        if !dry {
            let needs = std::iter::once((call.resource.place.clone(), call.key(), account.uid().to_owned()));
            let issued = Issued {
                user: token.user,
                audiences: texts(object::at(&asked, &["spec", "audiences"])),
                expires: after(call.now.wall, seconds),
                needs: needs.chain(bound.map(|bound| (bound.place, bound.key, bound.uid))).collect(),
            };
            self.access.issue(call.now, token.text.clone(), issued);
        }
        let status = json!({"token": token.text, "expirationTimestamp": after(call.now.wall, seconds).to_rfc3339()});
        asked.insert("status".to_owned(), status);
        let body = whole("authentication.k8s.io/v1", KIND, &asked);
        Ok(Reply::Body(Body::json(201, &Value::Object(body))))
    }

    /// The object that a token is to be bound to.
    fn bound(&self, call: &Call<'_>, asked: &Draft) -> Outcome<Option<Bound>> {
        let Some(reference) = object::at(asked, &["spec", "boundObjectRef"]).and_then(Value::as_object) else {
            return Ok(None);
        };
        let (api_version, kind) = (text_at(reference, &["apiVersion"]), text_at(reference, &["kind"]));
        let plural = match (api_version, kind) {
            ("v1", "Pod") => "pods",
            ("v1", "Node") => "nodes",
            ("v1", "Secret") => "secrets",
            _ => {
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(bad_request(message));
            }
        };
        let Some(resource) = self.catalog.resource("", "v1", plural) else { return Ok(None) };
        let name = text_at(reference, &["name"]);
        let namespace = call.namespace().filter(|_| resource.is_namespaced());
        let key = super::store::key(namespace, name);
        let Some(object) = self.store.get(&resource.place, &key) else { return Err(not_found(resource, name)) };
        let account = text_at(object.fields(), &["spec", "serviceAccountName"]);
        if kind == "Pod" && account != call.name() {
            let message = format!(
                "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                quote(call.name())
            );
            return Err(bad_request(message));
        }
        let uid = text_at(reference, &["uid"]);
        if !uid.is_empty() && uid != object.uid() {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            );
            return Err(conflict_of_kind("", kind, name, &why));
        }
        let (place, uid) = (resource.place.clone(), object.uid().to_owned());
        Ok(Some(Bound { kind: kind.to_ascii_lowercase(), name: name.to_owned(), place, key, uid }))
    }

    /// A token in the form of a JSON web token. Nobody checks its signature: the server knows the tokens it gave out.
    fn make_token(
        &mut self,
        call: &Call<'_>,
        account: &Object,
        asked: &Draft,
        seconds: u64,
        bound: &Option<Bound>,
    ) -> Token {
        let (namespace, name) = (account.namespace(), account.name());
        let id = self.uid();
        let begun = call.now.wall.as_micros() / 1_000_000;
        let mut about = json!({"namespace": namespace, "serviceaccount": {"name": name, "uid": account.uid()}});
        let mut user = User {
            uid: account.uid().to_owned(),
            groups: service_account_groups(namespace),
            ..User::new(&format!("system:serviceaccount:{namespace}:{name}"), [])
        };
        user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("JTI={id}")]);
        if let Some(bound) = bound {
            about[&bound.kind] = json!({"name": bound.name, "uid": bound.uid});
            if matches!(&*bound.kind, "pod" | "node") {
                for (what, value) in [("name", &bound.name), ("uid", &bound.uid)] {
                    let key = format!("authentication.kubernetes.io/{}-{what}", bound.kind);
                    user.extra.insert(key, vec![value.clone()]);
                }
            }
        }
        let claims = json!({"aud": object::at(asked, &["spec", "audiences"]), "exp": begun + i64::try_from(seconds).unwrap_or(i64::MAX / 2),
            "iat": begun, "iss": ISSUER, "jti": id, "kubernetes.io": about, "nbf": begun, "sub": user.name});
        let header = json!({"alg": "HS256", "kid": "cloudcoil"});
        let signature: Vec<u8> = (0..4).flat_map(|_| self.random.bits().to_be_bytes()).collect();
        let parts = [header.to_string().into_bytes(), claims.to_string().into_bytes(), signature];
        Token { text: parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join("."), user }
    }
}

struct Token {
    text: String,
    user: User,
}

/// What a token is bound to.
struct Bound {
    kind: String,
    name: String,
    place: Place,
    key: Key,
    uid: String,
}

/// Refuses a body of another type, or for another account than the path names.
fn check_body(call: &Call<'_>, asked: &Draft) -> Outcome<()> {
    let kind = text_at(asked, &["kind"]);
    if !matches!(kind, "" | KIND) {
        let message = format!("the object provided is unrecognized (must be of type {KIND}): kind {}", quote(kind));
        return Err(bad_request(message));
    }
    for (field, wanted) in [("name", call.name()), ("namespace", call.namespace().unwrap_or_default())] {
        let given = meta(asked, field);
        if !given.is_empty() && given != wanted {
            let detail = format!("must match the service account {field} if specified");
            let fault = Fault::invalid(format!("metadata.{field}"), given, detail);
            return Err(invalid(GROUP, KIND, call.name(), &[fault]));
        }
    }
    Ok(())
}

/// Fills in what was not said, and answers for how many seconds the token is good.
fn complete(call: &Call<'_>, account: &Object, asked: &mut Draft) -> Outcome<u64> {
    for field in ["name", "namespace", "uid"] {
        set_meta(asked, field, Some(Value::from(account.meta(field))));
    }
    set_meta(asked, "creationTimestamp", Some(Value::from(call.now.wall.to_rfc3339())));
    asked.remove("status");
    let spec = child_mut(asked, "spec");
    if texts(spec.get("audiences")).is_empty() {
        spec.insert("audiences".to_owned(), json!([ISSUER]));
    }
    spec.entry("boundObjectRef").or_insert(Value::Null);
    let field = "spec.expirationSeconds";
    let seconds = match spec.get("expirationSeconds") {
        None | Some(Value::Null) => 3600,
        Some(value) => value.as_i64().ok_or_else(|| {
            bad_request(format!("{KIND} in version \"v1\" cannot be handled as a {KIND}: {field} is no whole number"))
        })?,
    };
    spec.insert("expirationSeconds".to_owned(), json!(seconds));
    let detail = match seconds {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return Ok(seconds.unsigned_abs()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Err(invalid(GROUP, KIND, "", &[Fault::invalid(field, seconds, detail)]))
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn after(wall: UnixTime, seconds: u64) -> UnixTime {
    let micros = i64::try_from(Duration::from_secs(seconds).as_micros()).unwrap_or(i64::MAX);
    // A second is as fine as the answer is.
    UnixTime::from_secs(wall.as_micros().saturating_add(micros) / 1_000_000)
}

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// How many seconds a token lasts at least.
const SHORTEST: i64 = 600;
/// And at most.
const LONGEST: i64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_in_whole_seconds_and_never_overflows() {
        assert_eq!(after(UnixTime::from_micros(1_500_000), 600), UnixTime::from_secs(601));
        assert!(after(UnixTime::from_micros(i64::MAX), u64::MAX) > UnixTime::from_secs(0));
    }
}
