//! Credentials that a program fetches, and that a server rejects.

use crate::faults::{Following, MAPS, event, list, no_stream, object, printed, table, watch};
use crate::program::{Home, Runtime, on_each_runtime};
use crate::script::{Act, Script, refusal};

on_each_runtime!(
    credentials_are_fetched_anew_once_when_they_are_rejected,
    a_second_rejection_is_the_answer,
    a_follower_goes_on_with_new_credentials,
);

/// A server that wants credentials, and a program that prints `token-1`, `token-2` and so on.
fn with_login(runtime: Runtime, script: &Script) -> Home {
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: k, cluster: {{server: '{}', insecure-skip-tls-verify: true}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [./login], interactiveMode: Never}}}}}}]\n",
        script.url
    );
    let home = Home::new(runtime, &kubeconfig);
    let runs = home.folder.path().join("runs");
    let credential =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"token-%d"}}"#;
    let program = format!("echo run >> '{0}'\nprintf '{credential}' \"$(wc -l < '{0}')\"\n", runs.display());
    home.file("login", &program);
    home
}

/// What was asked for, and with which token.
fn asked_as(script: &Script) -> Vec<String> {
    script.heard().into_iter().map(|heard| format!("{} {}", heard.what, heard.token.unwrap_or_default())).collect()
}

fn unauthorized() -> Vec<Act> {
    refusal("401 Unauthorized", "Unauthorized", "Unauthorized")
}

fn credentials_are_fetched_anew_once_when_they_are_rejected(runtime: Runtime) {
    let script = Script::tls();
    script.on(MAPS, [unauthorized(), table("", &["a"])]);
    let home = with_login(runtime, &script);
    assert_eq!(home.coil(&["get", "cm"]), printed("NAME   DATA\na      1\n"));
    assert_eq!(asked_as(&script), ["list limit=500 token-1", "list limit=500 token-2"]);
    assert_eq!(std::fs::read_to_string(home.folder.path().join("runs")).unwrap(), "run\nrun\n");
}

fn a_second_rejection_is_the_answer(runtime: Runtime) {
    let script = Script::tls();
    script.on(MAPS, [unauthorized()]);
    let home = with_login(runtime, &script);
    let ended = home.coil(&["get", "cm"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.lines().count()), (Some(1), "", 1), "{ended:?}");
    assert!(ended.stderr.starts_with("error: Unauthorized (Unauthorized) [401]; "), "{ended:?}");
    assert_eq!(asked_as(&script), ["list limit=500 token-1", "list limit=500 token-2"]);
}

fn a_follower_goes_on_with_new_credentials(runtime: Runtime) {
    let script = Script::tls();
    script
        .on(MAPS, [no_stream(), list(5, &[object("a", 1)]), unauthorized(), watch(&[event("ADDED", &object("b", 6))])]);
    let home = with_login(runtime, &script);
    let mut following = Following::new(script, home);
    assert_eq!(following.told(3), ["added a 1", "synced", "added b 6"]);
    let script = following.end();
    assert_eq!(
        asked_as(&script),
        ["stream token-1", "list limit=500 token-1", "watch rv=5 token-1", "watch rv=5 token-2"]
    );
}
