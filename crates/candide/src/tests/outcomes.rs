//! Tests of outcomes by name: the table, the key and the column to which an outcome belongs.

use crate::engine::Protocol;
use crate::schema::{Refused, Updater};
use crate::{Abort, Column, Database, Session, Text, Tx};
use candide_derive::Record;

#[derive(Record, Debug, Clone, Copy)]
#[record(crate = crate)]
struct Part {
    #[key]
    shelf: u32,
    #[key]
    board: u32,
    #[unique]
    code: Text<8>,
    height: u8,
    width: u8,
    label: Text<8>,
    #[group(stock)]
    count: i64,
    #[group(stock)]
    bins: [u16; 6],
}

fn part(shelf: u32, board: u32) -> Part {
    let code = Text::new(&format!("{shelf}-{board}")).unwrap();
    Part {
        shelf,
        board,
        code,
        height: 250,
        width: 3,
        label: Text::default(),
        count: 5,
        bins: [9; 6],
    }
}

/// An updater that always refuses.
#[derive(Clone, Copy)]
struct Refuse;

impl Updater<Part> for Refuse {
    type Target = Column<Part, i64>;

    fn target(&self) -> Self::Target {
        Part::COUNT
    }

    fn apply(&self, _: &mut i64) -> Result<(), Refused> {
        Err(Refused)
    }
}

protocol_tests!(all: an_outcome_names_its_table_key_and_column);
fn an_outcome_names_its_table_key_and_column<P: Protocol>() {
    for splitting in [true, false] {
        let db = Database::<P>::builder().timestamp_splitting(splitting).build().unwrap();
        let parts = db.table::<Part>("parts").unwrap();
        let by_code = parts.index(Part::BY_CODE);
        let mut session = db.session().unwrap();
        assert_eq!(session.last_outcome(), None);
        session.run(|tx| parts.insert_many(tx, [part(1, 2), part(1, 3)])).unwrap();
        let (here, there) = ((1, 2), (7, 8));

        let ended = |session: &mut Session<P>, body: &dyn Fn(&Tx<'_, P>) -> Result<(), Abort>| {
            let cause = session.run(body).expect_err("the transaction fails");
            let outcome = session.last_outcome().expect("it has an outcome");
            assert_eq!(outcome.cause, cause, "{}", P::NAME);
            outcome.to_string()
        };
        let mut said = |body: &dyn Fn(&Tx<'_, P>) -> Result<(), Abort>| ended(&mut session, body);

        let absent = "not_found on parts, key shelf: 7, board: 8";
        assert_eq!(said(&|tx| parts.read(tx, there, Part::COUNT).map(drop)), absent);
        assert_eq!(said(&|tx| parts.read_for_update(tx, there, Part::COUNT).map(drop)), absent);
        assert_eq!(said(&|tx| parts.update(tx, there, Part::COUNT.add(1))), absent);
        assert_eq!(said(&|tx| parts.modify(tx, there, Part::COUNT, |_| {})), absent);
        assert_eq!(said(&|tx| parts.delete(tx, there)), absent);
        assert_eq!(said(&|tx| parts.is_within(tx, there, Part::COUNT, 1..).map(drop)), absent);
        let deleted = &|tx: &Tx<'_, P>| {
            parts.delete(tx, here)?;
            parts.delete(tx, here)
        };
        assert_eq!(said(deleted), "not_found on parts, key shelf: 1, board: 2");
        assert_eq!(
            said(&|tx| by_code.read(tx, "none", Part::COUNT).map(drop)),
            r#"not_found on parts.by_code, key "none""#
        );
        assert_eq!(
            said(&|tx| by_code.read(tx, "much too long", Part::COUNT).map(drop)),
            "not_found on parts.by_code"
        );

        let there_already = "duplicate on parts, key shelf: 1, board: 3";
        assert_eq!(said(&|tx| parts.insert(tx, part(1, 3))), there_already);
        assert_eq!(said(&|tx| parts.insert_many(tx, [part(2, 2), part(1, 3)])), there_already);

        let guarded = |tx: &Tx<'_, P>| parts.update(tx, here, Part::COUNT.sub(6).at_least(0));
        let guard = "guard on parts.count, key shelf: 1, board: 2";
        assert_eq!(said(&guarded), guard);
        let overflow = |tx: &Tx<'_, P>| parts.update(tx, here, Part::HEIGHT.add(6));
        assert_eq!(said(&overflow), "overflow on parts.height, key shelf: 1, board: 2");
        let width = |tx: &Tx<'_, P>| parts.update(tx, here, Part::WIDTH.sub(4));
        assert_eq!(said(&width), "overflow on parts.width, key shelf: 1, board: 2");
        let bin = |tx: &Tx<'_, P>| parts.update(tx, here, Part::BINS.at(5).sub(10));
        assert_eq!(said(&bin), "overflow on parts.bins, key shelf: 1, board: 2");
        let refused = |tx: &Tx<'_, P>| parts.update_with(tx, here, Refuse);
        assert_eq!(said(&refused), "guard on parts, key shelf: 1, board: 2");

        // The first failure in program order counts, and one that a read has shown.
        assert_eq!(said(&|tx| guarded(tx).and_then(|()| overflow(tx))), guard);
        let ignored = &|tx: &Tx<'_, P>| {
            guarded(tx)?;
            let read = parts.read(tx, here, Part::COUNT);
            assert!(read.is_err_and(|abort| abort.is_conflict() || abort == Abort::Guard));
            Ok(())
        };
        assert_eq!(said(ignored), guard);
        // The entry of a unique index that another row has, and keeps.
        let alike = |tx: &Tx<'_, P>, shelf| parts.insert(tx, Part { shelf, ..part(1, 2) });
        let taken = r#"not_unique on parts.by_code, key "1-2""#;
        assert_eq!(said(&|tx| alike(tx, 7)), taken);
        let second = &|tx: &Tx<'_, P>| {
            alike(tx, 8)?;
            parts.insert(tx, Part { shelf: 7, ..part(1, 3) })?;
            parts.delete(tx, here)
        };
        assert_eq!(said(second), r#"not_unique on parts.by_code, key "1-3""#);
        let in_part = |tx: &Tx<'_, P>| {
            assert_eq!(tx.attempt(|tx| alike(tx, 9)), Err(Abort::NotUnique));
            assert_eq!(tx.last_outcome().unwrap().to_string(), taken);
            parts.update(tx, there, Part::COUNT.add(1))
        };
        assert_eq!(said(&in_part), absent);

        // A text that is too long for its column.
        let long = |tx: &Tx<'_, P>| {
            parts.update(tx, here, (Part::COUNT.add(1), Part::LABEL.set("nine bytes")))
        };
        let too_long = "text_too_long on parts.label, key shelf: 1, board: 2";
        assert_eq!(said(&long), too_long);

        // A closure asks for what it has just got.
        session
            .run(|tx| {
                let failed = tx.attempt(|tx| guarded(tx));
                if failed == Err(Abort::Guard) {
                    assert_eq!(tx.last_outcome().unwrap().column, Some("count"));
                    return Ok(());
                }
                failed
            })
            .unwrap();
        assert_eq!(session.last_outcome().unwrap().key, Some(vec![1, 2]));
    }
}
