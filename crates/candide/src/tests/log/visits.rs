//! Tests in which the logger runs at every point of a commit at which the commit does not have its
//! turn.

use super::super::random_transactions::Mix;
use super::disk::{Logged, Told};
use super::replay::Replay;
use super::story::{Story, Witness};
use crate::Database;
use crate::engine::Protocol;
use crate::log::Level;
use crate::protocols::Recorded;
use crate::sync::size::share;
use crate::sync::{Random, with_hook};
use std::cell::RefCell;
use std::rc::Rc;

const KEYS: u64 = 6;

protocol_tests!(all: a_logger_that_visits_at_every_point_misses_no_commit);
fn a_logger_that_visits_at_every_point_misses_no_commit<P: Protocol>() {
    let logged = Logged::new(Database::<Recorded<P>>::builder().manual_epochs(10));
    let mix = Mix::new(logged.db.clone(), KEYS);
    let (mut session, mut random) = (logged.db.session().unwrap(), Random::seeded(7));
    let mut witness = Witness::default();
    let told = Rc::new(RefCell::new(Vec::new()));
    mix.fill(&mut session);
    witness.note(&mut session);
    logged.settle();
    for step in 0..share(200) {
        let (log, disk, cuts) = (logged.log.clone(), logged.disk.clone(), logged.cuts());
        let notes = told.clone();
        let visit = move |_| {
            if log.is_free() {
                log.round(&cuts);
                let durable = log.progress.cut(Level::Durable);
                notes.borrow_mut().push(Told { durable, blocks: disk.written().synced });
            }
        };
        with_hook(visit, || mix.step(&mut session, &mut random, 4));
        witness.note(&mut session);
        if step % 8 == 0 {
            logged.db.inner.engine.epochs.pass();
        }
    }
    logged.settle();
    Replay::of(&logged).assert_is(&logged);
    let told = told.take();
    assert!(told.len() > 100, "{}: the logger has visited too seldom", P::NAME);
    Story::of(&logged, [witness]).assert_all(&logged, &told);
}
