//! What scenes are made of and played on.

use super::super::indexed_rows::{Filed, Parcel};
use super::super::random_transactions::{Judge, Mix};
use super::super::rows::Item;
use super::values::Log;
use crate::engine::Protocol;
use crate::epoch::Collect;
use crate::index::Found;
use crate::protocols::Recorded;
use crate::protocols::recorded::Event;
use crate::schema::Unit;
use crate::sync::{Random, thread};
use crate::{Abort, Database, Session, Table, TableOptions, Tx};
use candide_check::Options;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The bits of a seed that say how the database is built.
pub(super) fn options<P: Protocol>() -> u64 {
    if P::TIMESTAMPS.len() > 1 { 15 } else { 7 }
}

/// What happened in how many schedules.
pub(super) type Seen = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// What one of the threads does.
pub(super) type Part<P> = fn(&mut Actor<'_, P>);

/// A small program of a few threads. Its history is judged; what else must hold, it asserts.
pub(super) struct Scene<P: Protocol> {
    pub(super) name: &'static str,
    before: Part<P>,
    parts: Vec<Part<P>>,
    after: Part<P>,
    /// What must have happened in one of many schedules.
    pub(super) shows: Vec<&'static str>,
}

impl<P: Protocol> Scene<P> {
    /// A scene in which nothing happens yet. That transactions get into each other's way is the
    /// least that it must show.
    pub(super) fn new(name: &'static str) -> Scene<P> {
        Scene::peaceful(name).shows("conflict")
    }

    /// The same, of transactions that may all come through.
    pub(super) fn peaceful(name: &'static str) -> Scene<P> {
        Scene { name, before: |_| {}, parts: Vec::new(), after: |_| {}, shows: Vec::new() }
    }

    /// What is done before the parts begin.
    pub(super) fn before(self, before: Part<P>) -> Scene<P> {
        Scene { before, ..self }
    }

    /// One more thread.
    pub(super) fn part(mut self, part: Part<P>) -> Scene<P> {
        self.parts.push(part);
        self
    }

    /// What is done when the parts are over.
    pub(super) fn after(self, after: Part<P>) -> Scene<P> {
        Scene { after, ..self }
    }

    /// Asks for something to happen in some schedules.
    pub(super) fn shows(mut self, what: &'static str) -> Scene<P> {
        self.shows.push(what);
        self
    }

    /// Plays it once and has its history judged.
    pub(super) fn play(&self, seed: u64, seen: &Seen) {
        let stage = Stage::new(seed, seen.clone());
        stage.act(0, self.before);
        thread::scope(|scope| {
            for (number, part) in (1..).zip(&self.parts) {
                let stage = &stage;
                scope.spawn(move || stage.act(number, *part));
            }
        });
        stage.act(0, self.after);
        stage.judge(self.name);
    }
}

/// Where a scene is played.
pub(super) struct Stage<P: Protocol> {
    pub(super) db: Database<Recorded<P>>,
    items: Table<Item, Recorded<P>>,
    parcels: Table<Parcel, Recorded<P>>,
    filed: Table<Filed, Recorded<P>>,
    seed: u64,
    mix: OnceLock<Mix<P>>,
    /// Where records of items have been.
    places: Mutex<HashSet<u64>>,
    log: Mutex<Log>,
    seen: Seen,
}

impl<P: Protocol> Stage<P> {
    fn new(seed: u64, seen: Seen) -> Stage<P> {
        let mut builder = Database::builder()
            .timestamp_splitting(seed & 1 == 0)
            .commit_time_updates(seed & 2 == 0);
        if options::<P>() & seed & 8 != 0 {
            builder = builder.timestamps(P::TIMESTAMPS[1]);
        }
        let db: Database<Recorded<P>> = builder.build().unwrap();
        // All of them now: who makes a table waits, as the system's threads do, for who goes
        // through the list of tables.
        let options =
            if seed & 4 == 0 { TableOptions::default() } else { TableOptions::default().ordered() };
        let items = db.table_with("counters", options).unwrap();
        let (parcels, filed) = (db.table("heaps").unwrap(), db.table("filed").unwrap());
        Stage {
            db,
            items,
            parcels,
            filed,
            seed,
            mix: OnceLock::new(),
            places: Mutex::default(),
            log: Mutex::default(),
            seen,
        }
    }

    /// Lets an epoch pass.
    pub(super) fn pass(&self) {
        self.db.inner.engine.epochs.pass();
    }

    fn act(&self, number: u64, part: Part<P>) {
        let session = self.db.session().unwrap();
        part(&mut Actor {
            stage: self,
            session,
            number,
            random: Random::seeded(self.seed ^ number << 32),
        });
    }

    pub(super) fn saw(&self, what: &'static str) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    /// Demands that what has happened is what the protocol promises.
    fn judge(&self, name: &str) {
        if self.db.stats().retries > 0 {
            self.saw("conflict");
        }
        let history = self.db.take_history();
        if history.events.iter().any(|event| matches!(event, Event::Forgotten(_))) {
            self.saw("burial");
        }
        let options = Options { strict: P::STRICT, opaque: P::OPAQUE, ..Options::default() };
        let mut judge = Judge::new(options, format!("{name} under {}", P::NAME));
        judge.hear(&history);
        judge.judge();
    }
}

/// One of the threads.
pub(super) struct Actor<'a, P: Protocol> {
    pub(super) stage: &'a Stage<P>,
    pub(super) session: Session<Recorded<P>>,
    /// Its place among the parts, from one.
    pub(super) number: u64,
    pub(super) random: Random,
}

impl<'a, P: Protocol> Actor<'a, P> {
    /// A table of items, with or without an order, as the schedule's seed has it.
    pub(super) fn items(&self) -> Table<Item, Recorded<P>> {
        self.stage.items.clone()
    }

    /// A table in the order of its keys.
    pub(super) fn parcels(&self) -> Table<Parcel, Recorded<P>> {
        self.stage.parcels.clone()
    }

    /// A table with indexes.
    pub(super) fn filed(&self) -> Table<Filed, Recorded<P>> {
        self.stage.filed.clone()
    }

    /// Random transactions over few keys.
    pub(super) fn mix(&self) -> &'a Mix<P> {
        self.stage.mix.get_or_init(|| Mix::new(self.stage.db.clone(), 4))
    }

    /// Runs a transaction that has no outcome but a value.
    pub(super) fn run<T>(
        &mut self,
        body: impl FnMut(&Tx<'_, Recorded<P>>) -> Result<T, Abort>,
    ) -> T {
        self.session.run(body).unwrap_or_else(|abort| panic!("{abort}"))
    }

    /// Inserts items that all have the same count.
    pub(super) fn fill(&mut self, keys: std::ops::Range<u64>, count: i64) {
        let items = self.items();
        self.run(|tx| keys.clone().try_for_each(|key| items.insert(tx, Item::new(key, count))));
    }

    /// Lets an epoch pass.
    pub(super) fn pass(&self) {
        self.stage.pass();
    }

    /// Does what the advancer does: an epoch passes, and the garbage of sessions that do nothing is
    /// collected.
    pub(super) fn advance(&self) {
        self.pass();
        self.collect();
    }

    /// Collects the garbage of sessions that do nothing.
    pub(super) fn collect(&self) {
        let inner = &self.stage.db.inner;
        inner.collect(inner.engine.epochs.now());
    }

    /// Notes where an item's record is, and whether there was one before.
    pub(super) fn remember_place(&mut self, key: u64) {
        let (items, places) = (self.items(), &self.stage.places);
        let core = items.core();
        let again = self.run(|_| match core.index.find(&[key]) {
            Found::Record(record) => {
                let place = core.layout.at(record, Unit::ROW).address();
                Ok(!places.lock().unwrap_or_else(PoisonError::into_inner).insert(place))
            }
            _ => Ok(false),
        });
        if again {
            self.saw("memory used again");
        }
    }

    /// What transactions of all threads have been played. Nothing may be done to the database
    /// meanwhile.
    pub(super) fn log(&self) -> MutexGuard<'a, Log> {
        self.stage.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something has happened.
    pub(super) fn saw(&self, what: &'static str) {
        self.stage.saw(what);
    }
}
