//! Histories of transactions whose keys follow from the results of steps. A share of those that
//! write also reads, so that they are wild under the policy `pipelined`.
//!
//! Each ring has a row for the number of its newest job and one for that of its oldest. Jobs lie in
//! a few slots, by their numbers, and a slot may be taken or empty.

use super::random_transactions::Judge;
use super::rows::Item;
use super::threads::spawn;
use super::{properties, under_erased};
use crate::any::Erased;
use crate::engine::{Properties, Protocol};
use crate::policy::Policy;
use crate::protocols::{Occ, Recorded};
use crate::sync::size::{share, stress};
use crate::sync::{Duration, Point, Random, thread, with_hook};
use crate::{Abort, Database, Error, Later, RunOptions, Session, Table, Tx};
use candide_check::Options;

const RINGS: u64 = 2;
/// The number of slots of a ring.
const SLOTS: u64 = 3;

protocol_tests!(erased: histories_with_late_keys_satisfy_the_guarantees_of_protocols);
fn histories_with_late_keys_satisfy_the_guarantees_of_protocols<P: Protocol>() {
    histories::<P>(50);
}

#[test]
fn histories_with_late_keys_beside_wild_transactions_are_strict() {
    under_erased::<Occ, _>(Policy::Pipelined.into(), || {
        for wild in [0, 10, 50, 100] {
            let late = histories::<Erased>(wild);
            assert_eq!(late > 0, wild < 100, "{wild} % are wild, and {late} commits found keys");
        }
    });
}

/// Records and judges transactions, of which `wild` in a hundred read something. Returns the number
/// of commits that have found rows by keys of their own steps, if the policy is `pipelined`.
fn histories<P: Protocol>(wild: u64) -> u64 {
    let Properties { name, strict, opaque, one_session, .. } = properties::<P>();
    let threads = if one_session { 1 } else { 6 };
    let steps = share(600) * stress();
    let db = Database::<Recorded<P>>::builder().timestamp_splitting(true).build().unwrap();
    let rings = Rings::new(db);
    let options = Options { strict, opaque, horizon: 1 << 20 };
    let mut judge = Judge::new(options, format!("{name}, {wild} % wild"));
    // Chains have more members if threads stop in their pipelines.
    let stop = |point| {
        if matches!(point, Point::Relaxed | Point::Evaluated | Point::Executed) {
            thread::yield_now();
        }
    };
    let work = |number| {
        let mut session = rings.db.session().unwrap();
        let mut random = Random::seeded(number << 7 | wild);
        let mut step = |_: &u64| rings.step(&mut session, &mut random, wild);
        with_hook(stop, || (0..steps).filter(&mut step).count() as u64)
    };
    let late = std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> =
            (0..threads).map(|number| spawn(scope, move || work(number))).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            judge.hear(&rings.db.take_history());
            std::thread::sleep(Duration::from_millis(1));
        }
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    rings.check();
    judge.hear(&rings.db.take_history());
    let judged = judge.judge();
    assert!(judged >= threads * steps, "{judged} transactions were judged");
    late
}

struct Rings<P: Protocol> {
    db: Database<Recorded<P>>,
    /// The numbers of the newest and the oldest job of each ring.
    ends: Table<Item, Recorded<P>>,
    jobs: Table<Item, Recorded<P>>,
    /// Two parts for each slot: one that comes and goes with the job, and one that stays.
    parts: Table<Item, Recorded<P>>,
}

/// Returns the number of attempts that were not tame.
fn not_tame<P: Protocol>(session: &Session<P>) -> u64 {
    let locks = session.stats().locks;
    let wild = locks.wild_reads + locks.wild_keys + locks.wild_others;
    wild + locks.unchained_holds + locks.unchained_late + locks.unchained_others
}

/// What a transaction does with a ring.
#[derive(Debug, Clone, Copy)]
enum Step {
    Push,
    Pop,
    /// Changes the newest job.
    Touch,
    /// Changes a part whose key is known.
    Known,
    /// Only reads.
    Look,
}

impl<P: Protocol> Rings<P> {
    fn new(db: Database<Recorded<P>>) -> Rings<P> {
        let [ends, jobs, parts] =
            ["ends", "jobs", "parts"].map(|name| db.table::<Item>(name).unwrap());
        for (table, rank) in [(&ends, 1), (&jobs, 2), (&parts, 3)] {
            let ranked = table.set_rank(rank);
            assert!(matches!(ranked, Ok(()) | Err(Error::NoPolicies { .. })), "{ranked:?}");
        }
        // Some protocols have one session at a time.
        let mut session = db.session().unwrap();
        let filled = session.run(|tx| {
            (0..2 * RINGS).try_for_each(|id| ends.insert(tx, Item::new(id, 0)))?;
            (0..RINGS * SLOTS).try_for_each(|slot| parts.insert(tx, Item::new(2 * slot + 1, 0)))
        });
        filled.unwrap_or_else(|abort: Abort| panic!("{}: {abort}", P::NAME));
        drop(session);
        Rings { db, ends, jobs, parts }
    }

    /// Draws a transaction, and runs it. Returns whether its commit has found rows by keys of its
    /// own steps, if the policy is `pipelined`.
    fn step(&self, session: &mut Session<Recorded<P>>, random: &mut Random, wild: u64) -> bool {
        let step = match random.below(12) {
            0..4 => Step::Push,
            4..8 => Step::Pop,
            8 | 9 => Step::Touch,
            10 => Step::Known,
            _ => Step::Look,
        };
        let (ring, slot) = (random.below(RINGS), random.below(RINGS * SLOTS));
        let is_wild = random.below(100) < wild;
        let reads_first = random.below(2) == 0;
        let before = not_tame(session);
        // A transaction that fails this often has met a defect.
        let options = RunOptions::new().attempts_max(20_000);
        let ended = session.with(options).run(|tx| {
            if is_wild && reads_first {
                self.jobs.get(tx, slot, Item::COUNT)?;
            }
            self.carry_out(tx, step, ring, slot)?;
            if is_wild && !reads_first {
                self.jobs.get(tx, slot, Item::COUNT)?;
            }
            Ok(())
        });
        match ended {
            Ok(()) => {}
            // `NotYet`: it has read a row that its own step changes.
            Err(Abort::NotFound | Abort::Duplicate | Abort::NotYet) => return false,
            Err(abort) => panic!("{}: {step:?}: {abort}", P::NAME),
        }
        let has_keys = matches!(step, Step::Push | Step::Pop | Step::Touch);
        has_keys && not_tame(session) == before
    }

    fn carry_out(
        &self,
        tx: &Tx<'_, Recorded<P>>,
        step: Step,
        ring: u64,
        known: u64,
    ) -> Result<(), Abort> {
        let Rings { ends, jobs, parts, .. } = self;
        match step {
            Step::Push => {
                let slot = self.slot(tx, ring, 2 * ring, 1)?;
                let key = slot.map(|&slot| Some(slot));
                jobs.defer_insert_at(tx, &key, slot.map(|&slot| Item::new(slot, 1)))?;
                let part = slot.map(|&slot| Item::new(2 * slot, 1));
                parts.defer_insert_at(tx, &slot.map(|&slot| Some(2 * slot)), part)?;
                self.count_part(tx, &slot)
            }
            Step::Pop => {
                let slot = self.slot(tx, ring, 2 * ring + 1, 1)?;
                jobs.defer_delete_at(tx, &slot.map(|&slot| Some(slot)))?;
                parts.defer_delete_at(tx, &slot.map(|&slot| Some(2 * slot)))?;
                self.count_part(tx, &slot)
            }
            Step::Touch => {
                let slot = self.slot(tx, ring, 2 * ring, 0)?;
                let key = slot.map(|&slot| Some(slot));
                jobs.defer_at(tx, &key, Item::COUNT, (), |count, ()| *count += 1).map(drop)
            }
            Step::Known => parts.update(tx, 2 * known + 1, Item::OTHER.add(1)),
            Step::Look => {
                (0..2 * RINGS).try_for_each(|id| ends.get(tx, id, Item::COUNT).map(drop))?;
                (0..RINGS * SLOTS).try_for_each(|id| jobs.get(tx, id, Item::COUNT).map(drop))
            }
        }
    }

    /// Adds to the number of an end of a ring, and returns the slot of the job with this number.
    fn slot(
        &self,
        tx: &Tx<'_, Recorded<P>>,
        ring: u64,
        end: u64,
        added: i64,
    ) -> Result<Later<u64>, Abort> {
        self.ends.defer(tx, end, Item::COUNT, (), move |count, ()| {
            *count += added;
            ring * SLOTS + *count as u64 % SLOTS
        })
    }

    /// Counts a change of a slot in the part of the slot that stays, for some slots.
    fn count_part(&self, tx: &Tx<'_, Recorded<P>>, slot: &Later<u64>) -> Result<(), Abort> {
        let key = slot.map(|&slot| slot.is_multiple_of(2).then_some(2 * slot + 1));
        self.parts.defer_at(tx, &key, Item::COUNT, (), |count, ()| *count += 1).map(drop)
    }

    /// Checks that the jobs are those whose numbers are between the ends of their rings, and that
    /// each change of a slot was counted.
    fn check(&self) {
        let Rings { db, ends, jobs, parts } = self;
        for ring in 0..RINGS {
            let read = |table: &Table<Item, Recorded<P>>, key| {
                db.run(|tx| table.get(tx, key, Item::COUNT)).unwrap()
            };
            let [newest, oldest] = [0, 1].map(|end| read(ends, 2 * ring + end).unwrap() as u64);
            for number in newest.saturating_sub(SLOTS - 1)..=newest {
                let slot = ring * SLOTS + number % SLOTS;
                let is_there = number > oldest;
                assert_eq!(read(jobs, slot).is_some(), is_there, "{}: job {number}", P::NAME);
                assert_eq!(read(parts, 2 * slot), is_there.then_some(1), "{}", P::NAME);
                // The numbers up to each end that lie in this slot.
                let changes = [newest, oldest].map(|end| (end + SLOTS - number % SLOTS) / SLOTS);
                let changes =
                    changes.iter().sum::<u64>() as i64 - 2 * i64::from(number % SLOTS == 0);
                let counted = if slot.is_multiple_of(2) { changes } else { 0 };
                assert_eq!(read(parts, 2 * slot + 1), Some(counted), "{}: slot {slot}", P::NAME);
            }
        }
    }
}
