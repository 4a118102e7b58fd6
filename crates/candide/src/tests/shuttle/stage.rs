//! The parts of scenes, and the stage on which a scene is played.

use super::super::indexed_rows::{Filed, Parcel};
use super::super::log::{Logged, Story, Told, Witness};
use super::super::random_transactions::{Judge, Mix};
use super::super::rows::Item;
use super::values::Log;
use crate::engine::Protocol;
use crate::epoch::Collect;
use crate::index::Found;
use crate::log::Round;
use crate::policy::by_policies;
use crate::policy::{Policies, Policy};
use crate::protocols::Recorded;
use crate::protocols::recorded::Event;
use crate::schema::Unit;
use crate::sync::{AtomicU64, Ordering, Random, thread};
use crate::{Abort, Database, Session, Table, TableOptions, Tx};
use candide_check::Options;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Returns the bits of a seed that determine how the database is built.
pub(super) fn options<P: Protocol>() -> u64 {
    if P::TIMESTAMPS.len() > 1 { 15 } else { 7 }
}

/// For each kind of event, the number of schedules in which it happened.
pub(super) type Seen = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// The part of one thread in a scene.
pub(super) type Part<P> = fn(&mut Actor<'_, P>);

/// A scene: a small program of a few threads. The history of a scene is judged. The scene itself
/// asserts all other properties.
pub(super) struct Scene<P: Protocol> {
    pub(super) name: &'static str,
    before: Part<P>,
    parts: Vec<Part<P>>,
    after: Part<P>,
    /// The policies among which the seed chooses the database's policy; empty if it has the
    /// default.
    policies: Vec<Policies>,
    /// Whether the database has a log, whose prefixes are judged, too.
    is_logged: bool,
    /// The events that must each have happened in at least one of many schedules.
    pub(super) shows: Vec<&'static str>,
}

impl<P: Protocol> Scene<P> {
    /// Makes a scene without parts. The schedules of the scene must show at least a conflict.
    pub(super) fn new(name: &'static str) -> Scene<P> {
        Scene::peaceful(name).shows("conflict")
    }

    /// Makes a scene without parts. All of its transactions may commit without a conflict.
    pub(super) fn peaceful(name: &'static str) -> Scene<P> {
        let nothing: Part<P> = |_| {};
        let (parts, policies, shows) = (Vec::new(), Vec::new(), Vec::new());
        let (before, after, is_logged) = (nothing, nothing, false);
        Scene { name, before, parts, after, policies, is_logged, shows }
    }

    /// Sets the policies among which each schedule chooses those of its database.
    pub(super) fn under(self, policies: Vec<Policies>) -> Scene<P> {
        Scene { policies, ..self }
    }

    /// Gives the database a log. The parts note their transactions ([`Actor::note`]).
    pub(super) fn logged(self) -> Scene<P> {
        Scene { is_logged: true, ..self }
    }

    /// Sets the actions before the parts begin.
    pub(super) fn before(self, before: Part<P>) -> Scene<P> {
        Scene { before, ..self }
    }

    /// Adds a thread.
    pub(super) fn part(mut self, part: Part<P>) -> Scene<P> {
        self.parts.push(part);
        self
    }

    /// Sets the actions after the parts have ended.
    pub(super) fn after(self, after: Part<P>) -> Scene<P> {
        Scene { after, ..self }
    }

    /// Requires that the event `what` happens in some schedules.
    pub(super) fn shows(mut self, what: &'static str) -> Scene<P> {
        self.shows.push(what);
        self
    }

    /// Plays the scene once, and judges its history.
    pub(super) fn play(&self, seed: u64, seen: &Seen) {
        let new = || Stage::new(seed, seen.clone(), self.is_logged);
        let stage = match self.policies.len() {
            0 => new(),
            count => by_policies(self.policies[(seed >> 32) as usize % count].clone(), new),
        };
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

/// The stage: the database and the tables with which a scene is played.
pub(super) struct Stage<P: Protocol> {
    pub(super) db: Database<Recorded<P>>,
    items: Table<Item, Recorded<P>>,
    parcels: Table<Parcel, Recorded<P>>,
    filed: Table<Filed, Recorded<P>>,
    seed: u64,
    mix: OnceLock<Mix<P>>,
    /// The tables with one policy each.
    kinds: OnceLock<[Table<Item, Recorded<P>>; Policy::ALL.len()]>,
    /// The addresses at which records of items have been.
    places: Mutex<HashSet<u64>>,
    log: Mutex<Log>,
    seen: Seen,
    /// The log of the database, and the notes about its transactions; `None` if it has no log.
    logged: Option<(Logged<Recorded<P>>, Mutex<Notes>)>,
}

/// The notes about the transactions of a database with a log.
#[derive(Default)]
struct Notes {
    witnesses: Vec<Witness>,
    told: Vec<Told>,
}

impl<P: Protocol> Stage<P> {
    fn new(seed: u64, seen: Seen, is_logged: bool) -> Stage<P> {
        let mut builder = Database::builder()
            .timestamp_splitting(seed & 1 == 0)
            .commit_time_updates(seed & 2 == 0);
        if options::<P>() & seed & 8 != 0 {
            builder = builder.timestamps(P::TIMESTAMPS[1]);
        }
        let logged = is_logged.then(|| (Logged::new(builder.clone()), Mutex::default()));
        let db: Database<Recorded<P>> = match &logged {
            Some((logged, _)) => logged.db.clone(),
            None => builder.build().unwrap(),
        };
        // All tables are made before the scene begins. A later call that makes a table could wait
        // for a thread that goes through the list of tables, by a lock of the operating system.
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
            kinds: OnceLock::new(),
            places: Mutex::default(),
            log: Mutex::default(),
            seen,
            logged,
        }
    }

    /// Lets an epoch pass.
    pub(super) fn pass(&self) {
        self.db.inner.engine.epochs.pass();
    }

    fn act(&self, number: u64, part: Part<P>) {
        let session = self.db.session().unwrap();
        let mut actor = Actor {
            stage: self,
            session,
            number,
            random: Random::seeded(self.seed ^ number << 32),
            witness: Witness::default(),
        };
        part(&mut actor);
        if let Some((_, notes)) = &self.logged {
            notes.lock().unwrap().witnesses.push(actor.witness);
        }
    }

    pub(super) fn saw(&self, what: &'static str) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    /// Asserts that the history has the guarantees of the protocol.
    fn judge(&self, name: &str) {
        let stats = self.db.stats();
        for (what, times) in [
            ("conflict", stats.retries),
            ("lock", stats.locks.taken),
            ("lock awaited", stats.locks.waited),
            ("lock refused", stats.locks.died),
            ("lock ahead", stats.locks.retrospective),
            ("order restored", stats.locks.restored),
            ("kill", stats.locks.killed),
        ] {
            if times > 0 {
                self.saw(what);
            }
        }
        if let Some((logged, notes)) = &self.logged {
            let Notes { witnesses, told } = std::mem::take(&mut *notes.lock().unwrap());
            return Story::of(logged, witnesses).assert_all(logged, &told);
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

/// A thread of a scene.
pub(super) struct Actor<'a, P: Protocol> {
    pub(super) stage: &'a Stage<P>,
    pub(super) session: Session<Recorded<P>>,
    /// The number of the thread's part, counted from one.
    pub(super) number: u64,
    pub(super) random: Random,
    witness: Witness,
}

impl<'a, P: Protocol> Actor<'a, P> {
    /// Returns a table of items. The schedule's seed determines whether the table is ordered.
    pub(super) fn items(&self) -> Table<Item, Recorded<P>> {
        self.stage.items.clone()
    }

    /// Returns an ordered table.
    pub(super) fn parcels(&self) -> Table<Parcel, Recorded<P>> {
        self.stage.parcels.clone()
    }

    /// Returns a table with indexes.
    pub(super) fn filed(&self) -> Table<Filed, Recorded<P>> {
        self.stage.filed.clone()
    }

    /// Returns the tables for random transactions over few keys.
    pub(super) fn mix(&self) -> &'a Mix<P> {
        self.stage.mix.get_or_init(|| Mix::new(self.stage.db.clone(), 4))
    }

    /// Returns the tables with one policy each, if the database has mixed policies.
    pub(super) fn kinds(&self) -> &'a [Table<Item, Recorded<P>>; Policy::ALL.len()] {
        let table = |number: usize| self.stage.db.table(&format!("kind {number}")).unwrap();
        self.stage.kinds.get_or_init(|| std::array::from_fn(table))
    }

    /// Asserts that no second word of the items and of the tables of all policies is locked.
    pub(super) fn expect_free(&self) {
        let kinds = self.stage.kinds.get();
        for table in std::iter::once(&self.stage.items).chain(kinds.into_iter().flatten()) {
            let core = table.core();
            core.index.for_each(&mut |record| {
                for at in core.layout.cells(record) {
                    let words = (1..at.cell_words()).map(|word| at.cell_word(word));
                    let is_free = |word: &AtomicU64| word.load(Ordering::Relaxed) == 0;
                    assert!(words.into_iter().all(is_free), "a lock is left");
                }
            });
        }
    }

    /// Runs a transaction that must commit, and returns its value.
    pub(super) fn run<T>(
        &mut self,
        body: impl FnMut(&Tx<'_, Recorded<P>>) -> Result<T, Abort>,
    ) -> T {
        self.session.run(body).unwrap_or_else(|abort| panic!("{abort}"))
    }

    /// Notes the last transaction of a scene with a log.
    pub(super) fn note(&mut self) {
        self.witness.note(&mut self.session);
    }

    /// Lets the logger make a round, and notes the cuts that are reported then. Returns whether a
    /// block was written.
    pub(super) fn round(&self) -> bool {
        let (logged, notes) = self.stage.logged.as_ref().expect("the scene has a log");
        let is_written = logged.round() == Round::Written;
        let told = logged.told();
        notes.lock().unwrap_or_else(PoisonError::into_inner).told.push(told);
        is_written
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

    /// Does the work of the advancer: lets an epoch pass, and collects the garbage of idle
    /// sessions.
    pub(super) fn advance(&self) {
        self.pass();
        self.collect();
    }

    /// Collects the garbage of idle sessions.
    pub(super) fn collect(&self) {
        let inner = &self.stage.db.inner;
        inner.collect(inner.engine.epochs.now());
    }

    /// Records the address of an item's record, and whether another record was there before.
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

    /// Returns the log of the transactions of all threads, locked. The caller may not use the
    /// database while it holds the log.
    pub(super) fn log(&self) -> MutexGuard<'a, Log> {
        self.stage.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the event `what` has happened.
    pub(super) fn saw(&self, what: &'static str) {
        self.stage.saw(what);
    }
}
