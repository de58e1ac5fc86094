//! Compares the protobuf decoder with what Kubernetes' own code made of the same bodies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

const GOLDEN: &str = include_str!("golden.txt");

/// The lines that begin with this word, without it.
fn lines(word: &str) -> impl Iterator<Item = &'static str> {
    GOLDEN.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
}

/// The bodies of lines `WORD PROTOBUF JSON`, each with its JSON.
fn bodies(word: &str) -> Vec<(Vec<u8>, Value)> {
    let cases: Vec<_> = lines(word)
        .map(|line| {
            let (body, json) = line.split_once(' ').unwrap();
            (STANDARD.decode(body).unwrap(), serde_json::from_str(json).unwrap())
        })
        .collect();
    assert!(!cases.is_empty());
    cases
}

#[test]
fn every_kind_is_decoded_to_what_the_api_server_answers() {
    let kinds = Kinds::builtin();
    let mut seen = std::collections::BTreeSet::new();
    for (body, expected) in bodies("object") {
        let object = kinds.decode_protobuf(&body, None).map(Value::Object);
        assert_eq!(object.as_ref(), Ok(&expected), "{}", expected["kind"]);
        seen.insert((expected["apiVersion"].to_string(), expected["kind"].to_string()));
    }
    assert_eq!(seen.len(), kinds.kinds.len() + kinds.everywhere.len());
}

#[test]
fn damaged_bodies_that_the_api_server_accepts_are_decoded_alike() {
    let kinds = Kinds::builtin();
    for (body, expected) in bodies("damaged") {
        let object = kinds.decode_protobuf(&body, None).map(Value::Object);
        assert_eq!(object.as_ref(), Ok(&expected), "{body:x?}");
    }
}

#[test]
fn damaged_bodies_that_the_api_server_refuses_are_errors() {
    let kinds = Kinds::builtin();
    for line in lines("refused") {
        let body = STANDARD.decode(line).unwrap();
        let object = kinds.decode_protobuf(&body, None);
        assert!(object.is_err(), "{line} gives {object:?}");
    }
}

#[test]
fn quantities_become_what_the_api_server_makes_of_them() {
    for line in lines("quantity") {
        let (text, expected) = line.rsplit_once(' ').unwrap();
        let text: String = serde_json::from_str(text).unwrap();
        let canonical = canonical_quantity(&text).ok();
        let expected: Option<String> = serde_json::from_str(expected).ok();
        assert_eq!(canonical, expected, "{text:?}");
    }
}

#[test]
fn no_bytes_make_the_decoder_panic() {
    let kinds = Kinds::builtin();
    proptest!(|(bytes in prop::collection::vec(any::<u8>(), 0..200))| {
        fuzz::protobuf(&kinds, &bytes);
        fuzz::protobuf(&kinds, &[b"k8s\0", &bytes[..]].concat());
    });
}

#[test]
fn no_damage_to_a_body_makes_the_decoder_panic() {
    let kinds = Kinds::builtin();
    let cases: Vec<_> = bodies("object").into_iter().map(|(body, _)| body).collect();
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    proptest!(|(body in prop::sample::select(cases), damage in damage)| {
        let mut body = body;
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        fuzz::protobuf(&kinds, &body);
    });
}
