//! Every runtime prints the same bytes, and ends in the same way: each plays a scene, and what it says is compared with
//! what is said on the default one.

use std::fmt::Write as _;
use std::io::BufRead as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cloudcoil_apiserver::LogSource;

use crate::cluster::{Cluster, words};
use crate::program::{Ended, Home, RUNTIMES, Runtime, stdout};

/// Plays a scene on all runtimes at once. What is said on the default one must be said on the others.
pub(crate) fn same(scene: impl Fn(Runtime) -> String + Sync) -> String {
    same_each(&[()], |(), runtime| scene(runtime))
}

/// Plays scenes on all runtimes, many at once: most of them wait for something most of the time.
pub(crate) fn same_each<T: Sync>(scenes: &[T], play: impl Fn(&T, Runtime) -> String + Sync) -> String {
    let jobs: Vec<_> = scenes.iter().flat_map(|scene| RUNTIMES.map(|runtime| (scene, runtime))).collect();
    let (next, said) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); jobs.len()]));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(jobs.len()) {
            scope.spawn(|| {
                while let Some((number, (scene, runtime))) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|number| Some((number, jobs.get(number)?)))
                {
                    let told = play(scene, runtime);
                    said.lock().unwrap()[number] = told;
                }
            });
        }
    });
    let said = said.into_inner().unwrap();
    let differences: String = said.chunks(RUNTIMES.len()).map(differences).collect();
    assert!(differences.is_empty(), "{differences}");
    said.into_iter().step_by(RUNTIMES.len()).collect()
}

/// The lines that are not said on all runtimes.
fn differences(said: &[String]) -> String {
    let lines = |text: &String| -> Vec<String> { text.lines().map(ToOwned::to_owned).collect() };
    let expected = lines(&said[0]);
    let mut differences = String::new();
    for (runtime, said) in RUNTIMES.iter().zip(said).skip(1) {
        let said = lines(said);
        for (index, line) in expected.iter().enumerate().filter(|(index, line)| said.get(*index) != Some(*line)) {
            let about = expected[..index].iter().rfind(|line| line.starts_with('$'));
            let _ = writeln!(differences, "{about:?}\n  {line}\n  {:?} on {runtime}", said.get(index));
        }
        if said.len() > expected.len() {
            let _ = writeln!(differences, "{runtime} goes on: {:?}", &said[expected.len()..]);
        }
    }
    differences
}

/// What a line printed and how it ended, with what differs from run to run told alike.
pub(crate) fn told(line: &str, ended: &Ended, home: &Home, server: &str) -> String {
    let Ended { code, stdout, stderr } = ended;
    let text = format!("$ coil {line}\n{stdout}--- {stderr}--- {code:?}\n");
    let text = text.replace(&home.folder.path().display().to_string(), "HOME");
    let text = text.replace(server, "SERVER").replace(server.trim_start_matches("http"), "://SERVER");
    let address = server.rsplit("//").next().unwrap_or(server).trim_end_matches('/');
    let text = text.replace(address, "ADDRESS");
    // How often something is tried within a time is a matter of chance.
    let text = text.replace("(2 attempts)", "(attempts)").replace("(3 attempts)", "(attempts)");
    ageless(&timeless(&text))
}

/// Points in time, as `2026-01-31T12:00:00Z`, are the same.
fn timeless(text: &str) -> String {
    let shape = |bytes: &[u8]| {
        let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
        digits(0..4) && bytes[4] == b'-' && bytes[10] == b'T' && digits(11..13) && bytes[13] == b':'
    };
    let mut timeless = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        match rest.get(..20) {
            Some(time) if shape(time) => {
                timeless.extend_from_slice(b"TIME");
                let end = rest.iter().position(|byte| *byte == b'Z').unwrap();
                rest = &rest[end + 1..];
            }
            _ => {
                timeless.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(timeless).unwrap()
}

/// The ages in tables are the same, and so are the blanks that fill them up.
fn ageless(text: &str) -> String {
    let is_age = |word: &str| word.strip_suffix('s').is_some_and(|number| number.parse::<u8>().is_ok());
    let line = |line: &str| {
        let mut aged = false;
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let words = words.into_iter().map(|word| {
            aged |= is_age(word);
            if is_age(word) { "AGE" } else { word }
        });
        let words: Vec<&str> = words.collect();
        if aged { words.join(" ") } else { line.to_owned() }
    };
    text.lines().fold(String::new(), |mut text, next| {
        let _ = writeln!(text, "{}", line(next));
        text
    })
}

const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {tier: front}}
data: {mode: fast}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}]}
";

const HELD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n";

const ODD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\nnovel: true\n---\napiVersion: example.com/v1\nkind: Novel\nmetadata: {name: a}\n";

/// In this order; each runtime has a server of its own.
const LINES: &[&str] = &[
    "config view",
    "config view -o json --raw",
    "config view --context none",
    "whoami",
    "whoami -o yaml",
    "whoami --as jane --as-group a --as-uid 7",
    "whoami --as-group a",
    "version",
    "version --client -o json",
    "api-resources",
    "api-resources -o wide --verbs=list,watch",
    "api-resources -o name --api-group=apps",
    "create -f objects.yaml --dry-run=server",
    "create -f objects.yaml",
    "create -f objects.yaml",
    "create -f odd.yaml",
    "create -f nothing.yaml",
    "apply -f objects.yaml",
    "apply -f objects.yaml --force-conflicts",
    "apply -f objects.yaml --server-side -o yaml",
    "apply -f objects.yaml -n elsewhere",
    "replace -f objects.yaml",
    "replace -f objects.yaml -o json",
    "get all",
    "get all -A -o wide",
    "get cm,deploy -l tier=front --show-labels",
    "get cm settings -o yaml --show-managed-fields",
    "get cm settings -o json",
    "get cm -o name",
    "get cm -o jsonpath={.items[*].metadata.name}",
    "get cm settings -o jsonpath={.data.mode}",
    "get cm settings none",
    "get cm none --ignore-not-found",
    "get cm -A --chunk-size=1",
    "get cm -o name --chunk-size=1 -A",
    "get cm --no-headers",
    "get cm -l tier=(",
    "get cm --field-selector novel=x",
    "get novels",
    "get secrets",
    "get deploy web --subresource=scale",
    "get deploy web --subresource=status -o json",
    "get deploy web --subresource=novel",
    "get --raw /api/v1/namespaces/default/configmaps/settings",
    "get --raw /novel",
    "get --raw novel",
    "get none none -w",
    "get cm none -w",
    "get cm,deploy -w",
    "patch cm settings -p {\"data\":{\"more\":\"1\"}}",
    "patch cm settings -p {\"data\":{\"more\":\"1\"}}",
    "patch cm settings --type=json -p [{\"op\":\"test\",\"path\":\"/data/more\",\"value\":\"2\"}]",
    "patch cm made --type=apply -p {\"data\":{\"a\":\"b\"}} -o yaml",
    "patch cm none -p {}",
    "patch deploy web --subresource=scale --type=merge -p {\"spec\":{\"replicas\":3}}",
    "scale deploy web --replicas=4",
    "scale deploy --all --replicas=5 --current-replicas=4",
    "scale -f objects.yaml --replicas=2",
    "scale deploy -l tier=none --replicas=5",
    "scale deploy none --replicas=5",
    "wait deploy/web --for=jsonpath={.spec.replicas}=2",
    "wait deploy/web --for=condition=Novel --timeout=0",
    "wait deploy/web --for=condition=Novel --timeout=1s",
    "wait cm --all --for=create --timeout=0",
    "wait secrets --all --for=create --timeout=0",
    "wait secrets --all --for=create --timeout=1s",
    "wait secrets --all --for=condition=Novel",
    "wait cm/none --for=delete",
    "wait cm/none --for=create --timeout=0",
    "wait cm/none --for=condition=Novel",
    "wait deploy/web --for=condition=Novel --timeout=-1",
    "logs p",
    "logs p --tail=1 --timestamps",
    "logs p none",
    "logs none",
    "evict p --dry-run=server",
    "evict p none",
    "create -f held.yaml -o name",
    "delete cm held --timeout=1s",
    "delete cm settings none",
    "delete cm settings --ignore-not-found",
    "delete deploy --all --cascade=foreground -o name",
    "delete -f objects.yaml",
    "delete cm -l tier=none",
    "follow novels",
    "get cm --kubeconfig none",
];

#[test]
fn every_command_prints_the_same() {
    let said = same(|runtime| {
        let cluster = Cluster::new(runtime);
        let home = &cluster.home;
        for (name, content) in [("objects.yaml", OBJECTS), ("held.yaml", HELD), ("odd.yaml", ODD)] {
            home.file(name, content);
        }
        LINES.iter().fold(String::new(), |said, line| {
            if *line == "logs p" {
                cluster.act(|server, now, out| server.append_log(now, &log(), "one\ntwo\n", out));
            }
            said + &told(line, &home.coil(&words(line)), home, &cluster.url)
        })
    });
    // That all of them fail in the same way would prove nothing.
    assert!(said.matches("--- Some(0)").count() > 45, "{said}");
}

fn log() -> LogSource {
    LogSource::new("default", "p", "c")
}

/// What is told while things happen, and how many lines that are no part of others.
const STORIES: &[(&str, usize)] = &[
    ("get cm -w", 5),
    ("get cm --watch-only", 3),
    ("get cm -A -w --show-labels", 8),
    ("get cm settings -w -o name", 3),
    ("get cm -w -o json", 4),
    ("get cm -w -o jsonpath={.metadata.name}{\"\\n\"}", 4),
    ("follow cm -l tier=front", 4),
    ("wait cm/settings --for=jsonpath={.data.last}=yes --timeout=60s -o name", 1),
];

#[test]
fn what_happens_is_told_in_the_same_words() {
    same(|runtime| {
        let cluster = Cluster::new(runtime);
        let home = &cluster.home;
        home.pipe(&words("create -f -"), OBJECTS);
        let patch = |value: &str| {
            let patch = format!(r#"{{"data":{{"last":{value}}}}}"#);
            home.coil(&["patch", "cm", "settings", "--type=merge", "-p", &patch])
        };
        let mut said = String::new();
        for (line, count) in STORIES {
            patch("null");
            let mut running = home.start(&words(line));
            cluster.wait_for_watches(1);
            for value in [r#""once""#, r#""yes""#] {
                assert_eq!(patch(value).code, Some(0));
            }
            let mut heard = 0;
            while heard < *count {
                let line = running.line();
                heard += usize::from(line != "{" && !line.starts_with(' '));
                said += &format!("{line}\n");
            }
            if !line.starts_with("wait") {
                running.signal("INT");
            }
            said += &told(line, &running.end(), home, &cluster.url);
            cluster.wait_for_watches(0);
        }
        ageless(&timeless(&said))
    });
}

#[test]
fn a_log_is_followed_in_the_same_words() {
    let said = same(|runtime| {
        let cluster = Cluster::new(runtime);
        let home = &cluster.home;
        home.pipe(&words("create -f -"), OBJECTS);
        cluster.act(|server, now, out| server.append_log(now, &log(), "one\n", out));
        let mut running = home.start(&words("logs -f p"));
        let mut said = running.line();
        cluster.act(|server, now, out| server.append_log(now, &log(), "two\nthree", out));
        said += &running.line();
        cluster.act(|server, _, out| server.finish_log(&log(), out));
        said + &told("logs -f p", &running.end(), home, &cluster.url)
    });
    assert_eq!(said, "onetwo$ coil logs -f p\nthree\n--- --- Some(0)\n");
}

/// A signal ends whatever is under way: a command that listens for it ends well, and no other does.
#[test]
fn a_signal_ends_each_in_the_same_way() {
    let said = same(|runtime| {
        let cluster = Cluster::new(runtime);
        let mut said = String::new();
        for line in ["get cm -w", "get cm -w -o name", "wait cm/none --for=create --timeout=60s", "follow cm"] {
            for signal in ["INT", "TERM"] {
                let mut running = cluster.home.start(&words(line));
                cluster.wait_for_watches(1);
                while line == "follow cm" && !running.line().contains("synced") {}
                running.signal(signal);
                let _ = writeln!(said, "{line} {signal}: {:?}", running.end().code);
                cluster.wait_for_watches(0);
            }
        }
        said
    });
    assert_eq!((said.matches("Some(0)").count(), said.matches("None").count()), (2, 6), "{said}");
}

/// As `coil … | head -1` has it.
#[test]
fn a_reader_who_has_seen_enough_ends_each_in_the_same_way() {
    same(|runtime| {
        let cluster = Cluster::new(runtime);
        let home = &cluster.home;
        home.pipe(&words("create -f -"), OBJECTS);
        let mut said = String::new();
        for line in ["get cm -w", "get cm -w -o json", "follow cm", "logs -f p"] {
            cluster.act(|server, now, out| server.append_log(now, &log(), "one\n", out));
            let mut child = home.program(&words(line)).spawn().unwrap();
            let mut reader = stdout(&mut child);
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            if line != "logs -f p" {
                cluster.wait_for_watches(1);
            }
            drop(reader);
            // What is written next has no reader, and at the latest what is written then.
            let mut value = 0;
            while child.try_wait().unwrap().is_none() {
                value += 1;
                let patch = format!(r#"{{"data":{{"last":"{value}"}}}}"#);
                home.coil(&["patch", "cm", "settings", "--type=merge", "-p", &patch]);
                cluster.act(|server, now, out| server.append_log(now, &log(), "more\n", out));
            }
            let output = child.wait_with_output().unwrap();
            let _ = writeln!(said, "{line}: {first}{:?} {:?}", output.status.code(), String::from_utf8(output.stderr));
        }
        ageless(&timeless(&said))
    });
}

/// How many scenes are played at one time.
const AT_ONCE: usize = 24;
