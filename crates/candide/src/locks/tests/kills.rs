//! Tests of requests to abort, under the policy `swiss`.

use super::super::desks::Desks;
use super::super::shared::{Locker, SessionLocks, SharedLocks};
use super::super::waiting::{Asker, Verdict, When, verdict};
use super::super::word::{Lock, Mode};
use crate::Database;
use crate::engine::Worker;
use crate::policy::Policy;
use crate::protocols::Occ;
use crate::sync::{AtomicU64, Patience};
use std::sync::Arc;

/// The number of writes after which an attempt asks others to abort.
const MANY: usize = 10;

/// An attempt that wants to write a row, and another attempt that has locked the row.
struct Meeting {
    db: Database<Occ>,
    me: Worker<()>,
    own: SessionLocks,
    owner: u16,
    row: AtomicU64,
}

impl Meeting {
    fn new() -> Meeting {
        let db = Database::<Occ>::builder().policy(Policy::Swiss).build().unwrap();
        let engine = &db.inner.engine;
        let me = Worker::new(engine.id, 99, engine.epochs.register());
        let locks = db.inner.catalog.locks().expect("a protocol with policies");
        let mut own = SessionLocks::new(locks, &Arc::default());
        let [owner, desk] = [(); 2].map(|()| locks.desks.join(true).unwrap());
        own.desk = desk;
        locks.desks.desk(owner).begin(1, 0, 0);
        locks.desks.desk(desk).begin(2, 0, 0);
        let row = AtomicU64::new(0);
        Lock(&row).take_to_write(owner).unwrap();
        Meeting { db, me, own, owner, row }
    }

    /// Returns the decision of an attempt with `written` writes that has found the lock held, while
    /// `then` happens.
    fn meets(
        &mut self,
        written: usize,
        then: impl FnOnce(&SharedLocks, &AtomicU64, u16),
    ) -> Verdict {
        let Meeting { db, me: Worker { local, .. }, own, owner, row } = self;
        let (engine, seen) = (&db.inner.engine, Lock(row).word());
        let locks = &**db.inner.catalog.locks().expect("a protocol with policies");
        then(locks, row, *owner);
        let locker = &mut Locker { engine: &engine.common, locks, local, own };
        let mut asker = Asker::new(Policy::Swiss, Mode::Write, written, (When::Now, false, false));
        let verdict = verdict(locker, &mut asker, (Lock(row), seen), true);
        asker.end(locker);
        verdict
    }

    fn is_doomed(&self) -> bool {
        self.desks().desk(self.owner).is_doomed()
    }

    fn desks(&self) -> &Desks {
        &self.db.inner.catalog.locks().expect("a protocol with policies").desks
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.desks().desk(self.own.desk).end();
    }
}

fn nothing(_: &SharedLocks, _: &AtomicU64, _: u16) {}

#[test]
fn an_attempt_that_has_written_much_asks_the_other_to_abort_and_sleeps() {
    let mut meeting = Meeting::new();
    assert!(matches!(meeting.meets(MANY - 1, nothing), Verdict::Wait(Patience::Rounds(_))));
    assert!(!meeting.is_doomed());
    assert!(matches!(meeting.meets(MANY, nothing), Verdict::Wait(Patience::Lasting(_))));
    assert!(meeting.is_doomed());
    // The next attempt of the same session is not meant.
    let desk = meeting.desks().desk(meeting.owner);
    desk.end();
    desk.begin(1, 0, 0);
    assert!(!meeting.is_doomed());
}

#[test]
fn the_attempt_with_the_younger_ticket_aborts() {
    let mut meeting = Meeting::new();
    let draw = |locks: &SharedLocks, owner| {
        locks.desks.desk(owner).set_ticket(locks.desks.draw_ticket());
    };
    let lost = meeting.meets(MANY, |locks, _, owner| draw(locks, owner));
    assert!(matches!(lost, Verdict::Die) && !meeting.is_doomed());
    // The owner draws again, after the attempt has drawn its ticket.
    let won = meeting.meets(MANY, |locks, _, owner| draw(locks, owner));
    assert!(matches!(won, Verdict::Wait(_)) && meeting.is_doomed());
}

#[test]
fn a_session_that_has_released_the_lock_is_not_asked_to_abort() {
    let mut meeting = Meeting::new();
    meeting.meets(MANY, |locks, row, owner| {
        Lock(row).pass_on(None);
        locks.desks.desk(owner).end();
        locks.desks.desk(owner).begin(3, 0, 0);
    });
    assert!(!meeting.is_doomed(), "the request is for the next attempt");
}

#[test]
fn an_attempt_that_was_asked_to_abort_aborts_at_its_next_lock() {
    let mut meeting = Meeting::new();
    let me = meeting.own.desk;
    let doomed = meeting.meets(0, |locks, _, _| {
        let desk = locks.desks.desk(me);
        desk.doom(desk.attempt());
    });
    assert!(matches!(doomed, Verdict::Doomed));
}
