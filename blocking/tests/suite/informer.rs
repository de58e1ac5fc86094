use std::sync::mpsc;
use std::time::Duration;

use cloudcoil_blocking::core::k8s_openapi::api::core::v1::ConfigMap;
use cloudcoil_blocking::{Client, Config, Connect as _, Error, Informer, InformerHandle, Resource as _, ResourceKey};

use crate::common::{Cluster, Proxy, map, raw, value};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn maps(client: Client) -> Informer<ConfigMap> {
    Informer::new(client).labels("test")
}

/// What handlers hear of, in short.
fn told(informer: Informer<ConfigMap>) -> (InformerHandle<ConfigMap>, mpsc::Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let (added, updated, deleted) = (tell.clone(), tell.clone(), tell);
    let handle = informer
        .on_add(move |map| drop(added.send(format!("+{}={}", map.name(), value(&map)))))
        .on_update(move |old, new| drop(updated.send(format!("{}={}->{}", new.name(), value(&old), value(&new)))))
        .on_delete(move |map| drop(deleted.send(format!("-{}", map.name()))))
        .start();
    (handle, told)
}

#[test]
fn handlers_hear_of_everything_once_and_readers_see_it() -> Result<(), Error> {
    for cluster in [Cluster::start(), Cluster::start_tls()] {
        let client = cluster.client();
        let api = client.api::<ConfigMap>();
        api.create(&map("a", "1")).send()?;
        let (handle, told) = told(maps(client).index("value", |map| vec![map.name().to_owned()]));
        handle.wait_synced(PATIENCE)?;
        assert_eq!(told.recv().unwrap(), "+a=1");
        api.create(&map("b", "1")).send()?;
        assert_eq!(told.recv().unwrap(), "+b=1");
        cluster.close_watches();
        api.replace(&map("a", "2")).send()?;
        assert_eq!(told.recv().unwrap(), "a=1->2");
        let (late, late_told) = mpsc::channel();
        handle.on_add(move |map| drop(late.send(map.name().to_owned())));
        assert_eq!([late_told.recv().unwrap(), late_told.recv().unwrap()], ["a", "b"]);
        api.delete("b").send()?;
        assert_eq!(told.recv().unwrap(), "-b");
        let key = ResourceKey::new(Some("default"), "a")?;
        assert_eq!(value(&handle.get(&key)?.unwrap()), "2");
        assert_eq!(handle.by_index("value", "a")?.items.len(), 1);
        let reader = handle.reader();
        handle.stop();
        handle.stopped();
        assert_eq!((reader.len(), told.try_recv().is_err()), (1, true));
    }
    Ok(())
}

#[test]
fn an_informer_goes_on_where_it_was_when_connections_are_reset() -> Result<(), Error> {
    let cluster = Cluster::start();
    let proxy = Proxy::to(cluster.address());
    let client = Client::try_from_config(&Config::new(&format!("http://{}", proxy.address)).unwrap())?;
    let api = cluster.client().api::<ConfigMap>();
    let (handle, told) = told(maps(client));
    handle.wait_synced(PATIENCE)?;
    for round in 0..5 {
        let name = format!("m{round}");
        api.create(&map(&name, "")).send()?;
        assert_eq!(told.recv().unwrap(), format!("+{name}="));
        proxy.reset();
    }
    api.delete("m0").send()?;
    assert_eq!(told.recv().unwrap(), "-m0");
    assert_eq!(handle.len(), 4);
    Ok(())
}

#[test]
fn an_informer_that_cannot_sync_says_why_and_stops_while_it_waits() {
    let address = raw(|_, mut stream| {
        crate::common::read_head(&mut stream);
        crate::common::write(&mut stream, b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n");
    });
    let client = Client::try_from_config(&Config::new(&format!("http://{address}")).unwrap()).unwrap();
    let (failed, failures) = mpsc::channel();
    let handle = maps(client).on_error(move |error| drop(failed.send(error.clone()))).start();
    let error = failures.recv().unwrap();
    assert_eq!(handle.wait_synced(Duration::ZERO), Err(error));
    handle.stop();
    assert_eq!(handle.wait_synced(PATIENCE), Err(Error::Cancelled));
    handle.stopped();
}

#[test]
fn a_handler_that_panics_hears_of_the_next_change() -> Result<(), Error> {
    let cluster = Cluster::start();
    let api = cluster.client().api::<ConfigMap>();
    let (tell, told) = mpsc::channel();
    let handle = maps(cluster.client()).on_add(move |map| {
        assert_ne!(map.name(), "a", "this one is not liked");
        tell.send(map.name().to_owned()).unwrap();
    });
    let _handle = handle.start();
    api.create(&map("a", "")).send()?;
    api.create(&map("b", "")).send()?;
    assert_eq!(told.recv().unwrap(), "b");
    Ok(())
}
