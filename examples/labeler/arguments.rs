//! The command line.

use std::path::PathBuf;

/// What the operator works on.
pub(crate) enum Work {
    /// The cluster of the current kubeconfig.
    Run,
    /// A server in memory, whose kubeconfig goes to a file.
    Dev(Option<PathBuf>),
}

/// What is to be done, and on what; options stand before or after the word.
pub(crate) fn arguments(mut arguments: impl Iterator<Item = String>) -> Result<(Work, String), String> {
    let (mut word, mut kubeconfig, mut runtime) = (None, None, None);
    while let Some(argument) = arguments.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (argument, None),
        };
        let mut value = || inline.clone().or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--kubeconfig" => kubeconfig = Some(PathBuf::from(value()?)),
            "--runtime" => runtime = Some(value()?),
            "dev" | "run" if word.is_none() => word = Some(name),
            _ => return Err(format!("{name:?} is not understood")),
        }
    }
    let runtime = runtime.unwrap_or_else(|| RUNTIMES[0].to_owned());
    if !RUNTIMES.contains(&runtime.as_str()) {
        return Err(format!("there is no runtime {runtime:?}: choose {}", RUNTIMES.join(", ")));
    }
    match (word.as_deref(), kubeconfig) {
        (Some("dev"), file) => Ok((Work::Dev(file), runtime)),
        (Some(_), None) => Ok((Work::Run, runtime)),
        (Some(_), Some(_)) => Err("--kubeconfig is where dev writes to; run goes by KUBECONFIG".to_owned()),
        (None, _) => Err("say what to do: dev or run".to_owned()),
    }
}

const RUNTIMES: [&str; 4] = ["tokio", "async-std", "blocking", "smol"];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Work, String), String> {
        arguments(line.split_whitespace().map(ToOwned::to_owned))
    }

    #[test]
    fn options_stand_before_or_after_what_is_to_be_done() {
        for line in ["dev --kubeconfig f --runtime smol", "--runtime=smol dev --kubeconfig=f"] {
            let (Work::Dev(Some(file)), runtime) = read(line).unwrap() else { panic!("{line}") };
            assert_eq!((file, runtime.as_str()), ("f".into(), "smol"), "{line}");
        }
        assert!(matches!(read("run"), Ok((Work::Run, runtime)) if runtime == "tokio"));
    }

    #[test]
    fn mistakes_are_told() {
        for (line, part) in [
            ("", "dev or run"),
            ("dev run", "\"run\""),
            ("run --kubeconfig f", "KUBECONFIG"),
            ("dev --runtime", "needs a value"),
            ("dev --runtime novel", "choose tokio, async-std, blocking, smol"),
        ] {
            assert!(read(line).is_err_and(|problem| problem.contains(part)), "{line}");
        }
    }
}
