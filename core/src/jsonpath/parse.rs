//! Reads the text of expressions.

use serde_json::{Number, Value};

use super::{Filter, JsonPathError, Operator, Slice, SliceEnd, Step, SyntaxFault};

/// Reads a whole expression, in braces or not, with or without its first dot.
pub(super) fn expression(text: &str) -> Result<Vec<Step>, JsonPathError> {
    let trimmed = text.trim_start();
    let lead = text.len() - trimmed.len();
    let (inner, offset) = match trimmed.strip_prefix('{') {
        Some(inner) => (inner, lead + 1),
        None => (trimmed, lead),
    };
    let fail = |(at, fault): Fault| JsonPathError::Syntax { text: text.to_owned(), at: at + offset, fault };
    let inner = match inner.trim_end().strip_suffix('}') {
        Some(inner) if offset > lead => inner,
        _ if offset > lead => return Err(fail((inner.len(), SyntaxFault::Unterminated("the expression")))),
        _ => inner,
    };
    let mut parser = Parser { text: inner, at: 0, steps: Vec::new() };
    if inner.trim_start().starts_with(|c: char| c == '_' || c.is_alphabetic()) {
        parser.at = inner.len() - inner.trim_start().len();
        parser.field();
    }
    parser.parse().map_err(fail)
}

type Fault = (usize, SyntaxFault);

/// Reads a part of an expression that starts at `offset` of the text that errors speak of.
fn part(text: &str, offset: usize) -> Result<Vec<Step>, Fault> {
    let parser = Parser { text, at: 0, steps: Vec::new() };
    parser.parse().map_err(|(at, fault)| (at + offset, fault))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    steps: Vec<Step>,
}

impl<'a> Parser<'a> {
    fn parse(mut self) -> Result<Vec<Step>, Fault> {
        while let Some(next) = self.rest().chars().next() {
            self.step(next)?;
        }
        Ok(self.steps)
    }

    fn step(&mut self, next: char) -> Result<(), Fault> {
        match next {
            // `@` and `$` stand for the value at hand, which is where a path starts anyway.
            ' ' | '@' | '$' => {
                self.at += 1;
                Ok(())
            }
            '[' if self.rest().starts_with("[?(") => self.filter(),
            '[' => self.brackets(),
            '.' if self.rest().starts_with("..") => self.recursive(),
            '.' => {
                self.at += 1;
                self.field();
                Ok(())
            }
            '"' | '\'' => self.quoted(next),
            '+' | '-' | '0'..='9' => self.number(),
            '\n' | '\r' => Err((self.at, SyntaxFault::Unterminated("the expression"))),
            '}' | '{' => Err((self.at, SyntaxFault::Template)),
            '_' => self.word(),
            _ if next.is_alphabetic() => self.word(),
            _ => Err((self.at, SyntaxFault::Unexpected(next))),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Reads a name, in which a backslash makes the next character part of it.
    fn field(&mut self) {
        let mut name = String::new();
        let mut chars = self.rest().char_indices();
        let mut end = self.rest().len();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
                _ if is_terminator(c) => {
                    end = at;
                    break;
                }
                _ => name.push(c),
            }
        }
        let wildcard = &self.rest()[..end] == "*";
        self.at += end;
        self.steps.push(if wildcard { Step::Wildcard } else { Step::Field(name) });
    }

    fn recursive(&mut self) -> Result<(), Fault> {
        if self.steps.last() == Some(&Step::Recursive) {
            return Err((self.at, SyntaxFault::RecursiveTwice));
        }
        self.at += "..".len();
        self.steps.push(Step::Recursive);
        if self.rest().starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    /// Reads an index, a slice, a key in quotes, or several of them by comma.
    fn brackets(&mut self) -> Result<(), Fault> {
        let start = self.at + 1;
        let length = self.text[start..]
            .find([']', '\n'])
            .filter(|length| self.text[start + length..].starts_with(']'))
            .ok_or((self.at, SyntaxFault::Unterminated("the index")))?;
        let inner = &self.text[start..start + length];
        self.at = start + length + 1;
        if inner.contains(',') {
            let mut at = start;
            let mut branches = Vec::new();
            for branch in inner.split(',') {
                let bracketed = format!("[{}]", branch.trim_matches(' '));
                branches.push(part(&bracketed, 0).map_err(|(_, fault)| (at, fault))?);
                at += branch.len() + 1;
            }
            self.steps.push(Step::Union(branches));
            return Ok(());
        }
        let key = inner.strip_prefix('\'').and_then(|key| key.strip_suffix('\'')).filter(|key| !key.contains('\''));
        match key {
            Some(key) => {
                let dotted = format!(".{key}");
                self.steps.extend(part(&dotted, 0).map_err(|(_, fault)| (start, fault))?);
            }
            None => self.steps.push(Step::Slice(slice(inner).map_err(|fault| (start, fault))?)),
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<(), Fault> {
        let start = self.at + "[?(".len();
        let Some(length) = filter_length(&self.text[start..]) else {
            return Err((self.at, SyntaxFault::Unterminated("the filter")));
        };
        let inner = &self.text[start..start + length];
        let end = start + length + 1;
        if !self.text[end..].starts_with(']') {
            return Err((end, SyntaxFault::Unterminated("the filter")));
        }
        self.at = end + 1;
        self.steps.push(Step::Filter(comparison(inner, start)?));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), Fault> {
        let start = self.at + 1;
        let mut escaped = false;
        let end = self.text[start..].char_indices().find_map(|(at, c)| match c {
            '\n' => Some(None),
            _ if c == quote && !escaped => Some(Some(at)),
            _ => {
                escaped = c == '\\' && !escaped;
                None
            }
        });
        let length = end.flatten().ok_or((self.at, SyntaxFault::Unterminated("the quoted text")))?;
        let inner = &self.text[start..start + length];
        let text = unescape(inner).ok_or_else(|| (start, SyntaxFault::Escape(inner.to_owned())))?;
        self.at = start + length + 1;
        self.steps.push(Step::Text(Value::String(text)));
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['+', '-']));
        let length = rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit()).map_or(rest.len(), |end| end + sign);
        let text = &rest[..length];
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        let number = match (unsigned.parse::<i64>(), unsigned.parse::<f64>()) {
            (Ok(integer), _) => Some(Number::from(integer)),
            (_, Ok(float)) => Number::from_f64(float),
            _ => None,
        };
        let number = number.ok_or_else(|| (self.at, SyntaxFault::Number(text.to_owned())))?;
        self.at += length;
        self.steps.push(Step::Literal(Value::Number(number)));
        Ok(())
    }

    fn word(&mut self) -> Result<(), Fault> {
        let rest = self.rest();
        let word = &rest[..rest.find(is_terminator).unwrap_or(rest.len())];
        let value = word.parse().map_err(|_| (self.at, SyntaxFault::UnknownWord(word.to_owned())))?;
        self.at += word.len();
        self.steps.push(Step::Literal(Value::Bool(value)));
        Ok(())
    }
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// How much of `text` lies before the parenthesis that ends a filter; those within quotes do not.
fn filter_length(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = None;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '"' | '\'' if quote == Some(c) && before != Some('\\') => quote = None,
            ')' if quote.is_none() => return Some(at),
            _ => {}
        }
        before = Some(c);
    }
    None
}

/// Reads what stands in the parentheses of a filter, `offset` bytes into the expression.
fn comparison(text: &str, offset: usize) -> Result<Filter, Fault> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let Some(at) = text.find(is_operator) else {
        return Ok(Filter { left: part(text, offset)?, test: None });
    };
    let length = text[at..].find(|c| !is_operator(c)).unwrap_or(text.len() - at);
    let operator = match &text[at..at + length] {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        unknown => return Err((offset + at, SyntaxFault::Operator(unknown.to_owned()))),
    };
    let right = at + length;
    if text[..at].trim().is_empty() || text[right..].trim().is_empty() {
        return Err((offset + at, SyntaxFault::Unterminated("the comparison")));
    }
    Ok(Filter { left: part(&text[..at], offset)?, test: Some((operator, part(&text[right..], offset + right)?)) })
}

/// Reads `N`, `N:N`, `N:N:N` with any number left out, or `*`.
fn slice(text: &str) -> Result<Slice, SyntaxFault> {
    let text = if text == "*" { ":" } else { text };
    let index = || SyntaxFault::Index(text.to_owned());
    let number = |part: &str| -> Result<Option<i64>, SyntaxFault> {
        let digits = part.strip_prefix('-').unwrap_or(part);
        match part {
            "" => Ok(None),
            _ if digits.bytes().all(|b| b.is_ascii_digit()) => part.parse().map(Some).map_err(|_| index()),
            _ => Err(index()),
        }
    };
    let mut parts = text.split(':');
    let start = number(parts.next().unwrap_or_default())?.unwrap_or(0);
    let end = match parts.next().map(number).transpose()? {
        None => SliceEnd::Single,
        Some(None) => SliceEnd::Open,
        Some(Some(end)) => SliceEnd::At(end),
    };
    let step = match parts.next().map(number).transpose()?.flatten() {
        None => 1,
        Some(step) => usize::try_from(step).ok().filter(|step| *step > 0).ok_or(SyntaxFault::Step)?,
    };
    if parts.next().is_some() {
        return Err(index());
    }
    Ok(Slice { start, end, step })
}

/// The text that a quoted one stands for; `None` at an escape that does not exist.
fn unescape(quoted: &str) -> Option<String> {
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next()? {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                escaped @ ('\\' | '\'' | '"') => escaped,
                'x' => hex(&mut chars, 2)?,
                'u' => hex(&mut chars, 4)?,
                'U' => hex(&mut chars, 8)?,
                _ => return None,
            },
            c => c,
        };
        text.push(c);
    }
    Some(text)
}

fn hex(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    (0..digits)
        .try_fold(0_u32, |code, _| code.checked_mul(16)?.checked_add(chars.next()?.to_digit(16)?))
        .and_then(char::from_u32)
}
