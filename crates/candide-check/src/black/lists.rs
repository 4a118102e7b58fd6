//! Histories of lists. Every read of a list shows the order of the appends.

use super::inference::{Inference, Place, Values};
use super::{ListOp, Options, Outcome, Transaction};
use crate::anomaly::{Anomaly, Violation};
use crate::graph::Kind;
use std::collections::{BTreeMap, HashMap};

/// Checks whether a serial order of the transactions explains everything that committed
/// transactions read.
///
/// The check takes time and memory in proportion to the number of operations and of elements that
/// were read. If the history is refused, the search for a smallest cycle can take some more
/// seconds.
///
/// # Errors
/// The worst anomaly, with the transactions that show it. [`Anomaly::RepeatedValue`] means that the
/// history cannot be checked, because a value was appended to the same key twice.
///
/// # Panics
/// If there are 2³² transactions or more.
pub fn check_lists(history: &[Transaction<ListOp>], options: Options) -> Result<(), Violation> {
    let mut inference = Inference::new(history);
    let mut appends = appends(&mut inference);
    let lists = reads(&mut inference);
    let mut ordered = Vec::with_capacity(lists.len());
    for (key, list) in &lists {
        if order(&mut inference, &mut appends, *key, list) {
            ordered.push((*key, list));
        }
    }
    later_appends(&mut inference, &appends, &lists);
    let mut unread = unread(&inference, &appends);
    for (key, list) in ordered {
        let unread = unread.remove(&key).unwrap_or_default();
        if options.real_time {
            lost(&mut inference, &appends, key, list, &unread);
        }
        dependencies(&mut inference, &appends, key, list, unread);
    }
    inference.conclude(options).map(drop)
}

/// An append, by a transaction.
struct Append {
    writer: Place,
    /// The value that the same transaction appended to the key just before this value; `None` if
    /// this was its first.
    before: Option<u64>,
    /// Whether the same transaction appended to the key again later.
    intermediate: bool,
    /// The position of the value in the longest read of the list; `None` if that read does not
    /// contain it.
    position: Option<usize>,
}

/// All appends of a history, by key and value.
type Appends = HashMap<(u64, u64), Append>;

/// A read by a committed transaction.
struct Read<'h> {
    reader: Place,
    values: &'h [u64],
    /// The number of the elements in `values` that other transactions appended. `None` unless this
    /// is the transaction's first read of the list.
    others: Option<usize>,
}

/// The reads of one list by committed transactions.
#[derive(Default)]
struct List<'h> {
    reads: Vec<Read<'h>>,
    /// The index of the longest read.
    longest: usize,
}

impl<'h> List<'h> {
    fn longest(&self) -> &Read<'h> {
        &self.reads[self.longest]
    }
}

fn appends(inference: &mut Inference<'_, ListOp>) -> Appends {
    let mut appends = Appends::new();
    // The last append to each key, and its transaction.
    let mut last: HashMap<u64, (Place, u64)> = HashMap::new();
    for (writer, transaction) in (0..).zip(inference.history) {
        for operation in &transaction.operations {
            let &ListOp::Append { key, value } = operation else { continue };
            let before = match last.insert(key, (writer, value)) {
                Some((last, before)) if last == writer => Some(before),
                _ => None,
            };
            if let Some(before) = before
                && let Some(before) = appends.get_mut(&(key, before))
            {
                before.intermediate = true;
            }
            let append = Append { writer, before, intermediate: false, position: None };
            if let Some(other) = appends.insert((key, value), append) {
                inference.observe(Anomaly::RepeatedValue, &[writer, other.writer], || {
                    format!("{value} was appended to key {key} twice")
                });
            }
        }
    }
    appends
}

/// Groups reads by list, and checks that no transaction contradicts itself.
fn reads<'h>(inference: &mut Inference<'h, ListOp>) -> BTreeMap<u64, List<'h>> {
    /// The knowledge that the current transaction has of a list.
    struct Known<'h> {
        reader: Place,
        read: Option<&'h [u64]>,
        appended: Vec<u64>,
    }
    let mut lists: BTreeMap<u64, List<'h>> = BTreeMap::new();
    let mut known: HashMap<u64, Known<'h>> = HashMap::new();
    for (reader, transaction) in inference.committed() {
        for operation in &transaction.operations {
            let (ListOp::Append { key, .. } | ListOp::Read { key, .. }) = *operation;
            let known =
                known.entry(key).or_insert(Known { reader, read: None, appended: Vec::new() });
            if known.reader != reader {
                (known.reader, known.read) = (reader, None);
                known.appended.clear();
            }
            let values = match operation {
                ListOp::Append { value, .. } => {
                    known.appended.push(*value);
                    continue;
                }
                ListOp::Read { values, .. } => values.as_slice(),
            };
            let others = values.len().checked_sub(known.appended.len());
            let own = others.map(|others| &values[others..]);
            let earlier = known
                .read
                .is_none_or(|read| others.is_some_and(|others| *read == values[..others]));
            if own != Some(known.appended.as_slice()) || !earlier {
                let Known { read, appended, .. } = &*known;
                inference.observe(Anomaly::Internal, &[reader], || {
                    let read =
                        read.map_or(String::new(), |read| format!("read {} and ", Shown(read)));
                    format!(
                        "T1 {read}appended {} to key {key}, and then read {}",
                        Shown(appended),
                        Shown(values)
                    )
                });
            }
            let list = lists.entry(key).or_default();
            let others = others.filter(|_| known.read.is_none());
            list.reads.push(Read { reader, values, others });
            if values.len() > list.longest().values.len() {
                list.longest = list.reads.len() - 1;
            }
            known.read = Some(values);
            known.appended.clear();
        }
    }
    lists
}

/// Checks that the reads of a list agree on one order, and that every element was appended. Records
/// the position of each append in that order.
fn order(
    inference: &mut Inference<'_, ListOp>,
    appends: &mut Appends,
    key: u64,
    list: &List<'_>,
) -> bool {
    let longest = list.longest();
    let mut ordered = true;
    for (position, value) in longest.values.iter().enumerate() {
        if !exists(inference, appends, key, longest, position) {
            ordered = false;
            continue;
        }
        let append = appends.get_mut(&(key, *value)).expect("it exists");
        if append.position.replace(position).is_some() {
            inference.observe(Anomaly::DuplicateElement, &[longest.reader], || {
                format!("T1 read {} of key {key}, with {value} twice", Shown(longest.values))
            });
            ordered = false;
        }
    }
    for read in &list.reads {
        if longest.values.starts_with(read.values) {
            continue;
        }
        ordered = false;
        let mut sorted = read.values.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            inference.observe(Anomaly::DuplicateElement, &[read.reader], || {
                format!("T1 read {} of key {key}, with {} twice", Shown(read.values), twice[0])
            });
        }
        let exist = (0..read.values.len())
            .filter(|position| exists(inference, appends, key, read, *position))
            .count();
        if exist == read.values.len() {
            inference.observe(Anomaly::IncompatibleOrder, &[read.reader, longest.reader], || {
                let (one, other) = (Shown(read.values), Shown(longest.values));
                format!("T1 read {one} of key {key}, and T2 read {other}: neither is the beginning of the other")
            });
        }
    }
    if ordered {
        own_order(inference, appends, key, longest);
        intermediate_reads(inference, appends, key, list);
    }
    ordered
}

/// Returns whether a transaction that did not abort appended the value that was read at a position.
fn exists(
    inference: &mut Inference<'_, ListOp>,
    appends: &Appends,
    key: u64,
    read: &Read<'_>,
    position: usize,
) -> bool {
    let value = read.values[position];
    let Some(append) = appends.get(&(key, value)) else {
        inference.observe(Anomaly::UnknownValue, &[read.reader], || {
            format!(
                "T1 read {} of key {key}, and no transaction appended {value}",
                Shown(read.values)
            )
        });
        return false;
    };
    inference.see(append.writer);
    if inference.outcome(append.writer) == Outcome::Aborted {
        inference.observe(Anomaly::AbortedRead, &[read.reader, append.writer], || {
            format!(
                "T1 read {} of key {key}, to which T2 appended {value} before it aborted",
                Shown(read.values)
            )
        });
        return false;
    }
    true
}

/// Checks the order of each transaction's own appends. If a read contains one of its elements, the
/// read must also contain the elements that it appended earlier, at earlier positions.
fn own_order(
    inference: &mut Inference<'_, ListOp>,
    appends: &Appends,
    key: u64,
    longest: &Read<'_>,
) {
    for (position, value) in longest.values.iter().enumerate() {
        let append = &appends[&(key, *value)];
        let Some(before) = append.before else { continue };
        let parties = [longest.reader, append.writer];
        let read = Shown(longest.values);
        let anomaly = match appends[&(key, before)].position {
            None => Anomaly::LostAppend,
            Some(other) if other > position => Anomaly::IncompatibleOrder,
            Some(_) => continue,
        };
        inference.observe(anomaly, &parties, || {
            format!("T1 read {read} of key {key}, to which T2 appended {before} and then {value}")
        });
    }
}

fn intermediate_reads(
    inference: &mut Inference<'_, ListOp>,
    appends: &Appends,
    key: u64,
    list: &List<'_>,
) {
    for read in &list.reads {
        let last = read.others.and_then(|others| read.values[..others].last());
        let Some(append) = last.map(|last| &appends[&(key, *last)]) else { continue };
        if append.intermediate && append.writer != read.reader {
            inference.observe(Anomaly::IntermediateRead, &[read.reader, append.writer], || {
                format!(
                    "T1 read {} of key {key}, to which T2 then appended more",
                    Shown(read.values)
                )
            });
        }
    }
}

/// Checks that no transaction read an element that it appended only later.
fn later_appends(
    inference: &mut Inference<'_, ListOp>,
    appends: &Appends,
    lists: &BTreeMap<u64, List<'_>>,
) {
    for (key, list) in lists {
        let firsts = list.reads.iter().filter_map(|read| Some((read.reader, read, read.others?)));
        let firsts: HashMap<Place, (&Read<'_>, usize)> =
            firsts.map(|(reader, read, others)| (reader, (read, others))).collect();
        for value in list.longest().values {
            let Some(append) = appends.get(&(*key, *value)) else { continue };
            let first = firsts.get(&append.writer);
            if let Some((read, others)) = first
                && append.position.is_some_and(|position| position < *others)
            {
                inference.observe(Anomaly::Internal, &[append.writer], || {
                    format!(
                        "T1 read {} of key {key} before it appended {value}",
                        Shown(read.values)
                    )
                });
            }
        }
    }
}

/// Returns, for each key, the appends that certainly took effect and were never read.
fn unread(inference: &Inference<'_, ListOp>, appends: &Appends) -> HashMap<u64, Vec<(Place, u64)>> {
    let mut unread: HashMap<u64, Vec<(Place, u64)>> = HashMap::new();
    for (&(key, value), append) in appends {
        if append.position.is_none() && inference.effective(append.writer) {
            unread.entry(key).or_default().push((append.writer, value));
        }
    }
    for writers in unread.values_mut() {
        writers.sort_unstable();
        writers.dedup_by_key(|(writer, _)| *writer);
    }
    unread
}

/// Checks that no append was lost. If an element was read, then every element must be read whose
/// append had completed before that element's append was invoked.
fn lost(
    inference: &mut Inference<'_, ListOp>,
    appends: &Appends,
    key: u64,
    list: &List<'_>,
    unread: &[(Place, u64)],
) {
    let history = inference.history;
    let read = list.longest().values.iter().map(|value| (appends[&(key, *value)].writer, *value));
    let Some((latest, read)) = read.max_by_key(|(writer, _)| history[*writer as usize].invoked)
    else {
        return;
    };
    for &(writer, value) in unread {
        let Transaction { completed, outcome, .. } = history[writer as usize];
        if outcome == Outcome::Committed && completed < history[latest as usize].invoked {
            inference.observe(Anomaly::LostAppend, &[list.longest().reader, writer, latest], || {
                let longest = Shown(list.longest().values);
                format!("T1 read {longest} of key {key}: {read}, which T3 appended, without {value}, which T2 had appended before")
            });
        }
    }
}

/// Adds the edges between transactions that follow from the order of one list.
fn dependencies(
    inference: &mut Inference<'_, ListOp>,
    appends: &Appends,
    key: u64,
    list: &List<'_>,
    unread: Vec<(Place, u64)>,
) {
    let order = list.longest().values;
    let writer = |value: u64| appends[&(key, value)].writer;
    for pair in order.windows(2) {
        let values = Values { key, before: Some(pair[0]), after: Some(pair[1]) };
        inference.edge(writer(pair[0]), writer(pair[1]), Kind::Ww, values);
    }
    let unread = inference.crowd(key, unread);
    if let Some(&last) = order.last() {
        inference.before_crowd(writer(last), Kind::Ww, Some(last), &unread, unread.all());
    }
    for read in &list.reads {
        let Some(others) = read.others else { continue };
        let before = order[..others].last().copied();
        if let Some(last) = before {
            inference.edge(
                writer(last),
                read.reader,
                Kind::Wr,
                Values { key, before, after: None },
            );
        }
        match order.get(others) {
            Some(&next) => {
                inference.edge(
                    read.reader,
                    writer(next),
                    Kind::Rw,
                    Values { key, before, after: Some(next) },
                );
            }
            None => inference.before_crowd(read.reader, Kind::Rw, before, &unread, unread.all()),
        }
    }
}

/// A list in a message, which shows only the end of a long list.
struct Shown<'v>(&'v [u64]);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN_MAX: usize = 12;
        let hidden = self.0.len().saturating_sub(SHOWN_MAX);
        let values: Vec<String> = self.0[hidden..].iter().map(u64::to_string).collect();
        write!(f, "[{}{}]", if hidden > 0 { "… " } else { "" }, values.join(" "))
    }
}
