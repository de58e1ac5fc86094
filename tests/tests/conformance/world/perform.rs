//! What the clients of both worlds are asked for, in the same words. Compiled twice: with `async`, and without.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudcoil_runtime::ResourceList;
use cloudcoil_runtime::core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use cloudcoil_runtime::core::manifest;
use serde_json::{Value, json};

use super::dual;
use super::facade::prelude::*;
use super::facade::{List, Watch};
use crate::world::Settings;
use crate::world::op::{Follow, Op, Operator, Other, Part, Place, Read, Reply, Until, Verb, With, Write};

/// Sets what is there to be set.
macro_rules! set {
    ($request:expr, $with:ident, [$($flag:ident)*] [$($field:ident: $method:ident)*]) => {{
        let mut request = $request;
        $(if $with.$flag { request = request.$flag(); })*
        $(if let Some(value) = $with.$field.clone() { request = request.$method(value); })*
        request
    }};
}

/// The client with other settings.
pub(crate) fn with(client: Client, settings: &Settings) -> Client {
    let Settings { namespace, timeout, retry, recorder } = settings;
    let client = client.with_default_namespace(namespace).with_timeout(*timeout).with_retry(*retry);
    match recorder {
        Some(recorder) => client.with_recorder(recorder.clone()),
        None => client,
    }
}

#[dual]
pub(crate) async fn perform(client: Client, op: Op) -> Result<Reply, Error> {
    let Op { kind, place, verb, with } = op;
    let api = client.api_for(kind.0);
    let api = match place {
        Place::Default => api,
        Place::Namespace(namespace) => api.namespace(&namespace),
        Place::Everywhere => api.all_namespaces(),
    };
    match verb {
        Verb::Read(verb) => read(api, verb, with).await,
        Verb::Write(verb) => write(api, verb, with).await,
        Verb::Part(verb) => part(api, verb, with).await,
        Verb::Other(verb) => other(api, verb, with).await,
    }
}

fn list(api: &Api<Unstructured>, with: &With) -> List<Unstructured> {
    set!(api.list(), with, [] [labels: labels fields: fields limit: limit token: continue_from])
}

#[dual]
async fn read(api: Api<Unstructured>, verb: Read, with: With) -> Result<Reply, Error> {
    Ok(match verb {
        Read::Get(name) => Reply::Object(Box::new(api.get(&name).send().await?)),
        Read::Find(name) => match api.get_opt(&name).await? {
            Some(object) => Reply::Object(Box::new(object)),
            None => Reply::Missing,
        },
        Read::Metadata(name) => Reply::Object(Box::new(api.get(&name).metadata().await?)),
        Read::Table(name) => Reply::Table(Box::new(api.get(&name).table().await?)),
        Read::List => Reply::List(Box::new(list(&api, &with).send().await?)),
        Read::Page => Reply::List(Box::new(list(&api, &with).page().await?)),
        Read::Objects => {
            let mut stream = list(&api, &with).stream();
            let mut list = ResourceList::default();
            while let Some(object) = stream.try_next().await? {
                list.items.push(object);
            }
            Reply::List(Box::new(list))
        }
        Read::ListMetadata => Reply::List(Box::new(list(&api, &with).metadata().send().await?)),
        Read::ListTable => Reply::Table(Box::new(list(&api, &with).table().await?)),
    })
}

#[dual]
async fn write(api: Api<Unstructured>, verb: Write, with: With) -> Result<Reply, Error> {
    let object = match verb {
        Write::Create(object) => {
            let object = unstructured(object);
            set!(api.create(&object), with, [dry_run] [manager: field_manager]).send().await?
        }
        Write::Replace(object) => {
            let object = unstructured(object);
            set!(api.replace(&object), with, [dry_run] [manager: field_manager subresource: subresource]).send().await?
        }
        Write::Patch(name, patch) => {
            let request = api.patch(&name, patch);
            set!(request, with, [dry_run force] [manager: field_manager subresource: subresource]).send().await?
        }
        Write::Apply(object) => {
            let request = api.apply(with.manager.unwrap_or_default(), &unstructured(object));
            set!(request, with, [dry_run force] [subresource: subresource]).send().await?
        }
        Write::Delete(name) => {
            let request = api.delete(&name);
            let request = set!(request, with, [dry_run] [propagation: propagation uid: uid version: resource_version]);
            return Ok(Reply::Deleted(Box::new(request.send().await?)));
        }
        Write::DeleteCollection => {
            let request = api.delete_collection();
            let request = set!(request, with, [dry_run] [propagation: propagation labels: labels fields: fields]);
            return Ok(Reply::List(Box::new(request.send().await?)));
        }
    };
    Ok(Reply::Object(Box::new(object)))
}

#[dual]
async fn part(api: Api<Unstructured>, verb: Part, with: With) -> Result<Reply, Error> {
    let value: Value = match verb {
        Part::Get { name, part } => api.subresource(&name, part).get().await?,
        Part::Replace { name, part, body } => {
            set!(api.subresource(&name, part).replace(&body), with, [dry_run] [manager: field_manager]).send().await?
        }
        Part::Patch { name, part, patch } => {
            let request = api.subresource(&name, part).patch(patch);
            set!(request, with, [dry_run force] [manager: field_manager]).send().await?
        }
        Part::SetReplicas(name, replicas) => api.set_replicas(&name, replicas).send().await?.into_value(),
        Part::Evict(name) => {
            let request = set!(api.evict(&name), with, [dry_run] [uid: uid]);
            return Ok(Reply::Evicted(Box::new(request.send().await?)));
        }
        Part::Log(name) => return Ok(Reply::Text(api.logs(&name).send().await?)),
    };
    Ok(Reply::Object(Box::new(unstructured(value))))
}

#[dual]
async fn other(api: Api<Unstructured>, verb: Other, with: With) -> Result<Reply, Error> {
    let client = api.client();
    Ok(match verb {
        Other::WaitFor { name, until, timeout } => {
            let wait = api.wait_for(&name).timeout(timeout);
            let wait = match until {
                Until::Exists => wait.exists(),
                Until::Deleted => wait.deleted(),
                Until::Condition(condition) => wait.condition(condition),
            };
            Reply::Text(wait.send().await?.predicate)
        }
        Other::FindType(name) => {
            let found = client.discovery().find(&name).await?.resource_type;
            Reply::Text(format!("{}/{}", found.api_version(), found.plural))
        }
        Other::Whoami => Reply::Text(client.whoami().await?.username.unwrap_or_default()),
        Other::Version => Reply::Version(Box::new(client.server_version().await?)),
        Other::Ready => {
            client.check_ready().await?;
            Reply::Ready
        }
        Other::Manifest { text, deletes } => {
            let objects = manifest::parse("the test", text.as_bytes()).expect("the text of a test is a manifest");
            let manifests = client.manifests(objects);
            let request = match deletes {
                true => manifests.delete(),
                false => manifests.apply(with.manager.unwrap_or_default()),
            };
            Reply::Outcomes(set!(request, with, [dry_run force] []).send().await.outcomes)
        }
    })
}

pub(crate) fn watch(client: &Client, follow: Follow) -> Watch<Unstructured> {
    let Follow { kind, everywhere, labels, fields, pages } = follow;
    let api = client.api_for(kind.0);
    let api = if everywhere { api.all_namespaces() } else { api };
    let follow = With { labels, fields, ..With::default() };
    let watch = set!(api.watch(), follow, [] [labels: labels fields: fields]);
    watch.configure(|config| {
        if let Some(size) = pages {
            (config.streaming, config.page_size) = (false, size);
        }
    })
}

pub(crate) fn informer(client: &Client, follow: Follow) -> Informer<Unstructured> {
    let Follow { kind, everywhere, labels, fields, pages } = follow;
    let api = client.api_for(kind.0);
    let informer = Informer::new(if everywhere { api.all_namespaces() } else { api });
    let informer = match labels {
        Some(labels) => informer.labels(labels),
        None => informer,
    };
    let informer = match fields {
        Some(fields) => informer.fields(fields),
        None => informer,
    };
    informer.configure(|config| {
        if let Some(size) = pages {
            (config.watch.streaming, config.watch.page_size) = (false, size);
        }
    })
}

pub(crate) fn controller(operator: Operator) -> Controller<ConfigMap> {
    let controller = Controller::<ConfigMap>::new();
    match operator {
        Operator::KeepsChild => controller.owns::<Secret>().reconcile(keep_child),
        Operator::Labels => controller.reconcile(label),
        Operator::CleansUp => controller.reconcile(clean_up),
        Operator::Stumbles => controller.reconcile(stumble),
    }
}

#[dual]
async fn keep_child(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<(), Stop> {
    let mut child = Secret { string_data: map.data.clone(), ..Secret::default() };
    child.metadata.name = Some(format!("{}-child", map.name()));
    ctx.ensure(child).await?;
    Ok(())
}

#[dual]
async fn label(map: Arc<ConfigMap>, _ctx: Context<ConfigMap>) -> Result<ConfigMap, Stop> {
    let mut map = (*map).clone();
    map.metadata.labels.get_or_insert_default().insert("seen".into(), "yes".into());
    Ok(map)
}

#[dual]
async fn clean_up(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<ConfigMap, Stop> {
    const FINALIZER: &str = "example.com/cleanup";
    let mut map = (*map).clone();
    let is_going = map.metadata.deletion_timestamp.is_some();
    let finalizers = map.metadata.finalizers.get_or_insert_default();
    if is_going {
        let secrets = ctx.client().api::<Secret>();
        match secrets.delete(&format!("{}-outside", map.metadata.name.as_deref().unwrap_or_default())).send().await {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => finalizers.retain(|finalizer| finalizer != FINALIZER),
        }
    } else if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    Ok(map)
}

#[dual]
async fn stumble(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<ConfigMap, Stop> {
    match at_first_sight(&map).as_deref() {
        Some("fails") => Err(Stop::failed("not now")),
        Some("panics") => panic!("this handler panics"),
        Some("waits") => Err(Wait::new("NotNow").after(Duration::from_millis(50)).into()),
        _ => label(map, ctx).await,
    }
}

/// What an object says is to happen, when it is seen for the first time.
fn at_first_sight(map: &ConfigMap) -> Option<String> {
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    // Namespaces are those of tests; uids are the same in each server.
    let object = format!("{:?} {}", map.metadata.namespace, map.name());
    let is_new = SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(object);
    map.data.as_ref()?.get("key").filter(|_| is_new).cloned()
}

fn unstructured(value: Value) -> Unstructured {
    match value {
        Value::Object(fields) => Unstructured::from(fields),
        other => panic!("no object: {}", json!(other)),
    }
}
