//! A map under measurement, with its type erased.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::counters::{Counters, Events};
use crate::input::{Input, LONG, SHORT};
use crate::threads::on_threads;
use crate::{BATCH, Handle, Key, Kind, Map, Role};

/// The operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Operation {
    /// A lookup of a key that is present.
    #[serde(rename = "lookup")]
    Lookup,
    /// An insert while an empty map is being filled.
    #[serde(rename = "insert")]
    Insert,
    /// A scan of ten rows.
    #[serde(rename = "scan 10")]
    ScanShort,
    /// A scan of a thousand rows.
    #[serde(rename = "scan 1000")]
    ScanLong,
}

impl Operation {
    /// Returns the operations of a kind of map, in the order of the table.
    pub(crate) fn of(kind: Kind) -> &'static [Operation] {
        use Operation::{Insert, Lookup, ScanLong, ScanShort};
        match kind {
            Kind::Hash => &[Lookup, Insert],
            Kind::Ordered => &[Lookup, Insert, ScanShort, ScanLong],
        }
    }

    /// Returns the operation's name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Lookup => "lookup",
            Operation::Insert => "insert",
            Operation::ScanShort => "scan 10",
            Operation::ScanLong => "scan 1000",
        }
    }
}

/// The parameters of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The operation.
    pub(crate) operation: Operation,
    /// The number of threads.
    pub(crate) threads: usize,
    /// The length of the measurement. A warm-up of a fifth of this time precedes it.
    pub(crate) duration: Duration,
    /// The number of the run. The number determines the place in the input at which the run begins.
    pub(crate) run: usize,
    /// Whether the processor's events are counted.
    pub(crate) counted: bool,
}

/// The result of one turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Operations per second, of all threads together.
    pub(crate) per_second: f64,
    /// The processor's events per operation, of the first thread. `None` if they were not requested
    /// or cannot be counted.
    pub(crate) events: Option<Events>,
}

/// A map under measurement.
pub(crate) trait Contender<K: Key> {
    /// Returns the map's name.
    fn name(&self) -> &'static str;
    /// Returns the way in which the map finds its rows.
    fn kind(&self) -> Kind;
    /// Returns the map's role among the others.
    fn role(&self) -> Role;
    /// Drops the current map and creates an empty one. Then `threads` threads insert `keys`.
    /// Returns the number of inserts per second.
    fn fill(&mut self, keys: &[K], threads: usize) -> f64;
    /// Measures an operation on the map.
    fn measure(&self, input: &Input<K>, turn: Turn) -> Sample;
    /// Checks that the map finds all keys of `sorted`, and no other keys.
    fn verify_lookups(&self, sorted: &[K]) -> Result<(), String>;
    /// Checks that the map's scans are ordered and complete.
    fn verify_scans(&self, sorted: &[K]) -> Result<(), String>;
    /// Drops the current map.
    fn empty(&mut self);
}

/// Returns a contender for maps of type `M`.
pub(crate) fn held<M: Map<K>, K: Key>() -> Box<dyn Contender<K>> {
    Box::new(Held::<M>(None))
}

struct Held<M>(Option<M>);

impl<M> Held<M> {
    fn map(&self) -> &M {
        self.0.as_ref().expect("the map is filled before its use")
    }
}

impl<M: Map<K>, K: Key> Contender<K> for Held<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn kind(&self) -> Kind {
        M::KIND
    }

    fn role(&self) -> Role {
        M::ROLE
    }

    fn fill(&mut self, keys: &[K], threads: usize) -> f64 {
        self.0 = None;
        let map = &*self.0.insert(M::new());
        let shares: Vec<&[K]> = keys.chunks(keys.len().div_ceil(threads)).collect();
        let times = on_threads(shares.len(), |thread, start| {
            let mut handle = map.handle();
            start.wait();
            let begun = Instant::now();
            shares[thread].chunks(BATCH).for_each(|batch| handle.insert(batch));
            (begun, Instant::now())
        });
        let begun = times.iter().map(|&(begun, _)| begun).min().expect("there is a thread");
        let ended = times.iter().map(|&(_, ended)| ended).max().expect("there is a thread");
        keys.len() as f64 / (ended - begun).as_secs_f64()
    }

    fn measure(&self, input: &Input<K>, turn: Turn) -> Sample {
        let map = self.map();
        let samples = on_threads(turn.threads, |thread, start| {
            let mut handle = map.handle();
            let mut counters = (turn.counted && thread == 0).then(Counters::new);
            let (lookups, starts) = (&input.lookups[thread], &input.starts[thread]);
            let scan = |rows| {
                move |handle: &mut M::Handle<'_>, from: &[K]| {
                    black_box(handle.scan_values(&from[0], rows));
                }
            };
            match turn.operation {
                Operation::Lookup => {
                    let lookup = |handle: &mut M::Handle<'_>, keys: &[K]| {
                        black_box(handle.lookup(keys).expect("they are there"));
                    };
                    repeat(&mut handle, lookups, BATCH, 32, turn, start, &mut counters, lookup)
                }
                Operation::ScanShort => {
                    repeat(&mut handle, starts, 1, 32, turn, start, &mut counters, scan(SHORT))
                }
                Operation::ScanLong => {
                    repeat(&mut handle, starts, 1, 2, turn, start, &mut counters, scan(LONG))
                }
                Operation::Insert => unreachable!("inserts are measured by filling"),
            }
        });
        Sample {
            per_second: samples.iter().map(|sample| sample.per_second).sum(),
            events: samples[0].events,
        }
    }

    fn verify_lookups(&self, sorted: &[K]) -> Result<(), String> {
        let mut handle = self.map().handle();
        let mut expected = 0u64;
        for key in sorted {
            if handle.lookup(std::slice::from_ref(key)) != Some(key.value()) {
                return Err(format!("{}: {key:?} is lost", M::NAME));
            }
            expected = expected.wrapping_add(key.value());
        }
        let sum = sorted
            .chunks(BATCH)
            .try_fold(0u64, |sum, keys| Some(sum.wrapping_add(handle.lookup(keys)?)));
        if sum != Some(expected) {
            return Err(format!("{}: lookups in batches return other values", M::NAME));
        }
        let missing = K::nth(sorted.len() as u64);
        if handle.lookup(&[missing]).is_some() {
            return Err(format!("{}: the absent key {missing:?} is found", M::NAME));
        }
        Ok(())
    }

    fn verify_scans(&self, sorted: &[K]) -> Result<(), String> {
        if M::KIND == Kind::Hash {
            return Ok(());
        }
        verify_scans(&mut self.map().handle(), sorted)
            .map_err(|what| format!("{}: {what}", M::NAME))
    }

    fn empty(&mut self) {
        self.0 = None;
    }
}

fn verify_scans<K: Key>(handle: &mut impl Handle<K>, sorted: &[K]) -> Result<(), String> {
    let mut scan = |from: &K, count| {
        handle.scan(from, count, |rows: &mut Vec<_>, key, value| rows.push((*key, value)))
    };
    let rows = |keys: &[K]| keys.iter().map(|key| (*key, key.value())).collect::<Vec<_>>();
    if scan(&K::default(), sorted.len() + 1) != rows(sorted) {
        return Err("a scan of all rows does not return all rows in order".to_string());
    }
    // The scans begin at keys that are present. Some are spread over the whole map, and some are
    // near its end.
    let near_end = sorted.len().saturating_sub(20)..sorted.len();
    for first in (0..sorted.len()).step_by(sorted.len() / 200 + 1).chain(near_end) {
        for count in [1, SHORT, LONG] {
            let expected = rows(&sorted[first..sorted.len().min(first + count)]);
            if scan(&sorted[first], count) != expected {
                return Err(format!(
                    "a scan of {count} rows from {:?} returns wrong rows",
                    sorted[first]
                ));
            }
        }
    }
    for first in (0..sorted.len()).step_by(sorted.len() / 200 + 1) {
        for count in [SHORT, LONG] {
            let keys = &sorted[first..sorted.len().min(first + count)];
            let expected = keys.iter().fold(0u64, |sum, key| sum.wrapping_add(key.value()));
            if handle.scan_values(&sorted[first], count) != expected {
                return Err(format!(
                    "a scan of {count} values from {:?} returns wrong values",
                    sorted[first]
                ));
            }
        }
    }
    Ok(())
}

/// Passes the input to `step` in pieces of `size` keys until the measured time has ended. Reads the
/// clock after every `stride` pieces.
#[allow(clippy::too_many_arguments, reason = "called from three adjacent places")]
fn repeat<H, K>(
    handle: &mut H,
    keys: &[K],
    size: usize,
    stride: usize,
    turn: Turn,
    start: &Barrier,
    counters: &mut Option<Counters>,
    mut step: impl FnMut(&mut H, &[K]),
) -> Sample {
    let count = keys.len() / size;
    let mut number = turn.run.wrapping_mul(0x9e37_79b9) % count;
    let mut spend = |handle: &mut H, duration: Duration| {
        let begun = Instant::now();
        let mut steps = 0;
        loop {
            for _ in 0..stride {
                step(handle, &keys[number * size..(number + 1) * size]);
                number = if number + 1 == count { 0 } else { number + 1 };
            }
            steps += stride;
            let elapsed = begun.elapsed();
            if elapsed >= duration {
                return ((steps * size) as f64, elapsed);
            }
        }
    };
    spend(handle, turn.duration / 5);
    start.wait();
    if let Some(counters) = counters {
        counters.start();
    }
    let (operations, elapsed) = spend(handle, turn.duration);
    let events = counters.as_mut().and_then(|counters| counters.stop(operations));
    Sample { per_second: operations / elapsed.as_secs_f64(), events }
}
