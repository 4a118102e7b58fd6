//! Histories of registers. A read shows the writer of its value, but little about the order of
//! writes.

use super::accesses::Accesses;
use super::inference::{Crowd, Inference, Place, Values, sessions};
use super::{Options, Outcome, RegisterOp, Transaction, decision};
use crate::anomaly::{Anomaly, Violation};
use crate::graph::Kind;
use crate::white::Verdict;
use std::collections::{BTreeMap, HashMap};

/// Checks whether a serial order of the transactions explains everything that committed
/// transactions read.
///
/// [`Verdict::Serializable`] and [`Verdict::Violated`] are certain: an order was found and played
/// through, or there is none. [`Verdict::Inconclusive`] means that the bounded search has shown
/// neither an order nor a violation; the module's documentation explains how far the search goes.
///
/// [`Anomaly::RepeatedValue`] means that the history cannot be checked, because a value was written
/// to the same key twice.
///
/// If the search soon finds an order of the history, the check takes time and memory in proportion
/// to the number of operations, times a logarithm. Otherwise it can take some more seconds.
///
/// # Panics
/// If there are 2³² transactions or more.
pub fn check_registers(history: &[Transaction<RegisterOp>], options: Options) -> Verdict {
    // If an order agrees with sessions and real time, it is found sooner, and no worse.
    let strict = Options { sessions: true, real_time: true };
    if options != strict && checked(history, strict) == Ok(Verdict::Serializable) {
        return Verdict::Serializable;
    }
    checked(history, options).unwrap_or_else(|violation| Err(violation).into())
}

fn checked(history: &[Transaction<RegisterOp>], options: Options) -> Result<Verdict, Violation> {
    let mut inference = Inference::new(history);
    let writes = writes(&mut inference);
    let reads = reads(&mut inference, &writes);
    let registers = registers(&inference, &writes, reads);
    for (key, register) in &registers {
        dependencies(&mut inference, &writes, *key, register, options);
    }
    if options.sessions {
        later_in_sessions(&mut inference, &registers);
    }
    let graph = inference.conclude(options)?;
    let mut accesses = Accesses::new(graph.nodes());
    for (key, Register { mut readers, writers }) in registers {
        accesses.add(
            key,
            writers.into_iter().map(|(writer, value)| {
                (writer, value, readers.remove(&Some(value)).unwrap_or_default())
            }),
        );
    }
    decision::decide(&mut inference, graph, &accesses)
}

/// One write.
struct Write {
    writer: Place,
    /// Whether the same transaction wrote the key again later.
    intermediate: bool,
}

/// All writes of a history, by key and value.
type Writes = HashMap<(u64, u64), Write>;

/// The first read of a key by a committed transaction that had not written the key before.
struct Read {
    key: u64,
    reader: Place,
    value: Option<u64>,
}

/// The known reads and writes of one register.
#[derive(Default)]
struct Register {
    /// The readers of each value. The entry of `None` holds the readers that found no value.
    readers: BTreeMap<Option<u64>, Vec<Place>>,
    /// For each transaction that took effect, its last write to the register. The transactions are
    /// in the order in which they were invoked.
    writers: Vec<(Place, u64)>,
}

fn writes(inference: &mut Inference<'_, RegisterOp>) -> Writes {
    let mut writes = Writes::new();
    let mut last: HashMap<u64, (Place, u64)> = HashMap::new();
    for (writer, transaction) in (0..).zip(inference.history) {
        for operation in &transaction.operations {
            let &RegisterOp::Write { key, value } = operation else { continue };
            if let Some((last, before)) = last.insert(key, (writer, value))
                && last == writer
                && let Some(before) = writes.get_mut(&(key, before))
            {
                before.intermediate = true;
            }
            if let Some(other) = writes.insert((key, value), Write { writer, intermediate: false })
            {
                inference.observe(Anomaly::RepeatedValue, &[writer, other.writer], || {
                    format!("{value} was written to key {key} twice")
                });
            }
        }
    }
    writes
}

/// Checks each read apart from the others. Returns the reads that show a fact about other
/// transactions.
fn reads(inference: &mut Inference<'_, RegisterOp>, writes: &Writes) -> Vec<Read> {
    let mut reads = Vec::new();
    // The map contains for each key the place of the current transaction, the value, and whether
    // the transaction wrote that value.
    let mut known: HashMap<u64, (Place, Option<u64>, bool)> = HashMap::new();
    for (reader, transaction) in inference.committed() {
        for operation in &transaction.operations {
            let (key, value) = match *operation {
                RegisterOp::Write { key, value } => {
                    known.insert(key, (reader, Some(value), true));
                    continue;
                }
                RegisterOp::Read { key, value } => (key, value),
            };
            match known.insert(key, (reader, value, false)) {
                Some((last, held, wrote)) if last == reader => {
                    if held != value {
                        let did = if wrote { "wrote" } else { "read" };
                        inference.observe(Anomaly::Internal, &[reader], || {
                            format!(
                                "T1 {did} {} of key {key}, and then read {}",
                                Shown(held),
                                Shown(value)
                            )
                        });
                    }
                }
                _ => {
                    if exists(inference, writes, key, value, reader) {
                        reads.push(Read { key, reader, value });
                    }
                }
            }
        }
    }
    reads
}

/// Returns whether the value is the last one that another transaction wrote to the key, and that
/// transaction did not abort.
fn exists(
    inference: &mut Inference<'_, RegisterOp>,
    writes: &Writes,
    key: u64,
    value: Option<u64>,
    reader: Place,
) -> bool {
    let Some(value) = value else { return true };
    let Some(write) = writes.get(&(key, value)) else {
        inference.observe(Anomaly::UnknownValue, &[reader], || {
            format!("T1 read {value} of key {key}, and no transaction wrote it")
        });
        return false;
    };
    inference.see(write.writer);
    let parties = [reader, write.writer];
    if write.writer == reader {
        inference.observe(Anomaly::Internal, &[reader], || {
            format!("T1 read {value} of key {key} before it wrote it")
        });
    } else if inference.outcome(write.writer) == Outcome::Aborted {
        inference.observe(Anomaly::AbortedRead, &parties, || {
            format!("T1 read {value} of key {key}, which T2 wrote before it aborted")
        });
    } else if write.intermediate {
        inference.observe(Anomaly::IntermediateRead, &parties, || {
            format!("T1 read {value} of key {key}, which T2 then overwrote")
        });
    } else {
        return true;
    }
    false
}

fn registers(
    inference: &Inference<'_, RegisterOp>,
    writes: &Writes,
    reads: Vec<Read>,
) -> BTreeMap<u64, Register> {
    let mut registers: BTreeMap<u64, Register> = BTreeMap::new();
    for Read { key, reader, value } in reads {
        registers.entry(key).or_default().readers.entry(value).or_default().push(reader);
    }
    for (&(key, value), write) in writes {
        if !write.intermediate && inference.effective(write.writer) {
            registers.entry(key).or_default().writers.push((write.writer, value));
        }
    }
    for register in registers.values_mut() {
        register.writers.sort_unstable_by_key(|(writer, _)| {
            (inference.history[*writer as usize].invoked, *writer)
        });
    }
    registers
}

/// Adds the edges between transactions that follow from the reads and writes of one register.
fn dependencies(
    inference: &mut Inference<'_, RegisterOp>,
    writes: &Writes,
    key: u64,
    register: &Register,
    options: Options,
) {
    let wrote: HashMap<Place, u64> = register.writers.iter().copied().collect();
    let crowd = inference.crowd(key, register.writers.clone());
    for (&before, readers) in &register.readers {
        let writer = before.map(|value| writes[&(key, value)].writer);
        if let Some(writer) = writer {
            for reader in readers {
                inference.edge(writer, *reader, Kind::Wr, Values { key, before, after: None });
            }
        }
        // Rule 3. At most one reader should have overwritten the value. Two such readers form a
        // cycle.
        let next: Vec<(Place, u64)> =
            readers.iter().filter_map(|reader| Some((*reader, *wrote.get(reader)?))).collect();
        for &(next, value) in &next {
            if let Some(writer) = writer {
                inference.edge(writer, next, Kind::Ww, Values { key, before, after: Some(value) });
            }
        }
        for &(next, value) in next.iter().take(2) {
            for reader in readers {
                inference.edge(*reader, next, Kind::Rw, Values { key, before, after: Some(value) });
            }
        }
        // This loop applies rules 2 and 4.
        let later = match writer {
            None => crowd.all(),
            Some(writer) if options.real_time => after(inference, register, writer, &crowd),
            Some(_) => continue,
        };
        for reader in readers {
            inference.before_crowd(*reader, Kind::Rw, before, &crowd, later.clone());
        }
    }
}

/// Returns the range of the register's writers that were invoked after transaction `writer` had
/// completed.
fn after(
    inference: &Inference<'_, RegisterOp>,
    register: &Register,
    writer: Place,
    crowd: &Crowd,
) -> std::ops::Range<usize> {
    let all = crowd.all();
    if inference.outcome(writer) != Outcome::Committed {
        return all.end..all.end;
    }
    let history = inference.history;
    let completed = history[writer as usize].completed;
    register.writers.partition_point(|(other, _)| history[*other as usize].invoked <= completed)
        ..all.end
}

/// Adds the edges of rule 4: the later of two writes in a session wrote a later value.
fn later_in_sessions(
    inference: &mut Inference<'_, RegisterOp>,
    registers: &BTreeMap<u64, Register>,
) {
    let mut place_in_session = HashMap::new();
    for session in sessions(inference.history).into_values() {
        place_in_session.extend((0_usize..).zip(session).map(|(number, place)| (place, number)));
    }
    for (&key, register) in registers {
        let mut writers: Vec<(u64, usize, Place, u64)> = Vec::with_capacity(register.writers.len());
        for &(writer, value) in &register.writers {
            writers.push((
                inference.history[writer as usize].session,
                place_in_session[&writer],
                writer,
                value,
            ));
        }
        writers.sort_unstable();
        let mut last: Option<(u64, Place, u64)> = None;
        for (session, _, writer, value) in writers {
            if let Some((last_session, last, before)) = last
                && last_session == session
                && inference.history[last as usize].completed
                    <= inference.history[writer as usize].invoked
            {
                for &reader in register.readers.get(&Some(before)).into_iter().flatten() {
                    let values = Values { key, before: Some(before), after: Some(value) };
                    inference.edge(reader, writer, Kind::Rw, values);
                }
            }
            if inference.outcome(writer) == Outcome::Committed {
                last = Some((session, writer, value));
            }
        }
    }
}

/// A value in a message.
struct Shown(Option<u64>);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("nothing"),
        }
    }
}
