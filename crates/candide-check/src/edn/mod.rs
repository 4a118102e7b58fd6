//! Black-box histories as Jepsen writes and Elle reads them, in EDN.
//!
//! A transaction is two maps, its invocation and its completion, in the order of their times among those of the others:
//!
//! ```text
//! {:index 0, :time 10, :type :invoke, :process 0, :f :txn, :value [[:append 3 1] [:r 4 nil]]}
//! {:index 1, :time 25, :type :ok, :process 0, :f :txn, :value [[:append 3 1] [:r 4 [7 8]]]}
//! ```
//!
//! The completion is `:ok`, `:fail` for a transaction without effect, or `:info` if that is unknown. Registers are written by
//! `[:w 3 1]`, and `[:r 3 1]` or `[:r 3 nil]` reads them. Elle checks such a file as `list-append` or `rw-register`.
//!
//! Reading takes more than writing makes: spaces, comments, tags and other keys of the maps as one likes, all maps in one
//! vector or none, processes that are no numbers (a nemesis), which are passed over. What keeps a file from being read: keys
//! and values that are not whole numbers from 0; completions without an invocation. An invocation without a completion
//! is a transaction with an unknown outcome. If no map has a `:time`, its place in the file is its time.
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

/// What a transaction of Elle's is made of.
pub trait Operation: Sized + Micro {}

impl Operation for ListOp {}
impl Operation for RegisterOp {}

/// Writes a history, ordered by time; at equal times invocations come first, so that no order is claimed which is not known.
///
/// What reads returned in transactions that did not commit is left out, since Elle has no place for it.
///
/// # Errors
/// Those of `out`. A session that begins a transaction no later than its last one completed is refused
/// ([`io::ErrorKind::InvalidInput`]): Elle would take one's completion for the other's.
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
            let problem =
                format!("session {session} begins a transaction at {time}, before or when its last one completes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let kind = match (completes, outcome) {
            (false, _) => "invoke",
            (true, Outcome::Committed) => "ok",
            (true, Outcome::Aborted) => "fail",
            (true, Outcome::Unknown) => "info",
        };
        line.clear();
        write!(line, "{{:index {index}, :time {time}, :type :{kind}, :process {session}, :f :txn, :value [")
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

/// Reads a history; transactions come in the order of their invocations in the file.
///
/// # Errors
/// Those of `input`, and the line that is not understood.
pub fn read<O: Operation>(input: impl BufRead) -> Result<Vec<Transaction<O>>, FormatError> {
    let mut forms = Forms::new(input);
    let mut history: Vec<Transaction<O>> = Vec::new();
    let mut running: HashMap<u64, usize> = HashMap::new();
    let mut timed = None;
    let (mut place, mut latest) = (0, 0);
    while let Some((line, form)) = forms.next()? {
        place += 1;
        let wrong = |problem: String| FormatError::at(line, problem);
        let Some(event) = Event::new(form).map_err(wrong)? else { continue };
        if *timed.get_or_insert(event.time.is_some()) != event.time.is_some() {
            return Err(wrong("either all operations should have a :time, or none".into()));
        }
        let time = event.time.unwrap_or(place);
        latest = latest.max(time);
        if event.kind == Kind::Invoke {
            let operations = operations(event.value, false).map_err(wrong)?;
            let session = event.process;
            if running.insert(session, history.len()).is_some() {
                return Err(wrong(format!(
                    "process {session} invokes a transaction while it has one; it should complete it"
                )));
            }
            let outcome = Outcome::Unknown;
            history.push(Transaction { session, invoked: time, completed: time, outcome, operations });
            continue;
        }
        let Some(at) = running.remove(&event.process) else {
            return Err(wrong(format!("process {} completes a transaction that it did not invoke", event.process)));
        };
        let transaction = &mut history[at];
        if time < transaction.invoked {
            let invoked = transaction.invoked;
            return Err(wrong(format!("completes at {time} what was invoked at {invoked}; times should not go back")));
        }
        transaction.completed = time;
        match event.kind {
            Kind::Ok => {
                let done: Vec<O> = operations(event.value, true).map_err(wrong)?;
                if done.len() != transaction.operations.len()
                    || done.iter().zip(&transaction.operations).any(|(done, asked)| !done.answers(asked))
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
        history[at].completed = latest;
    }
    Ok(history)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

/// What matters of one map.
struct Event {
    kind: Kind,
    process: u64,
    time: Option<u64>,
    value: Form,
}

impl Event {
    /// Nothing for what no client did.
    fn new(form: Form) -> Result<Option<Event>, String> {
        let Form::Map(entries) = form else {
            return Err(format!("should be a map like {{:type :invoke, :process 0, …}}, is {}", form.shown()));
        };
        let (mut kind, mut process, mut time, mut value) = (None, None, None, Form::Nil);
        for (key, given) in entries {
            match key {
                Form::Keyword(name) if name == "type" => kind = Some(given),
                Form::Keyword(name) if name == "process" => process = Some(given),
                Form::Keyword(name) if name == "time" => time = Some(number(&given, ":time")?),
                Form::Keyword(name) if name == "value" => value = given,
                _ => {}
            }
        }
        let process = match process {
            None => return Err("has no :process".into()),
            Some(Form::Keyword(_)) => return Ok(None),
            Some(process) => number(&process, ":process")?,
        };
        let kind = match kind.as_ref() {
            Some(Form::Keyword(name)) if name == "invoke" => Kind::Invoke,
            Some(Form::Keyword(name)) if name == "ok" => Kind::Ok,
            Some(Form::Keyword(name)) if name == "fail" => Kind::Fail,
            Some(Form::Keyword(name)) if name == "info" => Kind::Info,
            other => {
                let found = other.map_or("missing".into(), Form::shown);
                return Err(format!(":type is {found}, should be :invoke, :ok, :fail or :info"));
            }
        };
        Ok(Some(Event { kind, process, time, value }))
    }
}

fn operations<O: Operation>(value: Form, done: bool) -> Result<Vec<O>, String> {
    let Form::Vector(forms) = value else {
        return Err(format!(":value is {}, should be a vector of operations", value.shown()));
    };
    forms
        .into_iter()
        .map(|form| {
            let parts = match form {
                Form::Vector(parts) => <[Form; 3]>::try_from(parts).map_err(|parts| Form::Vector(parts).shown()),
                other => Err(other.shown()),
            };
            let [name, key, value] =
                parts.map_err(|found| format!("an operation is {found}, should be a vector like [:r 3 nil]"))?;
            let key = number(&key, "a key")?;
            O::parse(&name, key, value, done)
        })
        .collect()
}

/// A number that histories have.
fn number(form: &Form, what: &str) -> Result<u64, String> {
    match form {
        Form::Number(number) => u64::try_from(*number).ok(),
        _ => None,
    }
    .ok_or_else(|| format!("{what} is {}, should be a whole number from 0", form.shown()))
}
