//! Commands against the API server in memory: what is printed where, and the exit code.

use cloudcoil_apiserver::{LogSource, User};

use crate::cluster::{Cluster, words};
use crate::program::{Ended, Runtime, on_each_runtime};

on_each_runtime!(
    the_commands_of_the_readme_do_what_they_say,
    objects_live_and_die_by_files,
    apply_tells_what_has_become_of_each_object,
    objects_are_printed_in_every_form,
    objects_are_changed_in_every_way,
    what_is_deleted_is_waited_for,
    waiting_ends_when_it_has_come_true_or_in_time,
    following_tells_every_change_of_what_matches,
    folders_lists_and_standard_input_are_read,
    misuse_is_told_in_one_line_and_ends_with_2,
    words_that_are_no_text_are_misuse_too,
    a_reader_who_goes_away_is_no_fault,
    the_server_and_the_user_are_told,
    pods_are_evicted_unless_they_are_not_there,
    a_pod_can_be_replaced_by_the_file_that_it_was_made_of,
    logs_are_printed_as_they_are_written_until_the_container_ends,
    who_asks_can_be_said_by_token_and_by_impersonation,
    what_is_no_path_or_no_patch_is_told_in_one_line,
    a_type_and_its_objects_come_in_one_file,
);

const OBJECTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {tier: front}}
data: {mode: fast}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"#;

/// The lines of the README are tried as they stand there, in its order.
fn the_commands_of_the_readme_do_what_they_say(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file("web.yaml", OBJECTS);
    let readme = include_str!("../../../README.md");
    let section = readme.split("\n## Coil\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let lines: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("coil ")).collect();
    assert!(lines.len() >= 8, "{lines:?}");
    for line in lines {
        let runtime = if line.contains("--runtime") { String::new() } else { format!("--runtime {runtime}") };
        let script = format!("exec '{}' {runtime} {line}", crate::program::coil().display());
        let mut command = cluster.home.command("sh".as_ref(), &["-c", &script]);
        if line.starts_with("follow") {
            let mut running = crate::program::Running::new(command.spawn().unwrap());
            while !running.line().contains("\"synced\"") {}
            running.signal("INT");
            assert_eq!(running.end().code, Some(0), "coil {line}");
            continue;
        }
        let ended = crate::program::finish(command, "");
        assert_eq!(ended.code, Some(0), "coil {line}: {ended:?}");
        assert!(!ended.stdout.is_empty(), "coil {line}: {ended:?}");
    }
}

fn objects_live_and_die_by_files(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file("objects.yaml", OBJECTS);
    cluster.ok(
        "create -f objects.yaml --dry-run=server",
        "configmap/settings created (server dry run)\ndeployment.apps/web created (server dry run)\n",
    );
    cluster.ok("create -f objects.yaml", "configmap/settings created\ndeployment.apps/web created\n");
    cluster.fails("get cm nothing", 1, "configmaps \"nothing\" not found");
    let again = cluster.home.coil(&words("create -f objects.yaml"));
    assert_eq!((again.code, again.stderr.lines().count(), again.stdout.as_str()), (Some(1), 2, ""), "{again:?}");
    assert!(again.stderr.contains("already exists"), "{again:?}");
    cluster.ok("replace -f objects.yaml", "configmap/settings replaced\ndeployment.apps/web replaced\n");
    cluster.ok("delete -f objects.yaml", "configmap \"settings\" deleted from default namespace\ndeployment.apps \"web\" deleted from default namespace\n");
    cluster.ok("delete -f objects.yaml --ignore-not-found", "");
}

fn apply_tells_what_has_become_of_each_object(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    let apply = |arguments: &str, input: &str| cluster.home.pipe(&words(&format!("apply -f - {arguments}")), input);
    let said = |stdout: &str| Ended { code: Some(0), stdout: stdout.to_owned(), stderr: String::new() };
    assert_eq!(apply("--dry-run=server", OBJECTS).stdout.lines().count(), 2);
    assert_eq!(apply("--dry-run=none", OBJECTS), said("configmap/settings created\ndeployment.apps/web created\n"));
    let changed = OBJECTS.replace("fast", "slow");
    assert_eq!(
        apply("--dry-run=none", &changed),
        said("configmap/settings configured\ndeployment.apps/web unchanged\n")
    );
    assert_eq!(
        apply("--server-side", OBJECTS),
        said("configmap/settings serverside-applied\ndeployment.apps/web serverside-applied\n")
    );

    let conflict = apply("--field-manager=other", &changed);
    assert_eq!(conflict.code, Some(1), "{conflict:?}");
    assert_eq!(conflict.stderr.lines().count(), 1, "{conflict:?}");
    for part in ["conflict", "coil", ".data.mode", "--force-conflicts"] {
        assert!(conflict.stderr.contains(part), "{part}: {conflict:?}");
    }
    let forced = apply("--field-manager=other --force-conflicts", &changed);
    assert_eq!(forced, said("configmap/settings configured\ndeployment.apps/web unchanged\n"));
}

fn objects_are_printed_in_every_form(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file("objects.yaml", OBJECTS);
    cluster.home.coil(&words("create -f objects.yaml"));
    cluster.ok("get deploy/web cm/settings -o name", "deployment.apps/web\nconfigmap/settings\n");
    cluster.ok("get cm settings -o jsonpath={.data.mode}", "fast");
    cluster.ok("get cm -l tier=front -o jsonpath={.items[*].metadata.name}", "settings");
    cluster.ok("get cm --field-selector metadata.name=settings -o name", "configmap/settings\n");
    let table = cluster.home.coil(&words("get cm settings --show-labels"));
    assert!(table.stdout.starts_with("NAME       DATA   AGE   LABELS\nsettings   1      "), "{table:?}");
    assert!(table.stdout.ends_with("   tier=front\n"), "{table:?}");
    let several = cluster.home.coil(&words("get deploy,cm -l tier=front"));
    assert!(
        several.stdout.starts_with("NAME       DATA   AGE\nconfigmap/settings") || several.stdout.starts_with("NAME "),
        "{several:?}"
    );
    let none = cluster.home.coil(&words("get secrets"));
    assert_eq!((none.code, none.stderr.as_str()), (Some(0), "No resources found in default namespace.\n"));
    let none = cluster.home.coil(&words("get secrets -A"));
    assert_eq!((none.code, none.stderr.as_str()), (Some(0), "No resources found\n"));
    let raw = cluster.home.coil(&words("get --raw /version"));
    assert!(raw.stdout.contains("gitVersion"), "{raw:?}");
    let json: serde_json::Value =
        serde_json::from_str(&cluster.home.coil(&words("get cm settings -o json")).stdout).unwrap();
    assert_eq!((&json["kind"], &json["metadata"]["managedFields"]), (&"ConfigMap".into(), &serde_json::Value::Null));
}

fn objects_are_changed_in_every_way(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file("objects.yaml", OBJECTS);
    cluster.home.file("patch.yaml", "data: {from: file}\n");
    cluster.home.coil(&words("create -f objects.yaml"));
    cluster.ok("scale deploy web --replicas 5", "deployment.apps/web scaled\n");
    cluster.ok("get deploy web -o jsonpath={.spec.replicas}", "5");
    cluster.fails("scale deploy/web --replicas=6 --current-replicas=4", 1, "should have 4 replicas now, and has 5");
    cluster.ok("scale deploy/web --replicas=6 --current-replicas=5", "deployment.apps/web scaled\n");
    cluster.ok(r#"patch cm settings -p {"data":{"more":"1"}}"#, "configmap/settings patched\n");
    cluster.ok(r#"patch cm settings -p {"data":{"more":"1"}}"#, "configmap/settings patched (no change)\n");
    cluster.ok("patch cm settings --type merge --patch-file patch.yaml", "configmap/settings patched\n");
    cluster.ok(
        r#"patch cm settings --type json -p [{"op":"remove","path":"/data/more"}]"#,
        "configmap/settings patched\n",
    );
    cluster.ok("get cm settings -o jsonpath={.data}", r#"{"from":"file","mode":"fast"}"#);
    cluster.ok(
        r#"patch deploy web --subresource=scale --type=merge -p {"spec":{"replicas":3}}"#,
        "scale.autoscaling/web patched\n",
    );
    cluster.ok(r#"patch cm made --type=apply -p {"data":{"a":"b"}}"#, "configmap/made patched\n");
    cluster.fails("patch cm settings --type json -p {}", 2, "list of operations");
    cluster.fails(r#"patch cm settings -p {"a"#, 2, "the patch");
}

fn what_is_deleted_is_waited_for(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file("objects.yaml", OBJECTS);
    cluster.home.coil(&words("create -f objects.yaml"));
    cluster.ok(
        "delete cm settings --dry-run=server",
        "configmap \"settings\" deleted from default namespace (server dry run)\n",
    );
    cluster.ok("delete cm -l tier=front -o name", "configmap/settings\n");
    cluster.ok("delete cm -l tier=front", "No resources found\n");
    cluster.ok("delete deploy --all --cascade=foreground", "deployment.apps \"web\" deleted from default namespace\n");
    cluster.fails("delete cm settings", 1, "not found");
    cluster.ok("delete cm settings --ignore-not-found", "");
    cluster
        .home
        .file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n");
    cluster.home.coil(&words("create -f held.yaml"));
    let held = cluster.home.coil(&words("delete cm held --timeout=1s"));
    assert_eq!((held.code, held.stdout.as_str()), (Some(1), "configmap \"held\" deleted from default namespace\n"));
    assert!(held.stderr.starts_with("error: timed out waiting for the condition on configmaps/held"), "{held:?}");
    cluster.ok("delete cm held --wait=false", "configmap \"held\" deleted from default namespace\n");
}

fn waiting_ends_when_it_has_come_true_or_in_time(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file("objects.yaml", OBJECTS);
    cluster.home.coil(&words("create -f objects.yaml"));
    cluster.ok("wait deploy/web --for=jsonpath={.spec.replicas}=2", "deployment.apps/web condition met\n");
    cluster.ok("wait deploy web --for=create", "deployment.apps/web condition met\n");
    cluster.ok(
        "wait cm --all --for=jsonpath={.metadata.name} -o name",
        "configmap/kube-root-ca.crt\nconfigmap/settings\n",
    );
    cluster.fails(
        "wait deploy/web --for=condition=Novel --timeout=0",
        1,
        "timed out waiting for the condition on deployments/web",
    );
    cluster.fails("wait deploy/none --for=condition=Available", 1, "not found");
    cluster.fails("wait cm -l none=none --for=condition=Available", 1, "no matching resources found");
    cluster.ok("wait cm/none --for=delete", "");
    let home = &cluster.home;
    let mut waiting = home.start(&words("wait cm/late --for=create --timeout=60s"));
    home.file("late.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late}\n");
    cluster.ok("create -f late.yaml", "configmap/late created\n");
    assert_eq!(waiting.line(), "configmap/late condition met");
    assert_eq!(waiting.end().code, Some(0));
    let waiting = home.start(&words("wait cm/late --for=delete --timeout=60s"));
    cluster.ok("delete cm late", "configmap \"late\" deleted from default namespace\n");
    // It may have looked only when the object was gone.
    let ended = waiting.lines_to_end();
    assert!(ended == ["configmap/late condition met"] || ended.is_empty(), "{ended:?}");
}

fn following_tells_every_change_of_what_matches(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    let map = |name: &str, tier: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{tier: {tier}}}}}\n")
    };
    let mut following = cluster.home.start(&words("follow configmaps -A -l tier=front"));
    assert!(following.line().starts_with(r#"{"event":"synced","#));
    let event = |following: &mut crate::program::Running| {
        let value: serde_json::Value = serde_json::from_str(&following.line()).unwrap();
        format!(
            "{} {}/{}",
            value["event"].as_str().unwrap(),
            value["namespace"].as_str().unwrap(),
            value["name"].as_str().unwrap()
        )
    };
    cluster.home.pipe(&words("create -f -"), &map("a", "front"));
    assert_eq!(event(&mut following), "added default/a");
    cluster.home.pipe(&words("create -f -"), &map("b", "back"));
    cluster.home.pipe(&words("patch cm a --type merge --patch-file -"), r#"{"data":{"x":"y"}}"#);
    assert_eq!(event(&mut following), "updated default/a");
    cluster.home.pipe(&words("patch cm a --type merge --patch-file -"), r#"{"metadata":{"labels":{"tier":"back"}}}"#);
    assert_eq!(event(&mut following), "deleted default/a");
    following.signal("TERM");
    assert_eq!(following.end(), Ended { code: Some(0), stdout: String::new(), stderr: String::new() });
}

fn folders_lists_and_standard_input_are_read(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    cluster.home.file("folder/1.yaml", &map("one"));
    cluster.home.file("folder/2.json", r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"}}]}"#);
    cluster.home.file("folder/notes.txt", "no object");
    cluster.home.file("folder/deep/3.yml", &map("three"));
    cluster.ok("create -f folder", "configmap/one created\nconfigmap/two created\n");
    cluster.ok("create -R -f folder/deep", "configmap/three created\n");
    cluster.fails("create -f nowhere.yaml", 1, "nowhere.yaml");
    cluster.home.file("odd.yaml", "kind: [\n");
    cluster.fails("create -f odd.yaml", 1, "odd.yaml");
    cluster.ok("replace -f folder/1.yaml --dry-run=server -o name", "configmap/one\n");
    cluster.home.file("empty.yaml", "---\n# nothing\n");
    cluster.fails("create -f empty.yaml", 1, "no objects");
    cluster.home.file("untyped.yaml", "metadata: {name: a}\n");
    cluster.fails("create -f untyped.yaml", 1, "untyped.yaml");
    cluster.home.file("novel.yaml", "apiVersion: example.com/v1\nkind: Novel\nmetadata: {name: a}\n");
    cluster.fails("create -f novel.yaml", 1, "Novel");
    cluster
        .home
        .file("elsewhere.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}\n");
    cluster.ok("create -f elsewhere.yaml", "configmap/a created\n");
    cluster.fails("create -f elsewhere.yaml -n default", 1, "kube-system");
}

fn misuse_is_told_in_one_line_and_ends_with_2(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    for (line, part) in [
        ("get", "coil get --help"),
        ("get cm --novel", "--novel"),
        ("novel", "novel"),
        ("get cm/a/b", "KIND/NAME"),
        ("get cm, -A", "KIND"),
        ("get cm a -A", "-A"),
        ("get cm a -l x=y", "selector"),
        ("get cm -o novel", "novel"),
        ("get cm -o jsonpath={.a", "jsonpath"),
        ("get po,cm -w", "one type"),
        ("get cm --timeout soon", "soon"),
        ("delete cm", "which"),
        ("delete cm a --all", "name"),
        ("delete", "coil delete --help"),
        ("create", "-f"),
        ("scale deploy web", "--replicas"),
        ("patch cm a", "--patch"),
        ("wait cm/a --for=novel", "novel"),
        ("logs deploy/web", "pod"),
        ("logs web --since-time=noon", "noon"),
        ("evict a/b/c", "pod"),
        ("follow", "coil follow --help"),
    ] {
        cluster.fails(line, 2, part);
    }
    for (line, part) in [
        ("get novels", "novels"),
        ("follow novels", "novels"),
        ("--context none get cm", "none"),
        ("--kubeconfig none get cm", "none"),
    ] {
        cluster.fails(line, 1, part);
    }
}

fn words_that_are_no_text_are_misuse_too(runtime: Runtime) {
    use std::os::unix::ffi::OsStrExt as _;

    let cluster = Cluster::new(runtime);
    let mut command = cluster.home.program(&["get", "cm"]);
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    let ended = crate::program::finish(command, "");
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{ended:?}");
}

fn a_reader_who_goes_away_is_no_fault(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    for line in ["get all -A -o json", "api-resources", "--help", "get --help", "version", "whoami"] {
        let mut child = cluster.home.program(&words(line)).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "coil {line}");
    }
}

fn the_server_and_the_user_are_told(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    let version = cluster.home.coil(&["version"]);
    assert!(
        version.stdout.starts_with("Client Version: v0.") && version.stdout.contains("\nServer Version: v1."),
        "{version:?}"
    );
    let whoami = cluster.home.coil(&["whoami"]);
    assert!(whoami.stdout.starts_with("ATTRIBUTE   VALUE\nUsername    "), "{whoami:?}");
    let names = cluster.home.coil(&words("api-resources -o name --api-group=apps"));
    assert!(names.stdout.lines().any(|name| name == "deployments.apps"), "{names:?}");
    let cluster_wide = cluster.home.coil(&words("api-resources --namespaced=false --no-headers"));
    assert!(cluster_wide.stdout.lines().all(|line| line.contains(" false ")), "{cluster_wide:?}");
}

fn pods_are_evicted_unless_they_are_not_there(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n";
    cluster.home.pipe(&words("create -f -"), pod);
    cluster.ok("evict p --dry-run=server", "pod/p evicted (server dry run)\n");
    cluster.ok("evict pod/p", "pod/p evicted\n");
    cluster.fails("evict p", 1, "not found");
    cluster.fails("logs p", 1, "not found");
}

fn a_pod_can_be_replaced_by_the_file_that_it_was_made_of(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file(
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n",
    );
    cluster.ok("create -f pod.yaml", "pod/p created\n");
    cluster.ok("replace -f pod.yaml", "pod/p replaced\n");
    cluster.ok("get pod p -o jsonpath={.spec.priority},{.spec.tolerations[*].tolerationSeconds}", "0,300 300");
}

fn logs_are_printed_as_they_are_written_until_the_container_ends(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n";
    cluster.home.pipe(&words("create -f -"), pod);
    assert!(cluster.act(|server, now, out| server.append_log(now, &log(), "one\ntwo\n", out)));
    cluster.ok("logs p", "one\ntwo\n");
    cluster.ok("logs pod/p -c c --tail=1", "two\n");
    let mut running = cluster.home.start(&words("logs -f p"));
    assert_eq!(running.lines(2), ["one", "two"]);
    assert!(cluster.act(|server, now, out| server.append_log(now, &log(), "three\n", out)));
    assert_eq!(running.line(), "three");
    assert!(cluster.act(|server, _, out| server.finish_log(&log(), out)));
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
}

fn log() -> LogSource {
    LogSource::new("default", "p", "c")
}

fn who_asks_can_be_said_by_token_and_by_impersonation(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    let said = |name: &str, groups: &str| format!("ATTRIBUTE   VALUE\nUsername    {name}\nGroups      [{groups}]\n");
    cluster.ok("whoami --as jane --as-group a --as-group b", &said("jane", "a b system:authenticated"));
    cluster.fails("whoami --as-group a", 2, "--as-group needs a user: say who with --as");
    cluster.fails("whoami --as-uid a", 2, "--as-uid needs a user");
    cluster.fails("whoami --as-group \u{1}", 2, "--as-group: a name or value with characters that cannot be sent");
    cluster.act(|server, _, _| server.set_token("bobs-secret", User::new("bob", ["devs"])));
    let told = cluster.home.coil(&words("whoami --token bobs-secret -v"));
    // A token never goes over plain HTTP, and without credentials everybody is the administrator of this server.
    assert!(told.code == Some(0) && told.stdout.contains("Username    admin\n"), "{told:?}");
    assert!(told.stderr.contains("no credentials will be sent") && !told.stderr.contains("bobs-secret"), "{told:?}");
}

fn what_is_no_path_or_no_patch_is_told_in_one_line(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.fails("get --raw version", 2, "\"version\" is no path");
    cluster.fails("get --raw http://127.0.0.1:1/version", 2, "is no path");
    cluster.fails("patch cm a --type merge -p {", 2, "the patch at line 1: no YAML: ");
    let ended = cluster.home.coil(&words("patch cm a --type merge -p {hunter2"));
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
}

const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3}
"#;

fn a_type_and_its_objects_come_in_one_file(runtime: Runtime) {
    let cluster = Cluster::new(runtime);
    cluster.home.file("widgets.yaml", WIDGETS);
    let said = |what: &str| {
        format!(
            "customresourcedefinition.apiextensions.k8s.io/widgets.example.com {what}\nwidget.example.com/w {what}\n"
        )
    };
    cluster.ok("apply -f widgets.yaml", &said("created"));
    cluster.ok("apply -f widgets.yaml", &said("unchanged"));
    cluster.ok("get wd", "NAME   SIZE\nw      3\n");
    // Custom resources cannot be replaced but in a version.
    cluster.ok("replace -f widgets.yaml", &said("replaced"));
    cluster.fails(r#"patch wd w -p {"spec":{"size":4}}"#, 1, "415");
    cluster.ok(r#"patch wd/w --type=merge -p {"spec":{"size":4}}"#, "widget.example.com/w patched\n");
    cluster.ok("get widgets.v1.example.com w -o jsonpath={.spec.size}", "4");
}
