//! One pass over JSON text: checks it, finds members, and notes what is to be left out of a copy.

use std::borrow::Cow;

/// Reads JSON text from left to right. Blanks outside strings, and members that are not wanted, are noted as cuts,
/// so that [`copy`](Self::copy) gives compact text; [`position`](Self::position) counts in that copy.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    cuts: Vec<Cut>,
    cut: usize,
}

/// Text that is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It ends too early.
    Truncated,
    /// It breaks the grammar at this byte.
    Syntax(usize),
    /// Its arrays and objects nest deeper than [`MAX_DEPTH`] at this byte.
    TooDeep(usize),
}

/// What becomes of a member in the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    No,
}

/// The inside of a string, as bytes of the text that was scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    start: usize,
    end: usize,
    escaped: bool,
}

#[derive(Clone, Copy)]
struct Cut {
    start: usize,
    end: usize,
}

/// A place to go back to when what follows it turns out to be unwanted.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    cuts: usize,
    cut: usize,
}

/// How deep a value inside a member may nest.
pub(crate) const MAX_DEPTH: u32 = 128;

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, cuts: Vec::new(), cut: 0 }
    }

    /// All of the text.
    pub(crate) const fn text(&self) -> &'a str {
        self.text
    }

    /// What has not been scanned.
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// How many bytes of the text have been scanned.
    pub(crate) const fn scanned(&self) -> usize {
        self.at
    }

    /// Goes on behind `count` more bytes, which another scanner has seen to.
    pub(crate) const fn pass(&mut self, count: usize) {
        self.at += count;
    }

    /// Where the next byte stands in the compact copy.
    pub(crate) const fn position(&self) -> usize {
        self.at - self.cut
    }

    /// The next byte behind blanks.
    pub(crate) fn peek(&mut self) -> Result<u8, Flaw> {
        let byte = *self.bytes().get(self.at).ok_or(Flaw::Truncated)?;
        if !is_blank(byte) {
            return Ok(byte);
        }
        let blanks = self.bytes()[self.at..].iter().take_while(|byte| is_blank(**byte)).count();
        self.note(self.at, self.at + blanks);
        self.at += blanks;
        self.bytes().get(self.at).copied().ok_or(Flaw::Truncated)
    }

    /// Walks through an object. `member` is called behind the colon of each member and must pass over its value.
    ///
    /// Answers how many members are kept.
    pub(crate) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, Text) -> Result<Keep, Flaw>,
    ) -> Result<usize, Flaw> {
        self.expect(b'{')?;
        let mut kept = 0;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(kept);
        }
        let mut comma = self.mark();
        loop {
            self.peek()?;
            let start = self.mark();
            let key = self.string()?;
            self.expect(b':')?;
            self.peek()?;
            let keep = member(self, key)?;
            // A member that goes takes a comma along: the one before it, or behind it when it would be the first.
            if keep == Keep::No {
                self.cut_from(if kept == 0 { start } else { comma });
            } else {
                kept += 1;
            }
            comma = self.mark();
            match self.peek()? {
                b',' => {
                    self.at += 1;
                    if kept == 0 {
                        self.cut_from(start);
                    }
                }
                b'}' => {
                    self.at += 1;
                    return Ok(kept);
                }
                _ => return Err(Flaw::Syntax(self.at)),
            }
        }
    }

    /// Walks through an array. `element` is called with the index of each element and must pass over it.
    pub(crate) fn elements(
        &mut self,
        mut element: impl FnMut(&mut Self, usize) -> Result<(), Flaw>,
    ) -> Result<(), Flaw> {
        self.expect(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(());
        }
        for index in 0.. {
            self.peek()?;
            element(self, index)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(Flaw::Syntax(self.at)),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The string that begins here.
    pub(crate) fn string(&mut self) -> Result<Text, Flaw> {
        self.expect(b'"')?;
        let start = self.at;
        let escaped = self.string_body()?;
        Ok(Text { start, end: self.at - 1, escaped })
    }

    /// The string that begins here; any other value is passed over.
    pub(crate) fn string_or_skip(&mut self) -> Result<Option<Text>, Flaw> {
        if self.peek()? == b'"' {
            return self.string().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// Passes over one value of any kind.
    pub(crate) fn skip(&mut self) -> Result<(), Flaw> {
        let mut nest = Nest::default();
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    self.string_body()?;
                }
                open @ (b'{' | b'[') => {
                    nest.push(open == b'{').ok_or(Flaw::TooDeep(self.at))?;
                    self.at += 1;
                    let next = self.peek()?;
                    if next == closing(open) {
                        self.at += 1;
                        nest.pop();
                    } else if open == b'{' {
                        self.key()?;
                        continue;
                    } else {
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.close(&mut nest)? {
                return Ok(());
            }
        }
    }

    /// Behind a value: passes over what closes, up to the next value. Answers whether there is none.
    fn close(&mut self, nest: &mut Nest) -> Result<bool, Flaw> {
        loop {
            let Some(object) = nest.top() else { return Ok(true) };
            match self.peek()? {
                b',' => {
                    self.at += 1;
                    if object {
                        self.peek()?;
                        self.key()?;
                    }
                    return Ok(false);
                }
                b'}' if object => nest.pop(),
                b']' if !object => nest.pop(),
                _ => return Err(Flaw::Syntax(self.at)),
            }
            self.at += 1;
        }
    }

    fn key(&mut self) -> Result<(), Flaw> {
        self.expect(b'"')?;
        self.string_body()?;
        self.expect(b':')
    }

    fn expect(&mut self, byte: u8) -> Result<(), Flaw> {
        if self.peek()? != byte {
            return Err(Flaw::Syntax(self.at));
        }
        self.at += 1;
        Ok(())
    }

    /// Behind the opening quote: passes over the closing one, and answers whether there was an escape.
    fn string_body(&mut self) -> Result<bool, Flaw> {
        let mut escaped = false;
        loop {
            self.at += plain_prefix(&self.bytes()[self.at..]);
            match self.bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(Flaw::Syntax(self.at)),
                None => return Err(Flaw::Truncated),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Flaw> {
        let bytes = self.bytes();
        match *bytes.get(self.at + 1).ok_or(Flaw::Truncated)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                for index in self.at + 2..self.at + 6 {
                    if !bytes.get(index).ok_or(Flaw::Truncated)?.is_ascii_hexdigit() {
                        return Err(Flaw::Syntax(index));
                    }
                }
                self.at += 6;
            }
            _ => return Err(Flaw::Syntax(self.at + 1)),
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), Flaw> {
        match self.bytes()[self.at] {
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(Flaw::Syntax(self.at)),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), Flaw> {
        for expected in word.bytes() {
            if *self.bytes().get(self.at).ok_or(Flaw::Truncated)? != expected {
                return Err(Flaw::Syntax(self.at));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Flaw> {
        self.at += usize::from(self.bytes()[self.at] == b'-');
        if self.bytes().get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes().get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes().get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes().get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Flaw> {
        let count = self.bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        match (count, self.bytes().get(self.at)) {
            (0, None) => Err(Flaw::Truncated),
            (0, Some(_)) => Err(Flaw::Syntax(self.at)),
            _ => Ok(()),
        }
    }

    /// Adds what was scanned from `start` on, without the cuts, to `copy`.
    pub(crate) fn copy(&self, from: usize, copy: &mut String) {
        let mut start = from;
        for cut in self.cuts.iter().skip_while(|cut| cut.end <= from) {
            copy.push_str(&self.text[start..cut.start]);
            start = cut.end;
        }
        copy.push_str(&self.text[start..self.at]);
    }

    const fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn mark(&self) -> Mark {
        Mark { at: self.at, cuts: self.cuts.len(), cut: self.cut }
    }

    fn cut_from(&mut self, mark: Mark) {
        self.cuts.truncate(mark.cuts);
        self.cut = mark.cut;
        self.note(mark.at, self.at);
    }

    fn note(&mut self, start: usize, end: usize) {
        self.cuts.push(Cut { start, end });
        self.cut += end - start;
    }
}

impl Text {
    /// What stands between the quotes, as it stands there.
    pub(crate) fn raw(self, text: &str) -> &str {
        &text[self.start..self.end]
    }

    /// Where it begins, behind the quote.
    pub(crate) const fn start(self) -> usize {
        self.start
    }

    pub(crate) const fn is_escaped(self) -> bool {
        self.escaped
    }

    /// The string itself. Half a surrogate pair becomes the replacement character.
    pub(crate) fn value(self, text: &str) -> Cow<'_, str> {
        if self.escaped { Cow::Owned(unescape(self.raw(text))) } else { Cow::Borrowed(self.raw(text)) }
    }
}

/// Undoes the escapes of a string that was scanned.
fn unescape(raw: &str) -> String {
    let mut plain = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        let mut characters = behind.chars();
        match characters.next() {
            Some('u') => {
                let (c, used) = code_point(behind);
                plain.push(c);
                rest = &behind[used..];
                continue;
            }
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some(c) => plain.push(c),
            None => {}
        }
        rest = characters.as_str();
    }
    plain.push_str(rest);
    plain
}

/// The character that `uXXXX`, or `uXXXX\uXXXX`, stands for, and the length of that.
fn code_point(escape: &str) -> (char, usize) {
    let unit = |at: usize| escape.get(at + 1..at + 5).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let Some(high) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 1) };
    let low = escape.get(5..7).filter(|next| *next == "\\u").and_then(|_| unit(6));
    match char::decode_utf16([high].into_iter().chain(low)).next() {
        Some(Ok(c)) if c.len_utf16() == 2 => (c, 11),
        Some(Ok(c)) => (c, 5),
        _ => (char::REPLACEMENT_CHARACTER, 5),
    }
}

/// Which of the open brackets are those of objects, innermost last.
#[derive(Default)]
struct Nest {
    objects: u128,
    depth: u32,
}

impl Nest {
    const fn push(&mut self, object: bool) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.objects = self.objects << 1 | object as u128;
        self.depth += 1;
        Some(())
    }

    const fn pop(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    const fn top(&self) -> Option<bool> {
        if self.depth == 0 { None } else { Some(self.objects & 1 == 1) }
    }
}

const fn closing(open: u8) -> u8 {
    if open == b'{' { b'}' } else { b']' }
}

pub(crate) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// How many bytes at the start are plain parts of a string: no quote, no backslash, no control character.
///
/// Strings are most of a body, so eight bytes are looked at together.
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk::<8>() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}

/// The high bit of each byte that is special; of those above the lowest special one some may be wrong.
const fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let zeros = (quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (zeros | control) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    fn skip(text: &str) -> Result<String, Flaw> {
        let mut scanner = Scanner::new(text);
        scanner.skip()?;
        if scanner.peek().is_ok() {
            return Err(Flaw::Syntax(scanner.at));
        }
        let mut copy = String::new();
        scanner.copy(0, &mut copy);
        Ok(copy)
    }

    fn without(text: &str, unwanted: &[&str]) -> String {
        let mut scanner = Scanner::new(text);
        scanner
            .members(|scanner, key| {
                scanner.skip()?;
                Ok(if unwanted.contains(&key.raw(text)) { Keep::No } else { Keep::Yes })
            })
            .unwrap();
        let mut copy = String::new();
        scanner.copy(0, &mut copy);
        assert_eq!(copy.len(), scanner.position());
        copy
    }

    #[test]
    fn every_valid_text_passes_and_loses_its_blanks() {
        for (text, compact) in [
            (" { } ", "{}"),
            ("[ 1 , -0.5e+3,true ,null, \" a b \" ]", "[1,-0.5e+3,true,null,\" a b \"]"),
            (
                "{\"a\" :\r\n[ [ ] ,{ \"b\":{}} ],\t\"c\":\"\\u00e9\\n\"}",
                "{\"a\":[[],{\"b\":{}}],\"c\":\"\\u00e9\\n\"}",
            ),
        ] {
            assert_eq!(skip(text).as_deref(), Ok(compact));
        }
    }

    #[test]
    fn an_early_end_is_told_from_a_wrong_character() {
        for text in ["", " ", "{", "[1,", "{\"a", "{\"a\"", "{\"a\":", "\"\\", "\"\\u00", "tru", "-", "1.", "1e", "[1"]
        {
            assert_eq!(skip(text), Err(Flaw::Truncated), "{text}");
        }
        for text in
            ["}", "[1}", "{1:2}", "{\"a\" 1}", "[,]", "[1,]", "{\"a\":1,}", "\"\n\"", "\"\\x\"", "01", "+1", ".5"]
        {
            assert!(matches!(skip(text), Err(Flaw::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(skip(&nested(MAX_DEPTH as usize)).is_ok());
        assert!(matches!(skip(&nested(MAX_DEPTH as usize + 1)), Err(Flaw::TooDeep(128))));
    }

    #[test]
    fn members_that_go_take_one_comma_along() {
        let text = "{ \"a\" : 1 , \"b\" : [ 2 ] , \"c\" : 3 }";
        for (unwanted, left) in [
            (&[][..], "{\"a\":1,\"b\":[2],\"c\":3}"),
            (&["a"], "{\"b\":[2],\"c\":3}"),
            (&["b"], "{\"a\":1,\"c\":3}"),
            (&["c"], "{\"a\":1,\"b\":[2]}"),
            (&["a", "b"], "{\"c\":3}"),
            (&["b", "c"], "{\"a\":1}"),
            (&["a", "c"], "{\"b\":[2]}"),
            (&["a", "b", "c"], "{}"),
        ] {
            assert_eq!(without(text, unwanted), left, "{unwanted:?}");
        }
    }

    #[test]
    fn escapes_are_undone() {
        let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 \ud83dx\udc00""#;
        let value = Scanner::new(text).string().unwrap().value(text).into_owned();
        assert_eq!(value, "\"\\/\u{8}\u{c}\n\r\té😀 \u{fffd}x\u{fffd}");
    }

    proptest! {
        #[test]
        fn the_same_texts_are_valid_as_for_serde_json(text in "[\\[\\]{}:,\"\\\\ a0-2.eE+tru\\-\n]{0,12}") {
            let theirs = serde_json::from_str::<IgnoredAny>(&text);
            match skip(&text) {
                Ok(_) => prop_assert!(theirs.is_ok(), "{theirs:?}"),
                // A number cut short is an invalid number to serde_json.
                Err(Flaw::Truncated) => {
                    prop_assert!(theirs.unwrap_err().is_eof() || text.ends_with(['.', 'e', 'E', '+', '-']), "{text}");
                }
                Err(_) => prop_assert!(theirs.is_err()),
            }
        }

        #[test]
        fn plain_parts_end_at_the_first_special_byte(bytes in proptest::collection::vec(prop_oneof![9 => any::<u8>(), 1 => Just(b'"')], 0..40)) {
            let naive = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(bytes.len());
            prop_assert_eq!(plain_prefix(&bytes), naive);
        }
    }
}
