//! What is seen of a database that follows another one.
//!
//! An *applier* changes such a database, and the program only reads it. What the applier takes in
//! comes in whole *objects*, each of which may need many transactions. Readers see the *view*: the
//! state after the last whole object.
//!
//! # Invariants
//! * **FW1** At any time until the end of following, one snapshot is open at the timestamp of the
//!   view. The view is changed under its lock: a snapshot of the present is opened, and then the
//!   one before is closed.
//! * **FW2** The view is only moved while nothing but whole objects has been applied, and only the
//!   applier and calls that make indexes commit transactions that write. The applier has its *turn*
//!   from the first transaction of an object until the view has moved behind the last; a call that
//!   makes an index has its turn only between objects.
//! * **FW3** Each transaction of the program reads in a snapshot at the timestamp of the view,
//!   which is opened under the lock of the view, and so while the one of FW1 is open.
//! * **FW4** The cut of the log is the timestamp of the view, except while the rows of a snapshot
//!   are being taken in. Before the first of these, a row that says so has been committed.
//!
//! # Why readers see whole objects only
//! A snapshot at timestamp t sees the commits up to t, and no others: the protocol's own guarantee.
//! By FW2, when the view moves to t, the commits up to t are those of whole objects and of
//! indexes, and those of a later object have later timestamps. By FW3, each reader is such a
//! snapshot, even if the view moves on meanwhile. It is opened when another one with the same
//! timestamp is open (FW1), so no version that it sees has been freed. A read in a snapshot never
//! fails because of other transactions.
//!
//! # Why recovery finds whole objects only
//! Recovery restores the commits with stamps up to the cut of the last durable block. Stamps are
//! timestamps, so by FW4 that is the state of some view, with the position that the last
//! transaction of the object has noted. In the exceptional case, recovery finds the row that says
//! so, and the applier begins anew with a snapshot, before the program reads anything. Cuts do not
//! fall: the present is never before the view, and the view moves to the present.

#![forbid(unsafe_code)]

use crate::epoch::Moment;
use crate::sync::{Mutex, Signal, lock};

/// The view of a database that follows another one, and whose turn it is to change the database.
#[derive(Debug)]
pub(crate) struct Following {
    view: Mutex<View>,
    turn: Signal<Turn>,
}

#[derive(Debug)]
struct View {
    /// The snapshot of FW1: its timestamp, and when it was opened. `None` when the database follows
    /// no more.
    open: Option<(u64, Moment)>,
    /// Whether the rows of a snapshot are being taken in.
    is_torn: bool,
}

/// Whose turn it is to change the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Turn {
    #[default]
    None,
    /// An object is being applied.
    Applier,
    /// An index is being made or dropped.
    Index,
    /// The applier has ended, perhaps within an object.
    Ended,
}

/// The applier has ended within an object.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Following {
    /// Returns the state of following whose view is an open snapshot: its timestamp, and when it
    /// was opened.
    pub(crate) fn at(open: (u64, Moment)) -> Following {
        let view = View { open: Some(open), is_torn: false };
        Following { view: Mutex::new(view), turn: Signal::default() }
    }

    /// Calls `open` with the timestamp of the view, to open a snapshot of it (FW3). `None` if the
    /// database follows no more.
    pub(crate) fn look<T>(&self, open: impl FnOnce(u64) -> T) -> Option<T> {
        let view = lock(&self.view);
        view.open.map(|(ts, _)| open(ts))
    }

    /// Returns whether the database follows another one.
    pub(crate) fn is_on(&self) -> bool {
        lock(&self.view).open.is_some()
    }

    /// Returns the cut of the log (FW4). `now` returns the present cut of the protocol.
    pub(crate) fn cut(&self, now: impl FnOnce() -> u64) -> u64 {
        let view = lock(&self.view);
        match view.open {
            Some((ts, _)) if !view.is_torn => ts,
            _ => now(),
        }
    }

    /// Moves the view to the present (FW1, FW2). `open` opens a snapshot, and `close` closes one.
    pub(crate) fn move_on(
        &self,
        open: impl FnOnce() -> (u64, Moment),
        close: impl FnOnce(u64, Moment),
    ) {
        let mut view = lock(&self.view);
        if let Some((ts, since)) = view.open {
            view.open = Some(open());
            view.is_torn = false;
            close(ts, since);
        }
    }

    /// Notes that the rows of a snapshot are being taken in from now on, until the view moves. A
    /// row that says so has been committed (FW4).
    pub(crate) fn tear(&self) {
        lock(&self.view).is_torn = true;
    }

    /// Ends following. `close` closes the snapshot of the view.
    pub(crate) fn end(&self, close: impl FnOnce(u64, Moment)) {
        let open = lock(&self.view).open.take();
        if let Some((ts, since)) = open {
            close(ts, since);
        }
    }

    /// Waits for the applier's turn, which lasts until [`Following::give_back`].
    pub(crate) fn begin_object(&self) -> Result<(), Stopped> {
        self.take(Turn::Applier)
    }

    /// Waits for the turn of a call that makes or drops an index, between objects. It lasts until
    /// [`Following::give_back`].
    ///
    /// # Errors
    /// The applier has ended, so that the view does not move any more.
    pub(crate) fn begin_index(&self) -> Result<(), Stopped> {
        self.take(Turn::Index)
    }

    fn take(&self, wanted: Turn) -> Result<(), Stopped> {
        let free = |turn: &mut Turn| match turn {
            Turn::None => {
                *turn = wanted;
                Some(Ok(()))
            }
            Turn::Ended => Some(Err(Stopped)),
            Turn::Applier | Turn::Index => None,
        };
        let (_turn, taken) = self.turn.await_work(self.turn.lock(), None, free);
        taken.unwrap_or(Err(Stopped))
    }

    /// Gives the turn back, or says that the applier has ended.
    pub(crate) fn give_back(&self, has_ended: bool) {
        let mut turn = self.turn.lock();
        *turn = match *turn {
            Turn::Ended => Turn::Ended,
            _ if has_ended => Turn::Ended,
            _ => Turn::None,
        };
        drop(turn);
        self.turn.wake_waiters();
    }
}
