//! OpenAPI: the types of what is served, and what requests may say, for clients that look before they ask.
//!
//! See <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3>.

mod paths;
mod schemas;

use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::cluster::Cluster;
use super::object::{Object, at};
use super::reply::Body;
use super::store::Key;
use schemas::Schemas;

/// The document at a path of OpenAPI; `None` when there is none.
pub(crate) fn answer(cluster: &Cluster, path: &[&str]) -> Option<Body> {
    match path {
        ["openapi", "v3"] => Some(Body::json(200, &index(cluster))),
        ["openapi", "v3", "api", version] => Some(Body::json(200, &document(cluster, "", version)?)),
        ["openapi", "v3", "apis", group, version] => Some(Body::json(200, &document(cluster, group, version)?)),
        _ => None,
    }
}

/// Where the document of each group and version is.
fn index(cluster: &Cluster) -> Value {
    let mut paths = Map::new();
    for group in cluster.catalog.groups() {
        for version in &group.versions {
            let path =
                if group.name.is_empty() { format!("api/{version}") } else { format!("apis/{}/{version}", group.name) };
            paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}")}));
        }
    }
    json!({"paths": paths})
}

fn document(cluster: &Cluster, group: &str, version: &str) -> Option<Value> {
    let mut schemas = Schemas::new(&cluster.kinds);
    let mut paths = Map::new();
    for resource in cluster.catalog.version(group, version)?.values() {
        let of = &resource.of;
        let schema = match schemas.kind(group, version, &of.kind) {
            Some(schema) if !resource.is_custom() => schema,
            _ => schemas.custom(of, custom_schema(cluster, resource)),
        };
        let list = resource.allows("list").then(|| schemas.list(of, &resource.list_kind, &schema));
        paths::add(&mut paths, resource, &schema, list.as_deref());
        for sub in &resource.subresources {
            if let Some(schema) = schemas.kind(&sub.group, &sub.version, &sub.kind) {
                paths::add_subresource(&mut paths, resource, sub, &schema);
            }
        }
    }
    Some(json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": super::server::VERSION}, "paths": paths,
        "components": {"schemas": schemas.finish()}}))
}

/// The schema that its definition gives a custom resource.
fn custom_schema(cluster: &Cluster, resource: &Resource) -> Option<Value> {
    let key = Key::from(&*resource.custom.as_ref()?.definition);
    let definition: &Object = cluster.store.get(super::controllers::DEFINITIONS, &key)?;
    let mut versions = at(definition.fields(), &["spec", "versions"])?.as_array()?.iter();
    let version = versions.find(|version| version["name"] == *resource.of.version)?;
    version.get("schema")?.get("openAPIV3Schema").cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::config::ServerConfig;

    fn core() -> Value {
        document(&Cluster::new(&ServerConfig::default()), "", "v1").unwrap()
    }

    #[test]
    fn every_group_and_version_has_a_document_whose_references_lead_somewhere() {
        let cluster = Cluster::new(&ServerConfig::default());
        let index = index(&cluster);
        let mut documents = 0;
        for url in index["paths"].as_object().unwrap().values() {
            let url = url["serverRelativeURL"].as_str().unwrap();
            let path: Vec<_> = url.trim_start_matches('/').split('/').collect();
            let body = answer(&cluster, &path).unwrap_or_else(|| panic!("no {url}"));
            let document: Value = serde_json::from_slice(&body.bytes).unwrap();
            check_references(&document, &document);
            documents += 1;
        }
        assert!(documents > 20);
        assert!(answer(&cluster, &["openapi", "v3", "apis", "none", "v1"]).is_none());
    }

    fn check_references(value: &Value, document: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    let found = document.pointer(reference.trim_start_matches('#'));
                    assert!(found.is_some(), "{reference} leads nowhere");
                }
                map.values().for_each(|value| check_references(value, document));
            }
            Value::Array(list) => list.iter().for_each(|value| check_references(value, document)),
            _ => {}
        }
    }

    #[test]
    fn writes_of_every_kind_have_field_validation() {
        let document = core();
        let validated = |path: &str, method: &str| {
            let parameters = document["paths"][path][method]["parameters"].as_array();
            parameters.is_some_and(|all| all.iter().any(|parameter| parameter["name"] == "fieldValidation"))
        };
        assert!(validated("/api/v1/namespaces/{namespace}/pods", "post"));
        assert!(validated("/api/v1/namespaces/{namespace}/pods/{name}", "patch"));
        assert!(validated("/api/v1/namespaces/{namespace}/pods/{name}/status", "patch"));
        assert!(validated("/api/v1/nodes/{name}", "patch"));
        assert!(!validated("/api/v1/namespaces/{namespace}/pods/{name}", "get"));
        assert_eq!(document["paths"].get("/api/v1/namespaces/{namespace}/bindings/{name}"), None);
    }

    #[test]
    fn fields_say_how_they_are_merged_and_which_are_required() {
        let schemas = &core()["components"]["schemas"];
        let pod = &schemas["io.k8s.api.core.v1.PodSpec"];
        let containers = &pod["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(pod["required"], json!(["containers"]));
        let limits = &schemas["io.k8s.api.core.v1.ResourceRequirements"]["properties"]["limits"];
        let quantity = "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity";
        assert_eq!(limits["additionalProperties"]["$ref"], quantity);
        let kind = json!([{"group": "", "kind": "Pod", "version": "v1"}]);
        assert_eq!(schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"], kind);
        let items = &schemas["io.k8s.api.core.v1.PodList"]["properties"]["items"]["items"];
        assert_eq!(items["$ref"], "#/components/schemas/io.k8s.api.core.v1.Pod");
    }
}
