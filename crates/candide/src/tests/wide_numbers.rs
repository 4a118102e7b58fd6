//! Tests of updates by arithmetic on numbers of two words.

use crate::engine::Protocol;
use crate::{Abort, Database, Tx};
use candide_derive::Record;

#[derive(Record, Debug, Clone, Copy, PartialEq)]
#[record(crate = crate)]
struct Account {
    #[key]
    id: u64,
    #[group(money)]
    wei: u128,
    #[group(money)]
    balance: i128,
    #[group(money)]
    moves: u64,
    #[group(money)]
    last: [u128; 2],
}

const BIG: u128 = 1 << 100;

fn account(id: u64) -> Account {
    Account { id, wei: BIG, balance: -5, moves: 0, last: [1, BIG] }
}

protocol_tests!(all: updates_of_wide_numbers_are_applied_at_commit_and_in_own_reads);
fn updates_of_wide_numbers_are_applied_at_commit_and_in_own_reads<P: Protocol>() {
    for (splitting, at_commit) in [(true, true), (false, true), (true, false)] {
        let db = Database::<P>::builder().timestamp_splitting(splitting);
        let db = db.commit_time_updates(at_commit).build().unwrap();
        let accounts = db.table::<Account>("accounts").unwrap();
        db.run(|tx| accounts.insert(tx, account(1))).unwrap();
        let read = || db.run(|tx| accounts.read(tx, 1, crate::Whole)).unwrap();
        let update = (Account::WEI.sub(1).at_least(0), Account::BALANCE.add(7).at_most(2));
        db.run(|tx| accounts.update(tx, 1, update)).unwrap();
        assert_eq!(read(), Account { wei: BIG - 1, balance: 2, ..account(1) });
        // The operations of one transaction overlap, so the commit needs an image of the unit.
        let seen = db.run(|tx| {
            accounts.update(tx, 1, (Account::WEI.add(BIG), Account::MOVES.add(1)))?;
            accounts.update(tx, 1, Account::WEI.wrapping_sub(2 * BIG))?;
            let seen = accounts.read(tx, 1, Account::WEI)?;
            accounts.update(tx, 1, (Account::WEI.min(9), Account::BALANCE.max(-1)))?;
            accounts.update(tx, 1, Account::LAST.at(1).sub(BIG).at_least(0))?;
            Ok(seen)
        });
        assert_eq!(seen, Ok(u128::MAX));
        assert_eq!(read(), Account { wei: 9, balance: 2, moves: 1, last: [1, 0], ..account(1) });
        let refused = |body: &dyn Fn(&Tx<'_, P>) -> Result<(), Abort>| db.run(body).unwrap_err();
        assert_eq!(refused(&|tx| accounts.update(tx, 1, Account::WEI.sub(10))), Abort::Overflow);
        let guarded = Account::WEI.sub(10).at_least(0);
        assert_eq!(refused(&|tx| accounts.update(tx, 1, guarded)), Abort::Guard);
        let bounded = Account::BALANCE.set(i128::MIN).at_least(i128::MIN + 1);
        assert_eq!(refused(&|tx| accounts.update(tx, 1, bounded)), Abort::Guard);
        let most = Account::BALANCE.add(i128::MAX - 1);
        assert_eq!(refused(&|tx| accounts.update(tx, 1, most)), Abort::Overflow);
        let part = db.run(|tx| {
            let part = tx.attempt(|tx| accounts.update(tx, 1, guarded));
            match part {
                Err(Abort::Guard) => accounts.update(tx, 1, Account::WEI.wrapping_add(1)),
                other => other,
            }
        });
        assert_eq!(part, Ok(()));
        assert_eq!(read(), Account { wei: 10, balance: 2, moves: 1, last: [1, 0], ..account(1) });
        assert_eq!(db.run(|tx| accounts.sum(tx, Account::BALANCE)), Ok(2));
    }
}
