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
//! skipped. All maps may be in one vector. Maps of processes that are not numbers (a nemesis) are
//! skipped. As in Jepsen, a `:time` that is missing, `nil` or -1 is unknown. If any client's map
//! has an unknown time, the maps' places in the file serve as the times of all maps. An invocation
//! without a completion is a transaction with an unknown outcome.
//!
//! The reader refuses a file if a key or a value is not a whole number from 0; if a completion has
//! no invocation; if a set or the keys of a map contain a form twice, which is not EDN; and if a
//! map has no time while the times of other maps go back.
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
use std::collections::HashMap;
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

/// Reads a history. Transactions are in the order of their invocations in the file.
///
/// # Errors
/// The errors of `input`, and an error for the first line that is not understood.
pub fn read<O: Operation>(input: impl BufRead) -> Result<Vec<Transaction<O>>, FormatError> {
    let mut forms = Forms::new(input);
    let mut history: Vec<Transaction<O>> = Vec::new();
    let mut order = Order::default();
    let mut running: HashMap<u64, usize> = HashMap::new();
    while let Some((line, form)) = forms.next()? {
        order.place += 1;
        let wrong = |problem: String| FormatError::at(line, problem);
        let Some(event) = Event::new(&form).map_err(wrong)? else { continue };
        let time = order.note(line, event.time);
        if event.kind == Kind::Invoke {
            let operations = operations(event.value, false).map_err(wrong)?;
            let session = event.process;
            if running.insert(session, history.len()).is_some() {
                return Err(wrong(format!(
                    "process {session} invokes a transaction while it has one; it should complete it"
                )));
            }
            let outcome = Outcome::Unknown;
            order.places.push((order.place, None));
            history.push(Transaction {
                session,
                invoked: time,
                completed: time,
                outcome,
                operations,
            });
            continue;
        }
        let Some(at) = running.remove(&event.process) else {
            return Err(wrong(format!(
                "process {} completes a transaction that it did not invoke",
                event.process
            )));
        };
        let transaction = &mut history[at];
        if order.untimed.is_none() && time < transaction.invoked {
            let invoked = transaction.invoked;
            return Err(wrong(format!(
                "completes at {time} what was invoked at {invoked}; times should not go back"
            )));
        }
        transaction.completed = time;
        order.places[at].1 = Some(order.place);
        match event.kind {
            Kind::Ok => {
                let done: Vec<O> = operations(event.value, true).map_err(wrong)?;
                if done.len() != transaction.operations.len()
                    || done
                        .iter()
                        .zip(&transaction.operations)
                        .any(|(done, asked)| !done.answers(asked))
                {
                    return Err(wrong("completes other operations than were invoked".into()));
                }
                transaction.outcome = Outcome::Committed;
                transaction.operations = done;
            }
            Kind::Fail => transaction.outcome = Outcome::Aborted,
            Kind::Info | Kind::Invoke => {}
        }
    }
    for at in running.into_values() {
        history[at].completed = order.latest;
    }
    order.settle(&mut history)?;
    Ok(history)
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

/// The contents of one map that the reader uses.
struct Event<'a> {
    kind: Kind,
    process: u64,
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
            None => return Err("has no :process".into()),
            Some(Form::Keyword(_)) => return Ok(None),
            Some(process) => number(process, ":process")?,
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
                number(time, ":time")
                    .map_err(|problem| format!("{problem}, or -1 if it is not known"))?,
            ),
        };
        Ok(Some(Event { kind, process, time, value }))
    }
}

fn operations<O: Operation>(value: &Form, done: bool) -> Result<Vec<O>, String> {
    let Form::Sequence(forms) = value.bare() else {
        return Err(format!(":value is {}, should be a vector of operations", value.shown()));
    };
    let operation = |form: &Form| {
        let Form::Sequence(parts) = form.bare() else { return Err(not_an_operation(form)) };
        let [name, key, value] = parts.as_slice() else { return Err(not_an_operation(form)) };
        O::parse(name.bare(), number(key, "a key")?, value.bare(), done)
    };
    forms.iter().map(operation).collect()
}

fn not_an_operation(form: &Form) -> String {
    format!("an operation is {}, should be a vector like [:r 3 nil]", form.shown())
}

/// Returns the number in `form`, which must be one that a history may contain.
fn number(form: &Form, what: &str) -> Result<u64, String> {
    match form.bare() {
        Form::Number(number) => u64::try_from(*number).ok(),
        _ => None,
    }
    .ok_or_else(|| format!("{what} is {}, should be a whole number from 0", form.shown()))
}
