//! `kubectl config view` and Cloudcoil, over the same kubeconfigs: both print the same, or both fail.
//!
//! Runs when `KUBEBUILDER_ASSETS` names a folder that has `kubectl`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use cloudcoil_core::config::{
    ConfigInput, ConfigOutput, ConfigSource, ConfigView, Environment, ReadError, ViewOptions,
};
use cloudcoil_core::{Machine as _, Now, Outbox};
use cloudcoil_tests::kubeconfigs::{Case, DIFFERENCES, Kind, cases};
use serde_json::Value;

/// How a kubeconfig is shown: with which flags of `kubectl`.
struct Mode {
    flags: &'static [&'static str],
    options: ViewOptions,
}

/// With `--flatten`, `kubectl` shows secrets whether or not it is asked to.
const MODES: [Mode; 3] = [
    Mode {
        flags: &["--minify", "--flatten", "--raw"],
        options: ViewOptions { minify: true, flatten: true, raw: true },
    },
    Mode { flags: &["--minify", "--flatten"], options: ViewOptions { minify: true, flatten: true, raw: true } },
    Mode { flags: &[], options: ViewOptions { minify: false, flatten: false, raw: false } },
];

#[test]
fn kubectl_and_the_core_show_the_same_of_each_kubeconfig() {
    let Some(kubectl) = kubectl("kubectl_and_the_core_show_the_same_of_each_kubeconfig") else { return };
    let root = std::env::temp_dir().join(format!("cloudcoil-config-view-{}", std::process::id()));
    let cases = cases();
    // Each half starts programs of its own, which is what takes the time.
    let (mut one, two) = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let (kubectl, root, cases) = (&kubectl, &root, &cases);
            scope.spawn(move || compare(kubectl, root, cases.iter().enumerate().skip(half).step_by(2)))
        });
        let [one, two] = halves.map(|half| half.join().expect("a comparison ends"));
        (one, two)
    });
    fs::remove_dir_all(&root).unwrap();
    one.shown += two.shown;
    one.differing.extend(two.differing);
    let Compared { shown, mut differing } = one;
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "each case has a name to itself");
    assert!(cases.len() >= 60 && shown > cases.len(), "{shown} views of {} kubeconfigs", cases.len());
    for (name, reason) in DIFFERENCES {
        assert!(differing.remove(*name).is_some(), "{name}: no difference any more ({reason})");
    }
    let report: String = differing.iter().map(|(name, text)| format!("{name}: {text}\n")).collect();
    assert!(differing.is_empty(), "{} differences:\n{report}", differing.len());
}

/// What came of comparing.
#[derive(Default)]
struct Compared {
    /// How often `kubectl` printed something.
    shown: usize,
    /// What each of the two said, by the name of the case.
    differing: BTreeMap<String, String>,
}

fn compare<'a>(kubectl: &Path, root: &Path, cases: impl Iterator<Item = (usize, &'a Case)>) -> Compared {
    let mut compared = Compared::default();
    for (index, case) in cases {
        let folder = root.join(index.to_string());
        case.write(&folder).expect("files can be written");
        let [first, rest @ ..] = &MODES;
        let rest = match case.kind {
            Kind::Scalar => &[][..],
            Kind::Other => rest,
        };
        for mode in [first].into_iter().chain(rest) {
            let (theirs, ours) = (theirs(kubectl, case, &folder, mode), ours(case, &folder, mode));
            compared.shown += usize::from(theirs.is_ok());
            let agree = match (&theirs, &ours) {
                (Ok(theirs), Ok(ours)) => theirs == ours,
                (theirs, ours) => theirs.is_err() && ours.is_err(),
            };
            if !agree {
                let text = format!("{:?}\n  kubectl: {theirs:?}\n  core: {ours:?}", mode.flags);
                compared.differing.entry(case.name.clone()).or_insert(text);
            }
        }
    }
    compared
}

/// What `kubectl` prints, or says when it fails.
fn theirs(kubectl: &Path, case: &Case, folder: &Path, mode: &Mode) -> Result<Value, String> {
    let mut command = Command::new(kubectl);
    command.args(["config", "view", "-o", "json"]).args(mode.flags).env("HOME", folder);
    case.tell(&mut command, folder);
    let output = command.output().expect("kubectl starts");
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).expect("kubectl prints JSON")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// What the core answers, or says when it fails.
fn ours(case: &Case, folder: &Path, mode: &Mode) -> Result<Value, String> {
    let context = case.context.clone();
    let source = ConfigSource { path: case.file(folder), context, ..ConfigSource::default() };
    let environment = Environment { kubeconfig: case.list(folder), home: Some(folder.into()), ..Default::default() };
    let mut machine = ConfigView::new(source, environment, mode.options);
    let (mut out, mut input) = (Outbox::new(), None);
    loop {
        let _ = machine.step(Now::default(), input.take(), &mut out);
        for output in out.drain() {
            match output {
                ConfigOutput::Read { ticket, path } => input = Some(ConfigInput::Read { ticket, result: read(&path) }),
                ConfigOutput::Warn(_) => {}
                ConfigOutput::Loaded(Ok(kubeconfig)) => {
                    return Ok(serde_json::from_str(&kubeconfig.to_json()).expect("it is JSON"));
                }
                ConfigOutput::Loaded(Err(error)) => return Err(error.to_string()),
            }
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    Ok(fs::read(path)?)
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
    let _ = writeln!(io::stderr(), "NOT RUN: {test}: KUBEBUILDER_ASSETS names no folder with kubectl");
    None
}
