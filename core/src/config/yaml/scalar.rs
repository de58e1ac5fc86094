//! What a scalar means in YAML 1.1, as Kubernetes has it.
//!
//! See <https://yaml.org/type/>; of the forms there, numbers to base 60 are not among them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use granit_parser::{ScalarStyle, Tag};
use serde_json::Number;

use super::Content;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    /// Any whole number up to 64 bits.
    Integer(Number),
    /// Infinite ones and those that are no numbers too.
    Float(f64),
    Text(String),
    /// `<<`
    Merge,
}

impl Scalar {
    pub(super) fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Self, &'static str> {
        let tag = tag.map(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
        let tag = match &tag {
            None => "",
            Some(Some(suffix)) => suffix.as_ref(),
            // A tag of one's own says nothing about text.
            Some(None) => "str",
        };
        match tag {
            "" if style != ScalarStyle::Plain => Ok(Self::Text(text.to_owned())),
            "" => Ok(Self::plain(text)),
            "binary" => {
                let text: Vec<u8> = text.bytes().filter(|byte| !b"\r\n".contains(byte)).collect();
                let bytes = STANDARD.decode(text).map_err(|_| "a binary scalar that is not base64")?;
                String::from_utf8(bytes).map(Self::Text).map_err(|_| "a binary scalar that is no text")
            }
            "null" | "bool" | "int" | "float" => match (tag, Self::plain(text)) {
                ("null", scalar @ Self::Null)
                | ("bool", scalar @ Self::Bool(_))
                | ("int", scalar @ Self::Integer(_))
                | ("float", scalar @ Self::Float(_)) => Ok(scalar),
                ("float", Self::Integer(number)) => Ok(number.as_f64().map_or(Self::Integer(number), Self::Float)),
                _ => Err("a scalar that does not fit its tag"),
            },
            _ => Ok(Self::Text(text.to_owned())),
        }
    }

    fn plain(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Null,
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                return Self::Bool(true);
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
                return Self::Bool(false);
            }
            ".nan" | ".NaN" | ".NAN" => return Self::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Self::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Self::Float(f64::NEG_INFINITY),
            "<<" => return Self::Merge,
            _ => {}
        }
        let number = match text.as_bytes()[0] {
            b'.' => float(text).map(Self::Float),
            b'0'..=b'9' | b'+' | b'-' => {
                let plain = text.replace('_', "");
                integer(&plain).map(Self::Integer).or_else(|| float(&plain).map(Self::Float))
            }
            _ => None,
        };
        number.unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// The scalar as a value.
    pub(super) fn content(self) -> Result<Content, &'static str> {
        Ok(match self {
            Self::Null => Content::Null,
            Self::Bool(flag) => Content::Bool(flag),
            Self::Integer(number) => Content::Number(number),
            Self::Float(float) => Content::Number(json_number(float).ok_or("a number that JSON does not have")?),
            Self::Text(text) => Content::Text(text),
            Self::Merge => Content::Text("<<".to_owned()),
        })
    }

    /// The scalar as a key; `None` is for a merge.
    pub(super) fn key(self) -> Result<Option<String>, &'static str> {
        Ok(Some(match self {
            Self::Null => return Err("a key that is no text"),
            Self::Bool(flag) => flag.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Float(float) => float_key(float),
            Self::Text(text) => text,
            Self::Merge => return Ok(None),
        }))
    }
}

/// A whole number: decimal, or with a leading `0x`, `0o`, `0b` or `0`.
fn integer(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return None;
    }
    let number = u64::from_str_radix(digits, radix).ok()?;
    match negative {
        true => 0_i64.checked_sub_unsigned(number).map(Number::from),
        // An explicit sign makes it a signed number of 64 bits.
        false if unsigned.len() < text.len() => i64::try_from(number).ok().map(Number::from),
        false => Some(number.into()),
    }
}

/// A number with digits, and if wanted a point and an exponent.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    text.parse::<f64>().ok().filter(|float| is_number && float.is_finite())
}

/// The number as Go writes it: whole ones without a point.
fn json_number(float: f64) -> Option<Number> {
    let whole = float.fract() == 0.0 && (float != 0.0 || float.is_sign_positive());
    if whole && (-(2_f64.powi(63))..2_f64.powi(63)).contains(&float) {
        return Some((float as i64).into());
    }
    if whole && (0.0..2_f64.powi(64)).contains(&float) {
        return Some((float as u64).into());
    }
    Number::from_f64(float)
}

/// The number as Kubernetes writes it in a key: as short as 32 bits allow, with an exponent when that is below -4 or above 5.
fn float_key(float: f64) -> String {
    let float = float as f32;
    match float {
        _ if float.is_nan() => return ".nan".to_owned(),
        f32::INFINITY => return ".inf".to_owned(),
        f32::NEG_INFINITY => return "-.inf".to_owned(),
        _ => {}
    }
    let scientific = format!("{float:e}");
    match scientific.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?))) {
        Some((digits, exponent)) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{float}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        match Scalar::plain(text).content() {
            Ok(Content::Null) => "null".to_owned(),
            Ok(Content::Bool(flag)) => flag.to_string(),
            Ok(Content::Number(number)) => number.to_string(),
            Ok(Content::Text(text)) => format!("{text:?}"),
            Ok(content) => panic!("{content:?}"),
            Err(problem) => problem.to_owned(),
        }
    }

    #[test]
    fn plain_scalars_have_the_types_of_yaml_1_1() {
        for (text, expected) in [
            ("", "null"),
            ("~", "null"),
            ("nUll", "\"nUll\""),
            ("y", "true"),
            ("Off", "false"),
            ("oN", "\"oN\""),
            ("0", "0"),
            ("-0", "0"),
            ("017", "15"),
            ("0o17", "15"),
            ("08", "8"),
            ("0x1F", "31"),
            ("-0b11", "-3"),
            ("1_000", "1000"),
            ("+1", "1"),
            ("1:20", "\"1:20\""),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("+18446744073709551615", "1.8446744073709552e+19"),
            ("1.0", "1"),
            ("1.", "1"),
            (".5", "0.5"),
            (".", "\".\""),
            ("1e3", "1000"),
            ("-1.5E-3", "-0.0015"),
            ("1e999", "\"1e999\""),
            ("1e", "\"1e\""),
            ("0x", "\"0x\""),
            ("-", "\"-\""),
            ("+-1", "\"+-1\""),
            ("1.2.3", "\"1.2.3\""),
            ("2001-01-01", "\"2001-01-01\""),
            ("inf", "\"inf\""),
            (".inf", "a number that JSON does not have"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn keys_are_written_as_kubernetes_does() {
        for (text, expected) in [
            ("1.5", "1.5"),
            ("1e6", "1e+06"),
            ("1e-5", "1e-05"),
            ("123456.7", "123456.7"),
            (".inf", ".inf"),
            ("y", "true"),
        ] {
            assert_eq!(Scalar::plain(text).key(), Ok(Some(expected.to_owned())));
        }
        assert_eq!(Scalar::plain("<<").key(), Ok(None));
        assert!(Scalar::plain("null").key().is_err());
    }
}
