//! A table beside its model, which runs scripts in both.

use super::super::entries::assert_entries_match_rows;
use super::super::properties;
use super::goods::{Goods, INDEX_NAMES, Indexes};
use super::model::{Expected, Model, Rules};
use super::stage::{Held, Stage};
use super::words::{Operation, Shown};
use crate::engine::Protocol;
use crate::{Abort, Database, Error, RunOptions, Session, Table, TableOptions, Whole};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The end of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Commit,
    Error,
    Panic,
}

/// A table beside its model.
pub(super) struct Bench<G: Goods, P: Protocol> {
    pub(super) db: Database<P>,
    table: Table<G, P>,
    indexes: Option<Indexes<G, P>>,
    session: Option<Session<P>>,
    pub(super) rules: Rules,
    model: Model,
}

/// The settings of a bench.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) splitting: bool,
    pub(super) commit_time_updates: bool,
    pub(super) packed: bool,
    pub(super) ordered: bool,
    pub(super) indexed: bool,
}

impl<G: Goods, P: Protocol> Bench<G, P> {
    pub(super) fn new(setting: Setting) -> Bench<G, P> {
        let db = Database::<P>::builder()
            .timestamp_splitting(setting.splitting)
            .commit_time_updates(setting.commit_time_updates)
            .manual_epochs(1)
            .build()
            .unwrap();
        let options = TableOptions::default().contention_aware_keys(!setting.packed);
        let options = if setting.ordered { options.ordered() } else { options };
        let table = db.table_with::<G>("goods", options).unwrap();
        let rules = Rules {
            split: setting.splitting && properties::<P>().cell_words > 0,
            indexed: setting.indexed,
            in_order: table.core().index.is_ordered(),
            has_ranges: !G::NAMES_INDEXES,
            names_indexes: G::NAMES_INDEXES,
        };
        let indexes = setting.indexed.then(|| G::indexes(&table).unwrap());
        let session = Some(db.session().unwrap());
        Bench { db, table, indexes, session, rules, model: Model::default() }
    }

    /// Runs a script as one transaction in the table and in the model. Compares all results.
    pub(super) fn run(&mut self, script: &[Operation], ending: Ending) {
        let Bench { table, indexes, rules, model, .. } = self;
        let before = model.rows.clone();
        let mut expected: Vec<Expected> =
            script.iter().map(|operation| model.apply(*rules, operation)).collect();
        let failed = std::mem::take(&mut model.failed).first().map(|failed| failed.2);
        if failed.is_some() || ending != Ending::Commit {
            model.rows = before;
        }
        let mut shown = Vec::new();
        let session = self.session.as_mut().expect("taken only for a change of the indexes");
        // This is the only session, so conflicts are impossible. Only the growth of a hash index
        // changes observed nodes, once.
        let attempts_max = if rules.in_order && !rules.indexed { 1 } else { 8 };
        let result = catch_unwind(AssertUnwindSafe(|| {
            session.with(RunOptions::new().attempts_max(attempts_max)).run(|tx| {
                shown.clear();
                let mut stage = Stage { table, indexes: indexes.as_ref(), tx, open: Vec::new() };
                for (operation, expected) in script.iter().zip(&expected) {
                    let is_left_out = *expected == Expected::LeftOut;
                    shown.push(if is_left_out {
                        Shown::Done(Ok(()))
                    } else {
                        stage.perform(operation)
                    });
                }
                for Held { scan, shown: mut rows } in stage.open {
                    rows.extend(scan);
                    shown.push(Shown::Rows(rows));
                }
                match ending {
                    Ending::Commit => Ok(()),
                    Ending::Error => Err(Abort::NotFound),
                    // This call panics without a message of the panic hook.
                    Ending::Panic => resume_unwind(Box::new(())),
                }
            })
        }));
        expected.append(&mut model.open);
        let context = || format!("{} {rules:?} {script:?}", P::NAME);
        assert_eq!(shown.len(), expected.len(), "{}", context());
        for (number, (expected, shown)) in expected.iter().zip(&shown).enumerate() {
            let agree = *expected == Expected::LeftOut || expected.accepts(shown);
            assert!(agree, "operation {number} shows {shown:?}, not {expected:?}; {}", context());
        }
        match (failed, ending, result) {
            (Some(abort), _, Ok(result)) => assert_eq!(result, Err(abort), "{}", context()),
            (None, Ending::Commit, Ok(result)) => assert_eq!(result, Ok(()), "{}", context()),
            (None, Ending::Error, Ok(result)) => {
                assert_eq!(result, Err(Abort::NotFound), "{}", context())
            }
            (_, Ending::Panic, Err(_)) => {}
            (failed, ending, result) => panic!("{failed:?} {ending:?} {result:?}; {}", context()),
        }
    }

    /// Asserts that records, single reads, entries and model agree.
    pub(super) fn check(&mut self) {
        let mut rows = BTreeMap::new();
        self.table
            .for_each_quiescent(|&row| assert_eq!(rows.insert(row.key(), row.into()), None))
            .unwrap();
        assert_eq!(rows, self.model.rows);
        let session = self.session.as_mut().expect("as in `run`");
        for key in
            (0..3).flat_map(|district| (0..40).step_by(3).map(move |number| (district, number)))
        {
            let row = rows.get(&key);
            let state = self.table.get_now(session, &key, (G::OWNER, G::COUNT));
            assert_eq!(state, Ok(row.map(|row| (row.owner, row.count))), "{key:?}");
            assert_eq!(
                self.table.get_now(session, &key, G::NOTE),
                Ok(row.map(|row| row.note)),
                "{key:?}"
            );
            assert_eq!(
                self.table.get_now(session, &key, Whole).map(|row| row.map(Into::into)),
                Ok(row.copied())
            );
        }
        assert_entries_match_rows(session, &self.table);
    }

    /// Creates the indexes if the table has none. Drops them otherwise.
    pub(super) fn toggle_indexes(&mut self) {
        // If only one session is allowed, the change of the indexes needs it.
        self.session = None;
        if let Some(indexes) = self.indexes.take() {
            INDEX_NAMES.iter().for_each(|name| self.table.drop_index(name).unwrap());
            drop(indexes);
        } else {
            let codes: BTreeSet<u32> = self.model.rows.values().map(|row| row.code).collect();
            let is_unique = codes.len() == self.model.rows.len();
            match G::indexes(&self.table) {
                Ok(indexes) => self.indexes = Some(indexes),
                Err(Error::NotUnique { .. }) => self.table.drop_index("by_place").unwrap(),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(self.indexes.is_some(), is_unique);
        }
        self.rules.indexed = self.indexes.is_some();
        self.session = Some(self.db.session().unwrap());
    }
}
