//! `coil config view` beside `kubectl config view --minify --flatten`, program by program, over many kubeconfigs.
//!
//! `cloudcoil-tests` compares all cases with the core; here it is the way through the program that is shown.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use cloudcoil_tests::kubeconfigs::{Case, DIFFERENCES, Kind, cases};
use serde_json::Value;

use crate::program::{Ended, Home, RUNTIMES, coil, finish};

#[test]
fn config_view_prints_what_kubectl_prints_of_each_kubeconfig() {
    let Some(kubectl) = kubectl("config_view_prints_what_kubectl_prints_of_each_kubeconfig") else { return };
    let (mut cases_seen, mut shown, mut differing) = (0, 0, String::new());
    for case in cases().iter().filter(|case| case.kind == Kind::Other) {
        let home = Home::new(RUNTIMES[0], "");
        let folder = home.folder.path();
        case.write(folder).unwrap();
        let theirs = view(&home, &kubectl, &["--minify", "--flatten", "--raw"], case);
        let ours = view(&home, &coil(), &["--raw"], case);
        cases_seen += 1;
        shown += usize::from(theirs.code == Some(0));
        let known = DIFFERENCES.iter().any(|(name, _)| *name == case.name);
        if !known && !agree(&theirs, &ours) {
            differing += &format!("{}:\n  kubectl: {theirs:?}\n  coil: {ours:?}\n", case.name);
        }
        // Secrets are told to those alone who ask for them; all else stays as it is.
        let redacted = view(&home, &coil(), &[], case);
        assert_eq!(redacted.code, ours.code, "{}: {redacted:?}", case.name);
        for runtime in &RUNTIMES[1..] {
            for (flags, expected) in [(&["--raw"][..], &ours), (&[], &redacted)] {
                let same = view(&home, &coil(), &[flags, &["--runtime", runtime]].concat(), case);
                assert_eq!(same, *expected, "{} on {runtime}", case.name);
            }
        }
    }
    assert!(differing.is_empty(), "{differing}");
    assert!(cases_seen >= 60 && shown >= 60, "{shown} views of {cases_seen} kubeconfigs");
}

fn view(home: &Home, program: &Path, flags: &[&str], case: &Case) -> Ended {
    let folder = home.folder.path();
    let mut command = home.command(program, &[&["config", "view", "-o", "json"], flags].concat());
    case.tell(&mut command, folder);
    finish(command, "")
}

/// Both fail, or both print the same.
fn agree(theirs: &Ended, ours: &Ended) -> bool {
    let value = |ended: &Ended| serde_json::from_str::<Value>(&ended.stdout).ok();
    match (theirs.code, ours.code) {
        (Some(0), Some(0)) => value(theirs).is_some() && value(theirs) == value(ours),
        (theirs, ours) => theirs != Some(0) && ours == Some(1),
    }
}

/// Nothing without a `kubectl`, which is said where it can be seen.
fn kubectl(test: &str) -> Option<PathBuf> {
    let kubectl = std::env::var_os("KUBEBUILDER_ASSETS").map(|assets| PathBuf::from(assets).join("kubectl"));
    if let Some(kubectl) = kubectl.filter(|kubectl| kubectl.is_file()) {
        return Some(kubectl);
    }
    let required = std::env::var_os("CLOUDCOIL_REQUIRE_CONTROL_PLANE").is_some_and(|value| value == "1");
    assert!(!required, "{test} needs kubectl");
    // Not eprintln!, which the test harness keeps to itself as long as a test passes.
    let _ = writeln!(std::io::stderr(), "NOT RUN: {test}: KUBEBUILDER_ASSETS names no folder with kubectl");
    None
}
