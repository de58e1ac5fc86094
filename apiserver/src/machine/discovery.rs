//! Discovery: what the server serves, in one document or in many.

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::catalog::{Catalog, Group, Resource, Subresource};
use super::errors::Outcome;
use super::media::{Discovery, discovery};
use super::reply::Body;
use cloudcoil_core::Scope;

/// The document at a path of discovery; `None` when there is none.
pub(crate) fn answer(catalog: &Catalog, path: &[&str], headers: &HeaderMap) -> Option<Outcome<Body>> {
    let plain = |value: Value| Some(discovery(headers).map(|_| Body::json(200, &value)));
    match path {
        ["api"] => Some(aggregated_or(catalog, headers, true)),
        ["apis"] => Some(aggregated_or(catalog, headers, false)),
        ["api", version] => plain(resources(catalog, "", version)?),
        ["apis", group] => plain(api_group(catalog.group(group).filter(|group| !group.name.is_empty())?, true)),
        ["apis", group, version] if !group.is_empty() => plain(resources(catalog, group, version)?),
        _ => None,
    }
}

fn aggregated_or(catalog: &Catalog, headers: &HeaderMap, core: bool) -> Outcome<Body> {
    let groups = || catalog.groups().iter().filter(|group| group.name.is_empty() == core);
    match discovery(headers)? {
        Discovery::Aggregated(version) => {
            let items: Value = groups().map(|group| aggregated(catalog, group)).collect();
            let api_version = format!("apidiscovery.k8s.io/{version}");
            let body =
                json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items});
            let content_type = match version {
                "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            };
            Ok(Body::text(200, content_type, format!("{body}\n")).kept(headers))
        }
        Discovery::Separate if core => {
            let address = headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            Ok(Body::json(
                200,
                &json!({"kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]}),
            ))
        }
        Discovery::Separate => {
            let groups: Value = groups().map(|group| api_group(group, false)).collect();
            Ok(Body::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
        }
    }
}

fn api_group(group: &Group, alone: bool) -> Value {
    let version = |version| json!({"groupVersion": format!("{}/{version}", group.name), "version": version});
    let versions: Value = group.versions.iter().map(version).collect();
    let mut body = json!({"name": group.name, "versions": versions, "preferredVersion": versions[0]});
    if alone {
        body["kind"] = json!("APIGroup");
        body["apiVersion"] = json!("v1");
    }
    body
}

/// The resources of a group and version with their subresources, by name.
fn resources(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut listed = Vec::new();
    for resource in catalog.version(group, version)?.values() {
        listed.push(api_resource(resource));
        listed.extend(resource.subresources.iter().map(|sub| api_subresource(resource, sub)));
    }
    let mut body = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": listed});
    if !group.is_empty() {
        body["apiVersion"] = json!("v1");
    }
    Some(body)
}

fn api_resource(resource: &Resource) -> Value {
    let of = &resource.of;
    let mut body = json!({"name": of.plural, "singularName": resource.singular, "kind": of.kind,
        "namespaced": resource.is_namespaced(), "verbs": resource.verbs});
    for (field, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            body[field] = json!(list);
        }
    }
    if !resource.hash.is_empty() {
        body["storageVersionHash"] = json!(resource.hash);
    }
    body
}

fn api_subresource(resource: &Resource, sub: &Subresource) -> Value {
    let of = &resource.of;
    let mut body = json!({"name": format!("{}/{}", of.plural, sub.name), "singularName": "", "kind": sub.kind,
        "namespaced": resource.is_namespaced(), "verbs": sub.verbs});
    if (&sub.group, &sub.version) != (&of.group, &of.version) {
        body["group"] = json!(sub.group);
        body["version"] = json!(sub.version);
    }
    body
}

fn aggregated(catalog: &Catalog, group: &Group) -> Value {
    let version = |version: &std::borrow::Cow<'static, str>| {
        let resources = catalog.version(&group.name, version);
        let resources: Value =
            resources.into_iter().flatten().map(|(_, resource)| aggregated_resource(resource)).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Value = group.versions.iter().map(version).collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let of = &resource.of;
    let scope = if of.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" };
    let mut body = Map::new();
    body.insert("resource".to_owned(), json!(of.plural));
    // Empty stands for the group and version that the resource is listed under.
    let (group, version) = if resource.is_custom() { (&*of.group, &*of.version) } else { ("", "") };
    body.insert("responseKind".to_owned(), json!({"group": group, "version": version, "kind": of.kind}));
    body.insert("scope".to_owned(), json!(scope));
    body.insert("singularResource".to_owned(), json!(resource.singular));
    body.insert("verbs".to_owned(), json!(resource.verbs));
    for (field, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            body.insert(field.to_owned(), json!(list));
        }
    }
    if !resource.subresources.is_empty() {
        let subresources: Value =
            resource.subresources.iter().map(|sub| aggregated_subresource(resource, sub)).collect();
        body.insert("subresources".to_owned(), subresources);
    }
    Value::Object(body)
}

fn aggregated_subresource(resource: &Resource, sub: &Subresource) -> Value {
    let same = (&sub.group, &sub.version) == (&resource.of.group, &resource.of.version);
    let (group, version) = if same && !resource.is_custom() { ("", "") } else { (&*sub.group, &*sub.version) };
    json!({"subresource": sub.name, "responseKind": {"group": group, "version": version, "kind": sub.kind},
        "verbs": sub.verbs})
}
