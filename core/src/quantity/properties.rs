//! Laws of quantities, tried on random ones.

use proptest::prelude::*;
use proptest::sample::select;

use super::Quantity;
use super::fuzz::canonical_text_is_sound;
use super::parse::{BINARY_SUFFIXES, DECIMAL_SUFFIXES};

/// A quantity's text, and its value by plain integer arithmetic.
fn sample() -> impl Strategy<Value = (String, i128)> {
    let suffix = prop_oneof![
        (0..DECIMAL_SUFFIXES.len())
            .prop_map(|step| (DECIMAL_SUFFIXES[step].to_owned(), Unit::Ten(step as i32 * 3 - 9))),
        (1..BINARY_SUFFIXES.len()).prop_map(|step| (BINARY_SUFFIXES[step].to_owned(), Unit::Two(step as u32 * 10))),
        (-12..18_i32, select(vec!["e", "E"])).prop_map(|(power, e)| (format!("{e}{power}"), Unit::Ten(power))),
    ];
    (select(vec!["", "+", "-"]), "[0-9]{0,5}", select(vec!["", "."]), "[0-9]{0,3}", suffix)
        .prop_filter("has a digit", |(_, whole, point, fraction, _)| {
            !whole.is_empty() || (!point.is_empty() && !fraction.is_empty())
        })
        .prop_map(|(sign, whole, point, fraction, (suffix, unit))| {
            let fraction = if point.is_empty() { String::new() } else { fraction };
            let value = oracle(sign == "-", &whole, &fraction, unit);
            (format!("{sign}{whole}{point}{fraction}{suffix}"), value)
        })
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Ten(i32),
    Two(u32),
}

/// The value in billionths, rounded away from zero, and capped for binary units.
fn oracle(negative: bool, whole: &str, fraction: &str, unit: Unit) -> i128 {
    let digits: i128 = format!("0{whole}{fraction}").parse().unwrap();
    let thousandths = digits * 10_i128.pow(3 - fraction.len() as u32);
    // Thousandths of units, times 10^9 to billionths, over 10^3.
    let (numerator, denominator) = match unit {
        Unit::Ten(power) if power < -6 => (thousandths, 10_i128.pow((-6 - power) as u32)),
        Unit::Ten(power) => (thousandths * 10_i128.pow((power + 6) as u32), 1),
        Unit::Two(power) => (thousandths * 1_000_000 * (1 << power), 1),
    };
    let rounded = (numerator + denominator - 1) / denominator;
    let cap = i128::from(i64::MAX) * 1_000_000_000;
    let magnitude = if matches!(unit, Unit::Two(_)) { rounded.min(cap) } else { rounded };
    if negative { -magnitude } else { magnitude }
}

proptest! {
    #[test]
    fn comparing_agrees_with_exact_arithmetic((one, first) in sample(), (other, second) in sample()) {
        let (one, other) = (Quantity::parse(one).unwrap(), Quantity::parse(other).unwrap());
        prop_assert_eq!(one.cmp(&other), first.cmp(&second));
        prop_assert_eq!(one == other, first == second);
    }

    #[test]
    fn a_quantity_has_its_exact_value_and_keeps_its_text((text, value) in sample()) {
        let quantity = Quantity::parse(text.as_str()).unwrap();
        prop_assert_eq!(quantity.to_string(), text);
        prop_assert_eq!(&quantity, &Quantity::parse(format!("{value}n")).unwrap());
        let whole = (value.abs() + 999_999_999) / 1_000_000_000 * value.signum();
        prop_assert_eq!(quantity.as_i64(), i64::try_from(whole).ok());
    }

    #[test]
    fn the_canonical_text_is_the_same_value_and_its_own_canonical_text((text, _) in sample()) {
        let quantity = Quantity::parse(text).unwrap();
        canonical_text_is_sound(&quantity);
        prop_assert!(!quantity.canonical().contains(['.', '+']));
        prop_assert_eq!(Quantity::parse(quantity.served()).unwrap(), quantity);
    }

    #[test]
    fn any_text_is_a_quantity_or_an_error(text in prop_oneof![any::<String>(), "[+-]?[0-9.]{0,6}[eEinumkKMGTP]{0,2}[-+0-9]{0,12}"]) {
        if let Ok(quantity) = Quantity::parse(text.as_str()) {
            prop_assert_eq!(quantity.to_string(), text);
            prop_assert_eq!(Quantity::parse(quantity.canonical()).unwrap(), quantity);
        }
    }
}
