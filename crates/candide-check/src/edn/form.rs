//! A reader of EDN, which reads one form at a time from a stream. The reader accepts everything in
//! the specification, and the extensions that Clojure writes (metadata, maps with a namespace,
//! `##Inf`).
//!
//! No crate was found that reads all of this and reports the position of an error: `clojure-reader`
//! 0.7 has no metadata and no `\u0041`, `edn-format` 3.3 and `edn-rs` 0.19 have no metadata and no
//! positions, and all of them need the whole text in memory.

use crate::format::FormatError;
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use std::fmt;
use std::io::BufRead;

/// The greatest depth of nested forms. No history nests deeper, and deeper nesting could exhaust
/// the stack.
const DEPTH_MAX: usize = 32;

/// A piece of EDN. Forms are equal if EDN defines them as equal: a list equals a vector of the same
/// forms, and sets and maps are equal in any order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    Nil,
    Number(i128),
    /// A keyword, without its colon.
    Keyword(String),
    /// A text, without quotation marks and escapes.
    Text(String),
    /// A vector or a list.
    Sequence(Vec<Form>),
    Map(BTreeMap<Form, Form>),
    Set(BTreeSet<Form>),
    /// A tag, and the form after it.
    Tagged(String, Box<Form>),
    /// A form that a history can contain only in parts that are ignored: a symbol, a character or a
    /// fraction.
    Other(String),
}

impl Form {
    /// Returns the form without its tags.
    pub(super) fn bare(&self) -> &Form {
        match self {
            Form::Tagged(_, form) => form.bare(),
            form => form,
        }
    }

    /// Returns the number; it must be a number that a history may contain.
    pub(super) fn number(&self, what: &str) -> Result<u64, String> {
        match self.bare() {
            Form::Number(number) => u64::try_from(*number).ok(),
            _ => None,
        }
        .ok_or_else(|| format!("{what} is {}, should be a whole number from 0", self.shown()))
    }

    /// Returns the form as text for messages. Long text is cut off.
    pub(super) fn shown(&self) -> String {
        const CHARACTERS_MAX: usize = 60;
        let mut text = self.to_string();
        if let Some((cut, _)) = text.char_indices().nth(CHARACTERS_MAX) {
            text.truncate(cut);
            text.push('…');
        }
        text
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut separate =
            |f: &mut fmt::Formatter<'_>| f.write_str(std::mem::replace(&mut separator, " "));
        match self {
            Form::Nil => f.write_str("nil"),
            Form::Number(number) => number.fmt(f),
            Form::Keyword(name) => write!(f, ":{name}"),
            Form::Text(text) => write!(f, "{text:?}"),
            Form::Tagged(tag, form) => write!(f, "#{tag} {form}"),
            Form::Other(text) => f.write_str(text),
            Form::Sequence(forms) => {
                f.write_str("[")?;
                forms.iter().try_for_each(|form| separate(f).and_then(|()| form.fmt(f)))?;
                f.write_str("]")
            }
            Form::Set(forms) => {
                f.write_str("#{")?;
                forms.iter().try_for_each(|form| separate(f).and_then(|()| form.fmt(f)))?;
                f.write_str("}")
            }
            Form::Map(entries) => {
                f.write_str("{")?;
                entries.iter().try_for_each(|(key, value)| {
                    separate(f)?;
                    write!(f, "{key} {value}")
                })?;
                f.write_str("}")
            }
        }
    }
}

/// The position in the input: the line and the character of the next byte, from 1.
#[derive(Debug, Clone, Copy)]
struct Place {
    line: u64,
    column: u64,
}

/// The position of a form, and the form's first byte. `first` is `None` at the end of the input. If
/// the first byte is `#`, it has been consumed.
#[derive(Debug, Clone, Copy)]
struct Start {
    first: Option<u8>,
    place: Place,
}

impl Start {
    /// Returns whether no form begins at this position.
    fn is_end(self) -> bool {
        matches!(self.first, None | Some(b']' | b')' | b'}'))
    }
}

/// Reads forms, and keeps track of the position.
pub(super) struct Forms<R> {
    input: R,
    place: Place,
    /// The bracket that closes the vector or the list which contains all forms, as some tools write
    /// them; `Some(None)` if none does, and `None` before the first form has been read.
    enclosed: Option<Option<u8>>,
}

impl<R: BufRead> Forms<R> {
    pub(super) fn new(input: R) -> Forms<R> {
        Forms { input, place: Place { line: 1, column: 1 }, enclosed: None }
    }

    /// Returns the next form of the file and the line on which it begins.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Form)>, FormatError> {
        let mut start = self.start(0)?;
        if self.enclosed.is_none() {
            let mut has_metadata = false;
            while start.first == Some(b'^') {
                self.metadata(0)?;
                has_metadata = true;
                start = self.start(0)?;
            }
            if has_metadata && start.is_end() {
                return Err(self.wrong("metadata should have a form after it"));
            }
            let closing = match start.first {
                Some(b'[') => Some(b']'),
                Some(b'(') => Some(b')'),
                _ => None,
            };
            self.enclosed = Some(closing);
            if closing.is_some() {
                self.bump();
                start = self.start(0)?;
            }
        }
        let closing = self.enclosed.flatten();
        match start.first {
            None if closing.is_some() => Err(self
                .wrong("the file ends before the vector or the list of all its operations does")),
            None => Ok(None),
            first if first == closing => {
                self.bump();
                self.enclosed = Some(None);
                match self.start(0)?.first {
                    None => Ok(None),
                    Some(_) => {
                        Err(self
                            .wrong("something follows the vector or the list of all operations"))
                    }
                }
            }
            _ => Ok(Some((start.place.line, self.form(start, 0)?))),
        }
    }

    /// Skips spaces, comments and discarded forms up to the start of a form at nesting depth
    /// `depth`.
    fn start(&mut self, depth: usize) -> Result<Start, FormatError> {
        let mut to_discard = 0_u64;
        loop {
            let first = self.skip_space()?;
            let start = Start { first, place: self.place };
            if first == Some(b'#') {
                self.bump();
                if self.peek()? == Some(b'_') {
                    self.bump();
                    to_discard += 1;
                    continue;
                }
            }
            if to_discard == 0 {
                return Ok(start);
            }
            if start.is_end() {
                return Err(self.wrong("a #_ should have a form after it, which it discards"));
            }
            self.form(start, depth)?;
            to_discard -= 1;
        }
    }

    fn form(&mut self, start: Start, depth: usize) -> Result<Form, FormatError> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("forms are nested deeper than in any history"));
        }
        let Some(first) = start.first else {
            return Err(self.wrong("the file ends within a form"));
        };
        match first {
            b'#' => return self.dispatch(depth),
            b'^' => {
                self.metadata(depth)?;
                return self.after("metadata", depth);
            }
            b']' | b')' | b'}' => {
                return Err(self.wrong(format!("has a '{}' that closes nothing", first as char)));
            }
            b'[' | b'(' | b'{' | b'"' | b'\\' => self.bump(),
            _ => {
                let word = self.word(Vec::new())?;
                return meaning(&word).map_err(|problem| self.wrong(problem));
            }
        }
        match first {
            b'[' => Ok(Form::Sequence(self.sequence(b']', depth)?)),
            b'(' => Ok(Form::Sequence(self.sequence(b')', depth)?)),
            b'{' => self.map(None, depth),
            b'"' => self.text(),
            _ => self.character(),
        }
    }

    /// Returns the next form, which has to follow `what` (a tag, for example).
    fn after(&mut self, what: &str, depth: usize) -> Result<Form, FormatError> {
        let start = self.start(depth + 1)?;
        if start.is_end() {
            return Err(self.wrong(format!("{what} should have a form after it")));
        }
        self.form(start, depth + 1)
    }

    /// Reads and drops metadata, which carries no information about a history.
    fn metadata(&mut self, depth: usize) -> Result<(), FormatError> {
        self.bump();
        match self.after("a ^", depth)? {
            Form::Map(_)
            | Form::Keyword(_)
            | Form::Text(_)
            | Form::Other(_)
            | Form::Sequence(_) => Ok(()),
            other => {
                Err(self
                    .wrong(format!("metadata is {}, should be a map or a keyword", other.shown())))
            }
        }
    }

    /// Reads a form that begins with `#`. The `#` has been consumed and does not discard a form.
    fn dispatch(&mut self, depth: usize) -> Result<Form, FormatError> {
        match self.peek()? {
            Some(b'{') => {
                self.bump();
                self.set(depth)
            }
            Some(b'^') => {
                self.metadata(depth)?;
                self.after("metadata", depth)
            }
            Some(b'#') => {
                self.bump();
                let word = self.word(Vec::new())?;
                match word.as_str() {
                    "Inf" | "-Inf" | "NaN" => Ok(Form::Other(format!("##{word}"))),
                    _ => Err(self.wrong(format!(
                        "##{word} is not a number; ##Inf, ##-Inf and ##NaN are numbers"
                    ))),
                }
            }
            Some(b':') => {
                let word = self.word(Vec::new())?;
                match meaning(&word) {
                    Ok(Form::Keyword(namespace)) if self.skip_space()? == Some(b'{') => {
                        self.bump();
                        self.map(Some(&namespace), depth)
                    }
                    _ => Err(self
                        .wrong(format!("#{word} should be a namespace and have a map after it"))),
                }
            }
            _ => {
                let tag = self.word(Vec::new())?;
                if !is_symbol(&tag) || !tag.starts_with(char::is_alphabetic) {
                    return Err(self.wrong(format!(
                        "#{tag} means nothing in EDN; a tag begins with a letter"
                    )));
                }
                let form = self.after(&format!("the tag #{tag}"), depth)?;
                Ok(Form::Tagged(tag, Box::new(form)))
            }
        }
    }

    fn sequence(&mut self, closing: u8, depth: usize) -> Result<Vec<Form>, FormatError> {
        let mut forms = Vec::new();
        while let Some((_, form)) = self.until(closing, depth)? {
            forms.push(form);
        }
        Ok(forms)
    }

    fn set(&mut self, depth: usize) -> Result<Form, FormatError> {
        let mut forms = BTreeSet::new();
        while let Some((place, form)) = self.until(b'}', depth)? {
            if forms.contains(&form) {
                return Err(twice("a set", &form, place));
            }
            forms.insert(form);
        }
        Ok(Form::Set(forms))
    }

    /// Reads a map. Keywords without a namespace of their own get `namespace`.
    fn map(&mut self, namespace: Option<&str>, depth: usize) -> Result<Form, FormatError> {
        let mut entries = BTreeMap::new();
        while let Some((place, key)) = self.until(b'}', depth)? {
            let key = match (key, namespace) {
                (Form::Keyword(name), Some(namespace)) => {
                    Form::Keyword(match name.split_once('/') {
                        None => format!("{namespace}/{name}"),
                        Some(("_", name)) => name.to_string(),
                        Some(_) => name,
                    })
                }
                (key, _) => key,
            };
            let Some((_, value)) = self.until(b'}', depth)? else {
                return Err(self.wrong(format!("the key {} of a map has no value", key.shown())));
            };
            match entries.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(value)),
                Entry::Occupied(entry) => return Err(twice("a map", entry.key(), place)),
            }
        }
        Ok(Form::Map(entries))
    }

    /// Returns the next form before the bracket `closing`, and the place where the form begins. If
    /// the bracket comes next, consumes it and returns `None`.
    fn until(&mut self, closing: u8, depth: usize) -> Result<Option<(Place, Form)>, FormatError> {
        let start = self.start(depth + 1)?;
        if start.first == Some(closing) {
            self.bump();
            return Ok(None);
        }
        Ok(Some((start.place, self.form(start, depth + 1)?)))
    }

    /// Reads a text whose quotation mark has been consumed.
    fn text(&mut self) -> Result<Form, FormatError> {
        let mut bytes = Vec::new();
        loop {
            match self.take()? {
                None => return Err(self.wrong("the file ends within a text")),
                Some(b'"') => return Ok(Form::Text(self.utf8(bytes)?)),
                Some(b'\\') => self.escape(&mut bytes)?,
                Some(byte) => bytes.push(byte),
            }
        }
    }

    /// Reads an escape of a text. Its backslash has been consumed.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        let Some(byte) = self.take()? else {
            return Err(self.wrong("the file ends within a text"));
        };
        bytes.push(match byte {
            b't' => b'\t',
            b'r' => b'\r',
            b'n' => b'\n',
            b'b' => 8,
            b'f' => 12,
            b'\\' | b'"' => byte,
            b'u' => {
                let mut code = String::new();
                while code.len() < 4
                    && let Some(digit) = self.peek()?
                    && digit.is_ascii_hexdigit()
                {
                    code.push(digit as char);
                    self.bump();
                }
                if code.len() < 4 {
                    return Err(self.wrong("the escape \\u of a text should have four hexadecimal digits"));
                }
                match unicode(&code) {
                    Some(character) => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
                    // The code is half of a surrogate pair, as in Java's strings. The escape is
                    // kept as written.
                    None => bytes.extend(format!("\\u{code}").bytes()),
                }
                return Ok(());
            }
            _ => {
                let problem = "a text has an escape that EDN has not; it has \\t, \\r, \\n, \\\\, \\\" and \\u0041";
                return Err(self.wrong(problem));
            }
        });
        Ok(())
    }

    /// Reads a character literal whose backslash has been consumed.
    fn character(&mut self) -> Result<Form, FormatError> {
        let first = match self.take()? {
            None => return Err(self.wrong("the file ends within a character")),
            Some(byte) if is_space(byte) && byte != b',' => {
                return Err(self
                    .wrong("a backslash should be followed by a character, as in \\a or \\space"));
            }
            Some(byte) => byte,
        };
        let word = self.word(vec![first])?;
        let mut characters = word.chars();
        let character = match (word.as_str(), characters.next(), characters.as_str()) {
            (_, Some(character), "") => Some(character),
            ("newline", ..) => Some('\n'),
            ("return", ..) => Some('\r'),
            ("space", ..) => Some(' '),
            ("tab", ..) => Some('\t'),
            ("backspace", ..) => Some('\u{8}'),
            ("formfeed", ..) => Some('\u{c}'),
            (_, Some('u'), code) if code.len() == 4 => unicode(code),
            _ => None,
        };
        match character {
            Some(character) => Ok(Form::Other(format!("\\{character}"))),
            None => Err(self.wrong(format!(
                "\\{word} is no character; those are as in \\a, \\newline or \\u0041"
            ))),
        }
    }

    /// Returns the word that begins with `bytes`, which have been consumed already.
    fn word(&mut self, mut bytes: Vec<u8>) -> Result<String, FormatError> {
        loop {
            let buffer = self.input.fill_buf()?;
            let end =
                buffer.iter().position(|&byte| is_space(byte) || b";\"[](){}\\^".contains(&byte));
            let part = &buffer[..end.unwrap_or(buffer.len())];
            bytes.extend(part);
            self.place.column +=
                part.iter().filter(|&&byte| begins_a_character(byte)).count() as u64;
            let (length, is_over) = (part.len(), end.is_some() || buffer.is_empty());
            self.input.consume(length);
            if is_over {
                return self.utf8(bytes);
            }
        }
    }

    fn utf8(&self, bytes: Vec<u8>) -> Result<String, FormatError> {
        String::from_utf8(bytes).map_err(|_| self.wrong("is not text in UTF-8"))
    }

    /// Returns the next byte that is not a space, a comma or part of a comment.
    fn skip_space(&mut self) -> Result<Option<u8>, FormatError> {
        while let Some(byte) = self.peek()? {
            match byte {
                b';' => while !matches!(self.take()?, None | Some(b'\n')) {},
                byte if is_space(byte) => self.bump(),
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

    /// Consumes the byte that was peeked at. That byte is in the buffer.
    fn bump(&mut self) {
        match self.input.fill_buf().ok().and_then(|buffer| buffer.first().copied()) {
            Some(b'\n') => self.place = Place { line: self.place.line + 1, column: 1 },
            Some(byte) => self.place.column += u64::from(begins_a_character(byte)),
            None => {}
        }
        self.input.consume(1);
    }

    fn wrong(&self, problem: impl Into<String>) -> FormatError {
        FormatError::at(self.place.line, problem)
    }
}

/// Returns the error that a map or a set contains `form` twice. The second occurrence begins at
/// `place`.
fn twice(what: &str, form: &Form, Place { line, column }: Place) -> FormatError {
    let form = form.shown();
    FormatError::at(
        line,
        format!("{what} has {form} twice, the second at column {column}; it should have it once"),
    )
}

/// Returns whether a byte is the first of a character in UTF-8.
fn begins_a_character(byte: u8) -> bool {
    !(0x80..0xc0).contains(&byte)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | b',')
}

/// Returns the character whose number is `code`, four hexadecimal digits; `None` if no character
/// has this number.
fn unicode(code: &str) -> Option<char> {
    let is_hexadecimal = code.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(code, 16).ok().filter(|_| is_hexadecimal).and_then(char::from_u32)
}

/// Returns the form that `word` denotes.
fn meaning(word: &str) -> Result<Form, String> {
    if word == "nil" {
        return Ok(Form::Nil);
    }
    if let Some(name) = word.strip_prefix(':') {
        let is_keyword =
            !name.is_empty() && !name.starts_with(':') && name.chars().all(is_of_symbols);
        return is_keyword
            .then(|| Form::Keyword(name.into()))
            .ok_or_else(|| format!("{word} is no keyword of EDN"));
    }
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    if digits.starts_with(|first: char| first.is_ascii_digit()) {
        return number(word, digits).ok_or_else(|| format!("{word} is no number of EDN"));
    }
    is_symbol(word)
        .then(|| Form::Other(word.into()))
        .ok_or_else(|| format!("{word} means nothing in EDN"))
}

/// Returns the number that `word` denotes; `None` if it denotes no number. `digits` is the word
/// without its sign.
fn number(word: &str, digits: &str) -> Option<Form> {
    let all_digits =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let sign = if word.starts_with('-') { "-" } else { "" };
    let integer = digits.strip_suffix('N').unwrap_or(digits);
    if let Some(digits) = integer.strip_prefix("0x").or_else(|| integer.strip_prefix("0X")) {
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = i128::from_str_radix(&format!("{sign}{digits}"), 16).ok();
        return number.filter(|_| is_hexadecimal).map(Form::Number);
    }
    if all_digits(integer) {
        // Some readers interpret a number with a leading zero as octal, and others as decimal.
        let is_clear = integer.len() == 1 || !integer.starts_with('0');
        let number = word.strip_suffix('N').unwrap_or(word).parse();
        return is_clear.then(|| {
            number.map_or_else(|_| Form::Other(format!("{sign}{integer}")), Form::Number)
        });
    }
    if let Some((above, below)) = digits.split_once('/') {
        return (all_digits(above) && all_digits(below))
            .then(|| Form::Other(format!("{sign}{digits}")));
    }
    let (fraction, is_exact) =
        digits.strip_suffix('M').map_or((digits, false), |fraction| (fraction, true));
    let value: f64 = fraction.parse().ok()?;
    Some(Form::Other(if is_exact { format!("{sign}{digits}") } else { format!("{sign}{value:?}") }))
}

/// Returns whether a word is a symbol. `true` and `false` count as symbols.
fn is_symbol(word: &str) -> bool {
    !word.starts_with(|first: char| first.is_ascii_digit() || ":#'".contains(first))
        && !word.is_empty()
        && word.chars().all(is_of_symbols)
}

/// Returns whether symbols and keywords may contain this character. Clojure accepts more characters
/// than EDN specifies, and so does this function.
fn is_of_symbols(character: char) -> bool {
    match character.is_ascii() {
        true => character.is_ascii_alphanumeric() || ".*+!-_?$%&=<>/:#'|".contains(character),
        false => !character.is_whitespace() && !character.is_control(),
    }
}
