//! Answers to bytes.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, Method, Response, StatusCode};

use crate::time::UnixTime;

/// An answer as it is written to the connection on which a request of this method came. `closes` says that no other request is
/// read there, and `at` what the header `Date` says unless there is one.
///
/// How long the body is, is said here, whatever the headers say; so is what becomes of the connection. There is no body where
/// HTTP allows none: RFC 9112, section 6.3.
///
/// ```
/// use cloudcoil_core::UnixTime;
/// use cloudcoil_core::http1::encode_response;
/// use http::{Method, Response};
///
/// let bytes = encode_response(&Response::new("ok".into()), &Method::GET, true, UnixTime::from_secs(0));
/// let text = "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
/// assert_eq!(bytes, text.as_bytes());
/// ```
pub fn encode_response(response: &Response<Bytes>, method: &Method, closes: bool, at: UnixTime) -> Vec<u8> {
    let (status, headers, body) = (response.status(), response.headers(), response.body());
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    let mut field =
        |name: &HeaderName, value: &[u8]| bytes.extend([name.as_str().as_bytes(), b": ", value, b"\r\n"].concat());
    for (name, value) in headers.iter().filter(|(name, _)| !is_of_the_connection(name)) {
        field(name, value.as_bytes());
    }
    if !headers.contains_key(DATE) {
        field(&DATE, at.to_http().as_bytes());
    }
    if !is_bodiless(status) {
        // Of what is not sent, whoever answers may know the length.
        let told = headers.get(CONTENT_LENGTH).filter(|_| method == Method::HEAD && body.is_empty());
        let length = told.map_or_else(|| body.len().to_string().into(), |told| told.as_bytes().to_vec());
        field(&CONTENT_LENGTH, &length);
    }
    if closes {
        field(&CONNECTION, b"close");
    }
    bytes.extend_from_slice(b"\r\n");
    if !is_bodiless(status) && method != Method::HEAD {
        bytes.extend_from_slice(body);
    }
    bytes
}

fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Whether a header is about the connection and not about what is answered.
fn is_of_the_connection(name: &HeaderName) -> bool {
    matches!(*name, CONNECTION | CONTENT_LENGTH | TRANSFER_ENCODING | TRAILER | UPGRADE) || name == "keep-alive"
}
