//! Compares the protobuf decoder with what Kubernetes' own code made of the same bodies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudcoil_core::Quantity;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

const GOLDEN: &str = include_str!("golden.txt");
const BODIES: &str = include_str!("bodies.txt");

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
fn json_bodies_are_kept_and_reported_on_as_the_api_server_does() {
    let kinds = Kinds::builtin();
    let mut count = 0;
    for line in BODIES.lines().filter_map(|line| line.strip_prefix("body\t")) {
        let [body, object, strict] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let expected: Value = serde_json::from_str(object).unwrap();
        let strict: Vec<String> = serde_json::from_str(strict).unwrap();
        let decoded = kinds.decode_json(kind_of(&kinds, body), body.as_bytes());
        let decoded = decoded.map(|decoded| (Value::Object(decoded.object), decoded.strict));
        assert_eq!(decoded, Ok((expected.clone(), strict)), "{body}");
        let again = kinds.canonicalize(kind_of(&kinds, body), expected.clone()).unwrap();
        assert_eq!((Value::Object(again.object), again.strict), (expected, vec![]), "{body} a second time");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn bad_json_bodies_are_refused_in_the_words_of_the_api_server() {
    let kinds = Kinds::builtin();
    let mut count = 0;
    for line in BODIES.lines().filter_map(|line| line.strip_prefix("bad\t")) {
        let (body, error) = line.split_once('\t').unwrap();
        let error: String = serde_json::from_str(error).unwrap();
        let refused = kinds.decode_json(kind_of(&kinds, body), body.as_bytes());
        assert_eq!(refused.map_err(|error| error.to_string()), Err(error), "{body}");
        count += 1;
    }
    assert!(count > 0);
}

fn kind_of(kinds: &Kinds, body: &str) -> StructId {
    let body: Value = serde_json::from_str(body).unwrap();
    let (group, version) = match body["apiVersion"].as_str().unwrap().split_once('/') {
        Some(group_version) => group_version,
        None => ("", body["apiVersion"].as_str().unwrap()),
    };
    kinds.kind(group, version, body["kind"].as_str().unwrap()).unwrap().structure
}

#[test]
fn objects_that_are_canonical_stay_as_they_are() {
    let kinds = Kinds::builtin();
    for (_, object) in bodies("object") {
        let kind = kind_of(&kinds, &object.to_string());
        let again = kinds.canonicalize(kind, object.clone()).map(|again| Value::Object(again.object));
        assert_eq!(again, Ok(object));
    }
}

#[test]
fn quantities_become_what_the_api_server_makes_of_them() {
    for line in lines("quantity") {
        let (text, expected) = line.rsplit_once(' ').unwrap();
        let text: String = serde_json::from_str(text).unwrap();
        let canonical = Quantity::parse(&text).ok().map(|quantity| quantity.served());
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

#[test]
fn no_damage_to_json_makes_the_decoder_panic() {
    let kinds = Kinds::builtin();
    let cases: Vec<_> = BODIES.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    proptest!(|(body in prop::sample::select(cases), damage in damage)| {
        let mut body = body.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        fuzz::json(&kinds, &body);
    });
}
