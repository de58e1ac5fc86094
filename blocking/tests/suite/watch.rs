use std::sync::mpsc;
use std::thread;

use cloudcoil_blocking::core::k8s_openapi::api::core::v1::ConfigMap;
use cloudcoil_blocking::{Client, Config, Connect as _, Error, Resource as _, WatchEvent};

use crate::common::{Cluster, is_closed, map, raw, read_head, value, write};

/// What an event says in short.
fn short(event: &WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Restarted => "restarted".to_owned(),
        WatchEvent::Listed(map) => format!("listed {}={}", map.name(), value(map)),
        WatchEvent::Synced => "synced".to_owned(),
        WatchEvent::Applied(map) => format!("applied {}={}", map.name(), value(map)),
        WatchEvent::Deleted(map) => format!("deleted {}", map.name()),
    }
}

fn follow(cluster: &Cluster) -> Result<(), Error> {
    let maps = cluster.client().api::<ConfigMap>();
    maps.create(&map("a", "1")).send()?;
    let mut events = maps.watch().labels("test").iter();
    let mut next = || events.next().unwrap().map(|event| short(&event));
    assert_eq!([next()?, next()?, next()?], ["restarted", "listed a=1", "synced"]);
    maps.create(&map("b", "1")).send()?;
    assert_eq!(next()?, "applied b=1");
    cluster.close_watches();
    maps.delete("a").send()?;
    assert_eq!(next()?, "deleted a");
    Ok(())
}

#[test]
fn a_watch_tells_of_every_change_also_when_it_is_ended_by_the_server() -> Result<(), Error> {
    follow(&Cluster::start())?;
    follow(&Cluster::start_tls())
}

/// A server whose watches never say anything, and what becomes of their connections: `asked`, then `closed`.
fn silent() -> (Client, mpsc::Receiver<&'static str>) {
    let (events, seen) = mpsc::channel();
    let address = raw(move |_, mut stream| {
        let events = events.clone();
        thread::spawn(move || {
            let Some(head) = read_head(&mut stream) else { return };
            if head.contains("sendInitialEvents") {
                let bookmark = concat!(
                    r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","#,
                    r#""annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
                    "\n"
                );
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                write(&mut stream, format!("{head}{:x}\r\n{bookmark}\r\n", bookmark.len()).as_bytes());
            }
            events.send("asked").unwrap();
            assert!(is_closed(&mut stream));
            events.send("closed").unwrap();
        });
    });
    (Client::try_from_config(&Config::new(&format!("http://{address}")).unwrap()).unwrap(), seen)
}

#[test]
fn a_watch_that_is_blocked_ends_when_it_is_stopped_from_elsewhere() {
    let (client, seen) = silent();
    let mut events = client.api::<ConfigMap>().watch().iter();
    assert_eq!(events.next(), Some(Ok(WatchEvent::Restarted)));
    assert_eq!(events.next(), Some(Ok(WatchEvent::Synced)));
    let stop = events.stop_handle();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| events.next());
        assert_eq!(seen.recv(), Ok("asked"));
        stop.stop();
        assert_eq!(blocked.join().unwrap(), None);
    });
    assert_eq!(seen.recv(), Ok("closed"));
    assert_eq!(events.next(), None);
    stop.stop();
}

#[test]
fn dropping_a_watch_closes_its_connection() {
    let (client, seen) = silent();
    let mut events = client.api::<ConfigMap>().watch().iter();
    assert_eq!(events.next(), Some(Ok(WatchEvent::Restarted)));
    assert_eq!(events.next(), Some(Ok(WatchEvent::Synced)));
    assert_eq!(seen.recv(), Ok("asked"));
    drop(events);
    assert_eq!(seen.recv(), Ok("closed"));
}

#[test]
fn a_watch_that_cannot_be_made_says_so_and_ends() {
    let (client, _seen) = silent();
    let mut events = client.api::<ConfigMap>().namespace("no/name").watch().iter();
    let failure = events.find_map(Result::err);
    assert!(matches!(failure, Some(Error::Misuse(_))), "{failure:?}");
    assert_eq!(events.next(), None);
}
