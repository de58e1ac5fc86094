//! Which objects are meant.

use crate::fault::Fault;

/// `pod`, `deployment.apps`.
pub(crate) fn label(kind: &str, group: &str) -> String {
    let kind = kind.to_lowercase();
    if group.is_empty() { kind } else { format!("{kind}.{group}") }
}

/// One type, and which of its objects are named; none stands for all that match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) word: String,
    pub(crate) names: Vec<String>,
}

/// What `KIND [NAME...]`, `KIND,KIND [NAME...]` or `KIND/NAME...` means.
pub(crate) fn targets(arguments: &[String]) -> Result<Vec<Target>, Fault> {
    let Some((first, names)) = arguments.split_first() else {
        return Err(Fault::misuse("name a kind of object"));
    };
    if arguments.iter().any(|argument| argument.contains('/')) {
        return arguments.iter().map(|argument| pair(argument)).collect();
    }
    let words: Vec<&str> = first.split(',').collect();
    if words.iter().any(|word| word.is_empty() || word.starts_with('.') || word.ends_with('.')) {
        return Err(Fault::misuse(format!("{first:?} is no kind of object; write KIND, KIND,KIND or KIND.GROUP")));
    }
    if names.iter().any(String::is_empty) {
        return Err(Fault::misuse("the name of an object must not be empty"));
    }
    Ok(words.into_iter().map(|word| Target { word: word.to_owned(), names: names.to_vec() }).collect())
}

/// As [`targets`], where every type must come with names.
pub(crate) fn named(arguments: &[String]) -> Result<Vec<Target>, Fault> {
    let targets = targets(arguments)?;
    match targets.iter().find(|target| target.names.is_empty()) {
        Some(target) => Err(Fault::misuse(format!("say which: {} NAME, or {}/NAME", target.word, target.word))),
        None => Ok(targets),
    }
}

/// As [`targets`], where either names or something else selects objects.
pub(crate) fn selected(arguments: &[String], selects: bool) -> Result<Vec<Target>, Fault> {
    if !selects {
        return match targets(arguments)? {
            targets if targets.iter().all(|target| target.names.is_empty()) => {
                Err(Fault::misuse("say which: by name, with a selector (-l), or with --all"))
            }
            _ => named(arguments),
        };
    }
    let targets = targets(arguments)?;
    match targets.iter().all(|target| target.names.is_empty()) {
        true => Ok(targets),
        false => Err(Fault::misuse("a name excludes --all and selectors")),
    }
}

/// The pod that `NAME` or `pod/NAME` means.
pub(crate) fn pod(argument: &str) -> Result<&str, Fault> {
    match argument.split('/').collect::<Vec<_>>()[..] {
        [name] | ["pod" | "pods" | "po", name] if !name.is_empty() => Ok(name),
        _ => Err(Fault::misuse(format!("{argument:?} is no pod; write NAME, or pod/NAME"))),
    }
}

fn pair(argument: &str) -> Result<Target, Fault> {
    match argument.split('/').collect::<Vec<_>>()[..] {
        [word, name] if !word.is_empty() && !name.is_empty() && !word.contains(',') => {
            Ok(Target { word: word.to_owned(), names: vec![name.to_owned()] })
        }
        [_] => Err(Fault::misuse(format!("{argument:?} is not KIND/NAME, as the other arguments are"))),
        _ => Err(Fault::misuse(format!("{argument:?} is not KIND/NAME"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(ToOwned::to_owned).collect()
    }

    fn target(word: &str, names: &[&str]) -> Target {
        Target {
            word: word.to_owned(),
            names: words(&names.join(" ")).into_iter().filter(|name| !name.is_empty()).collect(),
        }
    }

    #[test]
    fn kinds_and_names_are_told_apart() {
        for (line, expected) in [
            ("po", vec![target("po", &[])]),
            ("po a b", vec![target("po", &["a", "b"])]),
            ("po,svc a", vec![target("po", &["a"]), target("svc", &["a"])]),
            ("po/a svc/b", vec![target("po", &["a"]), target("svc", &["b"])]),
            ("deployments.v1.apps", vec![target("deployments.v1.apps", &[])]),
        ] {
            assert_eq!(targets(&words(line)).unwrap(), expected, "{line}");
        }
        for line in ["po/a b", "po po/a", "a/b/c", "/a", "po/", "po,", ",", "", "po,svc/a", "po  a", ".apps"] {
            assert!(matches!(targets(&words(line)), Err(Fault::Misuse(_))), "{line}");
        }
    }

    #[test]
    fn what_changes_objects_must_be_told_which() {
        assert!(named(&words("po")).is_err() && named(&words("po a")).is_ok());
        assert!(selected(&words("po"), false).is_err() && selected(&words("po a"), true).is_err());
        assert!(selected(&words("po"), true).is_ok() && selected(&words("po/a"), false).is_ok());
    }

    #[test]
    fn a_pod_is_named_with_or_without_its_kind() {
        assert_eq!((pod("a").unwrap(), pod("pod/a").unwrap()), ("a", "a"));
        for odd in ["", "pod/", "deploy/a", "pod/a/b", "/"] {
            assert!(pod(odd).is_err(), "{odd}");
        }
    }
}
