//! Candide, with threads that do not wait until each commit is durable before they begin the next
//! transaction.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::path::Path;
use std::time::Instant;

use candide::{Level, Pending, Protocol};

use super::candide_table::{Sessions, Tables};
use crate::Role;
use crate::stores::durability::{Committer, Durable};
use crate::stores::{Failure, Size, Stopped, Store, Writing};

/// The engine under its default protocol, by `run_logged`.
pub(crate) struct CandideLogged<P>(PhantomData<P>);

/// The largest number of transactions of a thread that have ended and are not acknowledged yet.
const PENDING_MAX: usize = 64;

impl<P: Protocol> Durable for CandideLogged<P> {
    const NAME: &'static str = "candide-64-pending";
    const CRATE: Option<&'static str> = Some("candide");
    const USE: &'static str = "the same by run_logged, which returns before the commit is durable; a thread has at most 64 \
                               transactions pending, and the latency of each ends when it is durable and the thread knows";
    const ROLE: Role = Role::Candide;
    type Store = Tables<P, i64>;
    type Committer<'s> = Logged<'s, P>;

    fn open(directory: &Path, size: Size) -> Result<Tables<P, i64>, Failure> {
        Tables::open_in(directory, size)
    }

    fn committer(store: &Tables<P, i64>) -> Result<Logged<'_, P>, Failure> {
        Ok(Logged { sessions: store.session()?, pending: VecDeque::with_capacity(PENDING_MAX) })
    }
}

/// A thread's session, and its pending transactions, each with the time at which it began.
pub(crate) struct Logged<'s, P: Protocol> {
    sessions: Sessions<'s, P, i64>,
    pending: VecDeque<(Instant, Pending<(), Stopped>)>,
}

impl<P: Protocol> Logged<'_, P> {
    /// Acknowledges the oldest transactions: as many as needed until at most `most` are pending,
    /// and those after them that are durable.
    fn acknowledge(
        &mut self,
        most: usize,
        acknowledged: &mut impl FnMut(Instant),
    ) -> Result<(), Failure> {
        while let Some((_, oldest)) = self.pending.front()
            && (self.pending.len() > most || oldest.is_at(Level::Durable))
            && let Some((begun, oldest)) = self.pending.pop_front()
        {
            match oldest.wait() {
                Ok(()) => acknowledged(begun),
                Err(Stopped::Conflict) => return Err("a conflict that was not repeated".into()),
                Err(Stopped::Failed(failure)) => return Err(failure),
            }
        }
        Ok(())
    }
}

impl<P: Protocol> Committer for Logged<'_, P> {
    fn commit<W: Writing<i64, Output = ()>>(
        &mut self,
        work: &W,
        acknowledged: &mut impl FnMut(Instant),
    ) -> Result<u64, Failure> {
        let begun = Instant::now();
        let (pending, retries) = self.sessions.run_logged(work);
        self.pending.push_back((begun, pending));
        self.acknowledge(PENDING_MAX - 1, acknowledged)?;
        Ok(retries)
    }

    fn finish(&mut self, acknowledged: &mut impl FnMut(Instant)) -> Result<(), Failure> {
        self.acknowledge(0, acknowledged)
    }
}
