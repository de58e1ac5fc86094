//! Quantities as the API server writes them: `0.5` becomes `500m`, `2048Ki` becomes `2Mi`, `1e3` stays.

use thiserror::Error;

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// Something that is neither sign, number nor suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// A suffix that does not exist.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// More digits than a quantity can hold.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

/// The text the API server returns for a quantity.
///
/// Below a nano-unit it rounds away from zero. A text that is canonical but for leading zeros, trailing zeros
/// of a fraction or a plus sign is returned as it is, as the API server does.
///
/// See <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.
///
/// # Errors
/// When the text is no quantity, or holds more than 38 significant digits above a nano-unit.
pub fn canonical_quantity(text: &str) -> Result<String, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let parts = split(text)?;
    let suffix = Suffix::parse(parts.suffix)?;
    let small = parts.is_small(&suffix);
    if small && parts.is_canonical(&suffix) {
        return Ok(text.into());
    }
    if !small && parts.has_no_digits {
        return Err(QuantityError::Number);
    }
    let amount = parts.amount(&suffix)?;
    Ok(amount.write(suffix.format))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalExponent,
    DecimalSi,
    BinarySi,
}

#[derive(Debug, Clone, Copy)]
struct Suffix {
    format: Format,
    /// Of ten, or of two when the format is binary.
    exponent: i32,
}

impl Suffix {
    fn parse(text: &str) -> Result<Self, QuantityError> {
        let find = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == text).map(|(_, exponent)| *exponent);
        if let Some(exponent) = find(&DECIMAL) {
            return Ok(Self { format: Format::DecimalSi, exponent });
        }
        if let Some(exponent) = find(&BINARY) {
            return Ok(Self { format: Format::BinarySi, exponent });
        }
        let digits = text.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
        // The API server reads 64 bits and keeps 32.
        let exponent = digits.parse::<i64>().map_err(|_| QuantityError::Suffix)? as i32;
        Ok(Self { format: Format::DecimalExponent, exponent })
    }
}

/// A quantity cut into its parts, leading zeros of the whole part gone.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    has_no_digits: bool,
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let stripped = unsigned.trim_start_matches('0');
    let (whole, rest) = digits(stripped);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let (_, rest) = digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    if !rest.is_empty() {
        return Err(QuantityError::Format);
    }
    let has_no_digits = unsigned.len() == stripped.len() && whole.is_empty() && fraction.is_empty();
    Ok(Parts { negative, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix, has_no_digits })
}

/// Cuts the digits at the front from the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

impl Parts<'_> {
    /// The power of ten of the last digit of a decimal quantity.
    fn scale(&self, suffix: &Suffix) -> i64 {
        i64::from(suffix.exponent) - self.fraction.len() as i64
    }

    /// Whether the API server counts in 64 bits, which shows: then it keeps some texts, and reads no digit as 0.
    fn is_small(&self, suffix: &Suffix) -> bool {
        let digits = (self.whole.len() + self.fraction.len()) as i64;
        match suffix.format {
            Format::DecimalExponent | Format::DecimalSi => digits <= 18 && self.scale(suffix) >= NANO,
            Format::BinarySi => {
                let room = 15 - digits - i64::from(suffix.exponent) * 3 / 10 - 1;
                self.fraction.is_empty() && room >= 0
            }
        }
    }

    /// Whether the API server takes the text of a small quantity for canonical.
    fn is_canonical(&self, suffix: &Suffix) -> bool {
        match suffix.format {
            Format::DecimalExponent | Format::DecimalSi => {
                let digits = [self.whole, self.fraction].concat();
                self.scale(suffix) % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
            }
            Format::BinarySi => self.whole.parse::<i64>().is_ok_and(|value| value & 7 != 0),
        }
    }

    fn amount(&self, suffix: &Suffix) -> Result<Amount, QuantityError> {
        let mut scale = -(self.fraction.len() as i64);
        if suffix.format != Format::BinarySi {
            scale += i64::from(suffix.exponent);
        }
        let all = [self.whole, self.fraction].concat();
        let significant = all.trim_start_matches('0');
        let stripped = significant.trim_end_matches('0');
        scale += (significant.len() - stripped.len()) as i64;
        let mut amount = match suffix.format {
            Format::BinarySi => binary(stripped, scale, suffix.exponent)?,
            _ => Amount::round_to_nano(stripped, scale)?,
        };
        if self.negative {
            amount.value = -amount.value;
        }
        Ok(amount)
    }
}

/// `value` times ten to the power of `scale`.
#[derive(Debug, Clone, Copy)]
struct Amount {
    value: i128,
    scale: i64,
}

impl Amount {
    const ZERO: Self = Self { value: 0, scale: 0 };

    fn round_to_nano(digits: &str, scale: i64) -> Result<Self, QuantityError> {
        if digits.is_empty() {
            return Ok(Self::ZERO);
        }
        let cut = usize::try_from(NANO - scale).unwrap_or(0);
        let kept = digits.len().saturating_sub(cut);
        let (kept, lost) = digits.split_at(kept);
        let value: i128 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| QuantityError::Number)? };
        let up = i128::from(lost.bytes().any(|digit| digit != b'0'));
        Ok(Self { value: value + up, scale: scale.max(NANO) })
    }

    /// The value as a whole number, if it is one.
    fn whole(self) -> Option<i128> {
        let power = 10_i128.checked_pow(u32::try_from(self.scale.unsigned_abs()).ok()?)?;
        match self.scale {
            0.. => self.value.checked_mul(power),
            _ => (self.value % power == 0).then_some(self.value / power),
        }
    }

    fn write(self, format: Format) -> String {
        if self.value == 0 {
            return "0".into();
        }
        if format == Format::BinarySi {
            // Neither a fraction nor a number below 1Ki is ever written in powers of two.
            if let Some(whole) = self.whole().filter(|whole| whole.abs() >= 1024) {
                return write_binary(whole);
            }
            return self.write(Format::DecimalSi);
        }
        let Self { mut value, mut scale } = self;
        while value % 10 == 0 {
            value /= 10;
            scale += 1;
        }
        let zeros = scale.rem_euclid(3);
        scale -= zeros;
        let zeros = &"00"[..zeros as usize];
        match format {
            Format::DecimalExponent if scale != 0 => format!("{value}{zeros}e{scale}"),
            // The API server, too, has no suffix above E, and writes none.
            _ => format!("{value}{zeros}{}", name_of(&DECIMAL, scale)),
        }
    }
}

/// The amount of a binary quantity, capped where the API server caps it.
fn binary(digits: &str, scale: i64, exponent: i32) -> Result<Amount, QuantityError> {
    if digits.is_empty() {
        return Ok(Amount::ZERO);
    }
    let cap = Amount { value: i128::from(i64::MAX), scale: 0 };
    let whole_digits = digits.len() as i64 + scale;
    let whole = digits.get(..usize::try_from(whole_digits).unwrap_or(0)).unwrap_or(digits);
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(i128::MAX) };
    if whole_digits > 19 || whole.saturating_mul(1 << exponent) > cap.value {
        return Ok(cap);
    }
    let value: i128 = digits.parse().map_err(|_| QuantityError::Number)?;
    let value = value.checked_mul(1 << exponent).ok_or(QuantityError::Number)?;
    let amount = Amount::round_to_nano(&value.to_string(), scale)?;
    Ok(if amount.whole_part() >= cap.value { cap } else { amount })
}

impl Amount {
    fn whole_part(self) -> i128 {
        match self.scale {
            0.. => self.whole().unwrap_or(i128::MAX),
            // Rounded, so that the scale is -9 or more.
            scale => self.value / 10_i128.pow(scale.unsigned_abs() as u32),
        }
    }
}

fn write_binary(mut whole: i128) -> String {
    let mut exponent = 0;
    while whole % 1024 == 0 && whole.abs() >= 1024 {
        whole /= 1024;
        exponent += 10;
    }
    format!("{whole}{}", name_of(&BINARY, exponent))
}

fn name_of(table: &[(&'static str, i32)], exponent: i64) -> &'static str {
    table.iter().find(|(_, known)| i64::from(*known) == exponent).map_or("", |(name, _)| name)
}

/// The power of ten of the smallest unit.
const NANO: i64 = -9;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_as_the_api_server_writes_them() {
        let cases = [
            ("0", "0"),
            ("-0", "0"),
            ("+", "0"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1.500", "1.500"),
            ("+1", "+1"),
            ("1000m", "1"),
            ("1e3", "1e3"),
            ("12e1", "120"),
            ("129E6", "129E6"),
            ("1E", "1E"),
            ("1000E", "1"),
            ("1e-12", "1e-9"),
            ("-0.0000000001", "-1n"),
            ("0.5Gi", "512Mi"),
            ("2048Ki", "2Mi"),
            ("1025Ki", "1025Ki"),
            ("0.1Ki", "102400m"),
            ("16Ei", "9223372036854775807"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ];
        for (text, canonical) in cases {
            assert_eq!(canonical_quantity(text).as_deref(), Ok(canonical), "{text}");
        }
    }

    #[test]
    fn other_texts_are_errors() {
        for text in ["", "1KB", "1 Gi", " 1", "1.2.3", "1-1x", "½"] {
            assert_eq!(canonical_quantity(text), Err(QuantityError::Format), "{text:?}");
        }
        for text in ["1ee3", "1e", "1-", "--1", "1i", "1K", "1kM", "1e99999999999999999999"] {
            assert_eq!(canonical_quantity(text), Err(QuantityError::Suffix), "{text:?}");
        }
        for text in ["Ei", "-Ei", "e-12", &"9".repeat(39)] {
            assert_eq!(canonical_quantity(text), Err(QuantityError::Number), "{text:?}");
        }
    }
}
