//! From bytes to text.

/// The text of a file in UTF-8 or in UTF-16, which is known by its byte order mark, or by the zero in its first character.
pub(crate) fn text(bytes: &[u8]) -> Result<String, &'static str> {
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest)?,
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes)?,
        [1..=0xff, 0, ..] => utf16(bytes, u16::from_le_bytes)?,
        [0, 1..=0xff, ..] => utf16(bytes, u16::from_be_bytes)?,
        _ => utf8(bytes)?,
    };
    match text.chars().any(is_control) {
        true => Err("a control character"),
        false => Ok(text),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, &'static str> {
    str::from_utf8(bytes).map(ToOwned::to_owned).map_err(|_| "neither UTF-8 nor UTF-16")
}

fn utf16(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16) -> Result<String, &'static str> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let decoded: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    decoded.ok().filter(|_| rest.is_empty()).ok_or("not UTF-16 as its beginning says")
}

/// What YAML forbids in its text.
const fn is_control(char: char) -> bool {
    matches!(char, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_is_known_with_and_without_a_mark() {
        let expected = "a: ä😀\n";
        let units: Vec<u16> = expected.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for (mark, bytes) in [
            (&b""[..], expected.as_bytes()),
            (b"\xef\xbb\xbf", expected.as_bytes()),
            (b"", &little),
            (b"\xff\xfe", &little),
            (b"", &big),
            (b"\xfe\xff", &big),
        ] {
            assert_eq!(text(&[mark, bytes].concat()).as_deref(), Ok(expected), "{mark:x?}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [&b"a\xff"[..], b"\xff\xfea", b"\xff\xfe\x00\xd8", b"a\0\0", b"a: \x1b", b"\xfe"] {
            assert!(text(bytes).is_err(), "{bytes:x?}");
        }
        assert_eq!(text(b"").as_deref(), Ok(""));
    }
}
