//! Bodies of fuzz targets: bytes in any chunking give the same objects.

use http::{HeaderMap, StatusCode};

use super::{Frame, FrameOptions, Frames, ListBody, ListItem, ListMeta};
use crate::error::Error;
use crate::exchange::Answer;
use crate::object::TypeMeta;
use crate::response;
use crate::unstructured::Unstructured;

/// Reads a watch whole and in pieces, whose length the first byte gives.
///
/// # Panics
/// When the pieces give other events than the whole.
pub fn frames(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else { return };
    assert_eq!(read_events(stream, usize::MAX), read_events(stream, 1 + usize::from(*size)));
}

/// Reads a list whole and in pieces, whose length the first byte gives.
///
/// # Panics
/// When the pieces give other items or another end than the whole.
pub fn list_body(data: &[u8]) {
    let Some((size, body)) = data.split_first() else { return };
    assert_eq!(read_list(body, usize::MAX), read_list(body, 1 + usize::from(*size)));
}

/// Reads an answer, whose code the first byte gives, as whatever an answer may be.
pub fn status_body(data: &[u8]) {
    let Some((code, body)) = data.split_first() else { return };
    let code = 200 + u16::from(*code) % 400;
    let mut answer = Answer::new(StatusCode::from_u16(code).unwrap_or(StatusCode::OK), HeaderMap::new());
    answer.receive(body);
    // An error is as good an answer as an object.
    let _ = response::decode::<Unstructured>(&answer);
    if let Err(error) = response::check(&answer) {
        assert!(error.code().is_some(), "{error}");
    }
}

fn options() -> FrameOptions {
    FrameOptions { limit: 512, types: Some(TypeMeta::new("v1", "Pod")), ..FrameOptions::default() }
}

fn read_events(stream: &[u8], size: usize) -> Vec<Frame> {
    let mut frames = Frames::new(options());
    let mut read: Vec<_> = stream.chunks(size).flat_map(|piece| frames.read(piece).collect::<Vec<_>>()).collect();
    read.extend(frames.finish());
    read
}

fn read_list(body: &[u8], size: usize) -> (Vec<ListItem>, Result<ListMeta, Error>) {
    let mut list = ListBody::new(options());
    let items = body.chunks(size).flat_map(|piece| list.read(piece).collect::<Vec<_>>()).collect();
    (items, list.finish(200))
}
