//! Answers to bytes.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderValue, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, Method, Response, StatusCode};

use crate::time::UnixTime;

/// An answer to a request of this method as HTTP of any version allows it: headers about the connection are taken out, there is a
/// length, and no body to `HEAD` and where there is never one (RFC 9110, section 6.4.1).
///
/// ```
/// use cloudcoil_core::http1::fit;
/// use http::{Method, Response};
///
/// let head = fit(Response::new("hello".into()), &Method::HEAD);
/// assert_eq!((head.headers()["content-length"].as_bytes(), head.body().len()), (&b"5"[..], 0));
/// ```
pub fn fit(response: Response<Bytes>, method: &Method) -> Response<Bytes> {
    let (mut head, mut body) = response.into_parts();
    for name in OF_THE_CONNECTION {
        head.headers.remove(name);
    }
    let is_bodiless =
        head.status.is_informational() || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if is_bodiless {
        head.headers.remove(CONTENT_LENGTH);
    } else if method != Method::HEAD || !body.is_empty() || !head.headers.contains_key(CONTENT_LENGTH) {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    if is_bodiless || method == Method::HEAD {
        body.clear();
    }
    Response::from_parts(head, body)
}

/// An answer that is [fit] as it is written. `closes` says that no other request is read on its connection, and `at` what the header
/// `Date` says unless there is one.
pub(crate) fn encode_response(response: &Response<Bytes>, closes: bool, at: UnixTime) -> Vec<u8> {
    let reason = response.status().canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", response.status().as_str()).into_bytes();
    let mut field = |name: &str, value: &[u8]| bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    for (name, value) in response.headers() {
        field(name.as_str(), value.as_bytes());
    }
    if !response.headers().contains_key(DATE) {
        field(DATE.as_str(), at.to_http().as_bytes());
    }
    if closes {
        field(CONNECTION.as_str(), b"close");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(response.body());
    bytes
}

const OF_THE_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    TRANSFER_ENCODING,
    TRAILER,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];
