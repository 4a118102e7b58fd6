//! Histories as files of JSON lines: a header, then one event or transaction per line.
//!
//! `docs/history-format.md` describes every field. Reading and writing both stream: they keep at
//! most one line in memory.
//!
//! ```
//! use candide_check::json::{Header, Reader, Writer};
//! use candide_check::{Event, Forgotten};
//!
//! let header = Header { protocol: "occ".into(), seed: 7, text: "four sessions on three keys".into() };
//! let event = Event::Forgotten(Forgotten { table: 0, key: [7].into(), version: 19, at: 9 });
//!
//! let mut writer = Writer::new(Vec::new(), &header)?;
//! writer.write(&event)?;
//! let file = writer.finish()?;
//!
//! let reader = Reader::<_, Event>::new(file.as_slice())?;
//! assert_eq!(reader.header(), &header);
//! assert_eq!(reader.collect::<Result<Vec<_>, _>>()?, [event]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::black::{self, ListOp, RegisterOp};
use crate::format::FormatError;
use crate::history::{Access, Event, Key};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::marker::PhantomData;

/// The name of the format in the first line.
const FORMAT: &str = "candide-history";
/// The version of the format. The version is raised when the format changes so that older readers
/// would misunderstand files.
const VERSION: u64 = 1;

/// The facts about the run that produced a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The protocol or system that ran.
    pub protocol: String,
    /// The seed with which the run can be repeated; 0 if the run has no seed.
    pub seed: u64,
    /// Other facts, for people that read the file.
    pub text: String,
}

/// A type of line after the header. Each file has lines of one type.
pub trait Line: Serialize + DeserializeOwned + sealed::Checked {
    /// The name of the type in the header.
    const KIND: &'static str;
}

impl Line for Event {
    const KIND: &'static str = "versions";
}

impl Line for black::Transaction<ListOp> {
    const KIND: &'static str = "lists";
}

impl Line for black::Transaction<RegisterOp> {
    const KIND: &'static str = "registers";
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstLine {
    format: String,
    version: u64,
    kind: String,
    protocol: String,
    seed: u64,
    text: String,
}

/// The fields of the first line that every version of the format has.
#[derive(Deserialize)]
struct Recognized {
    format: String,
    version: u64,
}

/// Writes a history.
#[derive(Debug)]
pub struct Writer<W, L> {
    out: W,
    lines: PhantomData<fn(&L)>,
}

impl<W: Write, L: Line> Writer<W, L> {
    /// Creates a writer and writes the header. Every line takes a few calls of `write`, so `out`
    /// should be buffered.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(out: W, header: &Header) -> io::Result<Writer<W, L>> {
        let mut writer = Writer { out, lines: PhantomData };
        writer.line(&FirstLine {
            format: FORMAT.into(),
            version: VERSION,
            kind: L::KIND.into(),
            protocol: header.protocol.clone(),
            seed: header.seed,
            text: header.text.clone(),
        })?;
        Ok(writer)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The errors of `out`. [`io::ErrorKind::InvalidInput`] if a reader would refuse the line; then
    /// nothing is written.
    pub fn write(&mut self, line: &L) -> io::Result<()> {
        line.checked().map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        self.line(line)
    }

    /// Flushes and returns the underlying writer.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}

/// A reader of a history. The reader is an iterator over the lines, which ends at the first damaged
/// line.
#[derive(Debug)]
pub struct Reader<R, L> {
    input: Numbered<R>,
    header: Header,
    ended: bool,
    lines: PhantomData<fn() -> L>,
}

impl<R: BufRead, L: Line> Reader<R, L> {
    /// Creates a reader and reads the header.
    ///
    /// # Errors
    /// The errors of `input`. Also an error if the file is not a history, has a later version of
    /// the format, or has lines of another type.
    pub fn new(input: R) -> Result<Reader<R, L>, FormatError> {
        let (first, input) = first_line(input)?;
        if first.kind != L::KIND {
            let problem =
                format!("holds a history of kind \"{}\", wanted is \"{}\"", first.kind, L::KIND);
            return Err(FormatError::at(1, problem));
        }
        Ok(Reader::after(first, input))
    }

    fn after(first: FirstLine, input: Numbered<R>) -> Reader<R, L> {
        let header = Header { protocol: first.protocol, seed: first.seed, text: first.text };
        Reader { input, header, ended: false, lines: PhantomData }
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

impl<R: BufRead, L: Line> Iterator for Reader<R, L> {
    type Item = Result<L, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let line = self.input.next_as::<L>().transpose()?;
        let checked = line.and_then(|line| match line.checked() {
            Ok(()) => Ok(line),
            Err(problem) => Err(FormatError::at(self.input.line, problem)),
        });
        self.ended = checked.is_err();
        Some(checked)
    }
}

/// A reader of a file of any type.
#[derive(Debug)]
pub enum AnyReader<R> {
    /// A history with versions, for [`Checker`](crate::Checker).
    Versions(Reader<R, Event>),
    /// A black-box history of lists.
    Lists(Reader<R, black::Transaction<ListOp>>),
    /// A black-box history of registers.
    Registers(Reader<R, black::Transaction<RegisterOp>>),
}

impl<R: BufRead> AnyReader<R> {
    /// Creates a reader of the type that the header names.
    ///
    /// # Errors
    /// The errors of [`Reader::new`], except that the type of lines may be any.
    pub fn new(input: R) -> Result<AnyReader<R>, FormatError> {
        let (first, input) = first_line(input)?;
        match first.kind.as_str() {
            "versions" => Ok(AnyReader::Versions(Reader::after(first, input))),
            "lists" => Ok(AnyReader::Lists(Reader::after(first, input))),
            "registers" => Ok(AnyReader::Registers(Reader::after(first, input))),
            kind => {
                let problem = format!(
                    "holds a history of kind \"{kind}\"; known are \"versions\", \"lists\" and \"registers\""
                );
                Err(FormatError::at(1, problem))
            }
        }
    }
}

fn first_line<R: BufRead>(input: R) -> Result<(FirstLine, Numbered<R>), FormatError> {
    let mut input = Numbered { input, text: String::new(), line: 0 };
    if !input.advance()? {
        return Err(FormatError::at(1, "the file is empty; the first line should be a header"));
    }
    let recognized: Recognized = input.parsed()?;
    if recognized.format != FORMAT {
        let problem = format!("the format is \"{}\", should be \"{FORMAT}\"", recognized.format);
        return Err(FormatError::at(1, problem));
    }
    if recognized.version != VERSION {
        let problem = format!(
            "the format's version is {}, this program reads version {VERSION}",
            recognized.version
        );
        return Err(FormatError::at(1, problem));
    }
    Ok((input.parsed()?, input))
}

/// The lines of a file, with their numbers.
#[derive(Debug)]
struct Numbered<R> {
    input: R,
    text: String,
    line: u64,
}

impl<R: BufRead> Numbered<R> {
    fn next_as<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FormatError> {
        Ok(if self.advance()? { Some(self.parsed()?) } else { None })
    }

    /// Advances to the next line. Returns `false` at the end of the file.
    fn advance(&mut self) -> Result<bool, FormatError> {
        self.text.clear();
        let length = self.input.read_line(&mut self.text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => FormatError::at(self.line + 1, "is not text in UTF-8"),
            _ => FormatError::Io(error),
        })?;
        if length == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.text.pop() != Some('\n') {
            return Err(FormatError::at(
                self.line,
                "the file ends within this line; every line should end in a newline",
            ));
        }
        Ok(true)
    }

    fn parsed<T: DeserializeOwned>(&self) -> Result<T, FormatError> {
        // The parser sees one line at a time, so its own line number is always 1.
        serde_json::from_str(&self.text).map_err(|error| {
            let column = error.column();
            let problem = error.to_string();
            let problem =
                problem.strip_suffix(&format!(" at line 1 column {column}")).unwrap_or(&problem);
            FormatError::at(self.line, format!("{problem}, at column {column}"))
        })
    }
}

/// Requirements on a line beyond the types of its fields.
mod sealed {
    pub trait Checked {
        /// Checks the line. An error names the fault of the line and the expected form.
        fn checked(&self) -> Result<(), String>;
    }
}

impl sealed::Checked for Event {
    fn checked(&self) -> Result<(), String> {
        match self {
            Event::Transaction(transaction) => {
                if transaction.begun >= transaction.ended {
                    let (begun, ended) = (transaction.begun, transaction.ended);
                    return Err(format!(
                        "begun at {begun}, ended at {ended}; it should end after it began"
                    ));
                }
                if transaction.ended == u64::MAX {
                    return Err(format!(
                        "ended at {}; a transaction should end before that",
                        u64::MAX
                    ));
                }
                if !transaction.committed && !transaction.writes.is_empty() {
                    return Err(
                        "has writes but did not commit; the writes of such a transaction should be left out".into()
                    );
                }
                for read in &transaction.reads {
                    match read.version {
                        Some(0) => {
                            return Err(format!(
                                "reads {} in version 0; versions count from 1",
                                unit(read)
                            ));
                        }
                        None if read.present => {
                            return Err(format!(
                                "reads {} without a version but with a row; a row has a version",
                                unit(read)
                            ));
                        }
                        _ => {}
                    }
                }
                let mut written = HashSet::new();
                for write in &transaction.writes {
                    if write.version.unwrap_or(0) == 0 {
                        return Err(format!(
                            "writes {} without a version; a write has one, from 1",
                            unit(write)
                        ));
                    }
                    if !written.insert((write.table, &write.key, write.group)) {
                        return Err(format!(
                            "writes {} twice; only the last write should be there",
                            unit(write)
                        ));
                    }
                }
                Ok(())
            }
            Event::Forgotten(forgotten) if forgotten.version == 0 => Err(format!(
                "forgets version 0 of table {} key {:?}; versions count from 1",
                forgotten.table, forgotten.key
            )),
            Event::Forgotten(_) => Ok(()),
        }
    }
}

fn unit(access: &Access) -> String {
    format!("table {} key {:?} group {}", access.table, access.key, access.group)
}

impl<O> sealed::Checked for black::Transaction<O> {
    fn checked(&self) -> Result<(), String> {
        let (invoked, completed) = (self.invoked, self.completed);
        if invoked > completed {
            return Err(format!(
                "invoked at {invoked}, completed at {completed}; it should complete after it was invoked"
            ));
        }
        Ok(())
    }
}

/// The JSON form of the ends of ranges: `{"included":[…]}`, `{"excluded":[…]}` or `"unbounded"`.
pub(crate) mod bound {
    use super::Key;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ops::Bound;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum End<K> {
        Included(K),
        Excluded(K),
        Unbounded,
    }

    pub(crate) fn serialize<S: Serializer>(
        bound: &Bound<Key>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bound {
            Bound::Included(key) => End::Included(key),
            Bound::Excluded(key) => End::Excluded(key),
            Bound::Unbounded => End::Unbounded,
        }
        .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bound<Key>, D::Error> {
        Ok(match End::<Key>::deserialize(deserializer)? {
            End::Included(key) => Bound::Included(key),
            End::Excluded(key) => Bound::Excluded(key),
            End::Unbounded => Bound::Unbounded,
        })
    }
}
