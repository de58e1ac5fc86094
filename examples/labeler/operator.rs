//! The operator itself: keeps a derived ConfigMap in step with each ConfigMap that asks for one.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudcoil_core::Resource as _;
use cloudcoil_runtime::Stop;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::facade::{Context, Controller, dual};

/// ConfigMaps with this label get a derived one.
pub(crate) const LABEL: &str = "labeler.example.com/derive";

/// What the derived ConfigMap is called, behind the name of its owner.
pub(crate) const SUFFIX: &str = "-derived";

/// Watches ConfigMaps with the label, and the ConfigMaps made for them.
pub(crate) fn controller() -> Controller<ConfigMap> {
    Controller::<ConfigMap>::new()
        .labels(format!("{LABEL}=true"))
        .all_namespaces()
        .owns::<ConfigMap>()
        .workers(2)
        .reconcile(reconcile)
}

/// One pass: makes the derived ConfigMap what it should be. Nothing is written when it is so already.
#[dual]
async fn reconcile(source: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<(), Stop> {
    if source.is_deleting() {
        return Ok(());
    }
    ctx.ensure(derived(&source)).await?;
    tracing::info!("{} is in step", ctx.key());
    Ok(())
}

/// The derived ConfigMap: the same keys, with shouted values, and how many there are as a label.
pub(crate) fn derived(source: &ConfigMap) -> ConfigMap {
    let data: BTreeMap<String, String> =
        source.data.iter().flatten().map(|(key, value)| (key.clone(), value.to_uppercase())).collect();
    let labels = BTreeMap::from([("labeler.example.com/keys".to_owned(), data.len().to_string())]);
    let name = format!("{}{SUFFIX}", source.name());
    let metadata = ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shouted_and_counted() {
        let data = BTreeMap::from([("a".to_owned(), "hello".to_owned())]);
        let mut source = ConfigMap { data: Some(data), ..ConfigMap::default() };
        source.metadata_mut().set_name("greeting");
        let derived = derived(&source);
        assert_eq!((derived.name(), derived.label("labeler.example.com/keys")), ("greeting-derived", Some("1")));
        assert_eq!(derived.data.unwrap()["a"], "HELLO");
    }
}
