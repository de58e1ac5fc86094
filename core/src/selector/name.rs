//! The syntax of label keys and label values.

/// What is wrong with a label key or value, by the
/// [syntax of labels](https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameFault {
    /// More than one `/`.
    #[error("a key is a name with at most one prefix before a '/', as in 'example.com/name'")]
    Slashes,
    /// Nothing before the `/`.
    #[error("prefix part must be non-empty")]
    PrefixEmpty,
    /// A prefix of more than 253 bytes.
    #[error("prefix part must be no more than 253 bytes")]
    PrefixTooLong,
    /// A prefix that is no DNS subdomain.
    #[error(
        "prefix part must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
    )]
    PrefixSyntax,
    /// No name.
    #[error("name part must be non-empty")]
    NameEmpty,
    /// A name of more than 63 bytes.
    #[error("name part must be no more than 63 bytes")]
    NameTooLong,
    /// A name with a character that is not allowed there.
    #[error(
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    )]
    NameSyntax,
    /// A value of more than 63 bytes.
    #[error("must be no more than 63 bytes")]
    ValueTooLong,
    /// A value with a character that is not allowed there.
    #[error(
        "a value must be empty or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    )]
    ValueSyntax,
}

/// Whether `key` is a label key: an optional DNS subdomain of up to 253 bytes and `/`, then a name of up to 63.
pub fn check_label_key(key: &str) -> Result<(), NameFault> {
    let (prefix, name) = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => return Err(NameFault::Slashes),
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    match prefix {
        Some("") => return Err(NameFault::PrefixEmpty),
        Some(prefix) if prefix.len() > PREFIX_MAX => return Err(NameFault::PrefixTooLong),
        Some(prefix) if !is_subdomain(prefix) => return Err(NameFault::PrefixSyntax),
        _ => {}
    }
    match name {
        "" => Err(NameFault::NameEmpty),
        name if name.len() > NAME_MAX => Err(NameFault::NameTooLong),
        name if !is_name(name) => Err(NameFault::NameSyntax),
        _ => Ok(()),
    }
}

/// Whether `value` is a label value: empty, or a name of up to 63 bytes.
pub fn check_label_value(value: &str) -> Result<(), NameFault> {
    match value {
        "" => Ok(()),
        value if value.len() > NAME_MAX => Err(NameFault::ValueTooLong),
        value if !is_name(value) => Err(NameFault::ValueSyntax),
        _ => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|label| {
        let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
    })
}

const PREFIX_MAX: usize = 253;
const NAME_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_with_an_optional_subdomain() {
        let longest = format!("{}/{}", vec!["a".repeat(62); 4].join(".") + "a", "n".repeat(63));
        for key in ["a", "A.b-c_d", "1", "example.com/app", "a/b", "1-2.3/x", &longest[..]] {
            assert_eq!(check_label_key(key), Ok(()), "{key}");
        }
        let name = "n".repeat(64);
        let prefix = format!("{}/n", "p".repeat(254));
        for (key, fault) in [
            ("", NameFault::NameEmpty),
            ("a/", NameFault::NameEmpty),
            ("/a", NameFault::PrefixEmpty),
            ("a/b/c", NameFault::Slashes),
            ("A/b", NameFault::PrefixSyntax),
            ("a..b/c", NameFault::PrefixSyntax),
            ("a_b/c", NameFault::PrefixSyntax),
            ("-a/c", NameFault::PrefixSyntax),
            ("a-/c", NameFault::PrefixSyntax),
            ("-a", NameFault::NameSyntax),
            ("a.", NameFault::NameSyntax),
            ("a b", NameFault::NameSyntax),
            ("é", NameFault::NameSyntax),
            (&name, NameFault::NameTooLong),
            (&prefix, NameFault::PrefixTooLong),
        ] {
            assert_eq!(check_label_key(key), Err(fault), "{key}");
        }
    }

    #[test]
    fn values_are_empty_or_names() {
        for value in ["", "a", "A_b.c-1", &"v".repeat(63)] {
            assert_eq!(check_label_value(value), Ok(()), "{value}");
        }
        for value in ["-1", "+1", "a/b", "a b", "a.", "ü"] {
            assert_eq!(check_label_value(value), Err(NameFault::ValueSyntax), "{value}");
        }
        assert_eq!(check_label_value(&"v".repeat(64)), Err(NameFault::ValueTooLong));
    }
}
