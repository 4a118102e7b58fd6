//! The making of indexes in a database that follows another one.

#![forbid(unsafe_code)]

use super::session::Session;
use crate::engine::{Following, Protocol, Stopped, Versions};
use crate::error::Error;
use crate::log::Level;
use crate::shared::Inner;

/// The turn of a call that makes or drops indexes of a database that follows another one. At its
/// end the view moves, so that transactions find the index. In any other database it is nothing.
pub(super) struct IndexTurn<'a, P: Protocol>(Option<(&'a Inner<P>, &'a Following)>);

impl<'a, P: Protocol> IndexTurn<'a, P> {
    /// Waits until no object is being applied.
    ///
    /// # Errors
    /// [`Error::FollowingEnded`]; [`Error::Transaction`] with
    /// [`Abort::Nested`](crate::Abort::Nested) within a transaction of this thread.
    pub(super) fn wait(inner: &'a Inner<P>) -> Result<IndexTurn<'a, P>, Error> {
        let Some(following) = inner.engine.following() else { return Ok(IndexTurn(None)) };
        // The applier may wait for the transaction of this thread.
        inner.engine.epochs.refuse_inside()?;
        following.begin_index().map_err(|Stopped| Error::FollowingEnded)?;
        Ok(IndexTurn(Some((inner, following))))
    }
}

impl<P: Protocol> Drop for IndexTurn<'_, P> {
    fn drop(&mut self) {
        if let Some((inner, following)) = self.0 {
            move_view(inner, following);
            following.give_back(false);
        }
    }
}

/// Lets a session write in its call's turn. It waits for no level: its commits become durable when
/// the view has moved.
pub(super) fn admit_session<P: Protocol>(inner: &Inner<P>, session: &mut Session<P>) {
    if inner.engine.following().is_some() {
        session.admit_writes();
        session.acknowledge_at(Level::Memory);
    }
}

/// Moves the view of a database to the present, which is behind a whole object. The logger closes
/// the cut soon.
pub(super) fn move_view<P: Protocol>(inner: &Inner<P>, following: &Following) {
    let clock = &inner.engine.clock;
    let open = || {
        let since = inner.engine.epochs.moment();
        (P::Versions::open_snapshot(clock, since), since)
    };
    following.move_on(open, |ts, since| P::Versions::close_snapshot(clock, ts, since));
    if let Some(log) = inner.engine.log.get() {
        log.progress.call();
    }
}
