//! JSON (RFC 8259): trees of values, and strings.

use super::fault::{FaultAt, fault};
use std::fmt::Write;

/// The largest number of arrays and objects in one another. Types are nested less deep.
const DEPTH_MAX: usize = 64;

/// A value, and the byte at which it begins.
#[derive(Debug)]
pub(super) struct Json {
    pub(super) at: usize,
    pub(super) kind: JsonKind,
}

#[derive(Debug)]
pub(super) enum JsonKind {
    Null,
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    String(String),
    Array(Vec<Json>),
    /// The members: their names, where these begin, and their values.
    Object(Vec<(usize, String, Json)>),
}

/// Reads a text that is one value.
pub(super) fn parse(text: &str) -> Result<Json, FaultAt> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.skip_space();
    match parser.rest().chars().next() {
        None => Ok(value),
        Some(next) => fault(parser.at, format!("{next:?} follows the value of this line")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Takes `token` if it is next.
    fn takes(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    /// Returns that something else is there than what is wanted.
    fn wanted<T>(&self, wanted: &str) -> Result<T, FaultAt> {
        match self.rest().chars().next() {
            Some(next) => fault(self.at, format!("{wanted} is missing before {next:?}")),
            None => fault(self.at, format!("{wanted} is missing at the end: the line is cut off")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, FaultAt> {
        self.skip_space();
        let at = self.at;
        if depth > DEPTH_MAX {
            return fault(at, format!("a value is nested more than {DEPTH_MAX} deep"));
        }
        let kind = match self.rest().as_bytes().first() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => JsonKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => JsonKind::Number(self.number()?),
            _ if self.takes("null") => JsonKind::Null,
            _ if self.takes("true") => JsonKind::Bool(true),
            _ if self.takes("false") => JsonKind::Bool(false),
            _ => return self.wanted("a value"),
        };
        Ok(Json { at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<JsonKind, FaultAt> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.takes("}") {
            return Ok(JsonKind::Object(members));
        }
        loop {
            self.skip_space();
            let at = self.at;
            if !self.rest().starts_with('"') {
                return self.wanted("a name in quotes");
            }
            let name = self.string()?;
            self.skip_space();
            if !self.takes(":") {
                return self.wanted("a colon");
            }
            members.push((at, name, self.value(depth + 1)?));
            self.skip_space();
            if self.takes("}") {
                return Ok(JsonKind::Object(members));
            }
            if !self.takes(",") {
                return self.wanted("a comma or `}`");
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<JsonKind, FaultAt> {
        self.at += 1;
        let mut elements = Vec::new();
        self.skip_space();
        if self.takes("]") {
            return Ok(JsonKind::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            self.skip_space();
            if self.takes("]") {
                return Ok(JsonKind::Array(elements));
            }
            if !self.takes(",") {
                return self.wanted("a comma or `]`");
            }
        }
    }

    fn number(&mut self) -> Result<String, FaultAt> {
        let start = self.at;
        self.takes("-");
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            return fault(start, "a number begins with 0");
        }
        if self.takes(".") {
            self.digits()?;
        }
        if self.takes("e") || self.takes("E") {
            let _ = self.takes("+") || self.takes("-");
            self.digits()?;
        }
        Ok(self.text[start..self.at].to_owned())
    }

    fn digits(&mut self) -> Result<&'a str, FaultAt> {
        let rest = self.rest();
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        self.at += digits.len();
        if digits.is_empty() { self.wanted("a digit") } else { Ok(digits) }
    }

    /// Takes a string, which begins here.
    fn string(&mut self) -> Result<String, FaultAt> {
        let start = self.at;
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                return fault(start, "a string is not closed: the line is cut off");
            };
            string.push_str(&rest[..end]);
            self.at += end;
            match rest.as_bytes()[end] {
                b'"' => {
                    self.at += 1;
                    return Ok(string);
                }
                b'\\' => string.push(self.escape()?),
                _ => {
                    let next = rest[end..].chars().next().unwrap_or(' ');
                    return fault(self.at, format!("a string has {next:?}, which must be escaped"));
                }
            }
        }
    }

    /// Takes an escape sequence.
    fn escape(&mut self) -> Result<char, FaultAt> {
        let start = self.at;
        self.at += 1;
        let next = self.rest().chars().next();
        self.at += next.map_or(0, char::len_utf8);
        Ok(match next {
            Some(same @ ('"' | '\\' | '/')) => same,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let code = self.code(start)?;
                if !(0xd800..0xdc00).contains(&code) {
                    return match char::from_u32(code) {
                        Some(character) => Ok(character),
                        None => fault(start, "a second half of a character is alone"),
                    };
                }
                let low = if self.takes("\\u") { self.code(start)? } else { 0 };
                if !(0xdc00..0xe000).contains(&low) {
                    return fault(start, "a first half of a character is alone");
                }
                let code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
                char::from_u32(code).expect("two halves are a character")
            }
            _ => return fault(start, "there is no such escape"),
        })
    }

    /// Takes four hexadecimal digits.
    fn code(&mut self, start: usize) -> Result<u32, FaultAt> {
        let digits =
            self.rest().get(..4).filter(|four| four.bytes().all(|c| c.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => fault(start, "the escape \\u has four hexadecimal digits"),
        }
    }
}

/// Appends a text as a string.
pub(super) fn push_string(text: &str, to: &mut String) {
    to.push('"');
    let mut rest = text;
    while let Some(end) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        to.push_str(&rest[..end]);
        match rest.as_bytes()[end] {
            b'"' => to.push_str("\\\""),
            b'\\' => to.push_str("\\\\"),
            b'\n' => to.push_str("\\n"),
            b'\r' => to.push_str("\\r"),
            b'\t' => to.push_str("\\t"),
            other => write!(to, "\\u{other:04x}").expect("strings take everything"),
        }
        rest = &rest[end + 1..];
    }
    to.push_str(rest);
    to.push('"');
}
