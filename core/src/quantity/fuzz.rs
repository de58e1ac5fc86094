//! The body of the fuzz target for quantities.

use std::cmp::Ordering;

use super::Quantity;

/// Takes lines of text. Whatever parses must print as it was, keep its value in every form, and order consistently.
pub fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let quantities: Vec<Quantity> = text.lines().filter_map(|line| check(line.trim_end())).take(8).collect();
    for one in &quantities {
        for other in &quantities {
            assert_eq!(one.cmp(other), other.cmp(one).reverse());
            assert_eq!(one == other, one.cmp(other) == Ordering::Equal);
            if one <= other {
                assert!(one.to_f64() <= other.to_f64(), "{one} {other}");
            }
        }
    }
    let mut sorted = quantities;
    sorted.sort();
    assert!(sorted.first() <= sorted.last());
}

fn check(text: &str) -> Option<Quantity> {
    let quantity = Quantity::parse(text).ok()?;
    assert_eq!(quantity.to_string(), text);
    canonical_text_is_sound(&quantity);
    assert_eq!(Quantity::parse(quantity.served()).as_ref(), Ok(&quantity));
    if let Some(whole) = quantity.as_i64() {
        let away = if quantity.is_negative() { Ordering::is_le } else { Ordering::is_ge };
        assert!(away(Quantity::from(whole).cmp(&quantity)));
    }
    Some(quantity)
}

/// The canonical text has the same value, and is its own canonical text unless it has lost a binary suffix.
pub(super) fn canonical_text_is_sound(quantity: &Quantity) {
    let text = quantity.canonical();
    let again = Quantity::parse(text.as_str());
    assert_eq!(again.as_ref(), Ok(quantity));
    let lost = quantity.as_str().ends_with('i') && !text.ends_with('i');
    assert!(lost || again.is_ok_and(|again| again.canonical() == text), "{quantity}: {text}");
}
