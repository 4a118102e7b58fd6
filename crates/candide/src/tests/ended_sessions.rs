//! Tests of sessions that end while their garbage cannot be freed yet.

use super::rows::Item;
use crate::engine::Protocol;
use crate::epoch::Collect;
use crate::{Abort, Database, Tx};

/// The number of sessions that end. Each leaves garbage.
const SESSIONS: u64 = 300;
/// The number of passes after which all garbage must have been collected.
const PASSES_MAX: usize = 40;

protocol_tests!(all: garbage_of_sessions_that_have_left_is_in_one_place = sessions_leave(false));
protocol_tests!(all: collections_take_the_garbage_of_sessions_that_have_left = sessions_leave(true));
/// Lets sessions end and leave garbage. If `collecting`, a collection follows after every few
/// sessions.
fn sessions_leave<P: Protocol>(collecting: bool) {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let run = |change: &dyn Fn(&Tx<'_, P>) -> Result<(), Abort>| {
        let mut session = db.session().unwrap();
        session.run(change).unwrap();
    };
    let pass = || {
        db.inner.engine.epochs.pass();
        db.inner.collect(db.inner.engine.epochs.now());
    };
    (0..SESSIONS).for_each(|id| run(&|tx| items.insert(tx, Item::new(id, 0))));
    let slot = db.inner.engine.epochs.register();
    db.inner.engine.epochs.pin(&slot);
    for id in 0..SESSIONS {
        run(&|tx| items.update(tx, &id, Item::COUNT.set(1)));
        run(&|tx| items.delete(tx, &id));
        if collecting && id % 7 == 0 {
            pass();
        }
        let mut sessions = 0;
        db.inner.for_each_session(|_| sessions += 1);
        assert_eq!(
            sessions,
            0,
            "{}: {sessions} sessions are looked at after {id} have left",
            P::NAME
        );
    }
    let held_back = db.memory().garbage;
    let is_kept = !db.inner.engine.properties.applies_at_once;
    assert!(!is_kept || held_back >= SESSIONS as usize, "{}: {held_back} entries", P::NAME);
    db.inner.engine.epochs.unpin(&slot);
    db.inner.engine.epochs.unregister(&slot);
    (0..PASSES_MAX).for_each(|_| pass());
    assert_eq!((db.memory().garbage, items.len_estimate()), (0, 0), "{}", P::NAME);
}
