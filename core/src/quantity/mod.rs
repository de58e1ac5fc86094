//! Quantities: the fixed-point numbers with suffixes in which Kubernetes counts resources.

mod amount;
pub(crate) mod fuzz;
mod parse;
#[cfg(test)]
mod properties;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use amount::Amount;
use parse::{Format, Parts};

/// A [quantity](https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/) as `500m`, `1.5Gi`
/// or `1e3`.
///
/// It prints as it was written, and equals, orders and hashes by its exact value: `1024Mi` equals `1Gi`. The value is
/// what the API server takes it for: rounded away from zero to whole billionths, and for binary suffixes no further
/// from zero than 2^63-1.
///
/// Two texts that the API server's own parser misreads are errors here: those without a digit (it takes `Ki` for 0)
/// and those whose exponent needs more than 32 bits, as written or without the zeros of the number (it takes `1e4294967296`
/// for 1).
///
/// ```
/// use cloudcoil_core::Quantity;
///
/// let limit: Quantity = "0.5Gi".parse()?;
/// assert_eq!(limit, "512Mi".parse()?);
/// assert_eq!(limit.to_string(), "0.5Gi");
/// assert_eq!(limit.canonical(), "512Mi");
/// assert_eq!(limit.as_i64(), Some(536_870_912));
/// # Ok::<(), cloudcoil_core::QuantityError>(())
/// ```
#[derive(Clone)]
pub struct Quantity {
    text: String,
    format: Format,
    amount: Amount,
}

impl Quantity {
    /// Reads a signed decimal number with one of the suffixes n, u, m, k, M, G, T, P, E, or Ki to Ei, or an exponent
    /// as `e3` or `E-3`. `1E` is 10^18. There may be no blanks.
    pub fn parse(text: impl Into<String>) -> Result<Self, QuantityError> {
        let text = text.into();
        match Parts::split(&text).and_then(|parts| Ok((parts.format, parts.amount()?))) {
            Ok((format, amount)) => Ok(Self { text, format, amount }),
            Err(fault) => Err(QuantityError { text, fault }),
        }
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The canonical form: no fraction, the largest suffix of the same kind that keeps the number whole, and no sign
    /// but `-`. Of a binary quantity that is a fraction, or less than 1024 either way, the suffix is decimal; and one that is no
    /// multiple of 1024 has none, so that `62.5Ki` becomes `64000`, which for itself would become `64k`.
    pub fn canonical(&self) -> String {
        match self.format {
            Format::Binary => self.amount.binary().unwrap_or_else(|| self.amount.decimal()),
            Format::Decimal => self.amount.decimal(),
            Format::Exponent => self.amount.exponential(),
        }
    }

    /// How the API server prints a built-in object's quantity that it was sent as this text: mostly the
    /// [canonical](Self::canonical) form, but some others, as `1.500` or `+5`, it leaves as they are.
    pub fn served(&self) -> String {
        match Parts::split(&self.text) {
            Ok(parts) if parts.is_left_alone() => self.text.clone(),
            _ => self.canonical(),
        }
    }

    /// The number, a fraction rounded away from zero; nothing when it does not fit.
    pub fn as_i64(&self) -> Option<i64> {
        self.amount.scaled(0)
    }

    /// The number of thousandths, a fraction rounded away from zero; nothing when it does not fit.
    pub fn as_millis(&self) -> Option<i64> {
        self.amount.scaled(3)
    }

    /// The nearest double; infinite when it is beyond the largest.
    pub fn to_f64(&self) -> f64 {
        self.amount.to_f64()
    }

    /// Whether the value is zero.
    pub const fn is_zero(&self) -> bool {
        self.amount.is_zero()
    }

    /// Whether the value is below zero.
    pub const fn is_negative(&self) -> bool {
        self.amount.is_negative()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Zero.
impl Default for Quantity {
    fn default() -> Self {
        Self::from(0)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.amount.hash(state);
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Quantity {
    type Error = QuantityError;

    fn try_from(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Quantity {
    type Error = QuantityError;

    fn try_from(text: String) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        let digits = number.unsigned_abs().to_string();
        Self {
            text: number.to_string(),
            format: Format::Decimal,
            amount: Amount::new(number < 0, digits.as_bytes(), 0),
        }
    }
}

/// Blanks around the text are allowed here, as in JSON.
impl TryFrom<&ApiQuantity> for Quantity {
    type Error = QuantityError;

    fn try_from(quantity: &ApiQuantity) -> Result<Self, QuantityError> {
        Self::parse(quantity.0.trim())
    }
}

impl From<Quantity> for ApiQuantity {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.text)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Reads a string, or a number as if it were one, or `null` as zero: what the API server accepts.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

/// Text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no quantity: {fault}")]
pub struct QuantityError {
    text: String,
    fault: QuantityFault,
}

impl QuantityError {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is wrong with it.
    pub const fn fault(&self) -> &QuantityFault {
        &self.fault
    }
}

/// What is wrong with text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityFault {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// It does not start with a number, but for a sign.
    #[error("it must start with a number")]
    NoNumber,
    /// What follows the number is neither a suffix nor an exponent.
    #[error("{0:?} is not one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, nor an exponent as e3")]
    Suffix(String),
    /// An exponent that needs more than 32 bits, as written or without the zeros of the number.
    #[error("the exponent {0:?} is out of range")]
    Exponent(String),
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity, as a string or a number")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity::from(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
        match serde_json::Number::from_f64(number) {
            Some(number) => self.visit_str(&number.to_string()),
            None => Err(E::custom("a quantity is a finite number")),
        }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_form_has_its_exact_value() {
        for (text, nanos) in [
            ("129e6", 129_000_000_000_000_000_i128),
            ("129E6", 129_000_000_000_000_000),
            ("1E", 1_000_000_000_000_000_000_000_000_000),
            ("644245094400m", 644_245_094_400_000_000),
            ("0.5Gi", 536_870_912_000_000_000),
            ("+1", 1_000_000_000),
            ("-200m", -200_000_000),
            ("1.", 1_000_000_000),
            (".5", 500_000_000),
            ("1e-3", 1_000_000),
            ("1e+3", 1_000_000_000_000),
            ("-.5e1", -5_000_000_000),
            ("00.100", 100_000_000),
            ("1n", 1),
            ("1u", 1_000),
            ("1k", 1_000_000_000_000),
            ("1M", 1_000_000_000_000_000),
            ("1G", 1_000_000_000_000_000_000),
            ("1T", 1_000_000_000_000_000_000_000),
            ("1P", 1_000_000_000_000_000_000_000_000),
            ("1Ki", 1_024_000_000_000),
            ("1Mi", 1_048_576_000_000_000),
            ("1Gi", 1_073_741_824_000_000_000),
            ("1Ti", 1_099_511_627_776_000_000_000),
            ("1Pi", 1_125_899_906_842_624_000_000_000),
            ("1Ei", 1_152_921_504_606_846_976_000_000_000),
            ("-0", 0),
            ("0e99", 0),
            ("0.1n", 1),
            ("-0.1n", -1),
            ("1.0000000001", 1_000_000_001),
            ("-9.9999999999", -10_000_000_000),
            ("1e-2147483648", 1),
            ("0.0000000001Ki", 103),
            ("16Ei", 9_223_372_036_854_775_807_000_000_000),
            ("-9223372036854775808Ki", -9_223_372_036_854_775_807_000_000_000),
        ] {
            let expected = Amount::new(nanos < 0, nanos.unsigned_abs().to_string().as_bytes(), -9);
            assert_eq!(quantity(text).amount, expected, "{text}");
            assert_eq!(quantity(text).to_string(), text);
        }
    }

    #[test]
    fn text_of_another_form_is_refused() {
        let suffix = |suffix: &str| QuantityFault::Suffix(suffix.to_owned());
        for (text, fault) in [
            ("", QuantityFault::Empty),
            ("1KB", suffix("KB")),
            ("1 Gi", suffix(" Gi")),
            (" 1", QuantityFault::NoNumber),
            ("1 ", suffix(" ")),
            ("1ee3", suffix("ee3")),
            ("1e", suffix("e")),
            ("1E+", suffix("E+")),
            ("1e3.5", suffix("e3.5")),
            ("1e3m", suffix("e3m")),
            ("1e--3", suffix("e--3")),
            ("1K", suffix("K")),
            ("1ki", suffix("ki")),
            ("1i", suffix("i")),
            ("1mi", suffix("mi")),
            ("1Kii", suffix("Kii")),
            ("1.1.1", suffix(".1")),
            ("1,5", suffix(",5")),
            ("1_0", suffix("_0")),
            ("0x1", suffix("x1")),
            ("1\0", suffix("\0")),
            ("١", QuantityFault::NoNumber),
            ("1µ", suffix("µ")),
            ("+", QuantityFault::NoNumber),
            (".", QuantityFault::NoNumber),
            ("--1", QuantityFault::NoNumber),
            ("Ki", QuantityFault::NoNumber),
            ("inf", QuantityFault::NoNumber),
            ("1e2147483648", QuantityFault::Exponent("2147483648".to_owned())),
            ("1e-9999999999999999999999", QuantityFault::Exponent("-9999999999999999999999".to_owned())),
            ("1000e2147483647", QuantityFault::Exponent("2147483650".to_owned())),
            ("-10e2147483647", QuantityFault::Exponent("2147483648".to_owned())),
        ] {
            let error = Quantity::parse(text).unwrap_err();
            assert_eq!(error.fault(), &fault, "{text}");
            assert!(error.to_string().starts_with(&format!("{text:?} is no quantity: ")));
        }
    }

    #[test]
    fn quantities_compare_by_value() {
        let ascending = "-1e2147483647 -16Ei -1E -1Gi -1G -1 -1n 0 1n 1u 999u 1m 999999999n 1 1000001u 1.1 9 10 1k 1Ki 1M \
            1Mi 1G 1Gi 1T 1Ti 1P 1Pi 1E 1Ei 9223372036854775806 8Ei 9223372036854775807.5 1e30 1.00001e30 1e2147483647";
        let mut sorted: Vec<Quantity> = ascending.split(' ').map(quantity).collect();
        sorted.reverse();
        sorted.sort();
        assert!(sorted.iter().map(Quantity::as_str).eq(ascending.split(' ')), "{sorted:?}");
        for (one, other) in
            [("1Gi", "1024Mi"), ("1", "1000m"), ("1e3", "1k"), ("8Ei", "100Ei"), ("-0", "0Ki"), ("1E", "1e18")]
        {
            assert_eq!(quantity(one), quantity(other));
            assert_eq!(quantity(one).cmp(&quantity(other)), Ordering::Equal);
        }
    }

    #[test]
    fn canonical_and_served_texts_are_those_of_the_api_server() {
        for (text, canonical, served) in [
            ("129E6", "129e6", "129E6"),
            ("100e1", "1e3", "1e3"),
            ("5e-1", "500e-3", "500e-3"),
            ("1e22", "10e21", "10e21"),
            ("1e2147483647", "10e2147483646", "10e2147483646"),
            ("0.1000e2147483647", "1e2147483646", "1e2147483646"),
            ("0e2147483647", "0", "0"),
            ("0.5Gi", "512Mi", "512Mi"),
            ("1.5Gi", "1536Mi", "1536Mi"),
            ("1.5Ki", "1536", "1536"),
            ("62.5Ki", "64000", "64000"),
            ("0.5Ki", "512", "512"),
            ("-1.5Ki", "-1536", "-1536"),
            ("1024Ki", "1Mi", "1Mi"),
            ("1023Ki", "1023Ki", "1023Ki"),
            ("01Ki", "1Ki", "01Ki"),
            ("0.1Gi", "107374182400m", "107374182400m"),
            ("16Ei", "9223372036854775807", "9223372036854775807"),
            ("-1Ki", "-1Ki", "-1Ki"),
            ("0Ki", "0", "0"),
            ("1.500", "1500m", "1.500"),
            ("1.5", "1500m", "1500m"),
            ("+05", "5", "+05"),
            ("1000", "1k", "1k"),
            ("1000000m", "1k", "1k"),
            ("1500", "1500", "1500"),
            ("0.1n", "1n", "1n"),
            ("12.345k", "12345", "12.345k"),
            ("1E", "1E", "1E"),
            ("1.", "1", "1."),
            ("-0", "0", "0"),
            ("0e9", "0", "0"),
            ("12345678901234567890123", "12345678901234567890123", "12345678901234567890123"),
        ] {
            assert_eq!(quantity(text).canonical(), canonical, "{text}");
            assert_eq!(quantity(text).served(), served, "{text}");
            assert_eq!(quantity(canonical), quantity(text), "{text}");
        }
        // The API server itself prints "10" here, which is another number.
        assert_eq!(quantity("10000E").canonical(), "10000E");
    }

    #[test]
    fn numbers_are_rounded_away_from_zero() {
        for (text, whole, millis) in [
            ("1.5", Some(2), Some(1500)),
            ("-1.5", Some(-2), Some(-1500)),
            ("1u", Some(1), Some(1)),
            ("-99999u", Some(-1), Some(-100)),
            ("0", Some(0), Some(0)),
            ("2Ki", Some(2048), Some(2_048_000)),
            ("8Ei", Some(i64::MAX), None),
            ("-9223372036854775808", Some(i64::MIN), None),
            ("9223372036854775807.1", None, None),
            ("10E", None, None),
            ("1e2147483647", None, None),
            ("9223372036854775807m", Some(9_223_372_036_854_776), Some(i64::MAX)),
        ] {
            assert_eq!((quantity(text).as_i64(), quantity(text).as_millis()), (whole, millis), "{text}");
        }
        let doubles = [("0.1", 0.1), ("-1.5Ki", -1536.0), ("1e2147483647", f64::INFINITY), ("1E", 1e18), ("0", 0.0)];
        for (text, double) in doubles {
            assert_eq!(quantity(text).to_f64(), double, "{text}");
        }
        assert!(quantity("0m").is_zero() && !quantity("-0").is_negative() && quantity("-1n").is_negative());
    }

    #[test]
    fn json_strings_and_numbers_are_read_and_strings_written() {
        let read = |json: &str| serde_json::from_str::<Quantity>(json);
        for (json, text) in [
            (r#""1.50Gi""#, "1.50Gi"),
            (r#"" 5 ""#, "5"),
            ("5", "5"),
            ("-5", "-5"),
            ("18446744073709551615", "18446744073709551615"),
            ("0.5", "0.5"),
            ("1e300", "1e+300"),
            ("null", "0"),
        ] {
            assert_eq!(read(json).unwrap().to_string(), text, "{json}");
        }
        for json in [r#""""#, r#""1KB""#, "true", "[]", "{}"] {
            assert!(read(json).is_err(), "{json}");
        }
        assert_eq!(serde_json::to_string(&quantity("1.50Gi")).unwrap(), r#""1.50Gi""#);
        assert_eq!(ApiQuantity::from(quantity("1.0")), ApiQuantity("1.0".to_owned()));
        assert_eq!(Quantity::try_from(&ApiQuantity(" 1k ".to_owned())), Ok(Quantity::from(1000)));
        assert_eq!(Quantity::from(i64::MIN).as_i64(), Some(i64::MIN));
    }

    #[test]
    fn long_numbers_stay_exact() {
        let nines = "9".repeat(10_000);
        assert_eq!(quantity(&format!("0.{nines}")), quantity("1"));
        assert_eq!(quantity(&format!("{nines}.{nines}")).canonical(), format!("1{}E", "0".repeat(10_000 - 18)));
        assert_eq!(quantity(&format!("{nines}Ei")), quantity("8Ei"));
        assert!(quantity(&nines) < quantity(&format!("{nines}0")));
    }
}
