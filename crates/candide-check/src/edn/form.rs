//! The part of EDN that histories are written in: one form at a time, from a stream.

use crate::format::FormatError;
use std::io::BufRead;

/// Forms within forms beyond this are no history, and could exhaust the stack.
const DEPTH_MAX: usize = 32;

/// A piece of EDN.
#[derive(Debug, PartialEq, Eq)]
pub enum Form {
    Nil,
    Number(i128),
    /// Without its colon.
    Keyword(String),
    Vector(Vec<Form>),
    /// Keys and values as they come.
    Map(Vec<(Form, Form)>),
    /// Anything that may stand where no history needs to look: text, symbols, fractions, lists, sets.
    Other(String),
}

impl Form {
    /// What it is, for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Form::Nil => "nil".into(),
            Form::Number(number) => number.to_string(),
            Form::Keyword(name) => format!(":{name}"),
            Form::Vector(forms) => match forms.len() {
                0 => "an empty vector".into(),
                1 => "a vector of 1 form".into(),
                n => format!("a vector of {n} forms"),
            },
            Form::Map(_) => "a map".into(),
            Form::Other(text) => text.clone(),
        }
    }
}

/// Reads forms and counts lines.
pub(super) struct Forms<R> {
    input: R,
    line: u64,
    /// Whether all forms are within one vector, as some tools write them.
    enclosed: Option<bool>,
}

impl<R: BufRead> Forms<R> {
    pub(super) fn new(input: R) -> Forms<R> {
        Forms { input, line: 1, enclosed: None }
    }

    /// The next form of the file and the line on which it begins.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Form)>, FormatError> {
        let mut first = self.skip_space()?;
        if self.enclosed.is_none() {
            self.enclosed = Some(first == Some(b'['));
            if first == Some(b'[') {
                self.bump();
                first = self.skip_space()?;
            }
        }
        match (first, self.enclosed) {
            (None, Some(true)) => Err(self.wrong("the file ends before the vector of all its operations does")),
            (None, _) => Ok(None),
            (Some(b']'), Some(true)) => {
                self.bump();
                self.enclosed = Some(false);
                match self.skip_space()? {
                    None => Ok(None),
                    Some(_) => Err(self.wrong("something follows the vector of all operations")),
                }
            }
            _ => {
                let line = self.line;
                Ok(Some((line, self.form(0)?)))
            }
        }
    }

    fn form(&mut self, depth: usize) -> Result<Form, FormatError> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("forms are nested deeper than in any history"));
        }
        match self.skip_space()? {
            None => Err(self.wrong("the file ends within a form")),
            Some(b'[') => {
                self.bump();
                Ok(Form::Vector(self.until(b']', depth)?))
            }
            Some(b'(') => {
                self.bump();
                self.until(b')', depth)?;
                Ok(Form::Other("a list".into()))
            }
            Some(b'{') => {
                self.bump();
                self.map(depth)
            }
            Some(b'#') => {
                self.bump();
                self.dispatch(depth)
            }
            Some(b'"') => {
                self.bump();
                self.text()
            }
            Some(closing @ (b']' | b')' | b'}')) => {
                Err(self.wrong(format!("closes with '{}' what it did not open", closing as char)))
            }
            Some(_) => self.word(),
        }
    }

    fn until(&mut self, closing: u8, depth: usize) -> Result<Vec<Form>, FormatError> {
        let mut forms = Vec::new();
        while self.skip_space()? != Some(closing) {
            forms.push(self.form(depth + 1)?);
        }
        self.bump();
        Ok(forms)
    }

    fn map(&mut self, depth: usize) -> Result<Form, FormatError> {
        let mut forms = self.until(b'}', depth)?.into_iter();
        let mut entries = Vec::with_capacity(forms.len() / 2);
        while let Some(key) = forms.next() {
            let Some(value) = forms.next() else {
                return Err(self.wrong(format!("the key {} of a map has no value", key.shown())));
            };
            entries.push((key, value));
        }
        Ok(Form::Map(entries))
    }

    /// After a `#`: a set, or a tag in front of a form, which stands for the form.
    fn dispatch(&mut self, depth: usize) -> Result<Form, FormatError> {
        if self.peek()? == Some(b'{') {
            self.bump();
            self.until(b'}', depth)?;
            return Ok(Form::Other("a set".into()));
        }
        self.word()?;
        self.form(depth + 1)
    }

    fn text(&mut self) -> Result<Form, FormatError> {
        let mut bytes = vec![b'"'];
        loop {
            match self.take()? {
                None => return Err(self.wrong("the file ends within a text")),
                Some(b'\\') => {
                    bytes.push(b'\\');
                    bytes.extend(self.take()?);
                }
                Some(byte) => {
                    bytes.push(byte);
                    if byte == b'"' {
                        return Ok(Form::Other(String::from_utf8_lossy(&bytes).into_owned()));
                    }
                }
            }
        }
    }

    fn word(&mut self) -> Result<Form, FormatError> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.peek()? {
            if byte.is_ascii_whitespace() || b",;\"[](){}".contains(&byte) {
                break;
            }
            bytes.push(byte);
            self.bump();
        }
        let word = String::from_utf8_lossy(&bytes).into_owned();
        if word == "nil" {
            return Ok(Form::Nil);
        }
        if let Some(name) = word.strip_prefix(':') {
            return Ok(Form::Keyword(name.into()));
        }
        let number = word.strip_suffix('N').unwrap_or(&word).parse();
        Ok(number.map_or(Form::Other(word), Form::Number))
    }

    /// The first byte that is no space, comma or comment.
    fn skip_space(&mut self) -> Result<Option<u8>, FormatError> {
        while let Some(byte) = self.peek()? {
            match byte {
                b';' => while !matches!(self.take()?, None | Some(b'\n')) {},
                b',' => self.bump(),
                byte if byte.is_ascii_whitespace() => self.bump(),
                byte => return Ok(Some(byte)),
            }
        }
        Ok(None)
    }

    fn take(&mut self) -> Result<Option<u8>, FormatError> {
        let byte = self.peek()?;
        if byte.is_some() {
            self.bump();
        }
        Ok(byte)
    }

    fn peek(&mut self) -> Result<Option<u8>, FormatError> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    /// Goes past the byte that was peeked at, and so is in the buffer.
    fn bump(&mut self) {
        let newline = self.input.fill_buf().is_ok_and(|buffer| buffer.first() == Some(&b'\n'));
        self.line += u64::from(newline);
        self.input.consume(1);
    }

    fn wrong(&self, problem: impl Into<String>) -> FormatError {
        FormatError::at(self.line, problem)
    }
}
