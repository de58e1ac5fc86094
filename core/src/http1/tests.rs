use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// What an answer says, with its data put together, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    status: Option<u16>,
    body: Vec<u8>,
    end: Result<bool, NetworkErrorKind>,
}

/// Decodes pieces of a connection, which then ends if `closes`.
fn decode(method: &Method, pieces: &[&[u8]], closes: bool) -> Option<Said> {
    let mut decoder = ResponseDecoder::new(method);
    let mut said = Said { status: None, body: Vec::new(), end: Ok(false) };
    let closing = pieces.iter().map(|piece| Some(*piece)).chain(closes.then_some(None));
    for piece in closing {
        match piece {
            Some(bytes) => decoder.receive(Bytes::copy_from_slice(bytes)),
            None => decoder.close(),
        }
        loop {
            match decoder.part() {
                Ok(None) => break,
                Ok(Some(Part::Head { status, .. })) => said.status = Some(status.as_u16()),
                Ok(Some(Part::Data(bytes))) => {
                    assert!(!bytes.is_empty());
                    said.body.extend_from_slice(&bytes);
                }
                Ok(Some(Part::End { reusable })) => {
                    assert_eq!(decoder.part(), Ok(None), "nothing comes after the end");
                    return Some(Said { end: Ok(reusable), ..said });
                }
                Err(error) => return Some(Said { end: Err(error.kind), ..said }),
            }
        }
    }
    None
}

fn whole(text: &str) -> Option<Said> {
    decode(&Method::GET, &[text.as_bytes()], false)
}

fn closed(text: &str) -> Option<Said> {
    decode(&Method::GET, &[text.as_bytes()], true)
}

fn said(status: u16, body: &str, reusable: bool) -> Option<Said> {
    Some(Said { status: Some(status), body: body.as_bytes().to_vec(), end: Ok(reusable) })
}

fn fails(kind: NetworkErrorKind) -> impl Fn(Option<Said>) -> bool {
    move |said| said.is_some_and(|said| said.end == Err(kind))
}

#[test]
fn bodies_end_where_their_head_says() {
    let ok = "HTTP/1.1 200 OK\r\n";
    assert_eq!(whole(&format!("{ok}Content-Length: 5\r\n\r\nhello")), said(200, "hello", true));
    assert_eq!(whole(&format!("{ok}Content-Length: 0\r\n\r\n")), said(200, "", true));
    assert_eq!(whole(&format!("{ok}Content-Length: 5, 5\r\n\r\nhello")), said(200, "hello", true));
    let chunks = "5;a=b\r\nhello\r\n00001 \r\n!\r\n0\r\nX-Trailer: 1\r\n\r\n";
    assert_eq!(whole(&format!("{ok}Transfer-Encoding: gzip, Chunked\r\n\r\n{chunks}")), said(200, "hello!", true));
    assert_eq!(closed(&format!("{ok}\r\nhello")), said(200, "hello", false));
    assert_eq!(closed(&format!("{ok}Transfer-Encoding: identity\r\n\r\nhello")), said(200, "hello", false));
    assert_eq!(whole(&format!("{ok}\r\nhello")), None, "only the end of the connection ends it");
    assert_eq!(whole("HTTP/1.1 204 No Content\r\n\r\n"), said(204, "", true));
    assert_eq!(whole("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"), said(304, "", true));
    let head = decode(&Method::HEAD, &[b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"], false);
    assert_eq!(head, said(200, "", true));
}

#[test]
fn announcements_and_empty_lines_before_an_answer_are_passed_over() {
    let text = "\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\nContent-Length: 1\n\n1";
    assert_eq!(whole(text), said(200, "1", true));
    assert!(fails(NetworkErrorKind::Protocol)(whole("HTTP/1.1 101 Switching Protocols\r\n\r\n")));
}

#[test]
fn a_connection_is_used_again_only_if_both_sides_have_kept_count() {
    for (text, reusable) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", true),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive, Close\r\nContent-Length: 1\r\n\r\n1", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n1", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1more", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n", false),
    ] {
        assert_eq!(whole(text), said(200, "1", reusable), "{text:?}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_lost_and_never_taken_for_whole() {
    let lost = fails(NetworkErrorKind::Lost);
    for text in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
    ] {
        assert!(lost(closed(text)), "{text:?}");
    }
}

#[test]
fn what_is_no_http_is_refused() {
    let malformed = fails(NetworkErrorKind::Protocol);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for text in [
        "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
        "SSH-2.0-OpenSSH".to_owned(),
        "\r\nHTTQ".to_owned(),
        "HTTP/2".to_owned(),
        "HTTP/2 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(),
        format!("{chunked}x\r\n"),
        format!("{chunked}\r\n"),
        format!("{chunked}11111111111111111\r\n"),
        format!("{chunked}1\r\n12"),
        format!("{chunked}1;{}\r\n", "x".repeat(20_000)),
        format!("{chunked}0\r\n{}", "a: b\r\n".repeat(4000)),
        format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(ResponseDecoder::MAX_HEAD)),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(ResponseDecoder::MAX_HEADERS + 1)),
    ] {
        assert!(malformed(whole(&text)), "{:?}", &text[..text.len().min(80)]);
    }
}

#[test]
fn requests_say_where_they_go_and_how_long_they_are() {
    let text = |request: http::request::Builder, body: &'static str| {
        let request = request.body(Bytes::from_static(body.as_bytes())).unwrap();
        String::from_utf8(encode(&request).unwrap()).unwrap()
    };
    let get = Request::get("https://user@[::1]:6443/api?limit=1").header("accept", "a/b").header("accept", "c/d");
    assert_eq!(text(get, ""), "GET /api?limit=1 HTTP/1.1\r\nhost: [::1]:6443\r\naccept: a/b\r\naccept: c/d\r\n\r\n");
    let post = Request::post("http://a").header("content-length", "99").header("host", "b");
    assert_eq!(text(post, ""), "POST / HTTP/1.1\r\nhost: b\r\ncontent-length: 0\r\n\r\n");
    let delete = Request::delete("http://a/x");
    assert_eq!(text(delete, "{}"), "DELETE /x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}");
    let forwarded = encode_forwarded(&Request::get("http://a/x?y").body(Bytes::new()).unwrap()).unwrap();
    assert_eq!(forwarded, b"GET http://a/x?y HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(encode(&Request::get("/x").body(Bytes::new()).unwrap()).is_err());
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    let heads = prop_oneof![
        Just("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world".to_owned()),
        Just("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 410 Gone\r\n\r\nuntil the end".to_owned()),
        Just(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x\r\n, world\r\n0\r\nA: b\r\n\r\n"
                .to_owned()
        ),
    ];
    (heads, vec(any::<u8>(), 0..3), any::<prop::sample::Index>(), any::<bool>()).prop_map(|(text, noise, at, noisy)| {
        let mut bytes = text.into_bytes();
        if noisy {
            let at = at.index(bytes.len());
            bytes.splice(at..at, noise);
        }
        bytes
    })
}

proptest! {
    #[test]
    fn one_byte_at_a_time_says_the_same_as_all_at_once(bytes in answers(), cut in any::<prop::sample::Index>()) {
        let at_once = decode(&Method::GET, &[&bytes], true);
        let single: Vec<_> = bytes.chunks(1).collect();
        let (one, other) = bytes.split_at(cut.index(bytes.len() + 1));
        // With everything there before the end, more may be left over: only whether the connection can be used again may differ.
        let but_reuse = |said: Option<Said>| said.map(|said| Said { end: said.end.map(|_| true), ..said });
        prop_assert_eq!(but_reuse(decode(&Method::GET, &single, true)), but_reuse(at_once.clone()));
        prop_assert_eq!(but_reuse(decode(&Method::GET, &[one, other], true)), but_reuse(at_once));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&Method::GET, &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes], true);
        let _ = decode(&Method::GET, &[&bytes], true);
    }
}
