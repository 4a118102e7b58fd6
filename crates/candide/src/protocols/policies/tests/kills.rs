//! Tests of requests to abort, under the policy `swiss`.

use super::super::waiting::{Asker, Verdict, When, verdict};
use super::super::word::{Lock, Mode};
use crate::Database;
use crate::engine::{Common, Worker};
use crate::policy::Policy;
use crate::protocols::Occ;
use crate::sync::{AtomicU64, Patience};
use std::sync::Arc;

/// The number of writes after which an attempt asks others to abort.
const MANY: usize = 10;

/// An attempt that wants to write a row, and another one that has locked the row.
struct Meeting {
    db: Database<Occ>,
    me: Worker<()>,
    owner: u16,
    row: AtomicU64,
}

impl Meeting {
    fn new() -> Meeting {
        let db = Database::<Occ>::builder().policy(Policy::Swiss).build().unwrap();
        let engine = &db.inner.engine;
        let mut me = Worker::new(engine.id, 99, engine.epochs.register(), Arc::default());
        let [owner, desk] = [(); 2].map(|()| engine.desks.join(true).unwrap());
        me.local.desk = desk;
        engine.desks.desk(owner).begin(1, 0, 0);
        engine.desks.desk(desk).begin(2, 0, 0);
        let row = AtomicU64::new(0);
        Lock(&row).take_to_write(owner).unwrap();
        Meeting { db, me, owner, row }
    }

    /// Returns what the attempt does after `written` writes. It has seen the lock held, and in the
    /// meantime `then` happens.
    fn meets(&mut self, written: usize, then: impl FnOnce(&Common, &AtomicU64, u16)) -> Verdict {
        let Meeting { db, me: Worker { local, .. }, owner, row } = self;
        let (engine, seen): (&Common, _) = (&db.inner.engine, Lock(row).word());
        then(engine, row, *owner);
        let mut asker = Asker::new(Policy::Swiss, Mode::Write, written, (When::Now, false, false));
        let verdict = verdict(engine, local, &mut asker, (Lock(row), seen), true);
        asker.end(engine, local);
        verdict
    }

    fn is_doomed(&self) -> bool {
        self.db.inner.engine.desks.desk(self.owner).is_doomed()
    }
}

fn nothing(_: &Common, _: &AtomicU64, _: u16) {}

#[test]
fn an_attempt_that_has_written_much_asks_the_other_to_abort_and_sleeps() {
    let mut meeting = Meeting::new();
    assert!(matches!(meeting.meets(MANY - 1, nothing), Verdict::Wait(Patience::Rounds(_))));
    assert!(!meeting.is_doomed());
    assert!(matches!(meeting.meets(MANY, nothing), Verdict::Wait(Patience::Lasting(_))));
    assert!(meeting.is_doomed());
    // The next attempt of the same session is not meant.
    let desk = meeting.db.inner.engine.desks.desk(meeting.owner);
    desk.end();
    desk.begin(1, 0, 0);
    assert!(!meeting.is_doomed());
}

#[test]
fn the_older_ticket_wins() {
    let mut meeting = Meeting::new();
    let draw = |engine: &Common, owner| {
        engine.desks.desk(owner).set_ticket(engine.desks.draw_ticket());
    };
    let lost = meeting.meets(MANY, |engine, _, owner| draw(engine, owner));
    assert!(matches!(lost, Verdict::Die) && !meeting.is_doomed());
    // The owner draws again, after the attempt has drawn its ticket.
    let won = meeting.meets(MANY, |engine, _, owner| draw(engine, owner));
    assert!(matches!(won, Verdict::Wait(_)) && meeting.is_doomed());
}

#[test]
fn a_session_that_has_released_the_lock_is_not_asked_to_abort() {
    let mut meeting = Meeting::new();
    meeting.meets(MANY, |engine, row, owner| {
        Lock(row).pass_on(None);
        engine.desks.desk(owner).end();
        engine.desks.desk(owner).begin(3, 0, 0);
    });
    assert!(!meeting.is_doomed(), "its next attempt is meant");
}

#[test]
fn an_attempt_that_was_asked_to_abort_does_so_when_it_meets_a_lock() {
    let mut meeting = Meeting::new();
    let me = meeting.me.local.desk;
    let doomed = meeting.meets(0, |engine, _, _| {
        let desk = engine.desks.desk(me);
        desk.doom(desk.attempt());
    });
    assert!(matches!(doomed, Verdict::Doomed));
}
