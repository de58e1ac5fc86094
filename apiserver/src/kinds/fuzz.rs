//! Bodies of fuzz targets, so that they compile in every build.

use super::Kinds;

/// Decodes any bytes as a protobuf body, and as the message of a Pod and a CustomResourceDefinition, which
/// between them hold every shape.
pub fn protobuf(kinds: &Kinds, data: &[u8]) {
    // An error is as good an answer as an object.
    let _ = kinds.decode_protobuf(data, None);
    for kind in [("", "v1", "Pod"), ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")] {
        let _ = kinds.decode_protobuf(&envelope(data), Some(kind));
    }
}

fn envelope(message: &[u8]) -> Vec<u8> {
    let mut body = b"k8s\0\x12".to_vec();
    let mut length = message.len();
    while length >= 0x80 {
        body.push(length as u8 | 0x80);
        length >>= 7;
    }
    body.push(length as u8);
    body.extend(message);
    body
}
