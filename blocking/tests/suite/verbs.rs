use cloudcoil_blocking::core::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use cloudcoil_blocking::{Client, Deleted, Error, Patch, Resource, ResourceType, Scope};
use serde_json::json;

use crate::common::{Cluster, map, names, value};

fn all_verbs(client: &Client) -> Result<(), Error> {
    let maps = client.api::<ConfigMap>();
    assert!(maps.get("a").send().unwrap_err().is_not_found());
    assert_eq!(maps.get_opt("a")?, None);
    let made = maps.create(&map("a", "1")).send()?;
    assert_eq!((made.name(), made.namespace(), value(&made)), ("a", Some("default"), "1"));
    assert!(maps.create(&map("a", "1")).send().unwrap_err().is_already_exists());
    assert_eq!(maps.get("a").send()?, made);
    let mut changed = made;
    changed.data = map("a", "2").data;
    assert_eq!(value(&maps.replace(&changed).dry_run().send()?), "2");
    assert_eq!(value(&maps.get("a").send()?), "1");
    assert_eq!(value(&maps.replace(&changed).send()?), "2");
    assert!(maps.replace(&changed).send().unwrap_err().is_conflict());
    assert_eq!(value(&maps.patch("a", Patch::Merge(json!({"data": {"key": "3"}}))).send()?), "3");
    maps.create(&map("b", "1")).send()?;
    assert_eq!(names(&maps.list().labels("test").send()?.items), ["a", "b"]);
    assert!(matches!(maps.delete("a").send()?, Deleted::Status(_) | Deleted::Object(_)));
    assert_eq!(maps.get_opt("a")?, None);
    maps.delete_collection().fields("metadata.name=b").send()?;
    assert!(maps.list().labels("test").send()?.items.is_empty());
    Ok(())
}

#[test]
fn every_verb_works_over_tcp_and_tls() -> Result<(), Error> {
    all_verbs(&Cluster::start().client())?;
    all_verbs(&Cluster::start_tls().client())
}

#[test]
fn a_loop_over_a_list_reads_page_by_page() -> Result<(), Error> {
    let cluster = Cluster::start();
    let maps = cluster.client().api::<ConfigMap>();
    for number in 0..7 {
        maps.create(&map(&format!("m{number}"), "")).send()?;
    }
    let all: Vec<ConfigMap> =
        maps.list().labels("test").all_namespaces().limit(3).into_iter().collect::<Result<_, _>>()?;
    assert_eq!(names(&all), ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
    let page = maps.list().labels("test").limit(3).page()?;
    assert_eq!(names(&page.items), ["m0", "m1", "m2"]);
    let rest = maps.list().labels("test").continue_from(page.continue_token.unwrap()).send()?;
    assert_eq!(names(&rest.items), ["m3", "m4", "m5", "m6"]);
    assert_eq!(maps.list().labels("test").limit(2).send()?.items.len(), 7);
    Ok(())
}

#[test]
fn types_that_rust_does_not_know_are_reached_by_name() -> Result<(), Error> {
    let cluster = Cluster::start();
    let namespaces = ResourceType::new("", "v1", "Namespace", "namespaces", Scope::Cluster);
    let client = cluster.client();
    let default = client.api_for(namespaces).get("default").send()?;
    assert_eq!(default.pointer("/status/phase").and_then(|phase| phase.as_str()), Some("Active"));
    assert_eq!(client.api::<Namespace>().get("default").send()?.name(), "default");
    Ok(())
}

#[test]
fn clones_of_a_client_work_from_many_threads() {
    let cluster = Cluster::start_tls();
    let client = cluster.client();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let maps = client.api::<ConfigMap>();
            scope.spawn(move || {
                for round in 0..5 {
                    maps.create(&map(&format!("m{number}-{round}"), "")).send().unwrap();
                }
            });
        }
    });
    assert_eq!(client.api::<ConfigMap>().list().labels("test").send().unwrap().items.len(), 40);
}
