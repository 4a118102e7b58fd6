//! A comparison of all operations of a table with those of a map, including scans that are held
//! open, and indexes that are added and dropped.
//!
//! A script is a transaction. The map runs the script first, and returns the result that each
//! operation must show. A scan must show the rows as they were when the scan was made, despite
//! operations between its making and its last row. The tests try all sequences of up to four
//! operations, and random scripts. Unless `CANDIDE_FULL` is set, sequences have at most three
//! operations, and a fourth of the random scripts run, under half of the settings: those with an
//! even number of switches on, and under erased protocols those with an odd number.
//!
//! The operations are compiled for each row type and protocol. So rows whose type names its indexes
//! are only under erased protocols, with all settings.

mod bench;
mod drawn;
mod goods;
mod model;
mod stage;
mod words;

use super::indexed_rows::{Filed, Parcel};
use super::under_erased;
use crate::Record;
use crate::engine::Protocol;
use crate::policy::Policies;
use crate::protocols::{Erased, Occ, Recorded};
use crate::sync::Random;
use crate::sync::size::{Sample, is_short};
use bench::{Bench, Ending, Setting};
use drawn::{an_operation, below};
use goods::Goods;
use std::ops::Bound;
use words::{Blind, Change, Look, Operation, Order, Reading, Source};

type Key = (u8, u16);
type Place = (u8, i8);

/// The groups, as bits. `ROW` has code, shelf and weight; `STATE` has owner, colour and count;
/// `TEXT` has the note. The indexes use the first two groups.
const ROW: u8 = 1;
const STATE: u8 = 2;
const TEXT: u8 = 4;
const INDEXED: u8 = ROW | STATE;

fn random_scripts<G: Goods, P: Protocol>(setting: Setting, scripts: usize, seed: u64) {
    let mut random = Random::seeded(seed);
    let mut bench = Bench::<G, P>::new(setting);
    let epochs = bench.db.inner.engine.epochs.clone();
    for number in 0..scripts {
        if !G::NAMES_INDEXES && number % 25 == 24 {
            bench.toggle_indexes();
        }
        let length = 1 + below(&mut random, 24);
        let script: Vec<_> = (0..length).map(|_| an_operation(&mut random, bench.rules)).collect();
        let ending = match random.below(8) {
            0 => Ending::Error,
            1 => Ending::Panic,
            _ => Ending::Commit,
        };
        bench.run(&script, ending);
        bench.check();
        if random.below(3) == 0 {
            // Records of deleted rows are removed, and so are nodes.
            epochs.pass();
        }
    }
}

const SCRIPTS: usize = 100;

/// Runs `run` for all settings of a row type. Unless `CANDIDE_FULL` is set, leaves out settings in
/// which the number of switches that are on has none of the `parities`. The remaining settings
/// still have each combination of four switches.
fn for_each_setting(parities: &[u32], run: impl Fn(Setting, u64)) {
    let is_run = |bits: &u64| !is_short() || parities.contains(&(bits.count_ones() % 2));
    for number in (0..32).filter(is_run) {
        let bit = |bit: u64| number >> bit & 1 != 0;
        let (splitting, commit_time_updates) = (bit(0), bit(1));
        run(
            Setting {
                splitting,
                commit_time_updates,
                packed: bit(2),
                ordered: bit(3),
                indexed: bit(4),
            },
            number,
        );
    }
}

fn scripts() -> usize {
    if is_short() { SCRIPTS / 4 } else { SCRIPTS }
}

/// Runs random scripts on parcels. The table of parcels is ordered, and its indexes are added and
/// dropped.
fn random_scripts_on_parcels<P: Protocol>(parity: u32) {
    for_each_setting(&[parity], |setting, seed| {
        if !setting.ordered {
            random_scripts::<Parcel, P>(setting, scripts(), 100 + seed);
        }
    });
}

/// Runs random scripts on rows whose type names its indexes.
fn random_scripts_on_filed_parcels<P: Protocol>(parities: &[u32]) {
    for_each_setting(parities, |setting, seed| {
        if setting.indexed {
            random_scripts::<Filed, P>(setting, scripts(), seed);
        }
    });
}

protocol_tests!(
    all: random_scripts_with_open_scans_and_indexes_mean_what_a_map_says
        = random_scripts_on_parcels(0)
);

protocol_tests!(erased: random_scripts_under_erased_protocols_agree_with_a_map);
fn random_scripts_under_erased_protocols_agree_with_a_map<P: Protocol>() {
    random_scripts_on_filed_parcels::<P>(&[0, 1]);
    random_scripts_on_parcels::<P>(1);
}

#[test]
fn recorded_random_scripts_agree_with_a_map() {
    random_scripts_on_parcels::<Recorded<Occ>>(1);
    let on_filed_parcels = || random_scripts_on_filed_parcels::<Erased>(&[1]);
    under_erased::<Recorded<Occ>, _>(Policies::default(), on_filed_parcels);
}

protocol_tests!(all: all_sequences_of_up_to_four_operations_with_a_scan_held_open);
fn all_sequences_of_up_to_four_operations_with_a_scan_held_open<P: Protocol>() {
    let less = u32::from(is_short());
    all_short_sequences::<Parcel, P>(indexed(true, true), 4 - less);
    all_short_sequences::<Parcel, P>(indexed(false, true), 3 - less);
    all_short_sequences::<Parcel, P>(Setting { indexed: false, ..indexed(true, false) }, 3 - less);
}

protocol_tests!(erased: all_sequences_of_up_to_three_operations_with_named_indexes);
fn all_sequences_of_up_to_three_operations_with_named_indexes<P: Protocol>() {
    all_short_sequences::<Filed, P>(indexed(true, true), 3 - u32::from(is_short()));
}

/// Returns settings of a table with indexes.
fn indexed(splitting: bool, commit_time_updates: bool) -> Setting {
    Setting { splitting, commit_time_updates, packed: false, ordered: false, indexed: true }
}

/// Runs all sequences of operations on one row, from both initial states. In each sequence, scans
/// are opened at one place.
fn all_short_sequences<G: Goods, P: Protocol>(setting: Setting, longest: u32) {
    let row = Parcel::new(1, 1);
    let neighbour = Parcel::new(1, 2);
    let key = row.key();
    let operations = [
        Operation::Insert(Parcel { weight: 9, ..row }),
        Operation::Put(Parcel { code: 7, shelf: 2, note: 3, ..row }),
        Operation::Upsert(Parcel { colour: 3, ..row }, Blind::Three(1, 5)),
        // This update fails the second time.
        Operation::Update(key, Blind::Guarded(6)),
        Operation::Update(key, Blind::Count(i16::MAX / 2 + 1)),
        Operation::Update(key, Blind::Note(4)),
        Operation::Modify(key, Change::Code(8)),
        Operation::Modify(key, Change::Place(0, 1)),
        // The new code belongs to another row.
        Operation::Modify(key, Change::Whole(neighbour)),
        Operation::GetForUpdate(key, Look::Whole),
        Operation::Delete(key),
        Operation::Clear,
    ];
    let mut bench = Bench::<G, P>::new(setting);
    let open = |source, order, look| Operation::Open(Reading { source, order, look });
    let all = if G::NAMES_INDEXES {
        Source::All
    } else {
        Source::Range(Bound::Unbounded, Bound::Unbounded)
    };
    let mut scans = vec![open(all, Order::Forward, Look::Whole)];
    if setting.indexed {
        let places = Source::Places(Bound::Unbounded, Bound::Unbounded);
        scans.push(open(places, Order::Reverse, Look::Count));
        scans.push(open(places, Order::BothEnds(0b0110), Look::Whole));
        scans.push(open(Source::Code(row.code), Order::Forward, Look::Note));
    }
    let (mut script, mut sample) = (Vec::new(), Sample::one_in(10));
    for length in 1..=longest {
        for number in 0..operations.len().pow(length) {
            if length == longest && !sample.has_next() {
                continue;
            }
            for moment in 0..=length {
                for present in [false, true] {
                    let mut rest = number;
                    script.clear();
                    script.extend([Operation::Clear, Operation::Insert(neighbour)]);
                    script.extend(present.then_some(Operation::Insert(row)));
                    bench.run(&script, Ending::Commit);
                    script.clear();
                    for place in 0..length {
                        if place == moment {
                            script.extend(scans.iter().cloned());
                        }
                        script.push(operations[rest % operations.len()].clone());
                        rest /= operations.len();
                    }
                    if moment == length {
                        script.extend(scans.iter().cloned());
                    }
                    bench.run(&script, Ending::Commit);
                }
            }
            if number % 97 == 0 {
                bench.check();
                bench.db.inner.engine.epochs.pass();
            }
        }
    }
}
