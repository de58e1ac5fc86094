//! The grammar of label selectors.

use std::collections::BTreeSet;

use super::label::{Requirement, Selector, SelectorError, Test};
use super::name::{check_label_key, check_label_value};

/// Reads a selector as the API server's own parser does, except that a NUL byte is an error, not the end.
pub(super) fn parse(text: &str) -> Result<Selector, SelectorError> {
    let mut parser = Parser { text, next: 0, at: 0, token: Token::End };
    parser.advance();
    let mut selector = Selector::new();
    if parser.token == Token::End {
        return Ok(selector);
    }
    loop {
        selector.insert(parser.requirement()?);
        match parser.token {
            Token::End => return Ok(selector),
            Token::Comma => parser.advance(),
            _ => return Err(parser.unexpected("',' or the end")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
    Word(&'a str),
}

struct Parser<'a> {
    text: &'a str,
    /// Where the token after the current one starts, blanks included.
    next: usize,
    /// Where the current token starts.
    at: usize,
    token: Token<'a>,
}

impl<'a> Parser<'a> {
    fn advance(&mut self) {
        let rest = self.text[self.next..].trim_start_matches(BLANKS);
        self.at = self.text.len() - rest.len();
        let (token, length) = lex(rest);
        self.token = token;
        self.next = self.at + length;
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.token == Token::Not;
        if negated {
            self.advance();
        }
        let key = self.key(if negated { "a key" } else { "a key or '!'" })?;
        if negated {
            return Ok(Requirement::raw(key, Test::NotExists));
        }
        let test = match self.token {
            Token::End | Token::Comma => return Ok(Requirement::raw(key, Test::Exists)),
            Token::Equals => Test::Equals(self.exact(key)?.0),
            Token::NotEquals => Test::NotEquals(self.exact(key)?.0),
            Token::Greater => Test::GreaterThan(self.integer(key)?),
            Token::Less => Test::LessThan(self.integer(key)?),
            Token::Word("in") => Test::In(self.values(key)?),
            Token::Word("notin") => Test::NotIn(self.values(key)?),
            _ => return Err(self.unexpected("'=', '==', '!=', 'in', 'notin', '>', '<', ',' or the end")),
        };
        Ok(Requirement::raw(key, test))
    }

    fn key(&mut self, expected: &'static str) -> Result<&'a str, SelectorError> {
        let Token::Word(key) = self.token else {
            return Err(self.unexpected(expected));
        };
        check_label_key(key).map_err(|fault| SelectorError::Key { key: key.to_owned(), at: Some(self.at), fault })?;
        self.advance();
        Ok(key)
    }

    /// The value after an operator, which may be left out, and where it starts.
    fn exact(&mut self, key: &str) -> Result<(String, usize), SelectorError> {
        self.advance();
        let at = self.at;
        match self.token {
            Token::End | Token::Comma => Ok((String::new(), at)),
            Token::Word(value) => {
                let value = self.value(key, value)?;
                self.advance();
                Ok((value, at))
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    fn integer(&mut self, key: &str) -> Result<i64, SelectorError> {
        let (value, at) = self.exact(key)?;
        value.parse().map_err(|_| SelectorError::NotAnInteger { key: key.to_owned(), value, at })
    }

    /// The values in parentheses; where one is left out, as in `(a,)` or `()`, it is the empty value.
    fn values(&mut self, key: &str) -> Result<BTreeSet<String>, SelectorError> {
        self.advance();
        if self.token != Token::Open {
            return Err(self.unexpected("'('"));
        }
        self.advance();
        let mut values = BTreeSet::new();
        loop {
            let value = match self.token {
                Token::Word(value) => {
                    let value = self.value(key, value)?;
                    self.advance();
                    value
                }
                _ => String::new(),
            };
            match self.token {
                Token::Comma => self.advance(),
                Token::Close => {
                    self.advance();
                    values.insert(value);
                    return Ok(values);
                }
                _ => return Err(self.unexpected("a value, ',' or ')'")),
            }
            values.insert(value);
        }
    }

    fn value(&self, key: &str, value: &str) -> Result<String, SelectorError> {
        match check_label_value(value) {
            Ok(()) => Ok(value.to_owned()),
            Err(fault) => {
                Err(SelectorError::Value { key: key.to_owned(), value: value.to_owned(), at: Some(self.at), fault })
            }
        }
    }

    fn unexpected(&self, expected: &'static str) -> SelectorError {
        let found = match self.token {
            Token::End => "the end".to_owned(),
            _ => format!("'{}'", &self.text[self.at..self.next]),
        };
        SelectorError::Syntax { at: self.at, found, expected }
    }
}

/// The first token of `rest`, which does not start with a blank, and its length in bytes.
fn lex(rest: &str) -> (Token<'_>, usize) {
    let mut bytes = rest.bytes();
    match (bytes.next(), bytes.next()) {
        (None, _) => (Token::End, 0),
        (Some(b'('), _) => (Token::Open, 1),
        (Some(b')'), _) => (Token::Close, 1),
        (Some(b','), _) => (Token::Comma, 1),
        (Some(b'>'), _) => (Token::Greater, 1),
        (Some(b'<'), _) => (Token::Less, 1),
        (Some(b'='), Some(b'=')) => (Token::Equals, 2),
        (Some(b'='), _) => (Token::Equals, 1),
        (Some(b'!'), Some(b'=')) => (Token::NotEquals, 2),
        (Some(b'!'), _) => (Token::Not, 1),
        _ => {
            let length = rest.find(|c| BLANKS.contains(&c) || SYMBOLS.contains(&c)).unwrap_or(rest.len());
            (Token::Word(&rest[..length]), length)
        }
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
