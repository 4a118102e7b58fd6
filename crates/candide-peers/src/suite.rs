//! The order of the measurements.

use std::error::Error;
use std::fs;

use candide::experiments::free_memory;
use candide_harness::results::median;

use crate::chase::load_nanoseconds;
use crate::cli::{Hasher, KeySize, Options};
use crate::command::{print_head, write_json};
use crate::contender::{Contender, Operation, Sample, Turn};
use crate::counters::Events;
use crate::figures::{Cost, Throughput};
use crate::input::Input;
use crate::maps::Maps;
use crate::report::Report;
use crate::{Kind, Role, Wide, plot, table};

/// Measures what the options select, prints tables as they become ready, and writes the files.
///
/// # Errors
/// If an unknown map is selected, if a map has lost a key, or if a file cannot be written.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    // Every map that takes wide keys also takes narrow keys, so the list for narrow keys has all
    // maps.
    let known: Vec<_> =
        u64::all(options.hasher).iter().map(|map| (map.name(), map.kind(), map.role())).collect();
    if let Some(unknown) =
        options.only.iter().find(|&only| known.iter().all(|&(name, ..)| name != only))
    {
        let names: Vec<_> = known.iter().map(|&(name, ..)| name).collect();
        return Err(format!("there is no map `{unknown}`; use some of {}", names.join(", ")).into());
    }
    let mut report = Report::new(options);
    print_head(&report.machine, [], &report.notes);
    for kind in [Kind::Hash, Kind::Ordered] {
        for &size in &options.keys {
            match size {
                KeySize::Narrow => measure::<u64>(options, kind, &mut report)?,
                KeySize::Wide => measure::<Wide>(options, kind, &mut report)?,
            }
        }
    }
    write_json(&report, options.json.as_deref())?;
    if let Some(path) = &options.plot {
        fs::write(path, plot::draw(&report, &known))?;
    }
    Ok(())
}

/// Fills every map with `rows` rows from two threads, and checks that the map finds the rows.
/// Returns the peers whose scans are wrong, each with the size of its keys.
///
/// # Errors
/// If a map has lost a row, or Candide's scans are wrong.
pub fn check(rows: usize) -> Result<Vec<(&'static str, usize)>, String> {
    fn of<K: Maps>(rows: usize, wrong: &mut Vec<(&'static str, usize)>) -> Result<(), String> {
        let input = Input::<K>::draw(rows, 1, 1);
        for mut map in K::all(Hasher::Fold).into_iter().chain(K::all(Hasher::Sip)) {
            map.fill(&input.keys, 2);
            if verify(map.as_ref(), &input)?.is_some() && !wrong.contains(&(map.name(), K::SIZE)) {
                wrong.push((map.name(), K::SIZE));
            }
        }
        Ok(())
    }
    let mut wrong = Vec::new();
    of::<u64>(rows, &mut wrong)?;
    of::<Wide>(rows, &mut wrong)?;
    Ok(wrong)
}

/// Checks whether a map can be measured. Returns the fault of the map's scans; `None` if the scans
/// are right. Wrong scans of Candide are an error.
fn verify<K: Maps>(map: &dyn Contender<K>, input: &Input<K>) -> Result<Option<String>, String> {
    map.verify_lookups(&input.sorted)?;
    match map.verify_scans(&input.sorted) {
        Ok(()) => Ok(None),
        Err(what) if map.role() == Role::Candide => Err(what),
        Err(what) => Ok(Some(what)),
    }
}

type Contenders<K> = Vec<Box<dyn Contender<K>>>;

/// Measures the maps of one kind with keys of one type, for all numbers of rows.
fn measure<K: Maps>(
    options: &Options,
    kind: Kind,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let mut maps: Contenders<K> = K::all(options.hasher);
    maps.retain(|map| map.kind() == kind && options.wants(map.name()));
    if maps.is_empty() {
        return Ok(());
    }
    let threads =
        if options.misses { 1 } else { options.threads.iter().map(|n| n.get()).max().unwrap_or(1) };
    let first = report.lookup_costs.len();
    for rows in options.rows() {
        // Sizes that were requested are measured in any case.
        if options.rows.is_empty() && !fits(rows, K::SIZE, free_memory()) {
            let note = format!(
                "{rows} rows with keys of {} bytes may take more than half of the free memory, and \
                 are left out",
                K::SIZE
            );
            println!("note: {note}");
            report.notes.push(note);
            continue;
        }
        let input = Input::draw(rows, threads, options.seed);
        if options.misses {
            report.lookup_costs.extend(costs(options, &mut maps, &input)?);
        } else {
            for threads in options.threads.iter().map(|n| n.get()) {
                let (figures, notes) = throughputs(options, &mut maps, &input, threads)?;
                table::print_throughput(&figures, &notes);
                report.throughput.extend(figures);
                report.notes.extend(notes);
            }
        }
        maps.iter_mut().for_each(|map| map.empty());
    }
    table::print_costs(&report.lookup_costs[first..]);
    Ok(())
}

/// Measures every operation of the maps. The maps take turns. Returns the figures and the notes for
/// the report. Leaves each map filled.
fn throughputs<K: Maps>(
    options: &Options,
    maps: &mut Contenders<K>,
    input: &Input<K>,
    threads: usize,
) -> Result<(Vec<Throughput>, Vec<String>), String> {
    let runs = options.runs.get();
    let mut figures = Vec::new();
    let mut push = |map: &dyn Contender<K>, operation, runs: Vec<f64>| {
        figures.push(Throughput {
            rows: input.keys.len(),
            key_bytes: K::SIZE,
            threads,
            map: map.name(),
            kind: map.kind(),
            role: map.role(),
            operation,
            ops_per_second: median(&runs),
            runs,
        });
    };
    let mut inserts = vec![Vec::new(); maps.len()];
    for _ in 0..runs {
        for (map, inserts) in maps.iter_mut().zip(&mut inserts) {
            inserts.push(map.fill(&input.keys, threads));
        }
    }
    let mut notes = Vec::new();
    let mut cannot_scan = Vec::new();
    for map in maps.iter() {
        if let Some(what) = verify(map.as_ref(), input)? {
            notes.push(format!(
                "{what}: its scans of {} rows with keys of {} bytes are not measured",
                input.keys.len(),
                K::SIZE
            ));
            cannot_scan.push(map.name());
        }
    }
    for (map, inserts) in maps.iter().zip(inserts) {
        push(map.as_ref(), Operation::Insert, inserts);
    }
    let operations = maps.first().map_or(&[][..], |map| Operation::of(map.kind()));
    for &operation in operations.iter().filter(|&&operation| operation != Operation::Insert) {
        let able = |name| operation == Operation::Lookup || !cannot_scan.contains(&name);
        let able: Vec<_> = maps.iter().filter(|map| able(map.name())).collect();
        let mut rates = vec![Vec::new(); able.len()];
        for run in 0..runs {
            let turn = Turn { operation, threads, duration: options.duration, run, counted: false };
            for (map, rates) in able.iter().zip(&mut rates) {
                rates.push(map.measure(input, turn).per_second);
            }
        }
        for (map, rates) in able.iter().zip(rates) {
            push(map.as_ref(), operation, rates);
        }
    }
    Ok((figures, notes))
}

/// Measures the cost of lookups in the maps, one map after another, since not all of them may fit
/// into memory together.
fn costs<K: Maps>(
    options: &Options,
    maps: &mut Contenders<K>,
    input: &Input<K>,
) -> Result<Vec<Cost>, String> {
    let rows = input.keys.len();
    let load_nanoseconds = load_nanoseconds(rows);
    let mut costs = Vec::new();
    for map in maps {
        map.fill(&input.keys, 1);
        map.verify_lookups(&input.sorted)?;
        let sample = |run| {
            let (operation, duration) = (Operation::Lookup, options.duration);
            map.measure(input, Turn { operation, threads: 1, duration, run, counted: true })
        };
        let samples: Vec<Sample> = (0..options.runs.get()).map(sample).collect();
        let nanoseconds: Vec<f64> = samples.iter().map(|sample| 1e9 / sample.per_second).collect();
        let events: Vec<Events> = samples.iter().filter_map(|sample| sample.events).collect();
        let middle = |of: fn(&Events) -> f64| median(&events.iter().map(of).collect::<Vec<_>>());
        costs.push(Cost {
            rows,
            key_bytes: K::SIZE,
            map: map.name(),
            kind: map.kind(),
            role: map.role(),
            nanoseconds: median(&nanoseconds),
            load_nanoseconds,
            events: (!events.is_empty()).then(|| Events {
                misses: middle(|events| events.misses),
                instructions: middle(|events| events.instructions),
            }),
        });
        map.empty();
        if rows >= MANY {
            eprintln!("measured: {} with {rows} rows", map.name());
        }
    }
    Ok(costs)
}

/// The number of rows from which on a measurement takes long, so that progress is reported.
const MANY: usize = 10_000_000;

/// About the number of bytes that a map takes for a row, apart from the key.
const ROW_BYTES: usize = 64;

/// Returns whether a map of `rows` rows, and the input of its measurement, take at most half of the
/// memory that is free, if that is known.
fn fits(rows: usize, key_bytes: usize, free: Option<u64>) -> bool {
    // The input has each key twice.
    let bytes = rows as u64 * (ROW_BYTES + 3 * key_bytes) as u64;
    free.is_none_or(|free| bytes <= free / 2)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_map_takes_at_most_half_of_the_free_memory() {
        assert!(fits(1_000_000, 8, Some(176_000_000)) && !fits(1_000_000, 8, Some(175_000_000)));
        assert!(!fits(1_000_000, 24, Some(176_000_000)));
        assert!(fits(100_000_000, 24, None));
    }
}
