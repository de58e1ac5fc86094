//! The body of the fuzz target for manifests.

use super::documents;

/// Takes a text. Whatever is read from it must be read again from its JSON, and a fault must lie within the text.
pub fn manifest(data: &[u8]) {
    let lines = data.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 2;
    for document in documents("f", data) {
        match document {
            Ok(objects) => {
                for found in objects {
                    let json = serde_json::to_vec(&found.object).expect("an object of JSON values can be written");
                    let again: Vec<_> = documents("f", &json).collect();
                    // A list that has a name, and no items yet, is an object.
                    let [Ok(again)] = &again[..] else { panic!("{again:?}") };
                    assert!(again.iter().all(|other| other.object == found.object));
                }
            }
            Err(error) => assert!(error.line <= lines && !error.to_string().is_empty(), "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_holds_on_what_is_odd() {
        for text in [
            "",
            "\u{feff}",
            "---",
            "a: 1",
            "kind: List\napiVersion: v1\nitems: [1]",
            "{\"a\":1e400}",
            "&a [*a]",
            "? [a]\n: b",
        ] {
            manifest(text.as_bytes());
        }
        manifest(b"apiVersion: v1\nkind: L\xc3\n");
    }
}
