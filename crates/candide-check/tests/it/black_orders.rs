//! Histories of registers whose writers did not read first, so that no rule tells the order of
//! their writes by itself: the checker against all orders of their transactions.

use candide_check::black::RegisterOp::{self, Read, Write};
use candide_check::black::{Options, Outcome, Transaction, check_registers};
use candide_check::{Anomaly, Verdict};
use fastrand::Rng;
use std::collections::HashMap;

const PLAIN: Options = Options { sessions: false, real_time: false };
const HISTORIES: u64 = 2_000;

fn write(key: u64, value: u64) -> RegisterOp {
    Write { key, value }
}

fn read(key: u64, value: u64) -> RegisterOp {
    Read { key, value: Some(value) }
}

/// Committed transactions of sessions of their own, all at the same time.
fn together(transactions: &[&[RegisterOp]]) -> Vec<Transaction<RegisterOp>> {
    let transaction = |(session, operations): (u64, &&[RegisterOp])| Transaction {
        session,
        invoked: 0,
        completed: 9,
        outcome: Outcome::Committed,
        operations: operations.to_vec(),
    };
    (0..).zip(transactions).map(transaction).collect()
}

/// One to six transactions with a few reads and writes of three registers. Reads return any value
/// that is the last one that some transaction writes, or none.
fn drawn(rng: &mut Rng) -> Vec<Transaction<RegisterOp>> {
    let keys = rng.u64(1..=3);
    let reads_often = rng.bool();
    let mut asked: Vec<Vec<(u64, Option<u64>)>> = Vec::new();
    let mut value = 0;
    for _ in 0..rng.usize(1..=6) {
        let mut operations = Vec::new();
        for key in 0..keys {
            let reads = rng.u8(0..4) < if reads_often { 3 } else { 2 };
            if reads {
                operations.push((key, None));
            }
            if rng.u8(0..3) == 0 {
                value += 1;
                operations.push((key, Some(value)));
            }
        }
        rng.shuffle(&mut operations);
        asked.push(operations);
    }
    let outcomes: Vec<Outcome> = asked
        .iter()
        .map(|_| match rng.u8(0..12) {
            0 => Outcome::Unknown,
            1 => Outcome::Aborted,
            _ => Outcome::Committed,
        })
        .collect();
    let told = |place: usize, key: u64, rng: &mut Rng| {
        let mut values: Vec<Option<u64>> = Vec::new();
        for (other, operations) in asked.iter().enumerate() {
            if other != place && outcomes[other] != Outcome::Aborted {
                values.extend(
                    operations
                        .iter()
                        .filter(|(of, value)| *of == key && value.is_some())
                        .map(|(_, value)| *value),
                );
            }
        }
        if values.is_empty() || rng.u8(0..8) == 0 {
            values.push(None);
        }
        values[rng.usize(..values.len())]
    };
    let mut history = Vec::new();
    for (place, operations) in asked.iter().enumerate() {
        let mut own: HashMap<u64, u64> = HashMap::new();
        let mut answered = Vec::new();
        for &(key, value) in operations {
            if let Some(value) = value {
                own.insert(key, value);
                answered.push(Write { key, value });
            } else {
                let value = own.get(&key).copied().or_else(|| told(place, key, rng));
                answered.push(Read { key, value });
            }
        }
        let invoked = rng.u64(0..20);
        history.push(Transaction {
            session: rng.u64(0..3) * 10 + place as u64,
            invoked,
            completed: invoked + rng.u64(0..20),
            outcome: outcomes[place],
            operations: answered,
        });
    }
    history
}

/// Returns whether one of all orders of the committed transactions, and of those with an unknown
/// outcome that are `in_effect`, gives every committed one what it was told, and agrees with real
/// time if that counts.
fn is_explained(
    history: &[Transaction<RegisterOp>],
    order: &mut Vec<usize>,
    in_effect: &[usize],
    real_time: bool,
) -> bool {
    if order.len() == in_effect.len() {
        let mut registers: HashMap<u64, u64> = HashMap::new();
        for (number, &place) in order.iter().enumerate() {
            let late = |later: &usize| {
                history[*later].outcome == Outcome::Committed
                    && history[*later].completed < history[place].invoked
            };
            if real_time && order[number..].iter().any(late) {
                return false;
            }
            for operation in &history[place].operations {
                match *operation {
                    Write { key, value } => _ = registers.insert(key, value),
                    Read { key, value } => {
                        let counts = history[place].outcome == Outcome::Committed;
                        if counts && registers.get(&key).copied() != value {
                            return false;
                        }
                    }
                }
            }
        }
        return true;
    }
    in_effect.iter().any(|&next| {
        if order.contains(&next) {
            return false;
        }
        order.push(next);
        let found = is_explained(history, order, in_effect, real_time);
        order.pop();
        found
    })
}

fn has_order(history: &[Transaction<RegisterOp>], real_time: bool) -> bool {
    let of = |outcome| (0..history.len()).filter(move |at| history[*at].outcome == outcome);
    let unknown: Vec<usize> = of(Outcome::Unknown).collect();
    (0..1_u32 << unknown.len()).any(|chosen| {
        let took_effect = (0..).zip(&unknown).filter(|(bit, _)| chosen & 1 << bit != 0);
        let in_effect: Vec<usize> =
            of(Outcome::Committed).chain(took_effect.map(|(_, place)| *place)).collect();
        is_explained(history, &mut Vec::new(), &in_effect, real_time)
    })
}

#[test]
fn registers_are_accepted_if_and_only_if_an_exhaustive_search_finds_an_order() {
    for real_time in [false, true] {
        let (mut accepted, mut refused, mut without_cycle, mut unknown) = (0, 0, 0, 0);
        for seed in 0..HISTORIES {
            let history = drawn(&mut Rng::with_seed(seed));
            let verdict = check_registers(&history, Options { sessions: false, real_time });
            let is_good = has_order(&history, real_time);
            match verdict {
                Verdict::Serializable => {
                    assert!(is_good, "seed {seed}: accepted {history:#?}");
                    accepted += 1;
                }
                Verdict::Violated(violation) => {
                    assert!(!is_good, "seed {seed}: {violation}{history:#?}");
                    refused += 1;
                    without_cycle += u32::from(violation.anomaly == Anomaly::NoSerialOrder);
                }
                Verdict::Inconclusive(_) => unknown += 1,
            }
        }
        println!(
            "real time {real_time}: {accepted} accepted, {refused} refused, {without_cycle} of them without a cycle, {unknown} unknown"
        );
        assert_eq!(unknown, 0, "so small a search comes to its end");
        assert!(accepted > 300 && refused > 300, "too few good or bad histories to tell");
    }
}

/// Neither of two writers has read; two readers see their writes in opposite orders.
#[test]
fn a_long_fork_of_registers_is_refused_with_its_reads() {
    let history = together(&[
        &[write(0, 10), write(1, 20)],
        &[write(0, 11)],
        &[read(0, 11), read(1, 20)],
        &[write(1, 21)],
        &[read(1, 21), read(0, 10)],
    ]);
    let Verdict::Violated(violation) = check_registers(&history, PLAIN) else {
        panic!("a long fork has no serial order")
    };
    assert_eq!(violation.anomaly, Anomaly::AntiDependencyCycle, "{violation}");
    assert_eq!(
        violation.to_string(),
        "G2-item, anti-dependency cycle: Each of these transactions read a version that the next one replaced, in a cycle.
  T1: session 4 at 0..9
  T2: session 1 at 0..9
  T3: session 2 at 0..9
  T4: session 3 at 0..9
  T1 comes before T2: T1 read value 10 of key 0 and T2 wrote value 11 after it (rw), since session 0 at 0..9, which wrote 10, comes before T2
  T2 comes before T3: T3 read value 11 of key 0, which T2 wrote (wr)
  T3 comes before T4: T3 read value 20 of key 1 and T4 wrote value 21 after it (rw), since session 0 at 0..9, which wrote 20, comes before T4
  T4 comes before T1: T1 read value 21 of key 1, which T4 wrote (wr)
"
    );
    // Each of the two readers by itself has an order.
    for left_out in [2, 4] {
        let mut history = history.clone();
        history.remove(left_out);
        assert_eq!(check_registers(&history, PLAIN), Verdict::Serializable);
    }
}
