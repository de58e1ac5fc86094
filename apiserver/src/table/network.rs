//! Services, and what leads to them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Printing;
use super::column::{AGE, Column, NAME, SELECTOR};
use super::node::{NONE, Node, UNKNOWN, UNSET, some_of};

pub(super) const SERVICES: &[Column] = &[
    NAME,
    Column::text("Type", "How the service is exposed."),
    Column::text("Cluster-IP", "The address within the cluster."),
    Column::text("External-IP", "The addresses from outside of the cluster."),
    Column::text("Port(s)", "The ports, and those on the nodes."),
    AGE,
    SELECTOR,
];

pub(super) fn service(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let first = spec.field("clusterIPs").list().next().unwrap_or_else(|| spec.field("clusterIP"));
    let ports: Vec<_> = spec.field("ports").list().map(port).collect();
    vec![
        object.name().into(),
        spec.field("type").text_or("ClusterIP").into(),
        first.text_or(NONE).into(),
        external_ip(object).into(),
        if ports.is_empty() { NONE.to_owned() } else { ports.join(",") }.into(),
        on.created(object).into(),
        spec.field("selector").labels().into(),
    ]
}

fn port(port: Node<'_>) -> String {
    let protocol = port.field("protocol").text_or("TCP");
    match (port.field("port").integer(), port.field("nodePort").integer()) {
        (port, node_port @ 1..) => format!("{port}:{node_port}/{protocol}"),
        (port, _) => format!("{port}/{protocol}"),
    }
}

fn external_ip(service: Node<'_>) -> String {
    let spec = service.field("spec");
    let mut addresses = match spec.field("type").text_or("ClusterIP") {
        "ClusterIP" | "NodePort" => Vec::new(),
        "LoadBalancer" => balanced(service),
        "ExternalName" => return spec.field("externalName").text().to_owned(),
        _ => return UNKNOWN.to_owned(),
    };
    addresses.extend(spec.field("externalIPs").texts().map(str::to_owned));
    match spec.field("type").text() {
        _ if !addresses.is_empty() => addresses.join(","),
        "LoadBalancer" => "<pending>".to_owned(),
        _ => NONE.to_owned(),
    }
}

/// The addresses that a load balancer gave to a service or an ingress.
fn balanced(object: Node<'_>) -> Vec<String> {
    let entry = |entry: Node<'_>| entry.field("ip").text_or(entry.field("hostname").text()).to_owned();
    let entries: BTreeSet<_> = object.at("status.loadBalancer.ingress").list().map(entry).collect();
    entries.into_iter().filter(|entry| !entry.is_empty()).collect()
}

pub(super) const INGRESSES: &[Column] = &[
    NAME,
    Column::text("Class", "The class of the ingress."),
    Column::text("Hosts", "The hosts that requests are matched against first."),
    Column::text("Address", "The addresses of the load balancer."),
    Column::text("Ports", "The ports that are open."),
    AGE,
];

pub(super) fn ingress(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let ports = if spec.field("tls").count() > 0 { "80, 443" } else { "80" };
    vec![
        object.name().into(),
        spec.field("ingressClassName").set_or(NONE).into(),
        hosts(spec.field("rules")).into(),
        balanced(object).join(",").into(),
        ports.into(),
        on.created(object).into(),
    ]
}

fn hosts(rules: Node<'_>) -> String {
    let mut hosts = Vec::new();
    for rule in rules.list() {
        if hosts.len() == MOST {
            return format!("{} + {} more...", hosts.join(","), rules.list().len() - MOST);
        }
        hosts.extend(Some(rule.field("host").text()).filter(|host| !host.is_empty()));
    }
    if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") }
}

pub(super) const INGRESS_CLASSES: &[Column] = &[
    NAME,
    Column::text("Controller", "What serves ingresses of the class."),
    Column::text("Parameters", "An object with more settings."),
    AGE,
];

pub(super) fn ingress_class(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let default = object.annotation("ingressclass.kubernetes.io/is-default-class").text() == "true";
    let parameters = object.at("spec.parameters");
    let parameters = match parameters.is_set() {
        true => {
            let group = parameters.field("apiGroup");
            let dot = if group.is_set() { "." } else { "" };
            let [kind, name] = ["kind", "name"].map(|field| parameters.field(field).text());
            format!("{kind}{dot}{}/{name}", group.text())
        }
        false => NONE.to_owned(),
    };
    vec![
        format!("{}{}", object.name(), if default { " (default)" } else { "" }).into(),
        object.at("spec.controller").text().into(),
        parameters.into(),
        on.created(object).into(),
    ]
}

pub(super) const ENDPOINTS: &[Column] = &[NAME, Column::text("Endpoints", "The addresses with their ports."), AGE];

pub(super) fn endpoints(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let subsets = object.field("subsets");
    let addresses: Vec<_> = subsets.list().flat_map(subset).collect();
    let text = if subsets.count() == 0 { NONE.to_owned() } else { some_of(&addresses, MOST) };
    vec![object.name().into(), text.into(), on.created(object).into()]
}

fn subset(subset: Node<'_>) -> Vec<String> {
    let addresses: Vec<_> = subset.field("addresses").list().map(|address| address.field("ip").text()).collect();
    if subset.field("ports").count() == 0 {
        return addresses.into_iter().map(str::to_owned).collect();
    }
    let ports = subset.field("ports").list().map(|port| port.field("port").integer());
    ports.flat_map(|port| addresses.iter().map(move |address| host_port(address, port))).collect()
}

/// An IPv6 address is in brackets before a port.
fn host_port(address: &str, port: i64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

pub(super) const ENDPOINT_SLICES: &[Column] = &[
    NAME,
    Column::text("AddressType", "What the addresses are."),
    Column::text("Ports", "The ports of each endpoint."),
    Column::text("Endpoints", "The addresses."),
    AGE,
];

pub(super) fn endpoint_slice(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let port = |port: Node<'_>| match port.field("port").int_or_text() {
        Some(number) => number,
        // Every port has a name; an empty one by default.
        None => port.field("name").text().to_owned(),
    };
    let ports: Vec<_> = object.field("ports").list().map(port).collect();
    let addresses = object.field("endpoints").list().flat_map(|endpoint| endpoint.field("addresses").texts());
    let addresses: Vec<_> = addresses.map(str::to_owned).collect();
    let some_or_unset = |texts: &[String]| match some_of(texts, MOST) {
        text if text.is_empty() => UNSET.to_owned(),
        text => text,
    };
    vec![
        object.name().into(),
        object.field("addressType").text().into(),
        some_or_unset(&ports).into(),
        some_or_unset(&addresses).into(),
        on.created(object).into(),
    ]
}

pub(super) const NETWORK_POLICIES: &[Column] =
    &[NAME, Column::text("Pod-Selector", "Which pods the policy is for, by their labels."), AGE];

pub(super) fn network_policy(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("spec.podSelector").selector_or_none().into(), on.created(object).into()]
}

pub(super) const SERVICE_CIDRS: &[Column] =
    &[NAME, Column::text("CIDRs", "The ranges that services get addresses of."), AGE];

pub(super) fn service_cidr(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("spec.cidrs").joined().into(), on.created(object).into()]
}

pub(super) const IP_ADDRESSES: &[Column] = &[NAME, Column::text("ParentRef", "What the address belongs to.")];

/// The API server sends the age as well, for which it has no column.
pub(super) fn ip_address(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let parent = object.at("spec.parentRef");
    let text = match parent.is_set() {
        true => {
            let [group, resource, namespace, name] =
                ["group", "resource", "namespace", "name"].map(|field| parent.field(field).text());
            let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
            let slash = if namespace.is_empty() { "" } else { "/" };
            format!("{}{slash}{namespace}/{name}", resource.to_lowercase())
        }
        false => NONE.to_owned(),
    };
    vec![object.name().into(), text.into(), on.created(object).into()]
}

/// How many of a list are printed.
const MOST: usize = 3;
