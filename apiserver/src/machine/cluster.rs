//! The state behind the API, and what a request to a resource is answered with.

use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::{Now, Random};
use http::{HeaderMap, Method};
use serde_json::{Map, Value};

use super::access::Access;
use super::catalog::{Catalog, Resource, Subresource};
use super::config::ServerConfig;
use super::controllers::NAMESPACES;
use super::errors::{Outcome, Refusal, method_not_supported};
use super::logs::Logs;
use super::media::{self, Form};
use super::object::{self, Draft, Object};
use super::reply::Reply;
use super::route::{Query, Target};
use super::store::{Change, Key, Store, key};
use super::user::User;
use crate::kinds::Kinds;

/// What is stored and served, and how it is written.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) catalog: Catalog,
    pub(crate) store: Store,
    pub(crate) random: Random,
    /// Whom the server lets in.
    pub(crate) access: Access,
    /// What containers have written.
    pub(crate) logs: Logs,
    /// The certificate that namespaces are told to trust.
    pub(crate) root_ca: String,
    /// The revision at which the cache that serves watches and unversioned reads stands still, if it does.
    pub(crate) frozen: Option<u64>,
    /// The writes of this step, for whoever has to hear of them.
    pub(crate) changes: Vec<Change>,
    /// What to warn of even if the request at hand is refused.
    pub(crate) warnings: Vec<String>,
}

/// One request to a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) now: Now,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) target: &'a Target,
    pub(crate) query: &'a Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    /// Who asks.
    pub(crate) user: &'a User,
}

impl<'a> Call<'a> {
    pub(crate) fn namespace(&self) -> Option<&'a str> {
        self.target.namespace.as_deref()
    }

    /// The name in the path; empty for a collection.
    pub(crate) fn name(&self) -> &'a str {
        self.target.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> Key {
        key(self.namespace(), self.name())
    }

    pub(crate) fn form(&self) -> Outcome<Form> {
        media::form(self.headers)
    }

    pub(crate) fn subresource(&self) -> Option<&'a Subresource> {
        self.resource.subresource(self.target.subresource.as_deref()?)
    }
}

impl Cluster {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self {
            catalog: Catalog::new(&config.kinds),
            kinds: Arc::clone(&config.kinds),
            store: Store::new(config.history),
            random: Random::new(config.seed),
            access: Access::new(config),
            logs: Logs::default(),
            root_ca: config.root_ca.clone(),
            frozen: None,
            changes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Answers a request to a resource or one of its subresources.
    pub(crate) fn answer(&mut self, method: &Method, call: &Call<'_>) -> Outcome<Reply> {
        if call.target.subresource.is_some() {
            return self.answer_subresource(method, call);
        }
        let named = call.target.name.is_some();
        let placed = call.target.namespace.is_some() == call.resource.is_namespaced();
        match *method {
            Method::GET if call.target.watch => self.watch(call),
            Method::GET if named && placed => self.get(call),
            Method::GET if call.query.flag("watch") && !named => self.watch(call),
            Method::GET if !named => self.list(call),
            Method::POST if !named && placed && call.resource.is("", "bindings") => self.bind(call),
            Method::POST if !named && placed => self.review(call).unwrap_or_else(|| self.create(call)),
            Method::PUT if named && placed => self.replace(call),
            Method::PATCH if named && placed => self.patch(call),
            Method::DELETE if named && placed => self.delete(call),
            Method::DELETE if placed => self.delete_collection(call),
            _ => Err(super::errors::method_not_allowed()),
        }
    }

    fn answer_subresource(&mut self, method: &Method, call: &Call<'_>) -> Outcome<Reply> {
        let Some(subresource) = call.subresource() else {
            return Err(if call.resource.is_custom() {
                super::errors::not_found(call.resource, call.name())
            } else {
                super::errors::no_such_path()
            });
        };
        let verb = match *method {
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "",
        };
        if !subresource.verbs.iter().any(|allowed| allowed == verb) {
            return Err(super::errors::method_not_allowed());
        }
        match (&*subresource.name, verb) {
            ("status" | "ephemeralcontainers" | "resize" | "approval", "get") => self.get(call),
            ("status" | "ephemeralcontainers" | "resize" | "approval", "update") => self.replace(call),
            ("status" | "ephemeralcontainers" | "resize" | "approval", "patch") => self.patch(call),
            ("scale", verb) => self.scale(call, verb),
            ("binding", "create") => self.bind(call),
            ("eviction", "create") => self.evict(call),
            ("log", "get") => self.log(call),
            ("token", "create") => self.create_token(call),
            ("exec" | "attach" | "portforward" | "proxy", _) if call.resource.is("", "pods") => self.connect(call),
            ("finalize", "update") => self.replace(call),
            _ => Err(method_not_supported(call.resource, verb)),
        }
    }

    /// Refuses what this resource does not do.
    pub(crate) fn allow(resource: &Resource, verb: &str) -> Outcome<()> {
        if resource.allows(verb) { Ok(()) } else { Err(super::errors::method_not_allowed()) }
    }

    /// Writes an object and remembers that it was written.
    pub(crate) fn put(&mut self, resource: &Resource, key: &Key, fields: Draft) -> Arc<Object> {
        let change = self.store.put(&resource.place, key, fields);
        let after = change.after.clone().expect("a put leaves an object");
        self.changes.push(change);
        after
    }

    /// Removes an object and remembers that it was removed; answers with what it was.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &Key) -> Option<Arc<Object>> {
        let change = self.store.remove(&resource.place, key)?;
        let gone = change.before.as_ref().map(|before| before.at(change.revision));
        self.changes.push(change);
        gone
    }

    /// A uid that no other object has.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.random.bits(), self.random.bits());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48) & 0x3fff,
            low & 0xffff_ffff_ffff
        )
    }

    /// The namespace of an object that is to be written, which must be there and not be going away.
    pub(crate) fn check_namespace(&self, call: &Call<'_>, name: &str, creating: bool) -> Outcome<()> {
        let Some(namespace) = call.namespace() else { return Ok(()) };
        let Some(found) = self.store.get(NAMESPACES, namespace) else {
            return Err(super::errors::namespace_not_found(namespace));
        };
        if creating && found.is_deleting() {
            return Err(terminating(call.resource, name, namespace));
        }
        Ok(())
    }
}

fn terminating(resource: &Resource, name: &str, namespace: &str) -> Refusal {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut refusal = super::errors::forbidden(resource, name, &why);
    let message = format!("namespace {namespace} is being terminated");
    refusal.details.causes = vec![super::errors::cause("NamespaceTerminating", &message, "metadata.namespace")];
    refusal
}

/// The object as it is served: with the `apiVersion` and `kind` that were asked for.
pub(crate) fn whole(api_version: &str, kind: &str, fields: &Draft) -> Map<String, Value> {
    let mut whole = fields.clone();
    whole.insert("apiVersion".to_owned(), Value::from(api_version));
    whole.insert("kind".to_owned(), Value::from(kind));
    whole
}

/// Fills in the namespace of the path, or refuses another.
pub(crate) fn place_in_namespace(call: &Call<'_>, fields: &mut Draft) -> Outcome<()> {
    let wanted = call.namespace().unwrap_or_default();
    match object::meta(fields, "namespace") {
        found if found == wanted => {}
        "" => object::set_meta(fields, "namespace", Some(Value::from(wanted))),
        _ if wanted.is_empty() => object::set_meta(fields, "namespace", None),
        _ => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(super::errors::bad_request(message));
        }
    }
    Ok(())
}
