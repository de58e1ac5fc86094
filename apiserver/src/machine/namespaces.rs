//! Namespaces: what every cluster has, and what every namespace gets.

use cloudcoil_core::Now;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::object::{Draft, set_meta};
use super::store::key;
use super::strategy;

impl Cluster {
    /// Creates the namespaces that every cluster has.
    pub(crate) fn create_system_namespaces(&mut self, now: Now) {
        let resource = self.catalog.resource("", "v1", "namespaces").cloned().expect("every table has namespaces");
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let mut fields = Draft::new();
            set_meta(&mut fields, "name", Some(Value::from(name)));
            set_meta(&mut fields, "uid", Some(Value::from(self.uid())));
            set_meta(&mut fields, "creationTimestamp", Some(json!(now.wall.to_rfc3339())));
            strategy::prepare_create(&resource, &mut fields, now);
            self.put(&resource, &key(None, name), fields);
        }
    }
}
