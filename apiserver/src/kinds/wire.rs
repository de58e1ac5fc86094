//! Protobuf's wire format: tags, varints and lengths, read from a slice.

use cloudcoil_core::QuantityError;
use thiserror::Error;

/// What is wrong with a value on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A number, a length or a group runs past the end of what encloses it.
    #[error("ends early")]
    Truncated,
    /// A number takes more than ten bytes.
    #[error("a number is too long")]
    Overlong,
    /// A field number that cannot be, such as 0.
    #[error("illegal field number {0}")]
    FieldNumber(i32),
    /// A known field has a wire type that does not fit its type, or a wire type does not exist.
    #[error("wrong wire type {0}")]
    WireType(u8),
    /// A group ends that never began.
    #[error("unexpected end of group")]
    EndOfGroup,
    /// Messages within messages, deeper than any object is.
    #[error("nested too deep")]
    TooDeep,
    /// A value that holds JSON, and does not.
    #[error("invalid JSON: {0}")]
    Json(String),
    /// A quantity that does not parse.
    #[error("{0}")]
    Quantity(QuantityError),
    /// A time before the year 0 or after 9999.
    #[error("time out of range: {0} seconds")]
    Time(i64),
    /// An int-or-string that is neither.
    #[error("neither number nor string: type {0}")]
    IntOrString(i64),
    /// A floating-point number that JSON has no word for.
    #[error("not a finite number")]
    NotFinite,
}

/// The wire type of a field, with its value where reading it cannot fail halfway.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    /// A field of 32 bits or a group; no field of Kubernetes has one, so only the type is kept.
    Other(u8),
}

impl<'a> Wire<'a> {
    pub(super) fn varint(self) -> Result<u64, Fault> {
        match self {
            Wire::Varint(value) => Ok(value),
            other => Err(Fault::WireType(other.number())),
        }
    }

    pub(super) fn double(self) -> Result<f64, Fault> {
        match self {
            Wire::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            other => Err(Fault::WireType(other.number())),
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], Fault> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            other => Err(Fault::WireType(other.number())),
        }
    }

    fn number(self) -> u8 {
        match self {
            Wire::Varint(_) => VARINT,
            Wire::Fixed64(_) => FIXED64,
            Wire::Bytes(_) => BYTES,
            Wire::Other(number) => number,
        }
    }
}

/// Reads the fields of one message, which may be sent in pieces: a message that occurs twice adds up.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a, 'p> {
    rest: &'a [u8],
    pieces: &'p [&'a [u8]],
}

impl<'a, 'p> Reader<'a, 'p> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message, pieces: &[] }
    }

    pub(super) fn of(pieces: &'p [&'a [u8]]) -> Self {
        Self { rest: &[], pieces }
    }

    /// The next field, `None` at the end of the message. The values of unknown fields are read past, too.
    pub(super) fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, Fault> {
        while self.rest.is_empty() {
            let Some((next, pieces)) = self.pieces.split_first() else { return Ok(None) };
            (self.rest, self.pieces) = (next, pieces);
        }
        let (number, wire_type) = self.tag()?;
        let number = u32::try_from(number).ok().filter(|&n| n > 0).ok_or(Fault::FieldNumber(number))?;
        let wire = match wire_type {
            VARINT => Wire::Varint(self.varint()?),
            FIXED64 => Wire::Fixed64(self.array()?),
            BYTES => Wire::Bytes(self.length_delimited()?),
            GROUP => {
                self.skip_group()?;
                Wire::Other(GROUP)
            }
            END_GROUP => return Err(Fault::EndOfGroup),
            FIXED32 => {
                self.array::<4>()?;
                Wire::Other(FIXED32)
            }
            other => return Err(Fault::WireType(other)),
        };
        Ok(Some((number, wire)))
    }

    /// A varint of at most ten bytes; as in Go, bits beyond the 64th are lost.
    pub(super) fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Fault::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::Overlong)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn tag(&mut self) -> Result<(i32, u8), Fault> {
        let tag = self.varint()?;
        // Go keeps the low 32 bits of the number, so an overlong tag can still name a field.
        Ok(((tag >> 3) as i32, (tag & 7) as u8))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    fn length_delimited(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.varint()?).map_err(|_| Fault::Truncated)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Groups nest; counting instead of recursing bounds the stack.
    fn skip_group(&mut self) -> Result<(), Fault> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.tag()?.1 {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.array::<8>()?),
                BYTES => drop(self.length_delimited()?),
                GROUP => depth += 1,
                END_GROUP => depth -= 1,
                FIXED32 => drop(self.array::<4>()?),
                other => return Err(Fault::WireType(other)),
            }
        }
        Ok(())
    }
}

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u32, Wire<'_>)>, Fault> {
        let mut reader = Reader::new(bytes);
        std::iter::from_fn(|| reader.field().transpose()).collect()
    }

    #[test]
    fn every_wire_type_is_read_past() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 2, 3, 4, 5, 6, 7, 8, // 2: fixed64
            0x1a, 0x02, b'h', b'i', // 3: bytes
            0x23, 0x08, 0x01, 0x2b, 0x2c, 0x32, 0x01, 0x00, 0x24, // 4: group with a varint, a group and bytes
            0x2d, 1, 2, 3, 4, // 5: fixed32
        ];
        let expected = vec![
            (1, Wire::Varint(150)),
            (2, Wire::Fixed64([1, 2, 3, 4, 5, 6, 7, 8])),
            (3, Wire::Bytes(b"hi")),
            (4, Wire::Other(GROUP)),
            (5, Wire::Other(FIXED32)),
        ];
        assert_eq!(fields(&bytes), Ok(expected));
        let starts = [0, 3, 12, 16, 25, 30];
        for end in 0..bytes.len() {
            assert_eq!(fields(&bytes[..end]).is_ok(), starts.contains(&end), "cut at {end}");
        }
    }

    #[test]
    fn bad_tags_and_numbers_are_faults() {
        let ten = |last| [&[0xff; 9][..], &[last]].concat();
        assert_eq!(fields(&[0x00, 0x00]), Err(Fault::FieldNumber(0)));
        assert_eq!(fields(&[0x0c]), Err(Fault::EndOfGroup));
        assert_eq!(fields(&[0x0e]), Err(Fault::WireType(6)));
        assert_eq!(fields(&[0x0b, 0x0f]), Err(Fault::WireType(7)));
        assert_eq!(fields(&[&[0x08], &ten(0x01)[..]].concat()), Ok(vec![(1, Wire::Varint(u64::MAX))]));
        assert_eq!(fields(&[&[0x08], &ten(0x80)[..]].concat()), Err(Fault::Overlong));
        assert_eq!(fields(&[&[0x0a], &ten(0x01)[..]].concat()), Err(Fault::Truncated));
    }
}
