use std::io::{BufRead as _, BufReader};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use cloudcoil_blocking::core::k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use cloudcoil_blocking::core::k8s_openapi::api::core::v1::{ConfigMap, Pod};
use cloudcoil_blocking::core::manifest;
use cloudcoil_blocking::{Client, Config, Connect as _, Error, Evicted, Patch, Resource as _, RetryPolicy};
use serde_json::json;

use crate::common::{Cluster, is_closed, map, raw, read_head, value, write};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of a server that begins each answer so, and then waits for the end of the connection.
fn answering(answer: &'static [u8]) -> (Client, mpsc::Receiver<&'static str>) {
    let (events, seen) = mpsc::channel();
    let address = raw(move |_, mut stream| {
        read_head(&mut stream);
        write(&mut stream, answer);
        events.send("answered").unwrap();
        assert!(is_closed(&mut stream));
        events.send("closed").unwrap();
    });
    let config = Config::new(&format!("http://{address}")).unwrap();
    (Client::try_from_config(&config).unwrap().with_retry(RetryPolicy::OFF), seen)
}

const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\none\ntwo\n\r\n";
const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\none\ntwo\nend";

#[test]
fn a_log_is_read_whole_by_line_and_in_bytes() -> Result<(), Error> {
    let logs = || answering(WHOLE).0.api::<Pod>().logs("p").tail_lines(3);
    assert_eq!(logs().send()?, "one\ntwo\nend");
    assert_eq!(logs().lines().collect::<Result<Vec<_>, _>>()?, ["one", "two", "end"]);
    let read: Vec<String> = BufReader::new(logs().bytes()).lines().map(Result::unwrap).collect();
    assert_eq!(read, ["one", "two", "end"]);
    let refused = answering(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno").0.api::<Pod>().logs("p");
    assert!(refused.lines().next().unwrap().unwrap_err().is_not_found());
    Ok(())
}

#[test]
fn a_log_that_is_followed_ends_when_it_is_stopped_or_dropped() {
    let (client, seen) = answering(ENDLESS);
    let mut lines = client.api::<Pod>().logs("p").follow().lines();
    assert_eq!([lines.next().unwrap(), lines.next().unwrap()], [Ok("one".to_owned()), Ok("two".to_owned())]);
    let stop = lines.stop_handle();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| lines.next());
        assert_eq!(seen.recv(), Ok("answered"));
        stop.stop();
        assert_eq!(blocked.join().unwrap(), None);
    });
    assert_eq!(seen.recv(), Ok("closed"));
    let mut lines = client.api::<Pod>().logs("p").follow().lines();
    assert_eq!(lines.next(), Some(Ok("one".to_owned())));
    drop(lines);
    assert_eq!((seen.recv(), seen.recv()), (Ok("answered"), Ok("closed")));
}

fn deployment(name: &str) -> Deployment {
    let labels = json!({"matchLabels": {"app": name}});
    let template =
        json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec: DeploymentSpec = serde_json::from_value(json!({"selector": labels, "template": template})).unwrap();
    let mut deployment = Deployment { spec, ..Deployment::default() };
    deployment.metadata.name = Some(name.to_owned());
    deployment
}

#[test]
fn parts_of_objects_have_verbs_of_their_own() -> Result<(), Error> {
    let cluster = Cluster::start_tls();
    let client = cluster.client();
    let deployments = client.api::<Deployment>();
    deployments.create(&deployment("web")).send()?;
    assert_eq!(deployments.set_replicas("web", 3).send()?.spec.replicas, Some(3));
    assert_eq!(deployments.scale("web").get()?.spec.unwrap().replicas, Some(3));
    let status = deployments.status("web").patch(Patch::Merge(json!({"status": {"observedGeneration": 7}}))).send()?;
    assert_eq!(status.status.unwrap().observed_generation, Some(7));
    let mut pod: Pod = serde_json::from_value(json!({"spec": {"containers": [{"name": "c", "image": "i"}]}})).unwrap();
    pod.metadata.name = Some("p".to_owned());
    client.api::<Pod>().create(&pod).send()?;
    assert!(matches!(client.api::<Pod>().evict("p").send()?, Evicted::Accepted(_)));
    assert_eq!(client.api::<ConfigMap>().get("kube-root-ca.crt").metadata()?.name(), "kube-root-ca.crt");
    assert_eq!(deployments.list().table()?.rows.len(), 1);
    assert_eq!(deployments.list().metadata().send()?.items[0].name(), "web");
    Ok(())
}

#[test]
fn a_wait_ends_with_what_came_first() -> Result<(), Error> {
    let cluster = Cluster::start();
    let maps = cluster.client().api::<ConfigMap>();
    thread::scope(|scope| {
        let waiting = maps.wait_for("a").when("two", |map: &ConfigMap| value(map) == "2").timeout(PATIENCE);
        let waiting = scope.spawn(|| waiting.wait());
        maps.create(&map("a", "1")).send()?;
        maps.replace(&map("a", "2")).send()?;
        let awaited = waiting.join().unwrap()?;
        assert_eq!((&*awaited.predicate, value(&awaited.object.unwrap())), ("two", "2"));
        Ok::<_, Error>(())
    })?;
    let nothing = maps.wait_for("a").deleted().timeout(Duration::ZERO).wait();
    assert!(matches!(nothing, Err(Error::TimedOut(_))), "{nothing:?}");
    Ok(())
}

#[test]
fn names_are_found_and_one_question_serves_all_who_ask() -> Result<(), Error> {
    let cluster = Cluster::start();
    let client = cluster.client();
    thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| client.discovery().find("deploy"))).collect();
        for found in asking {
            assert_eq!(found.join().unwrap()?.resource_type.kind, "Deployment");
        }
        Ok::<_, Error>(())
    })?;
    assert!(matches!(client.discovery().find("nothing"), Err(Error::NotServed(_))));
    assert!(client.discovery().refresh()?.is_complete());
    assert!(client.server_version()?.major.parse::<u32>().is_ok());
    client.check_ready()
}

#[test]
fn manifests_are_applied_in_order_and_deleted() {
    let cluster = Cluster::start();
    let client = cluster.client();
    let yaml = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: team}\ndata: {key: '1'}\n---\n\
                kind: Namespace\napiVersion: v1\nmetadata: {name: team}\n";
    let objects = manifest::parse("app.yaml", yaml.as_bytes()).unwrap();
    let report = client.manifests(objects.clone()).apply("me").send();
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(value(&client.api::<ConfigMap>().namespace("team").get("a").send().unwrap()), "1");
    assert_eq!(client.manifests(objects).delete().iter().count(), 2);
}

#[test]
fn what_the_server_warns_of_is_handed_on() -> Result<(), Error> {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = warnings.clone();
    let (client, _seen) = answering(b"HTTP/1.1 200 OK\r\nwarning: 299 - \"old\"\r\ncontent-length: 2\r\n\r\n{}");
    let client = client.with_warning_handler(move |warning| heard.lock().unwrap().push(warning.text.to_string()));
    client.check_ready()?;
    assert_eq!(*warnings.lock().unwrap(), ["old"]);
    Ok(())
}
