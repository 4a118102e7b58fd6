//! The last epoch, which the logger cannot end.

use super::super::rows::Item;
use super::disk::Logged;
use super::replay::Replay;
use crate::engine::Protocol;
use crate::epoch::EPOCH_MAX;
use crate::protocols::{Occ, TicToc};
use crate::{Abort, Database};

fn commits_beyond_the_last_possible_cut_are_refused<P: Protocol>() {
    let logged = Logged::new(Database::<P>::builder().manual_epochs(EPOCH_MAX - 1));
    let items = logged.db.table::<Item>("items").unwrap();
    let mut session = logged.db.session().unwrap();
    let mut insert = |id| session.run(|tx| items.insert(tx, Item::new(id, 1)));
    assert_eq!(insert(1), Ok(()));
    logged.settle();
    assert_eq!(insert(2), Err(Abort::VersionsExhausted), "{}", P::NAME);
    logged.settle();
    Replay::of(&logged).assert_is(&logged);
    assert_eq!(Replay::of(&logged).rows.len(), 1);
}

#[test]
fn no_commit_is_beyond_the_last_cut_under_occ() {
    commits_beyond_the_last_possible_cut_are_refused::<Occ>();
}

#[test]
fn no_commit_is_beyond_the_last_cut_under_tictoc() {
    commits_beyond_the_last_possible_cut_are_refused::<TicToc>();
}
