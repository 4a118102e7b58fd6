//! Black-box histories in EDN, as Jepsen writes them and Elle reads them.
//!
//! A transaction consists of two maps, its invocation and its completion. The maps of all
//! transactions are in the order of their times:
//!
//! ```text
//! {:index 0, :time 10, :type :invoke, :process 0, :f :txn, :value [[:append 3 1] [:r 4 nil]]}
//! {:index 1, :time 25, :type :ok, :process 0, :f :txn, :value [[:append 3 1] [:r 4 [7 8]]]}
//! ```
//!
//! The type of the completion is `:ok`, `:fail` for a transaction without effect, or `:info` if the
//! outcome is unknown. `[:w 3 1]` writes a register, and `[:r 3 1]` or `[:r 3 nil]` reads one. Elle
//! checks such a file as `list-append` or `rw-register`.
//!
//! The reader accepts more than the writer produces: all of EDN, and also Clojure's metadata. Tags,
//! metadata and other keys of the maps are ignored. A list counts as a vector. A form after `#_` is
//! skipped. All maps may be in one vector or list. Maps of processes that are not numbers (a
//! nemesis) are skipped. As in Jepsen, a `:time` that is missing, `nil` or -1 is unknown. If any
//! client's map has an unknown time, the maps' places in the file serve as the times of all maps.
//! An invocation without a completion is a transaction with an unknown outcome.
//!
//! A key may also be a keyword, a text, or a number below 0. Such a key gets a number from 2⁶⁴ − 1
//! downwards, which [`read_named`] returns.
//!
//! If no map has a `:process`, each transaction belongs to a separate session. Then either every
//! transaction has an invocation, and is completed before the next one is invoked; or none has one,
//! and nothing is known of the times at which they began.
//!
//! The reader refuses a file if a key is none of these, or a value is not a whole number from 0.
//! The reader refuses a file, too, if a completion has no invocation while others have one; if some
//! maps of clients have a `:process` and others have none, or a map without a `:process` invokes a
//! transaction before the last transaction has been completed; if a set or the keys of a map
//! contain a form twice, which is not EDN; and if a map has no time while the times of other maps
//! go back.
//!
//! ```
//! use candide_check::black::{ListOp, Outcome};
//! use candide_check::edn;
//!
//! let file = "
//!     {:time 10, :type :invoke, :process 0, :f :txn, :value [[:append 3 1] [:r 4 nil]]}
//!     {:time 12, :type :invoke, :process 1, :f :txn, :value [[:append 4 7]]}
//!     {:time 25, :type :ok, :process 0, :f :txn, :value [[:append 3 1] [:r 4 [7]]]}";
//! let history = edn::read::<ListOp>(file.as_bytes())?;
//! assert_eq!(history.len(), 2);
//! assert_eq!(history[0].operations[1], ListOp::Read { key: 4, values: vec![7] });
//! assert_eq!(history[1].outcome, Outcome::Unknown);
//!
//! let mut again = Vec::new();
//! edn::write(&history, &mut again)?;
//! assert_eq!(edn::read::<ListOp>(again.as_slice())?, history);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod form;
mod operation;

use crate::black::{ListOp, Outcome, RegisterOp, Transaction};
use crate::format::FormatError;
use form::{Form, Forms};
use operation::Micro;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

/// An operation of a transaction in Elle's format.
pub trait Operation: Sized + Micro {}

impl Operation for ListOp {}
impl Operation for RegisterOp {}

/// Writes a history, ordered by time. At equal times invocations come first, so that the file
/// states no order that is unknown.
///
/// Results of reads in transactions that did not commit are omitted, since Elle's format has no
/// place for them.
///
/// # Errors
/// The errors of `out`. Also [`io::ErrorKind::InvalidInput`] if a session begins a transaction no
/// later than its previous transaction completed: Elle would confuse the completions of the two.
pub fn write<O: Operation>(history: &[Transaction<O>], mut out: impl Write) -> io::Result<()> {
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * history.len());
    for (at, transaction) in history.iter().enumerate() {
        events.push((transaction.invoked, false, at));
        events.push((transaction.completed, true, at));
    }
    events.sort_unstable();
    let mut running = HashMap::new();
    let mut line = String::new();
    for (index, &(time, completes, at)) in events.iter().enumerate() {
        let Transaction { session, outcome, operations, .. } = &history[at];
        if completes {
            running.remove(session);
        } else if running.insert(*session, at).is_some() {
            let problem = format!(
                "session {session} begins a transaction at {time}, before or when its last one completes"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let kind = match (completes, outcome) {
            (false, _) => "invoke",
            (true, Outcome::Committed) => "ok",
            (true, Outcome::Aborted) => "fail",
            (true, Outcome::Unknown) => "info",
        };
        line.clear();
        write!(
            line,
            "{{:index {index}, :time {time}, :type :{kind}, :process {session}, :f :txn, :value ["
        )
        .expect("a string takes all");
        for (place, operation) in operations.iter().enumerate() {
            line.push_str(if place == 0 { "" } else { " " });
            operation.print(kind == "ok", &mut line);
        }
        line.push_str("]}\n");
        out.write_all(line.as_bytes())?;
    }
    out.flush()
}

/// Keys that are no numbers from 0, in EDN, each by the number that stands for it in a history.
pub type Names = BTreeMap<u64, String>;

/// Reads a history. Transactions are in the order of their invocations in the file.
///
/// # Errors
/// The errors of `input`, and an error for the first line that is not understood.
pub fn read<O: Operation>(input: impl BufRead) -> Result<Vec<Transaction<O>>, FormatError> {
    read_named(input).map(|(history, _)| history)
}

/// Reads a history as [`read`] does. Returns, too, which keys are no numbers from 0.
///
/// # Errors
/// As [`read`].
pub fn read_named<O: Operation>(
    input: impl BufRead,
) -> Result<(Vec<Transaction<O>>, Names), FormatError> {
    let mut forms = Forms::new(input);
    let mut history: Vec<Transaction<O>> = Vec::new();
    let (mut order, mut keys, mut clients) =
        (Order::default(), Keys::default(), Clients::default());
    while let Some((line, form)) = forms.next()? {
        order.place += 1;
        let wrong = |problem: String| FormatError::at(line, problem);
        let Some(event) = Event::new(&form).map_err(wrong)? else { continue };
        let time = order.note(line, event.time);
        let operations = operations(event.value, event.kind == Kind::Ok, &mut keys).map_err(wrong);
        let transaction = clients.transaction(&event, history.len()).map_err(wrong)?;
        if transaction == history.len() {
            // A transaction that completes without an invocation may have begun at any time.
            let is_invoked = event.kind == Kind::Invoke;
            order.places.push((if is_invoked { order.place } else { 0 }, None));
            history.push(Transaction {
                session: event.process.unwrap_or(transaction as u64),
                invoked: if is_invoked { time } else { 0 },
                completed: time,
                outcome: Outcome::Unknown,
                operations: operations?,
            });
            if is_invoked {
                continue;
            }
        } else if event.kind == Kind::Ok {
            let operations: Vec<O> = operations?;
            let asked = &history[transaction].operations;
            if operations.len() != asked.len()
                || operations.iter().zip(asked).any(|(done, asked)| !done.answers(asked))
            {
                return Err(wrong("completes other operations than were invoked".into()));
            }
            history[transaction].operations = operations;
        }
        let completed = &mut history[transaction];
        if order.untimed.is_none() && time < completed.invoked {
            let invoked = completed.invoked;
            return Err(wrong(format!(
                "completes at {time} a transaction invoked at {invoked}; times should not decrease"
            )));
        }
        completed.completed = time;
        completed.outcome = match event.kind {
            Kind::Ok => Outcome::Committed,
            Kind::Fail => Outcome::Aborted,
            Kind::Info | Kind::Invoke => Outcome::Unknown,
        };
        order.places[transaction].1 = Some(order.place);
    }
    for at in clients.running.into_values() {
        history[at].completed = order.latest;
    }
    order.settle(&mut history)?;
    Ok((history, keys.named()?))
}

/// The clients of the maps read so far, and their running transactions.
#[derive(Default)]
struct Clients {
    /// Whether clients have a `:process`; `None` before the first one.
    have_process: Option<bool>,
    /// Whether transactions have invocations; `None` before the first one.
    invoke: Option<bool>,
    /// For each process with a running transaction, the index of that transaction. Clients without
    /// a process count as one.
    running: HashMap<Option<u64>, usize>,
}

impl Clients {
    /// Returns the index of the transaction that a map belongs to. The index is `new` if the map is
    /// the first one of a transaction.
    fn transaction(&mut self, event: &Event<'_>, new: usize) -> Result<usize, String> {
        let has_process = event.process.is_some();
        if has_process != *self.have_process.get_or_insert(has_process) {
            return Err(match has_process {
                true => "has a :process, which maps before it have not; all or none should",
                false => "has no :process, which maps before it have; all or none should",
            }
            .into());
        }
        let name =
            event.process.map_or("what has no :process".into(), |it| format!("process {it}"));
        let invokes = event.kind == Kind::Invoke;
        let alone = !invokes && !has_process && self.invoke != Some(true);
        if *self.invoke.get_or_insert(!alone) == alone {
            return Err(
                "is an invocation, and maps before it completed what was not invoked; all or none should be invoked"
                    .into(),
            );
        }
        if alone {
            return Ok(new);
        }
        match (invokes, self.running.remove(&event.process)) {
            (true, Some(_)) => {
                Err(format!("{name} invokes a transaction while it has one; it should complete it"))
            }
            (true, None) => {
                self.running.insert(event.process, new);
                Ok(new)
            }
            (false, Some(transaction)) => Ok(transaction),
            (false, None) => Err(format!("{name} completes a transaction that it did not invoke")),
        }
    }
}

/// The keys of a history.
#[derive(Default)]
struct Keys {
    /// The keys that are no numbers from 0, each with the number that it got, from 2⁶⁴ − 1
    /// downwards.
    named: BTreeMap<Form, u64>,
    /// The greatest key that is a number from 0.
    greatest: u64,
}

impl Keys {
    /// Returns the number of the key that `form` denotes.
    fn number(&mut self, form: &Form) -> Result<u64, String> {
        let form = form.bare();
        let key = match form {
            Form::Number(number) => match u64::try_from(*number) {
                Ok(number) => {
                    self.greatest = self.greatest.max(number);
                    return Ok(number);
                }
                Err(_) => Form::Number(*number),
            },
            Form::Keyword(name) => Form::Keyword(name.clone()),
            // The reader keeps halves of surrogate pairs as they are written, like a backslash.
            Form::Text(text) if !text.contains("\\u") => Form::Text(text.clone()),
            other => {
                return Err(format!(
                    "a key is {}, should be a whole number, a keyword or a text without \\u",
                    other.shown()
                ));
            }
        };
        let next = u64::MAX - self.named.len() as u64;
        Ok(*self.named.entry(key).or_insert(next))
    }

    /// Returns the keys that are no numbers from 0, by their numbers.
    fn named(self) -> Result<Names, FormatError> {
        let named: Names =
            self.named.into_iter().map(|(key, number)| (number, key.to_string())).collect();
        match named.first_key_value() {
            Some((&least, _)) if least <= self.greatest => Err(FormatError::at(
                1,
                format!(
                    "has the key {}, and keys that are no numbers; it should be less than {least}",
                    self.greatest
                ),
            )),
            _ => Ok(named),
        }
    }
}

/// The evidence about the order of operations in the maps read so far. Each map is one invocation
/// or one completion.
#[derive(Default)]
struct Order {
    /// The number of maps read so far.
    place: u64,
    /// The latest time so far.
    latest: u64,
    /// The first line without a time; `None` if every line so far has a time.
    untimed: Option<u64>,
    /// The first line whose time is before the time of an earlier line, and both times. `None` if
    /// no time goes back.
    goes_back: Option<(u64, u64, u64)>,
    /// For each transaction, the places of its invocation and of its completion. The second place
    /// is `None` if the transaction has no completion.
    places: Vec<(u64, Option<u64>)>,
}

impl Order {
    /// Records the time of an event. Returns the time, or the latest time so far if `time` is
    /// `None`.
    fn note(&mut self, line: u64, time: Option<u64>) -> u64 {
        match time {
            None => _ = self.untimed.get_or_insert(line),
            Some(time) if time < self.latest => {
                _ = self.goes_back.get_or_insert((line, self.latest, time));
            }
            Some(time) => self.latest = time,
        }
        time.unwrap_or(self.latest)
    }

    /// Replaces all times by places if some times are missing.
    fn settle<O>(self, history: &mut [Transaction<O>]) -> Result<(), FormatError> {
        let Some(untimed) = self.untimed else { return Ok(()) };
        if let Some((line, from, to)) = self.goes_back {
            let problem = format!(
                "has no :time, so that the order of lines should be that of times, but line {line} goes back from {from} to {to}"
            );
            return Err(FormatError::at(untimed, problem));
        }
        for (transaction, (invoked, completed)) in history.iter_mut().zip(self.places) {
            transaction.invoked = invoked;
            transaction.completed = completed.unwrap_or(self.place);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

/// The entries of a map that the reader uses.
struct Event<'a> {
    kind: Kind,
    /// `None` if the map has none.
    process: Option<u64>,
    time: Option<u64>,
    value: &'a Form,
}

impl<'a> Event<'a> {
    /// Returns the contents of a map; `None` if the map does not belong to a client.
    fn new(form: &'a Form) -> Result<Option<Event<'a>>, String> {
        let Form::Map(entries) = form.bare() else {
            return Err(format!(
                "should be a map like {{:type :invoke, :process 0, …}}, is {}",
                form.shown()
            ));
        };
        let (mut kind, mut process, mut time, mut value) = (None, None, &Form::Nil, &Form::Nil);
        for (key, given) in entries {
            let Form::Keyword(name) = key else { continue };
            match name.as_str() {
                "type" => kind = Some(given.bare()),
                "process" => process = Some(given.bare()),
                "time" => time = given.bare(),
                "value" => value = given,
                _ => {}
            }
        }
        let process = match process {
            Some(Form::Keyword(_)) => return Ok(None),
            process => process.map(|process| process.number(":process")).transpose()?,
        };
        let kind = match kind {
            Some(Form::Keyword(name)) if name == "invoke" => Kind::Invoke,
            Some(Form::Keyword(name)) if name == "ok" => Kind::Ok,
            Some(Form::Keyword(name)) if name == "fail" => Kind::Fail,
            Some(Form::Keyword(name)) if name == "info" => Kind::Info,
            other => {
                let found = other.map_or("missing".into(), Form::shown);
                return Err(format!(":type is {found}, should be :invoke, :ok, :fail or :info"));
            }
        };
        let time = match time {
            Form::Nil | Form::Number(-1) => None,
            time => Some(
                time.number(":time")
                    .map_err(|problem| format!("{problem}, or -1 if it is not known"))?,
            ),
        };
        Ok(Some(Event { kind, process, time, value }))
    }
}

fn operations<O: Operation>(value: &Form, done: bool, keys: &mut Keys) -> Result<Vec<O>, String> {
    let Form::Sequence(forms) = value.bare() else {
        return Err(format!(":value is {}, should be a vector of operations", value.shown()));
    };
    let mut operation = |form: &Form| {
        let Form::Sequence(parts) = form.bare() else { return Err(not_an_operation(form)) };
        let [name, key, value] = parts.as_slice() else { return Err(not_an_operation(form)) };
        O::parse(name.bare(), keys.number(key)?, value.bare(), done)
    };
    forms.iter().map(&mut operation).collect()
}

fn not_an_operation(form: &Form) -> String {
    format!("an operation is {}, should be a vector like [:r 3 nil]", form.shown())
}
