//! Histories of many threads whose texts name their writers. Beside each text is the number of the
//! operation that has written it, in the same unit, and the text follows from the number. So a text
//! that is read from memory of another one, or from a block that has been freed, shows itself,
//! whatever the recorder says of the versions.

use super::super::blocks::settled;
use crate::engine::{Properties, Protocol, Versioned};
use crate::protocols::Recorded;
use crate::schema::{Refused, Updater};
use crate::sync::size::{share, stress};
use crate::sync::{AtomicU64, Duration, Mutex, Ordering, Random, lock, thread};
use crate::tests::properties;
use crate::tests::random_transactions::Judge;
use crate::tests::threads::spawn;
use crate::{Abort, Column, Database, RunOptions, Session, Table, Tx, Whole};
use candide_check::Options;
use candide_derive::Record;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
struct Letter {
    #[key]
    id: u64,
    writer: u64,
    text: String,
    read: u64,
    #[group(envelope)]
    sealer: u64,
    #[group(envelope)]
    seal: Option<Vec<u8>>,
    #[group(envelope)]
    opened: i64,
}

/// The number of keys.
const KEYS: u64 = 6;
const LENGTHS: [usize; 9] = [100, 8, 7, 20, 0, 300, 1, 9, 5_000];
const KINDS: u64 = 23;
/// The kinds that only read have the lowest numbers.
const READS: u64 = 5;

/// Returns the text of a writer.
fn text(writer: u64) -> String {
    let length = match writer % 101 {
        100 => 70_000,
        _ => LENGTHS[writer as usize % LENGTHS.len()],
    };
    format!("{writer:x},").chars().cycle().take(length).collect()
}

/// Returns the seal of a writer; one in five has none.
fn seal(writer: u64) -> Option<Vec<u8>> {
    (!writer.is_multiple_of(5)).then(|| text(writer / 5).into_bytes())
}

impl Letter {
    fn new(id: u64, writer: u64) -> Letter {
        let (text, seal) = (text(writer), seal(writer));
        Letter { id, writer, text, read: 0, sealer: writer, seal, opened: 0 }
    }
}

/// An updater that never fails.
#[derive(Clone, Copy)]
struct Open;

impl Updater<Letter> for Open {
    type Target = Column<Letter, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Letter::OPENED
    }

    fn apply(&self, opened: &mut i64) -> Result<(), Refused> {
        *opened = opened.wrapping_mul(3);
        Ok(())
    }
}

/// Letters that many threads write.
struct Post<P: Protocol> {
    db: Database<Recorded<P>>,
    letters: Table<Letter, Recorded<P>>,
    /// The number of operations that have written.
    writers: AtomicU64,
    /// What was seen and was wrong, in attempts that had no effect, too.
    wrong: Mutex<Vec<String>>,
}

impl<P: Protocol> Post<P> {
    fn new(splitting: bool) -> Post<P> {
        let builder = Database::<Recorded<P>>::builder().timestamp_splitting(splitting);
        let db = builder.passing_epochs().build().unwrap();
        let letters = db.table("letters").unwrap();
        Post { db, letters, writers: AtomicU64::new(0), wrong: Mutex::default() }
    }

    fn writer(&self) -> u64 {
        self.writers.fetch_add(1, Ordering::Relaxed)
    }

    fn check_text(&self, (writer, seen): (u64, String)) {
        if seen != text(writer) {
            let seen: String = seen.chars().take(40).collect();
            lock(&self.wrong).push(format!("text {seen:?} of writer {writer:x}"));
        }
    }

    fn check_seal(&self, (sealer, seen): (u64, Option<Vec<u8>>)) {
        if seen != seal(sealer) {
            let seen =
                seen.map(|seen| String::from_utf8_lossy(&seen[..seen.len().min(40)]).into_owned());
            lock(&self.wrong).push(format!("seal {seen:?} of writer {sealer:x}"));
        }
    }

    fn check(&self, letter: Letter) {
        self.check_text((letter.writer, letter.text));
        self.check_seal((letter.sealer, letter.seal));
    }

    fn carry_out(&self, tx: &Tx<'_, Recorded<P>>, what: u64, key: u64) -> Result<(), Abort> {
        let letters = &self.letters;
        let both = (Letter::WRITER, Letter::TEXT);
        let writer = self.writer();
        match what {
            0 => letters.get(tx, key, Whole)?.into_iter().for_each(|letter| self.check(letter)),
            1 => letters.get(tx, key, both)?.into_iter().for_each(|seen| self.check_text(seen)),
            2 => {
                let seen = letters.get(tx, key, (Letter::SEALER, Letter::SEAL))?;
                seen.into_iter().for_each(|seen| self.check_seal(seen));
            }
            3 => letters.scan(tx, .., both).for_each(|(_, seen)| self.check_text(seen))?,
            4 => {
                letters.rows(tx, key..).collect_rows()?.into_iter().for_each(|row| self.check(row))
            }
            5 | 6 => letters.put(tx, Letter::new(key, writer))?,
            7 => drop(letters.insert_if_absent(tx, Letter::new(key, writer))?),
            8 | 9 => letters.update(
                tx,
                key,
                (Letter::WRITER.set(writer), Letter::TEXT.set(text(writer))),
            )?,
            10 => letters.update(
                tx,
                key,
                (Letter::SEALER.set(writer), Letter::SEAL.set(seal(writer).as_deref())),
            )?,
            // A delta, where there are some.
            11 => letters.update(tx, key, Letter::OPENED.wrapping_add(1))?,
            12 => letters.update(tx, key, Letter::READ.wrapping_add(1))?,
            13 => letters.modify(tx, key, Whole, |letter| {
                self.check(letter.clone());
                *letter = Letter { read: letter.read, ..Letter::new(key, writer) };
            })?,
            14 => letters.modify(tx, key, both, |seen| {
                let before = std::mem::replace(seen, (writer, text(writer)));
                self.check_text(before);
            })?,
            15 => drop(letters.delete_if_present(tx, key)?),
            16 => {
                letters.delete_if_present(tx, key)?;
                letters.insert(tx, Letter::new(key, writer))?;
            }
            17 => {
                let seen = letters.get_for_update(tx, key, both)?;
                seen.into_iter().for_each(|seen| self.check_text(seen));
                letters.update_if_present(tx, key, Letter::READ.set(writer))?;
                letters.update_if_present(tx, key, Letter::READ.set(writer))?;
            }
            18 => {
                // The rows are as they were when the scan was made.
                let mut scan = letters.scan(tx, .., both);
                let first = scan.next().transpose()?;
                letters.put(tx, Letter::new(key, writer))?;
                scan.chain(first.map(Ok)).try_for_each(|seen| {
                    self.check_text(seen?.1);
                    Ok::<_, Abort>(())
                })?;
            }
            // Operations that make an image of the unit, which repeats the words of texts.
            19 => {
                let read = letters.defer(tx, key, Letter::READ, (), |read, ()| *read += 1);
                read.map(drop)?;
            }
            20 => letters.update_with(tx, key, Open)?,
            21 => drop(letters.is_within(tx, key, Letter::OPENED, 0..3)?),
            _ => thread::yield_now(),
        }
        Ok(())
    }

    /// Draws a transaction and runs it.
    fn step(&self, random: &mut Random, kinds: u64, run: Run<'_, P>) {
        let script: Vec<_> = (0..1 + random.below(4))
            .map(|_| (random.below(kinds), random.below(KEYS), random.below(5)))
            .collect();
        let ending = random.below(10);
        let mut body = |tx: &Tx<'_, Recorded<P>>| {
            for &(what, key, part) in &script {
                let done = match part {
                    0 => tx.attempt(|tx| {
                        self.carry_out(tx, what, key)?;
                        self.carry_out(tx, READS + 8, key)?;
                        self.carry_out(tx, READS, key)?;
                        self.carry_out(tx, READS + 3, key)?;
                        Err(Abort::NotFound)
                    }),
                    1 => tx.attempt(|tx| self.carry_out(tx, what, key)),
                    _ => self.carry_out(tx, what, key),
                };
                match done {
                    // A transaction that only reads refuses what its undone parts write.
                    Err(Abort::NotFound | Abort::Duplicate | Abort::Guard) => {}
                    Err(Abort::NotYet | Abort::ReadOnly) => {}
                    done => done?,
                }
            }
            match ending {
                0 => Err(Abort::NotFound),
                1 => resume_unwind(Box::new(Ending)),
                2 if kinds == KINDS => {
                    let guarded = Letter::OPENED.sub(1 << 60).at_least(0);
                    self.letters.update_if_present(tx, script[0].1, guarded).map(drop)
                }
                _ => Ok(()),
            }
        };
        match catch_unwind(AssertUnwindSafe(|| run(&mut body))) {
            Ok(Ok(()) | Err(Abort::NotFound | Abort::Guard | Abort::NotYet)) => {}
            Ok(Err(abort)) => panic!("{}: {abort}", P::NAME),
            Err(panic) if panic.is::<Ending>() => {}
            Err(panic) => resume_unwind(panic),
        }
    }

    fn step_now(&self, session: &mut Session<Recorded<P>>, random: &mut Random) {
        // A transaction that fails this often has met a defect.
        let options = RunOptions::new().attempts_max(20_000);
        match random.below(10) {
            0 => {
                let options = options.read_only();
                self.step(random, READS, &mut |body| session.with(options).run(body));
            }
            1 => {
                let key = random.below(KEYS);
                let seen = self.letters.get_now(session, key, (Letter::WRITER, Letter::TEXT));
                seen.unwrap().into_iter().for_each(|seen| self.check_text(seen));
            }
            _ => self.step(random, KINDS, &mut |body| session.with(options).run(body)),
        }
    }

    /// Asserts that all that was read was as written, that the history is serializable, and that
    /// the only blocks in use are those of the rows.
    fn end(&self, mut judge: Judge) -> u64 {
        judge.hear(&self.db.take_history());
        let wrong = std::mem::take(&mut *lock(&self.wrong));
        assert!(wrong.is_empty(), "{}: {wrong:?}", P::NAME);
        let rows = self.db.run(|tx| self.letters.rows(tx, ..).collect_rows()).unwrap();
        let lengths = rows
            .iter()
            .flat_map(|letter| [letter.text.len(), letter.seal.as_ref().map_or(0, Vec::len)]);
        settled(&self.db, || lengths.clone().filter(|&length| length > 7).count());
        rows.into_iter().for_each(|letter| self.check(letter));
        assert!(lock(&self.wrong).is_empty(), "{}: {:?}", P::NAME, self.wrong);
        judge.judge()
    }
}

/// The panic of a transaction's own code.
struct Ending;

type Run<'a, P> = &'a mut dyn FnMut(
    &mut dyn FnMut(&Tx<'_, Recorded<P>>) -> Result<(), Abort>,
) -> Result<(), Abort>;

fn histories<P: Protocol>(splitting: bool) {
    let Properties { name, strict, opaque, one_session, .. } = properties::<P>();
    let threads = if one_session { 1 } else { 5 };
    let steps = share(1_500) * stress();
    let post = Post::<P>::new(splitting);
    let options = Options { strict, opaque, horizon: 1 << 20 };
    let mut judge = Judge::new(options, format!("{name}, splitting {splitting}"));
    std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (post, mut session) = (&post, post.db.session().unwrap());
            spawn(scope, move || {
                let mut random = Random::seeded(thread << 1 | u64::from(splitting));
                (0..steps).for_each(|_| post.step_now(&mut session, &mut random));
            })
        };
        let workers: Vec<_> = (0..threads).map(work).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            judge.hear(&post.db.take_history());
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    assert!(post.end(judge) >= threads * steps * 4 / 5);
}

protocol_tests!(all: texts_name_their_writers_in_random_histories = histories(true));
protocol_tests!(all: texts_name_their_writers_in_random_histories_of_whole_rows = histories(false));

protocol_tests!(versioned: texts_name_their_writers_in_snapshots = histories_with_snapshots());
fn histories_with_snapshots<P: Versioned>() {
    let Properties { name, strict, opaque, .. } = properties::<P>();
    let steps = share(1_500) * stress();
    for splitting in [false, true] {
        let post = Post::<P>::new(splitting);
        let options = Options { strict, opaque, horizon: 1 << 24 };
        let mut judge = Judge::new(options, format!("{name}, splitting {splitting}"));
        std::thread::scope(|scope| {
            let work = |thread: u64| {
                let (post, mut session) = (&post, post.db.session().unwrap());
                spawn(scope, move || {
                    let mut random = Random::seeded(thread << 1 | u64::from(splitting));
                    let mut snapshots = Vec::new();
                    for step in 0..steps {
                        post.step_now(&mut session, &mut random);
                        if thread > 1 {
                            continue;
                        }
                        // Old snapshots among them, which outlive many versions and epochs.
                        if snapshots.len() < 6 {
                            snapshots.push(post.db.snapshot());
                        } else if step % 8 == 0 {
                            drop(snapshots.remove(random.below(6) as usize));
                        }
                        let snapshot = &snapshots[random.below(snapshots.len() as u64) as usize];
                        let run: Run<'_, P> = &mut |body| snapshot.run_in(&mut session, body);
                        post.step(&mut random, READS, run);
                    }
                })
            };
            let workers: Vec<_> = (0..4).map(work).collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                judge.hear(&post.db.take_history());
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        post.end(judge);
    }
}
