//! Runs a script under a protocol. Each transaction has a thread, and one thread at a time does a
//! step.
//!
//! A transaction's thread (an *actor*) may have to wait before the transaction can begin. Then the
//! actor reports this, and does its steps once the transaction has begun. So scripts run to their
//! end even under protocols that let no two transactions overlap.

use super::super::threads::spawn;
use super::rows::{Placed, Row};
use super::script::{Anomaly, End, Index, Op, Part, Rows, Run, Seen, Where, Who};
use crate::engine::Protocol;
use crate::sync::{Point, with_hook};
use crate::tests::rows::Item;
use crate::tests::waiting::receive;
use crate::{Abort, Database, Error, RunOptions, Session, Table, Tx};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

/// A report of a transaction's thread.
#[derive(Debug)]
enum Said {
    /// The thread has to wait until another transaction has ended.
    Waits,
    /// The transaction has begun (`None`), or has done a step and seen a result.
    Ready(Option<(Op, Seen)>),
    Ended(End),
}

/// The known facts about one transaction.
struct Actor {
    part: Part,
    state: State,
    /// The steps that came up while the transaction waited.
    missed: VecDeque<Op>,
    orders: Sender<Op>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
}

/// Runs the script of an anomaly.
pub(super) fn run<P: Protocol>(anomaly: &Anomaly) -> Run {
    match anomaly.index {
        Index::Hashed => run_with::<P, Item>((anomaly.rows, &[]), anomaly.script, true),
        Index::Ordered => run_with::<P, Placed>((anomaly.rows, &[]), anomaly.script, true),
    }
}

/// The rows before a script: their keys and values, and the keys of those that are read by a
/// transaction which also updates the last row.
type Before<'a> = (&'a [(u64, i64)], &'a [u64]);

/// Runs a script on rows in a hash table, with timestamp splitting on or off.
pub(super) fn play<P: Protocol>(rows: Before<'_>, script: &[(Who, Op)], splitting: bool) -> Run {
    run_with::<P, Item>(rows, script, splitting)
}

fn run_with<P: Protocol, R: Row>(
    (rows, read): Before<'_>,
    script: &[(Who, Op)],
    splitting: bool,
) -> Run {
    let builder = Database::<P>::builder().timestamp_splitting(splitting);
    let db = builder.manual_epochs(1).build().unwrap();
    let table = db.table::<R>("rows").unwrap();
    db.run(|tx| rows.iter().try_for_each(|&(key, value)| table.insert(tx, R::new(key, value))))
        .unwrap();
    if let (Some((last, _)), false) = (rows.last(), read.is_empty()) {
        db.run(|tx| {
            read.iter().try_for_each(|key| table.read(tx, key, R::VALUE).map(drop))?;
            table.update(tx, last, R::VALUE.add(0))
        })
        .unwrap();
    }
    let (parts, excluded) = std::thread::scope(|scope| {
        let (say, heard) = channel();
        let mut stage =
            Stage { actors: Vec::new(), heard, early: Vec::new(), time: 0, excluded: false };
        for &(who, op) in script {
            if who.0 == stage.actors.len() {
                let orders = enter(scope, &db, &table, who.0, say.clone());
                stage.admit(orders);
            }
            stage.step(who.0, op);
        }
        stage.finish()
    });
    let mut rows = Rows::new();
    table.for_each_quiescent(|row| rows.extend([row.parts()])).unwrap();
    Run { parts, rows, excluded }
}

struct Stage {
    actors: Vec<Actor>,
    heard: Receiver<(usize, Said)>,
    /// Reports that arrived from other transactions than the awaited one. Such reports arrive
    /// because a waiting transaction can begin before the transaction that it awaited has reported
    /// its end.
    early: Vec<(usize, Said)>,
    /// The number of events so far.
    time: usize,
    excluded: bool,
}

impl Stage {
    /// Adds the next transaction, whose thread has just been started.
    fn admit(&mut self, orders: Sender<Op>) {
        self.time += 1;
        let part =
            Part { begun: self.time, ended: usize::MAX, end: End::Conflict, seen: Vec::new() };
        self.actors.push(Actor { part, state: State::Running, missed: VecDeque::new(), orders });
        self.listen(Some(self.actors.len() - 1));
    }

    /// Lets a transaction do a step. If the transaction waits, keeps the step for later.
    fn step(&mut self, who: usize, op: Op) {
        let actor = &mut self.actors[who];
        match actor.state {
            State::Running => {
                actor.orders.send(op).expect("it listens");
                self.listen(Some(who));
            }
            State::Waiting => actor.missed.push_back(op),
            State::Ended => {}
        }
    }

    /// Receives a report of transaction `to`; if `to` is `None`, of the transaction that reports
    /// first. When that transaction has ended and no other is running, a waiting transaction can
    /// begin.
    fn listen(&mut self, to: Option<usize>) {
        let (who, said) = loop {
            let heard = self.early.iter().position(|&(who, _)| to.is_none_or(|to| to == who));
            if let Some(index) = heard {
                break self.early.remove(index);
            }
            self.early.push(receive("a transaction goes on", &self.heard));
        };
        self.time += 1;
        let actor = &mut self.actors[who];
        match said {
            Said::Waits => {
                actor.state = State::Waiting;
                self.excluded = true;
            }
            Said::Ready(seen) => {
                actor.part.seen.extend(seen);
                if actor.state == State::Waiting {
                    actor.state = State::Running;
                    while let Some(op) = self.actors[who].missed.pop_front() {
                        self.step(who, op);
                    }
                }
            }
            Said::Ended(end) => {
                (actor.part.end, actor.part.ended) = (end, self.time);
                actor.state = State::Ended;
                let in_state = |state| self.actors.iter().any(|actor| actor.state == state);
                if !in_state(State::Running) && in_state(State::Waiting) {
                    self.listen(None);
                }
            }
        }
    }

    fn finish(self) -> (Vec<Part>, bool) {
        assert!(
            self.actors.iter().all(|actor| actor.state == State::Ended),
            "every script ends what it begins"
        );
        (self.actors.into_iter().map(|actor| actor.part).collect(), self.excluded)
    }
}

/// The reason why a closure ends without effect.
#[derive(Debug)]
enum Stop {
    Rollback,
    Abort(Abort),
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Stop {
        Stop::Abort(abort)
    }
}

/// Starts a transaction's thread. Returns the sender for its steps.
fn enter<'scope, P: Protocol, R: Row>(
    scope: &'scope Scope<'scope, '_>,
    db: &'scope Database<P>,
    table: &'scope Table<R, P>,
    who: usize,
    say: Sender<(usize, Said)>,
) -> Sender<Op> {
    let (order, orders) = channel();
    spawn(scope, move || {
        let say = move |said| drop(say.send((who, said)));
        let mut session = only_session(db, &say);
        let orders = Rc::new(orders);
        let until = Rc::new(Cell::new(None));
        let hook = hook(say.clone(), orders.clone(), until.clone());
        let ended = with_hook(hook, || {
            session.with(RunOptions::new().attempts_max(1)).try_run(|tx| {
                say(Said::Ready(None));
                act(table, tx, &orders, &until, &say)
            })
        });
        drop(session);
        say(Said::Ended(match ended {
            Ok(()) => End::Committed,
            Err(Stop::Rollback) => End::RolledBack,
            Err(Stop::Abort(Abort::AttemptsExhausted)) => End::Conflict,
            Err(Stop::Abort(abort)) => panic!("{}: {abort}", P::NAME),
        }));
    });
    order
}

/// Returns a session. If the protocol allows only one session, waits until no other session is
/// open.
fn only_session<P: Protocol>(db: &Database<P>, say: &impl Fn(Said)) -> Session<P> {
    let mut waits = false;
    loop {
        match db.session() {
            Ok(session) => return session,
            Err(Error::SecondSession { .. }) => {
                if !waits {
                    say(Said::Waits);
                    waits = true;
                }
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns the hook of a transaction's thread. At the points that the thread passes, the hook
/// reports that the thread waits, or stops the commit at the point named by [`Op::Until`].
fn hook(
    say: impl Fn(Said),
    orders: Rc<Receiver<Op>>,
    until: Rc<Cell<Option<Point>>>,
) -> impl FnMut(Point) {
    let mut waits = false;
    move |point| {
        if point == Point::Excluded && !waits {
            waits = true;
            say(Said::Waits);
        }
        if until.get() == Some(point) {
            until.set(None);
            say(Said::Ready(None));
            match orders.recv().expect("a step comes") {
                Op::Commit => {}
                Op::Until(next) => until.set(Some(next)),
                op => panic!("{op:?} in the middle of a commit"),
            }
        }
    }
}

/// Runs the closure of a transaction: does the received steps until a step ends the transaction.
fn act<P: Protocol, R: Row>(
    table: &Table<R, P>,
    tx: &Tx<'_, P>,
    orders: &Receiver<Op>,
    until: &Cell<Option<Point>>,
    say: &impl Fn(Said),
) -> Result<(), Stop> {
    loop {
        let op = orders.recv().expect("a step comes");
        match op {
            Op::Begin => say(Said::Ready(None)),
            Op::Commit => return Ok(()),
            Op::Rollback => return Err(Stop::Rollback),
            Op::Until(point) => {
                until.set(Some(point));
                return Ok(());
            }
            _ => say(Said::Ready(Some((op, step(table, tx, op)?)))),
        }
    }
}

/// Does a step on a table.
fn step<P: Protocol, R: Row>(table: &Table<R, P>, tx: &Tx<'_, P>, op: Op) -> Result<Seen, Abort> {
    let select = |kind: Where| -> Result<Vec<(u64, i64)>, Abort> {
        let rows = R::scan(table, tx, 0..=u64::MAX, false, usize::MAX)?;
        Ok(rows.into_iter().filter(|&(_, value)| kind.holds(value)).collect())
    };
    Ok(match op {
        Op::Begin | Op::Until(_) | Op::Commit | Op::Rollback => {
            unreachable!("these are no steps within a transaction")
        }
        Op::Read(key) => Seen::Value(table.get(tx, &key, R::VALUE)?),
        Op::ReadForUpdate(key) => Seen::Value(table.get_for_update(tx, &key, R::VALUE)?),
        Op::ReadCold(key) => Seen::Value(table.get(tx, &key, R::COLD)?.map(|value| value as i64)),
        Op::Set(key, value) => {
            Seen::Done(table.update_if_present(tx, &key, R::VALUE.set(value))?)
        }
        Op::SetCold(key, value) => {
            Seen::Done(table.update_if_present(tx, &key, R::COLD.set(value as u64))?)
        }
        Op::Add(key, summand) => {
            Seen::Done(table.update_if_present(tx, &key, R::VALUE.add(summand))?)
        }
        Op::Insert(key, value) => Seen::Done(table.insert_if_absent(tx, R::new(key, value))?),
        Op::Delete(key) => Seen::Done(table.delete_if_present(tx, &key)?),
        Op::Select(kind) => Seen::Rows(select(kind)?),
        Op::AddWhere(kind, summand) => {
            let rows = select(kind)?;
            rows.iter().try_for_each(|(key, _)| table.update(tx, key, R::VALUE.add(summand)))?;
            Seen::Done(!rows.is_empty())
        }
        Op::DeleteWhere(kind) => {
            let rows = select(kind)?;
            rows.iter().try_for_each(|(key, _)| table.delete(tx, key))?;
            Seen::Done(!rows.is_empty())
        }
        Op::Scan(lower, upper) => Seen::Rows(R::scan(table, tx, lower..=upper, false, usize::MAX)?),
        Op::First(lower) => Seen::Rows(R::scan(table, tx, lower..=u64::MAX, false, 1)?),
        Op::Last(upper) => Seen::Rows(R::scan(table, tx, 0..=upper, true, 1)?),
    })
}
