//! Random operations.

use super::super::indexed_rows::Parcel;
use super::model::Rules;
use super::words::{Blind, Change, LOOKS, Operation, Order, Reading, Source};
use super::{Key, Place};
use crate::sync::Random;
use std::ops::Bound;

pub(super) fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// Draws a key from two districts. In half of the cases the key is one of a few, and otherwise from
/// a range that fills several leaves.
fn a_key(random: &mut Random) -> Key {
    let number = if random.below(2) == 0 { random.below(4) } else { random.below(40) };
    (1 + random.below(2) as u8, number as u16)
}

/// Draws a row. Usually no other row has its code.
fn a_row(random: &mut Random, (district, number): Key) -> Parcel {
    let own = Parcel::new(district, number);
    let code = if random.below(8) == 0 { random.below(20) as u32 } else { own.code };
    let (shelf, owner, colour) =
        (random.below(3) as u8, random.below(4) as i8 - 2, random.below(3) as u8);
    let (weight, count, note) =
        (random.below(20) as i64, random.below(500) as i16, random.below(100));
    Parcel { code, shelf, owner, colour, weight, count, note, ..own }
}

fn a_code(random: &mut Random) -> u32 {
    let (district, number) = a_key(random);
    if random.below(3) == 0 { random.below(20) as u32 } else { Parcel::new(district, number).code }
}

fn a_bound<K>(random: &mut Random, key: K) -> Bound<K> {
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

fn a_place(random: &mut Random) -> Place {
    (random.below(3) as u8, random.below(4) as i8 - 2)
}

fn a_reading(random: &mut Random, rules: Rules) -> Reading {
    let source = match random.below(if rules.indexed { 14 } else { 6 }) {
        0 => Source::All,
        1 => Source::District(random.below(4) as u8),
        2..6 => {
            let (lower, upper) = (a_key(random), a_key(random));
            // Sometimes the bounds stay in the wrong order.
            let swap = lower > upper && random.below(5) > 0;
            let (lower, upper) = if swap { (upper, lower) } else { (lower, upper) };
            Source::Range(a_bound(random, lower), a_bound(random, upper))
        }
        6 => Source::Code(a_code(random)),
        7 => Source::Colour(random.below(3) as u8),
        8 => Source::Place(a_place(random)),
        9 => Source::Shelf(random.below(4) as u8),
        10 | 11 => {
            let (lower, upper) = (a_code(random), a_code(random));
            Source::Codes(a_bound(random, lower.min(upper)), a_bound(random, lower.max(upper)))
        }
        _ => {
            let (lower, upper) = (a_place(random), a_place(random));
            let (lower, upper) = (lower.min(upper), lower.max(upper));
            Source::Places(a_bound(random, lower), a_bound(random, upper))
        }
    };
    let source = match source {
        Source::Range(..) | Source::District(_) | Source::Codes(..) if !rules.has_ranges => {
            Source::All
        }
        source => source,
    };
    let is_one_way = matches!(source, Source::All | Source::Code(_) | Source::Colour(_));
    let order = match random.below(4) {
        1 if !is_one_way => Order::Reverse,
        2 | 3 if !is_one_way => Order::BothEnds(random.below(256) as u8),
        _ => Order::Forward,
    };
    Reading { source, order, look: LOOKS[below(random, LOOKS.len())] }
}

fn a_blind_update(random: &mut Random) -> Blind {
    match random.below(18) {
        0..4 => Blind::Weight(random.below(9) as i64),
        // This guard mostly holds.
        4..6 => Blind::Guarded(random.below(3) as i64),
        6 => Blind::Guarded(15),
        7..10 => Blind::Count(random.below(9) as i16),
        10 => Blind::Count(i16::MAX - 200),
        11 | 12 => Blind::Note(random.below(200)),
        13 | 14 => Blind::Three(random.below(5) as i64, random.below(50)),
        15 | 16 => Blind::Scale(random.below(5) as i16 - 2, random.below(50) as i16),
        _ => Blind::Double,
    }
}

fn a_change(random: &mut Random) -> Change {
    match random.below(8) {
        0 => Change::Weight(1),
        1 | 2 => Change::Code(a_code(random)),
        3 => Change::Place(random.below(3) as u8, random.below(4) as i8 - 2),
        4 | 5 => Change::Colour(random.below(3) as u8),
        6 => Change::CodeAndNote(a_code(random), random.below(100)),
        _ => {
            let key = a_key(random);
            Change::Whole(a_row(random, key))
        }
    }
}

pub(super) fn an_operation(random: &mut Random, rules: Rules) -> Operation {
    let key = a_key(random);
    let look = LOOKS[below(random, LOOKS.len())];
    match random.below(40) {
        0..3 => Operation::Get(key, look),
        3 | 4 => Operation::GetForUpdate(key, look),
        5..8 => Operation::Insert(a_row(random, key)),
        8 | 9 => Operation::InsertIfAbsent(a_row(random, key)),
        10..13 => {
            let count = random.below(20) as u16;
            let numbers = key.1..key.1 + count;
            Operation::InsertMany(numbers.map(|number| a_row(random, (key.0, number))).collect())
        }
        13..16 => Operation::Put(a_row(random, key)),
        16 | 17 => Operation::Upsert(a_row(random, key), a_blind_update(random)),
        18 | 19 => Operation::Update(key, a_blind_update(random)),
        20 => Operation::UpdateIfPresent(key, a_blind_update(random)),
        21 => Operation::UpdateCode(key, a_code(random)),
        22 | 23 => Operation::Modify(key, a_change(random)),
        24 => Operation::ModifyIfPresent(key, a_change(random)),
        25 => Operation::ModifyByCode(a_code(random), a_change(random)),
        26 => Operation::GetByCode(a_code(random), look),
        27..30 => Operation::Delete(key),
        30 => Operation::DeleteIfPresent(key),
        31 if random.below(8) == 0 => Operation::Clear,
        31..34 => Operation::Take(a_reading(random, rules), below(random, 12)),
        34..37 => Operation::Open(a_reading(random, rules)),
        _ => Operation::Step(below(random, 8), below(random, 10)),
    }
}
