//! `coil api-resources`, `coil version` and `coil whoami`.

use std::cmp::Ordering;

use bytes::Bytes;
use cloudcoil_core::{ApiResource, response};
use http::Request;
use serde_json::{Value, json};

use super::session::Session;
use super::world::dual;
use crate::args::{ApiResources, ResourceColumns, Version, Whoami};
use crate::fault::Fault;
use crate::out::{Out, complain};
use crate::structure;
use crate::tabs::Tabs;

#[dual]
pub(crate) async fn resources(args: ApiResources, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let catalog = session.client().await?.discovery().catalog().await?;
    let mut found: Vec<&ApiResource> = Vec::new();
    for group in catalog.groups() {
        for resource in group.versions_by_preference().flat_map(|version| &version.resources) {
            let is_known = found.iter().any(|known| same_kind(known, resource));
            if !is_known && !resource.verbs.is_empty() && is_wanted(resource, &args) {
                found.push(resource);
            }
        }
    }
    found.sort_by(|one, other| by_group_and_name(one, other));
    print(&found, &args, out)?;
    out.flush()?;
    let failures = catalog.failures();
    let mut faults = failures.iter().map(|failure| {
        Fault::failed(format!("this part of the API could not be found out, try again later: {failure}"))
    });
    match faults.next_back() {
        None => Ok(()),
        Some(last) => {
            faults.for_each(|fault| complain(&fault));
            Err(last)
        }
    }
}

/// Whether two are one type in different versions: the first that is found is the preferred one.
fn same_kind(one: &ApiResource, other: &ApiResource) -> bool {
    let (one, other) = (&one.resource_type, &other.resource_type);
    (&one.group, &one.plural) == (&other.group, &other.plural)
}

fn by_group_and_name(one: &ApiResource, other: &ApiResource) -> Ordering {
    let (one, other) = (&one.resource_type, &other.resource_type);
    (&one.group, &one.plural).cmp(&(&other.group, &other.plural))
}

fn is_wanted(resource: &ApiResource, args: &ApiResources) -> bool {
    let ApiResource { resource_type, categories, .. } = resource;
    args.api_group.as_ref().is_none_or(|group| *group == resource_type.group)
        && args.namespaced.is_none_or(|namespaced| namespaced == resource_type.is_namespaced())
        && args.verbs.iter().all(|verb| resource.supports(verb))
        && args.categories.iter().all(|wanted| categories.iter().any(|category| **category == **wanted))
}

fn print(found: &[&ApiResource], args: &ApiResources, out: &mut Out) -> Result<(), Fault> {
    if args.output == Some(ResourceColumns::Name) {
        return found.iter().try_for_each(|resource| out.line(&resource.resource_type.to_string()));
    }
    let wide = args.output == Some(ResourceColumns::Wide);
    let mut tabs = Tabs::default();
    if !args.no_headers {
        let extra: &[&str] = if wide { &["VERBS", "CATEGORIES"] } else { &[] };
        tabs.line(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"].iter().chain(extra).copied());
    }
    for ApiResource { resource_type, short_names, categories, verbs, .. } in found {
        let mut cells = vec![
            resource_type.plural.to_string(),
            short_names.join(","),
            resource_type.api_version().into_owned(),
            resource_type.is_namespaced().to_string(),
            resource_type.kind.to_string(),
        ];
        if wide {
            let mut verbs = verbs.clone();
            verbs.sort_unstable();
            cells.extend([verbs.join(","), categories.join(",")]);
        }
        tabs.line(cells);
    }
    out.table(&mut tabs, !args.no_headers)
}

#[dual]
pub(crate) async fn version(args: Version, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let mut versions = json!({"clientVersion": {"gitVersion": CLIENT}});
    if args.output.is_none() {
        out.line(&format!("Client Version: {CLIENT}"))?;
        out.flush()?;
    }
    if !args.client {
        let request = Request::get("/version").body(Bytes::new()).expect("the path is one");
        let server: Value = response::decode(&session.client().await?.request(request).await?)?;
        if args.output.is_none() {
            out.line(&format!("Server Version: {}", server["gitVersion"].as_str().unwrap_or("unknown")))?;
        }
        versions["serverVersion"] = server;
    }
    match args.output {
        Some(how) => out.print(&structure::print(&versions, how)?),
        None => Ok(()),
    }
}

#[dual]
pub(crate) async fn whoami(args: Whoami, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let user = session.client().await?.whoami().await?;
    if let Some(how) = args.output {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "SelfSubjectReview",
            "metadata": {"creationTimestamp": null},
            "status": {"userInfo": user},
        });
        return out.print(&structure::print(&review, how)?);
    }
    let listed = |values: &[String]| format!("[{}]", values.join(" "));
    let mut tabs = Tabs::default();
    tabs.line(["ATTRIBUTE", "VALUE"]);
    if let Some(name) = user.username.filter(|name| !name.is_empty()) {
        tabs.line(["Username".to_owned(), name]);
    }
    if let Some(uid) = user.uid.filter(|uid| !uid.is_empty()) {
        tabs.line(["UID".to_owned(), uid]);
    }
    if let Some(groups) = user.groups.filter(|groups| !groups.is_empty()) {
        tabs.line(["Groups".to_owned(), listed(&groups)]);
    }
    for (key, values) in user.extra.into_iter().flatten() {
        tabs.line([format!("Extra: {key}"), listed(&values)]);
    }
    out.table(&mut tabs, true)
}

const CLIENT: &str = concat!("v", env!("CARGO_PKG_VERSION"));
