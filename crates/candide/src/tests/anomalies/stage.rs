//! Carries a script out under a protocol: a thread for each transaction, one of which moves at a
//! time.
//!
//! An actor that has to wait before its transaction can begin says so, and does its steps when it
//! gets through. So scripts run to their end under protocols that let no two transactions overlap,
//! as well.

use super::rows::{Placed, Row};
use super::script::{Anomaly, End, Index, Op, Part, Rows, Run, Seen, Where};
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

/// What a transaction's thread says.
#[derive(Debug)]
enum Said {
    /// It has to wait for another transaction to end.
    Waits,
    /// It has begun, or has done a step and seen this.
    Ready(Option<(Op, Seen)>),
    Ended(End),
}

/// What is known of one transaction.
struct Actor {
    part: Part,
    state: State,
    /// Steps that have come up while it waited.
    missed: VecDeque<Op>,
    orders: Sender<Op>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
}

/// Carries a script out.
pub(super) fn run<P: Protocol>(anomaly: &Anomaly) -> Run {
    match anomaly.index {
        Index::Hashed => run_with::<P, Item>(anomaly),
        Index::Ordered => run_with::<P, Placed>(anomaly),
    }
}

fn run_with<P: Protocol, R: Row>(anomaly: &Anomaly) -> Run {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<R>("rows").unwrap();
    db.run(|tx| {
        anomaly.rows.iter().try_for_each(|&(key, value)| table.insert(tx, R::new(key, value)))
    })
    .unwrap_or_else(|abort: Abort| panic!("{abort}"));
    let (parts, excluded) = std::thread::scope(|scope| {
        let (say, heard) = channel();
        let mut stage =
            Stage { actors: Vec::new(), heard, early: Vec::new(), time: 0, excluded: false };
        for &(who, op) in anomaly.script {
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
    /// What was said by another transaction than the one to be heard: one that waits gets through
    /// before the other says that it has ended.
    early: Vec<(usize, Said)>,
    /// Counts what happens.
    time: usize,
    excluded: bool,
}

impl Stage {
    /// Takes note of the next transaction, which has been told to begin.
    fn admit(&mut self, orders: Sender<Op>) {
        self.time += 1;
        let part =
            Part { begun: self.time, ended: usize::MAX, end: End::Conflict, seen: Vec::new() };
        self.actors.push(Actor { part, state: State::Running, missed: VecDeque::new(), orders });
        self.listen(Some(self.actors.len() - 1));
    }

    /// Has a transaction do a step, or keep it for later if it waits.
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

    /// Hears what one transaction says, or whichever speaks first. When it has ended and no
    /// other is running, one that waits gets through.
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

/// Why a closure ends without effect.
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

/// Starts a transaction's thread, and gives the way to order its steps.
fn enter<'scope, P: Protocol, R: Row>(
    scope: &'scope Scope<'scope, '_>,
    db: &'scope Database<P>,
    table: &'scope Table<R, P>,
    who: usize,
    say: Sender<(usize, Said)>,
) -> Sender<Op> {
    let (order, orders) = channel();
    scope.spawn(move || {
        let say = move |said| drop(say.send((who, said)));
        let mut session = only_session(db, &say);
        let orders = Rc::new(orders);
        let until = Rc::new(Cell::new(None));
        let hook = hook(say.clone(), orders.clone(), until.clone());
        let ended = with_hook(hook, || {
            session.run_with(RunOptions::new().attempts_max(1), |tx| {
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

/// A session, after a wait if there can be only one.
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

/// What a thread does at the points it passes: says that it waits, stops where it is to commit only
/// so far.
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

/// The closure of a transaction: does what it is told until it is told to end.
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

/// Does a step to a table.
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
