use super::lines::{Line, Lines};
use super::*;
use crate::error::{BodyProblem, Error};
use proptest::prelude::*;

fn options() -> FrameOptions {
    FrameOptions { types: Some(TypeMeta::new("v1", "Pod")), ..FrameOptions::default() }
}

fn frames_with(options: &FrameOptions, chunks: &[&[u8]]) -> Vec<Frame> {
    let mut frames = Frames::new(options.clone());
    let mut seen: Vec<Frame> = chunks.iter().flat_map(|chunk| frames.read(chunk).collect::<Vec<_>>()).collect();
    seen.extend(frames.finish());
    seen
}

fn frames(text: &str) -> Vec<Frame> {
    frames_with(&options(), &[text.as_bytes()])
}

fn frame(text: &str) -> Frame {
    let mut frames = frames(text);
    assert_eq!(frames.len(), 1, "{frames:?}");
    frames.remove(0)
}

type Listed = (Vec<ListItem>, Result<ListMeta, Error>);

fn list_with(options: &FrameOptions, chunks: &[&[u8]]) -> Listed {
    let mut body = ListBody::new(options.clone());
    let items = chunks.iter().flat_map(|chunk| body.read(chunk).collect::<Vec<_>>()).collect();
    (items, body.finish(200))
}

fn list(text: &str) -> Listed {
    list_with(&options(), &[text.as_bytes()])
}

fn names(items: &[ListItem]) -> Vec<String> {
    let name = |item: &ListItem| match item {
        ListItem::Object(object) => object.name().to_owned(),
        ListItem::Faulty(faulty) => format!("!{}", faulty.error.object),
    };
    items.iter().map(name).collect()
}

/// Cuts bytes at the places that `cuts` names, modulo their number.
fn chunks<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

#[test]
fn events_of_every_type_are_told_apart() {
    let object = r#"{"metadata":{"name":"a","resourceVersion":"5"}}"#;
    let event = |kind: &str| frame(&format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"));
    assert!(matches!(event("ADDED"), Frame::Added(object) if object.kind() == "Pod"));
    assert!(matches!(event("MODIFIED"), Frame::Modified(_)));
    assert!(matches!(event("DELETED"), Frame::Deleted(_)));
    assert_eq!(event("SYNCED"), Frame::Unknown("SYNCED".into()));
    assert!(matches!(frame(&format!("{{\"object\":{object},\"x\":[],\"type\":\"ADDED\"}}")), Frame::Added(_)));
    assert_eq!(frame(r#"{"type":"NEWS"}"#), Frame::Unknown("NEWS".into()));
}

#[test]
fn bookmarks_of_any_shape_are_read() {
    let bookmark = |object: &str| match frame(&format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n")) {
        Frame::Bookmark(bookmark) => (bookmark.resource_version.unwrap_or_default(), bookmark.ends_initial_events),
        other => panic!("{other:?}"),
    };
    for object in [
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1234","creationTimestamp":null},"spec":{"containers":null},"status":{}}"#,
        r#"{"metadata":{"resourceVersion":"1234","annotations":null}}"#,
        r#"{"metadata":{"annotations":{"k8s.io/initial-events-end":"false"},"resourceVersion":"1234"}}"#,
    ] {
        assert_eq!(bookmark(object), ("1234".into(), false), "{object}");
    }
    for object in ["null", "{}", "[]", r#"{"metadata":null}"#, r#"{"metadata":{"resourceVersion":""}}"#] {
        assert_eq!(bookmark(object), ("".into(), false), "{object}");
    }
    let end = r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    assert_eq!(bookmark(end), ("9".into(), true));
    assert_eq!(frame(r#"{"type":"BOOKMARK"}"#), Frame::Bookmark(Bookmark::default()));
}

#[test]
fn failures_inside_a_stream_keep_what_they_say() {
    let failed = |line: &str| match frame(line) {
        Frame::Failed(status) => status,
        other => panic!("{other:?}"),
    };
    for object in [
        r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}"#,
        r#"{"kind":"Status","reason":"Gone"}"#,
        r#"{"reason":"Expired"}"#,
    ] {
        assert!(failed(&format!("{{\"type\":\"ERROR\",\"object\":{object}}}")).is_expired());
        if object.contains("kind") {
            assert!(failed(object).is_expired(), "a bare status");
        }
    }
    for object in ["null", "[1]", "\"text\"", "{}"] {
        assert!(!failed(&format!("{{\"type\":\"ERROR\",\"object\":{object}}}")).message.is_empty());
    }
}

#[test]
fn lines_that_are_no_events_say_what_they_are() {
    let broken = |line: &[u8]| match &frames_with(&options(), &[line])[..] {
        [Frame::Broken(error)] => error.problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(b"<html>\n"), BodyProblem::Html);
    assert_eq!(broken(b"upstream connect error\n"), BodyProblem::NotJson);
    assert_eq!(broken(b"{\"type\":\"ADDED\",\"obj"), BodyProblem::Truncated);
    assert_eq!(broken(b"{\"type\":\"ADDED\",\"object\":{\"a\":\"\xff\"}}\n"), BodyProblem::NotUtf8);
    assert_eq!(broken(b"{\"type\":\"ADDED\",\"object\":{\"a\":01}}\n"), BodyProblem::NotJson);
    assert_eq!(broken(b"{\"kind\":\"PodList\",\"items\":[]}\n"), BodyProblem::NotJson);
    assert_eq!(broken(b"{\"type\":\"ADDED\"}\n"), BodyProblem::NotJson);
    assert_eq!(broken(b"[]\n"), BodyProblem::NotJson);
}

#[test]
fn blank_lines_carriage_returns_and_several_events_a_line_are_taken() {
    let event = |name: &str| format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"{name}"}}}}}}"#);
    let text = format!("\r\n\n{}\r\n \n{} {}\n{}", event("a"), event("b"), event("c"), event("d"));
    let names: Vec<String> = frames(&text)
        .into_iter()
        .map(|frame| match frame {
            Frame::Added(object) => object.name().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn an_object_that_cannot_be_taken_in_is_named_and_hides_no_other() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let text = format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"namespace\":\"ns\"}}}}}}\n\
         {{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"namespace\":\"ns\",\"name\":\"deep\"}},\"x\":{deep}}}}}\n\
         {{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"good\"}}}}}}\n"
    );
    match &frames(&text)[..] {
        [Frame::Faulty(nameless), Frame::Faulty(deep), Frame::Added(_)] => {
            assert_eq!((&nameless.key, &*nameless.error.object), (&None, "Pod"));
            assert_eq!(deep.key, Some(ResourceKey::new(Some("ns"), "deep").unwrap()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_over_the_limit_is_named_once_and_passed_over() {
    let options = FrameOptions { limit: 80, ..options() };
    let long = format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"long"}},"x":"{}"}}}}"#, "é".repeat(500));
    let text = format!("{long}\n{}\n", r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#);
    for size in [1, 7, 80, 81, 5000] {
        match &frames_with(&options, &text.as_bytes().chunks(size).collect::<Vec<_>>())[..] {
            [Frame::Faulty(faulty), Frame::Added(_)] => {
                assert_eq!(faulty.error.to_string(), "Pod long: is longer than the limit of 80 bytes");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn no_more_than_one_line_is_kept() {
    let mut lines = Lines::new();
    let long = vec![b'x'; 1 << 20];
    let mut rest = &long[..];
    assert_eq!(lines.next(&mut rest, 10), Some(Line::TooLong(&[b'x'; 10])));
    let mut rest = &b"yy\nabc\nd"[..];
    assert_eq!(lines.next(&mut rest, 10), Some(Line::Whole(b"abc")));
    assert_eq!(lines.next(&mut rest, 10), None);
    assert_eq!(lines.finish(), Some(b"d".to_vec()));
}

#[test]
fn items_are_found_wherever_the_rest_of_the_list_stands() {
    let item = r#"{"metadata":{"name":"a"},"items":[{"items":[1,2]}],"s":"]},{\"items\":["}"#;
    for text in [
        format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"7","continue":"c"}},"items":[{item},{item}]}}"#),
        format!(
            "{{\"items\" :\r\n[\n {item} ,\n{item} ] , \"x\":[{item}], \"kind\":\"PodList\", \"metadata\":{{\"resourceVersion\":\"7\",\"continue\":\"c\"}}}}\n"
        ),
    ] {
        let (items, meta) = list(&text);
        assert_eq!(names(&items), ["a", "a"]);
        let meta = meta.unwrap();
        assert_eq!((meta.resource_version.as_deref(), meta.continue_token.as_deref()), (Some("7"), Some("c")));
        assert!(
            matches!(&items[0], ListItem::Object(pod) if pod.json().starts_with(r#"{"apiVersion":"v1","kind":"Pod","metadata""#))
        );
    }
    for text in [r#"{"kind":"PodList","items":null}"#, r#"{"kind":"PodList"}"#, r#"{"items":[]}"#] {
        let (items, meta) = list(text);
        assert!(items.is_empty() && meta.is_ok(), "{text}");
    }
}

#[test]
fn bodies_that_are_no_lists_each_have_their_own_error() {
    let problem = |body: &[u8]| match list_with(&options(), &[body]).1 {
        Err(Error::Body(error)) => (error.code, error.problem),
        other => panic!("{other:?}"),
    };
    assert_eq!(problem(b""), (200, BodyProblem::Empty));
    assert_eq!(problem(b" \n"), (200, BodyProblem::Empty));
    assert_eq!(problem(b"<html>Service Unavailable</html>"), (200, BodyProblem::Html));
    assert_eq!(problem(b"upstream error"), (200, BodyProblem::NotJson));
    assert_eq!(problem(b"\xff\xfe"), (200, BodyProblem::NotUtf8));
    assert_eq!(problem(b"{\"items\":[{\"a\":\"\xff\"}]}"), (200, BodyProblem::NotUtf8));
    for body in ["{", r#"{"items":[{"metadata":{"name":"a"}}"#, r#"{"items":[{"a"#, r#"{"items":[]"#] {
        assert_eq!(problem(body.as_bytes()), (200, BodyProblem::Truncated), "{body}");
    }
    for body in [
        "[]",
        "{}",
        r#"{"error":"x"}"#,
        r#"{"items":{}}"#,
        r#"{"items":[]}x"#,
        r#"{"items":[,]}"#,
        r#"{"items":[1,]}"#,
        r#"{"items":[{} {}]}"#,
        r#"{"items":[{"a":01}]}"#,
        r#"{"items":[}]}"#,
        r#"{"kind":"PodList" "items":[]}"#,
    ] {
        assert_eq!(problem(body.as_bytes()), (200, BodyProblem::NotJson), "{body}");
    }
    match list(r#"{"kind":"Status","reason":"Expired"}"#).1 {
        Err(error) => assert!(error.is_expired() && error.code() == Some(200)),
        Ok(meta) => panic!("{meta:?}"),
    }
}

#[test]
fn a_list_with_a_bad_item_has_the_others() {
    let options = FrameOptions { limit: 200, ..options() };
    let long = format!(r#"{{"metadata":{{"name":"long"}},"x":"{}"}}"#, "x".repeat(500));
    let text =
        format!(r#"{{"items":[{{"metadata":{{"name":"a"}}}},null,{long},{{}},3,{{"metadata":{{"name":"b"}}}}]}}"#);
    for size in [1, 13, 5000] {
        let (items, meta) = list_with(&options, &text.as_bytes().chunks(size).collect::<Vec<_>>());
        assert_eq!(names(&items), ["a", "!Pod", "!Pod long", "!Pod", "!Pod", "b"]);
        assert!(meta.is_ok());
    }
}

#[test]
fn an_envelope_over_the_limit_is_refused() {
    let text = format!(r#"{{"kind":"PodList","x":"{}","items":[]}}"#, "x".repeat(500));
    let error = list_with(&FrameOptions { limit: 100, ..options() }, &[text.as_bytes()]).1.unwrap_err();
    assert!(matches!(error, Error::Body(error) if error.problem == BodyProblem::TooLarge(100)));
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let object = prop_oneof![
        Just(r#"{"metadata":{"name":"naïve → 完了","resourceVersion":"5","managedFields":[{}]}}"#),
        Just(r#"{ "metadata" : { "name" : "b\u0061" } , "x" : [ 1 , { } ] }"#),
        Just(r#"{"metadata":{}}"#),
        Just(r#"{"kind":"Status","code":410}"#),
        Just("null"),
        Just("{\"a\":"),
    ];
    let kind = prop_oneof![4 => Just("ADDED"), 1 => Just("MODIFIED"), 1 => Just("BOOKMARK"), 1 => Just("ERROR"), 1 => Just("ODD")];
    let line = (object, kind, prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just("")])
        .prop_map(|(object, kind, end)| format!("{{\"type\":\"{kind}\",\"object\":{object}}}{end}"));
    let noise = proptest::collection::vec(any::<u8>(), 0..6);
    proptest::collection::vec(prop_oneof![9 => line.prop_map(String::into_bytes), 1 => noise], 0..6)
        .prop_map(|parts| parts.concat())
}

fn lists() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => Just(&br#"{"metadata":{"name":"\u0061\"]","resourceVersion":"5"}}"#[..]),
        4 => Just(&b","[..]),
        2 => Just(&b" ] , \"metadata\" : { \"resourceVersion\" : \"7\" } }\n"[..]),
        2 => Just(&b"]}"[..]),
        4 => Just(&br#"{"kind":"PodList","items":["#[..]),
        1 => Just(&br#"{"x":"\"items\":[","items":["#[..]),
        1 => Just("\"é\"".as_bytes()),
        1 => Just(&b"[1,{\"a\":[]}]"[..]),
        1 => Just(&b"\xff"[..]),
        1 => Just(&b"17"[..]),
    ];
    let parts = proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat());
    let whole = proptest::collection::vec(any::<bool>(), 0..5).prop_map(|items| {
        let items: Vec<&str> = items
            .iter()
            .map(|long| if *long { r#"{"metadata":{"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaa"}}"# } else { "{}" })
            .collect();
        format!(r#"{{"kind":"PodList","items":[{}]}}"#, items.join(" , ")).into_bytes()
    });
    prop_oneof![parts, whole]
}

proptest! {
    #[test]
    fn frames_do_not_depend_on_how_a_stream_is_cut(stream in streams(), cuts in proptest::collection::vec(any::<usize>(), 0..9), limit in 20..200_usize) {
        let options = FrameOptions { limit, ..options() };
        let whole = frames_with(&options, &[&stream]);
        prop_assert_eq!(&whole, &frames_with(&options, &chunks(&stream, &cuts)));
        prop_assert_eq!(&whole, &frames_with(&options, &stream.chunks(1).collect::<Vec<_>>()));
    }

    #[test]
    fn lists_do_not_depend_on_how_a_body_is_cut(body in lists(), cuts in proptest::collection::vec(any::<usize>(), 0..9), limit in 30..200_usize) {
        let options = FrameOptions { limit, ..options() };
        let whole = list_with(&options, &[&body]);
        prop_assert_eq!(&whole, &list_with(&options, &chunks(&body, &cuts)));
        prop_assert_eq!(&whole, &list_with(&options, &body.chunks(1).collect::<Vec<_>>()));
    }

    #[test]
    fn only_json_is_taken_for_a_list(body in lists()) {
        let (_, meta) = list_with(&options(), &[&body]);
        let theirs = str::from_utf8(&body).ok().and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        let listed = theirs.is_some_and(|value| value["items"].is_array() || value["kind"] == "PodList" && value["items"].is_null());
        prop_assert_eq!(meta.is_ok(), listed);
    }
}
