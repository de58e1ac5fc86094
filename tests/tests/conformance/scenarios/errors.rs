//! Answers that are no good, and what comes of them.

use cloudcoil_runtime::{Error, Patch};
use serde_json::json;

use super::map;
use crate::scripted::{Answer, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    ANY {
        a_faulty_object_is_refused_by_its_fields,
    }
    SCRIPT {
        refusals_come_as_they_are,
        web_pages_are_no_objects,
    }
}

fn a_faulty_object_is_refused_by_its_fields(stage: &Stage) {
    let world = stage.api();
    let mut faulty = map("a", "1");
    faulty["data"]["no key"] = json!("2");
    let error = world.fail(maps().create(faulty));
    let status = error.status().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.details.causes[0].field, "data[no key]");
    let error = world.fail(maps().patch("a", Patch::Merge(json!([]))));
    assert!(matches!(error.code(), Some(400 | 404)), "{error:?}");
}

fn refusals_come_as_they_are(stage: &Stage) {
    let codes = [
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (405, "MethodNotAllowed"),
        (409, "Conflict"),
        (410, "Expired"),
        (413, "RequestEntityTooLarge"),
        (415, "UnsupportedMediaType"),
        (422, "Invalid"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ];
    let answers = codes.map(|(code, reason)| Answer::refusal(code, reason, "no, because"));
    let play = stage.play(in_order(answers));
    for (code, reason) in codes {
        let error = play.fail(maps().get("a"));
        let status = error.status().unwrap();
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (code, reason, "no, because"));
    }
    assert_eq!(play.seen().len(), codes.len(), "each was asked for once");
}

fn web_pages_are_no_objects(stage: &Stage) {
    let page = "<html><body><h1>Service Unavailable</h1></body></html>";
    let answers = [200, 404, 502].map(|code| Answer::new(code, "text/html", page));
    let play = stage.play(in_order(answers));
    for code in [200, 404, 502] {
        let Error::Body(error) = play.fail(maps().get("a")) else { panic!("an object?") };
        assert_eq!((error.code, error.problem.to_string().as_str()), (code, "an HTML page"));
        assert!(error.snippet.contains("Service Unavailable"));
    }
}
