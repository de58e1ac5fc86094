//! `Warning` headers: what the API server tells besides its answer.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::str::Chars;

use http::{HeaderMap, header};

/// Something that a server warns of, such as a version of an API that will go, or a field that nobody knows.
///
/// See <https://kubernetes.io/docs/reference/using-api/deprecation-policy/> and
/// <https://www.rfc-editor.org/rfc/rfc7234#section-5.5>.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Warning {
    /// What kind of warning it is: 299 from API servers, others from caches on the way.
    pub code: u16,
    /// Who warns; `-` from API servers.
    pub agent: Box<str>,
    /// The text, without control characters, at most [`Warning::LENGTH`] characters.
    pub text: Box<str>,
}

impl Warning {
    /// How many characters of a text are kept at the most.
    pub const LENGTH: usize = 4096;

    /// How many warnings of one answer are read at the most.
    pub const COUNT: usize = 100;

    /// Whether it is one that an API server gives, and says something.
    pub fn is_api(&self) -> bool {
        self.code == 299 && !self.text.is_empty()
    }
}

/// The text.
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The warnings in the headers of an answer, in their order. What is no warning is skipped.
///
/// ```
/// use http::{HeaderMap, header::WARNING};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(WARNING, r#"299 - "policy/v1beta1 is \"going\"", 299 - "so is this""#.parse()?);
/// let texts: Vec<_> = cloudcoil_core::warning::parse(&headers).into_iter().map(|warning| warning.text).collect();
/// assert_eq!(texts, ["policy/v1beta1 is \"going\"".into(), "so is this".into()]);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
pub fn parse(headers: &HeaderMap) -> Vec<Warning> {
    let texts = headers.get_all(header::WARNING).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    texts.flat_map(|text| in_header(&text)).take(Warning::COUNT).collect()
}

/// Tells which warnings have not been heard before. Remembers the last [`Heard::CAPACITY`] texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    texts: BTreeSet<Box<str>>,
    order: VecDeque<Box<str>>,
}

impl Heard {
    /// How many texts are remembered.
    pub const CAPACITY: usize = 1000;

    /// Nothing has been heard.
    pub const fn new() -> Self {
        Self { texts: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Whether a warning of this text is new; from now on it is not.
    pub fn is_new(&mut self, warning: &Warning) -> bool {
        let is_new = self.texts.insert(warning.text.clone());
        if is_new {
            self.order.push_back(warning.text.clone());
            if self.order.len() > Self::CAPACITY
                && let Some(oldest) = self.order.pop_front()
            {
                self.texts.remove(&oldest);
            }
        }
        is_new
    }
}

fn in_header(text: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() || warnings.len() == Warning::COUNT {
            return warnings;
        }
        rest = match one(rest) {
            Some((warning, rest)) => {
                warnings.push(warning);
                rest
            }
            None => after_comma(rest),
        };
    }
}

/// The warning at the beginning of a text, and what follows it: `299 - "text"`, perhaps with a date in quotes behind.
fn one(text: &str) -> Option<(Warning, &str)> {
    let (code, rest) = text.split_at_checked(3)?;
    let code = code.bytes().all(|byte| byte.is_ascii_digit()).then(|| code.parse().ok())??;
    let (agent, rest) = spaces(rest)?.split_once([' ', '\t'])?;
    let (text, rest) = quoted(rest.trim_start_matches([' ', '\t']))?;
    let rest = match spaces(rest).and_then(quoted) {
        Some((_, rest)) => rest,
        None => rest,
    };
    let rest = rest.trim_start_matches([' ', '\t']);
    let (agent, text) = (plain(agent.chars()), plain(text.chars()));
    let is_sound = !agent.is_empty() && !agent.contains(['"', ',']) && (rest.is_empty() || rest.starts_with(','));
    is_sound.then_some((Warning { code, agent, text }, rest))
}

/// What follows one or more spaces.
fn spaces(text: &str) -> Option<&str> {
    text.starts_with([' ', '\t']).then(|| text.trim_start_matches([' ', '\t']))
}

/// A quoted text without its quotes and escapes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut chars = text.strip_prefix('"')?.chars();
    let mut plain = String::new();
    loop {
        match chars.next()? {
            '"' => return Some((plain, chars.as_str())),
            '\\' => plain.push(chars.next()?),
            other => plain.push(other),
        }
    }
}

/// What follows the next comma that is not in quotes.
fn after_comma(text: &str) -> &str {
    let mut chars = text.chars();
    let mut is_quoted = false;
    while let Some(next) = chars.next() {
        match next {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => drop(chars.next()),
            ',' if !is_quoted => break,
            _ => {}
        }
    }
    chars.as_str()
}

fn plain(chars: Chars<'_>) -> Box<str> {
    chars.filter(|c| !c.is_control()).take(Warning::LENGTH).collect::<String>().into()
}

pub(crate) mod fuzz {
    //! The body of the fuzz target for warnings.

    use http::{HeaderMap, HeaderValue, header};

    use super::{Warning, parse};

    /// Takes lines of headers. What is read is bounded and plain, and reads the same when it is written anew.
    pub fn warnings(data: &[u8]) {
        let mut headers = HeaderMap::new();
        for line in data.split(|byte| *byte == b'\n').filter_map(|line| HeaderValue::from_bytes(line).ok()).take(8) {
            headers.append(header::WARNING, line);
        }
        let read = parse(&headers);
        assert!(read.len() <= Warning::COUNT);
        for warning in &read {
            assert!(warning.text.chars().count() <= Warning::LENGTH && !warning.text.chars().any(char::is_control));
            let text = warning.text.replace('\\', "\\\\").replace('"', "\\\"");
            let written = format!("{:03} {} \"{text}\"", warning.code, warning.agent);
            let again = HeaderValue::from_bytes(written.as_bytes()).expect("it has no control characters");
            let headers = [(header::WARNING, again)].into_iter().collect();
            assert_eq!(parse(&headers), std::slice::from_ref(warning));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn read(lines: &[&str]) -> Vec<(u16, String)> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::WARNING, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        parse(&headers).into_iter().map(|warning| (warning.code, warning.text.into())).collect()
    }

    fn api(texts: &[&str]) -> Vec<(u16, String)> {
        texts.iter().map(|text| (299, (*text).to_owned())).collect()
    }

    #[test]
    fn warnings_are_read_from_several_headers_and_several_in_one() {
        assert_eq!(read(&[r#"299 - "a""#, r#"299 - "b", 299 - "c""#]), api(&["a", "b", "c"]));
        assert_eq!(read(&[r#"  299  -   "a"  ,,299 k8s:443 "b, c""#]), api(&["a", "b, c"]));
        assert_eq!(read(&[r#"299 - "say \"no\" \\ \n""#]), api(&[r#"say "no" \ n"#]));
        assert_eq!(read(&[r#"299 - "naïve → 完了""#]), api(&["naïve → 完了"]));
    }

    #[test]
    fn a_date_is_taken_and_other_codes_are_told_apart() {
        let dated = r#"299 - "a" "Sat, 25 Aug 2012 23:34:45 GMT", 110 cache "stale", 299 - """#;
        let mut headers = HeaderMap::new();
        headers.insert(header::WARNING, dated.parse().unwrap());
        let warnings = parse(&headers);
        assert_eq!(warnings.iter().map(Warning::is_api).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!((&*warnings[0].text, warnings[1].code, &*warnings[1].agent), ("a", 110, "cache"));
    }

    #[test]
    fn what_is_no_warning_hides_no_other() {
        for odd in [
            "nonsense",
            "299",
            "29 - \"x\"",
            "2999 - \"x\"",
            "+29 - \"x\"",
            "299 \"x\"",
            "299 - x",
            "299 - \"x\" y",
            "299 - \"x\"\"y\"",
            "\"a, b\"",
            "é99 - \"x\"",
        ] {
            assert_eq!(read(&[&format!("{odd}, 299 - \"sound\"")]), api(&["sound"]), "{odd}");
        }
        assert_eq!(read(&["299 - \"open", "299 - \"\\", "", "299 - \"sound\""]), api(&["sound"]));
    }

    #[test]
    fn what_is_read_is_bounded_and_has_no_control_characters() {
        assert_eq!(read(&["299 - \"a\tb\u{85}c\""]), api(&["abc"]));
        let long = format!("299 - \"{}\"", "é".repeat(Warning::LENGTH + 1));
        assert_eq!(read(&[&long])[0].1.chars().count(), Warning::LENGTH);
        assert_eq!(read(&[&"299 - \"a\",".repeat(1000), "299 - \"b\""]).len(), Warning::COUNT);
    }

    #[test]
    fn a_warning_is_new_once_and_old_ones_are_forgotten_in_time() {
        let warning = |text: &str| Warning { code: 299, agent: "-".into(), text: text.into() };
        let mut heard = Heard::new();
        assert!(heard.is_new(&warning("a")) && !heard.is_new(&warning("a")));
        for number in 0..Heard::CAPACITY {
            assert!(heard.is_new(&warning(&number.to_string())));
        }
        assert!(heard.is_new(&warning("a")));
        assert_eq!((heard.texts.len(), heard.order.len()), (Heard::CAPACITY, Heard::CAPACITY));
    }

    proptest! {
        #[test]
        fn any_headers_are_read(data: Vec<u8>, text in "([0-9]{3} [-a-z]{1,2} \"([a-z\\\\\",]|\\\\\")*\",? ?){0,3}") {
            fuzz::warnings(&data);
            fuzz::warnings(text.as_bytes());
        }
    }
}
