//! Addresses and ports of services.

use std::collections::BTreeSet;

use cloudcoil_core::Random;
use serde_json::{Map, Value, json};

use super::cluster::Cluster;
use super::object::{self, Draft, child_mut, text_at};

/// Where services are kept.
const SERVICES: &str = "/services";

impl Cluster {
    /// Gives a service the addresses and ports it has not got, and those it had before.
    pub(crate) fn assign_addresses(&mut self, old: Option<&Draft>, fields: &mut Draft) {
        let kept = old.and_then(|old| old.get("spec")).and_then(Value::as_object).cloned().unwrap_or_default();
        let (taken, ports) = self.taken();
        let spec = child_mut(fields, "spec");
        let kind = text_at(spec, &["type"]).to_owned();
        if kind == "ExternalName" {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.remove(field);
            }
            return;
        }
        if text_at(spec, &["clusterIP"]).is_empty() {
            let address = match text_at(&kept, &["clusterIP"]) {
                "" => free_address(&mut self.random, &taken),
                address => address.to_owned(),
            };
            spec.insert("clusterIP".to_owned(), Value::from(address));
        }
        let address = spec["clusterIP"].clone();
        for (field, default) in [
            ("clusterIPs", json!([address])),
            ("ipFamilies", json!(["IPv4"])),
            ("ipFamilyPolicy", json!("SingleStack")),
        ] {
            spec.entry(field).or_insert(default);
        }
        let wants_ports = kind == "NodePort"
            || (kind == "LoadBalancer" && object::at(spec, &["allocateLoadBalancerNodePorts"]) != Some(&json!(false)));
        if wants_ports {
            self.assign_ports(&kept, spec, ports);
        }
    }

    fn assign_ports(&mut self, kept: &Map<String, Value>, spec: &mut Map<String, Value>, mut taken: BTreeSet<u64>) {
        let before = object::list(kept, "ports").to_vec();
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(port) = port.as_object_mut().filter(|port| !port.contains_key("nodePort")) else { continue };
            let same = |old: &&Value| old.get("name") == port.get("name") && old.get("port") == port.get("port");
            let number = match before.iter().find(same).and_then(|old| old["nodePort"].as_u64()) {
                Some(number) => number,
                None => free(&mut self.random, 30_000, 2768, |number| taken.contains(&number)),
            };
            taken.insert(number);
            port.insert("nodePort".to_owned(), json!(number));
        }
    }

    /// The addresses and node ports of all services.
    fn taken(&self) -> (BTreeSet<String>, BTreeSet<u64>) {
        let (mut addresses, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for (_, service) in self.store.all(SERVICES) {
            addresses.insert(text_at(service.fields(), &["spec", "clusterIP"]).to_owned());
            let list = object::at(service.fields(), &["spec", "ports"]).and_then(Value::as_array);
            ports.extend(list.into_iter().flatten().filter_map(|port| port["nodePort"].as_u64()));
        }
        (addresses, ports)
    }
}

/// An address of 10.96.0.0/16 that no service has.
fn free_address(random: &mut Random, taken: &BTreeSet<String>) -> String {
    let text = |number: u64| format!("10.96.{}.{}", number >> 8, number & 0xff);
    text(free(random, 256, 65_000, |number| taken.contains(&text(number))))
}

/// A number of a range, at random as long as there are free ones.
fn free(random: &mut Random, from: u64, count: u64, taken: impl Fn(u64) -> bool) -> u64 {
    let start = random.below(count);
    let all = (0..count).map(|step| from + (start + step) % count);
    all.into_iter().find(|number| !taken(*number)).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_free_as_long_as_there_are_any() {
        let mut random = Random::new(1);
        let mut taken = BTreeSet::new();
        for _ in 0..10 {
            let number = free(&mut random, 5, 10, |number| taken.contains(&number));
            assert!((5..15).contains(&number) && taken.insert(number));
        }
    }
}
