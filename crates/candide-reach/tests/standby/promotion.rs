//! Standbys that take over.

use crate::primary::{Account, LONG, Primary, follow, rows, sim};
use candide_log_testing::SimDisk;
use candide_reach::{Block, Promoted, ReachError};
use std::sync::Arc;

#[test]
fn a_promoted_standby_has_all_that_was_acknowledged_and_writes() {
    let place = sim(1);
    let mut primary = Primary::new(Arc::clone(&place));
    primary.change(0);
    let standby = follow(&place, &SimDisk::new()).unwrap();
    let accounts = standby.database().table::<Account>("accounts").unwrap();
    let (progress, before) = (standby.progress(), standby.applied());
    // It need not have caught up.
    primary.change(1);
    primary.change(2);
    let expected = primary.accounts();
    let Promoted { database, leader } = standby.promote().unwrap();
    assert_eq!(rows(&database, &accounts), expected);
    let former = primary.leader.take().unwrap();
    let last = (former.generation(), former.acknowledged());
    assert!(progress.applied() >= last && last > before, "{progress:?}");
    assert_eq!(leader.generation(), former.generation() + 1);
    let late = former.offer(&Block { stamp_generation: 99, ..Block::default() }).unwrap();
    assert!(matches!(former.send(&late), Err(ReachError::Superseded { .. })));
    database.run(|tx| accounts.put(tx, Account { id: 1, owner: 1, cents: 7 })).unwrap();
    assert_eq!(database.run(|tx| accounts.read(tx, 1, Account::CENTS)), Ok(7));
}

#[test]
fn of_two_standbys_that_are_promoted_the_later_one_leads() {
    let place = sim(2);
    let mut primary = Primary::new(Arc::clone(&place));
    let position = primary.change(0);
    let standbys = [(); 2].map(|()| follow(&place, &SimDisk::new()).unwrap());
    for standby in &standbys {
        standby.wait_for(position, LONG).unwrap();
    }
    let [first, second] = standbys.map(|standby| standby.promote().unwrap().leader);
    let block = Block { stamp_generation: 99, ..Block::default() };
    assert!(first.send(&first.offer(&block).unwrap()).is_err());
    assert_eq!(second.send(&second.offer(&block).unwrap()).unwrap(), 1);
}
