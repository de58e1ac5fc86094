//! The launcher, with real processes. These tests run when `KUBEBUILDER_ASSETS` is set.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]

use cloudcoil_testing::{ControlPlane, Error};
use serde_json::Value;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

#[test]
fn kubectl_creates_and_reads_objects() {
    let Some(plane) = ControlPlane::start_or_skip("kubectl_creates_and_reads_objects") else { return };
    kubectl(&plane, &["create", "configmap", "settings", "--from-literal=color=green"]);
    let color = kubectl(&plane, &["get", "configmap", "settings", "-o", "jsonpath={.data.color}"]);
    assert_eq!(color, "green");
    // No controller makes service accounts here, and Pods can be made all the same.
    let pod =
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    fs::write(plane.folder().join("pod.json"), pod).unwrap();
    kubectl(&plane, &["create", "-f", plane.folder().join("pod.json").to_str().unwrap()]);
}

#[test]
fn users_are_known_by_certificate_and_by_token() {
    let builder = ControlPlane::builder().token("s3cret", "to,ken", &["a", "b c"]);
    let Some(plane) = builder.start_or_skip("users_are_known_by_certificate_and_by_token") else { return };
    let certificate = plane.client_certificate("ann", &["x", "y", "z"]).unwrap();
    let who = |kubeconfig: &str| {
        let file = plane.folder().join("other-kubeconfig");
        fs::write(&file, kubeconfig).unwrap();
        let output = plane.kubectl().env("KUBECONFIG", &file).args(["auth", "whoami", "-o", "json"]).output().unwrap();
        let answer: Value = serde_json::from_str(&succeeded(&output)).unwrap();
        let groups = answer["status"]["userInfo"]["groups"].as_array().unwrap().to_vec();
        (answer["status"]["userInfo"]["username"].as_str().unwrap().to_owned(), Value::from(groups).to_string())
    };
    let (user, groups) = who(&plane.kubeconfig_with_certificate(&certificate));
    assert_eq!((user.as_str(), groups.as_str()), ("ann", r#"["x","y","z","system:authenticated"]"#));
    let (user, groups) = who(&plane.kubeconfig_with_token("s3cret"));
    assert_eq!((user.as_str(), groups.as_str()), ("to,ken", r#"["a","b c","system:authenticated"]"#));
    let (user, groups) = who(&plane.kubeconfig_with_token(plane.token()));
    assert_eq!((user.as_str(), groups.as_str()), ("admin", r#"["system:masters","system:authenticated"]"#));
    let (user, _) = who(plane.kubeconfig());
    assert_eq!(user, "admin");

    // RBAC is on: neither of the two was granted anything.
    let file = plane.folder().join("other-kubeconfig");
    fs::write(&file, plane.kubeconfig_with_certificate(&certificate)).unwrap();
    let output = plane.kubectl().env("KUBECONFIG", &file).args(["get", "secrets"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("Forbidden"), "{output:?}");
}

#[test]
fn restarts_keep_the_address_and_the_data() {
    let Some(plane) = ControlPlane::start_or_skip("restarts_keep_the_address_and_the_data") else { return };
    kubectl(&plane, &["create", "configmap", "kept"]);
    let url = plane.url().to_owned();

    plane.apiserver().restart().unwrap();
    kubectl(&plane, &["get", "configmap", "kept"]);

    plane.apiserver().kill();
    assert!(!plane.apiserver().is_running());
    assert_eq!(plane.apiserver().process_id(), None);
    assert!(get(&plane, "/readyz").is_err());
    assert!(matches!(plane.apiserver().pause(), Err(Error::NotRunning { component: "kube-apiserver" })));
    plane.apiserver().start().unwrap();
    let first = plane.apiserver().process_id();
    plane.apiserver().start().unwrap();
    assert_eq!(plane.apiserver().process_id(), first, "starting what runs does nothing");

    plane.etcd().restart().unwrap();
    plane.etcd().kill();
    plane.etcd().start().unwrap();
    kubectl(&plane, &["get", "configmap", "kept"]);
    assert_eq!(plane.url(), url);
}

#[test]
fn a_paused_server_answers_when_it_is_resumed() {
    let Some(plane) = ControlPlane::start_or_skip("a_paused_server_answers_when_it_is_resumed") else { return };
    let components = [plane.apiserver(), plane.etcd()];
    for component in components {
        component.pause().unwrap();
        assert!(component.is_running());
        assert_eq!(state(component.process_id().unwrap()), 'T');
        component.resume().unwrap();
        assert_ne!(state(component.process_id().unwrap()), 'T');
    }
    plane.apiserver().pause().unwrap();
    assert!(matches!(get(&plane, "/readyz"), Err(ureq::Error::Timeout(_))));
    plane.apiserver().resume().unwrap();
    assert_eq!(get(&plane, "/readyz").unwrap().0, 200);

    plane.apiserver().pause().unwrap();
    plane.apiserver().restart().unwrap();
    assert_eq!(get(&plane, "/readyz").unwrap().0, 200);
}

#[test]
fn expired_history_gives_410_to_watches_and_continued_lists() {
    let name = "expired_history_gives_410_to_watches_and_continued_lists";
    let Some(plane) = ControlPlane::start_or_skip(name) else { return };
    kubectl(&plane, &["create", "configmap", "a"]);
    kubectl(&plane, &["create", "configmap", "b"]);
    let page: Value = serde_json::from_str(&get(&plane, "/api/v1/configmaps?limit=1").unwrap().1).unwrap();
    let version = page["metadata"]["resourceVersion"].as_str().unwrap();
    let more = page["metadata"]["continue"].as_str().unwrap();
    let watch = format!("/api/v1/configmaps?watch=true&timeoutSeconds=1&resourceVersion={version}");
    let next = format!("/api/v1/configmaps?limit=1&continue={more}");
    let exact = format!("/api/v1/configmaps?resourceVersion={version}&resourceVersionMatch=Exact");

    let (status, body) = get(&plane, &watch).unwrap();
    assert_eq!((status, body.as_str()), (200, ""), "the version is still good");
    assert_eq!(get(&plane, &next).unwrap().0, 200);

    let oldest = plane.expire_history().unwrap();
    assert!(oldest > version.parse().unwrap());
    let (status, body) = get(&plane, &watch).unwrap();
    let event: Value = serde_json::from_str(&body).unwrap();
    let code = if status == 200 { &event["object"]["code"] } else { &event["code"] };
    assert_eq!(*code, 410, "{status} {body}");
    for list in [&next, &exact] {
        let (status, body) = get(&plane, list).unwrap();
        assert_eq!(status, 410, "{body}");
    }
    // What is still there can be listed, and watched from there on.
    let page: Value = serde_json::from_str(&get(&plane, "/api/v1/namespaces/default/configmaps").unwrap().1).unwrap();
    assert_eq!(
        page["items"].as_array().unwrap().iter().filter(|item| item["metadata"]["name"] != "kube-root-ca.crt").count(),
        2
    );
    let version = page["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("/api/v1/configmaps?watch=true&timeoutSeconds=1&resourceVersion={version}");
    assert_eq!(get(&plane, &watch).unwrap(), (200, String::new()));
}

#[test]
fn compaction_gives_410_to_whom_the_watch_cache_cannot_help() {
    let name = "compaction_gives_410_to_whom_the_watch_cache_cannot_help";
    let builder = ControlPlane::builder().apiserver_flag("watch-cache", "false");
    let Some(plane) = builder.start_or_skip(name) else { return };
    kubectl(&plane, &["create", "configmap", "a"]);
    let list: Value = serde_json::from_str(&get(&plane, "/api/v1/configmaps").unwrap().1).unwrap();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    plane.compact_history().unwrap();
    let watch = format!("/api/v1/configmaps?watch=true&timeoutSeconds=5&resourceVersion={version}");
    let (status, body) = get(&plane, &watch).unwrap();
    assert!(body.contains("410"), "{status} {body}");
}

#[test]
fn two_at_once_do_not_meet() {
    let Some(first) = ControlPlane::start_or_skip("two_at_once_do_not_meet") else { return };
    let second = ControlPlane::start().unwrap();
    kubectl(&first, &["create", "configmap", "only-in-the-first"]);
    let output = second.kubectl().args(["get", "configmap", "only-in-the-first"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("NotFound"), "{output:?}");
    drop(second);
    kubectl(&first, &["get", "configmap", "only-in-the-first"]);
}

#[test]
fn a_server_that_ends_at_once_shows_its_log() {
    let name = "a_server_that_ends_at_once_shows_its_log";
    if ControlPlane::start_or_skip(name).is_none() {
        return;
    }
    let error = ControlPlane::builder().apiserver_flag("no-such-flag", "1").start().unwrap_err();
    let Error::Exited { component, log, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*component, "kube-apiserver");
    assert!(log.contains("no-such-flag"), "{log}");
}

#[test]
fn missing_binaries_are_named() {
    let folder = std::env::temp_dir().join("no-such-folder-of-binaries");
    let error = ControlPlane::builder().assets(&folder).start().unwrap_err();
    assert!(matches!(&error, Error::BinaryMissing { name: "etcd", folder: named } if *named == folder), "{error:?}");
}

/// Runs another test in a second process that is told of no binaries.
#[test]
fn without_binaries_a_test_says_that_it_did_not_run_or_fails_when_it_must() {
    let run = |required: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["two_at_once_do_not_meet", "--exact"])
            .env_remove("KUBEBUILDER_ASSETS")
            .env("CLOUDCOIL_REQUIRE_CONTROL_PLANE", required)
            .output()
            .unwrap()
    };
    for not_required in ["", "0"] {
        let output = run(not_required);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("NOT RUN: two_at_once_do_not_meet: KUBEBUILDER_ASSETS is not set"), "{said}");
    }
    assert!(!run("1").status.success());
}

#[test]
fn dropping_it_leaves_no_process_and_no_folder() {
    let Some(plane) = ControlPlane::start_or_skip("dropping_it_leaves_no_process_and_no_folder") else { return };
    let folder = plane.folder().to_owned();
    // Two servers, their watchdogs, and the one that would remove the folder.
    assert_eq!(processes(&folder).len(), 5, "{:?}", processes(&folder));
    plane.etcd().pause().unwrap();
    drop(plane);
    assert_eq!(processes(&folder), Vec::<String>::new());
    assert!(!folder.exists());
}

#[test]
fn a_panic_leaves_no_process() {
    let Some(plane) = ControlPlane::start_or_skip("a_panic_leaves_no_process") else { return };
    let folder = plane.folder().to_owned();
    let result = std::thread::spawn(move || {
        let _plane = plane;
        std::panic::resume_unwind(Box::new("a test failed"));
    });
    assert!(result.join().is_err());
    assert_eq!(processes(&folder), Vec::<String>::new());
}

/// Runs itself in a second process, which this one kills.
#[test]
fn killing_the_test_process_leaves_no_process_and_no_folder() {
    let name = "killing_the_test_process_leaves_no_process_and_no_folder";
    let Some(plane) = ControlPlane::start_or_skip(name) else { return };
    if std::env::var_os(HOLDER).is_some() {
        plane.etcd().pause().unwrap();
        println!("\n{FOLDER}{}", plane.folder().display());
        io::stdin().read_line(&mut String::new()).unwrap();
        unreachable!("it is killed before it reads a line");
    }
    drop(plane);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(HOLDER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.into_iter().find(|line| line.starts_with(FOLDER)).expect("it starts a control plane");
    let folder = Path::new(line.strip_prefix(FOLDER).unwrap());
    assert_eq!(processes(folder).len(), 5, "{:?}", processes(folder));

    holder.kill().unwrap();
    holder.wait().unwrap();
    until("no process is left", || processes(folder).is_empty());
    assert!(!folder.exists());
}

const HOLDER: &str = "CLOUDCOIL_TEST_HOLDER";
const FOLDER: &str = "folder: ";

fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> String {
    succeeded(&plane.kubectl().args(arguments).output().unwrap())
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn get(plane: &ControlPlane, path: &str) -> Result<(u16, String), ureq::Error> {
    let authority = Certificate::from_pem(plane.ca_pem().as_bytes())?;
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[authority]))
        .unversioned_rustls_crypto_provider(cloudcoil_tls::provider())
        .build();
    let config = ureq::Agent::config_builder().tls_config(tls).proxy(None).http_status_as_error(false);
    let agent: ureq::Agent = config.timeout_global(Some(Duration::from_secs(10))).build().into();
    let request = agent.get(format!("{}{path}", plane.url()));
    let mut answer = request.header("authorization", format!("Bearer {}", plane.token())).call()?;
    Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
}

/// The command lines of all processes that were given something in `folder`.
fn processes(folder: &Path) -> Vec<String> {
    let output = Command::new("ps").args(["-A", "-ww", "-o", "args="]).output().unwrap();
    let lines = succeeded(&output);
    let of_folder = |line: &&str| line.contains(folder.to_str().unwrap());
    lines.lines().filter(of_folder).map(str::to_owned).collect()
}

/// The state of a process in one letter, `T` when it is stopped.
fn state(id: u32) -> char {
    let output = Command::new("ps").args(["-o", "stat=", "-p", &id.to_string()]).output().unwrap();
    succeeded(&output).trim().chars().next().unwrap()
}

/// Waits for what other processes do, for which there is no virtual time.
fn until(what: &str, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
