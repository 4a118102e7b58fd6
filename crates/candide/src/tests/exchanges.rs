//! Rows that exchange their keys in a unique index, in many sessions, while the index is made and
//! dropped.

use super::entries::assert_entries_match_rows;
use super::indexed_rows::Parcel;
use super::threads::spawn;
use crate::engine::Protocol;
use crate::sync::size::stress;
use crate::sync::{AtomicBool, Ordering, Random};
use crate::{Abort, Database, IndexOptions, Session, Table, Tx};

const THREADS: u64 = 3;
/// The number of rows, so small that transactions often meet.
const ROWS: u16 = 12;

/// Gives each of some rows the code of the next row, and the last row the code of the first.
fn rotate<P: Protocol>(
    parcels: &Table<Parcel, P>,
    tx: &Tx<'_, P>,
    rows: &[u16],
) -> Result<(), Abort> {
    let codes = rows.iter().map(|&row| parcels.read(tx, (1, row), Parcel::CODE));
    let mut codes = codes.collect::<Result<Vec<_>, Abort>>()?;
    codes.rotate_left(1);
    for (&row, code) in rows.iter().zip(codes) {
        match code % 3 {
            0 => parcels.put(tx, Parcel { code, ..Parcel::new(1, row) })?,
            1 => {
                parcels.delete(tx, (1, row))?;
                parcels.insert(tx, Parcel { code, ..Parcel::new(1, row) })?;
            }
            _ => parcels.modify(tx, (1, row), Parcel::CODE, |old| *old = code)?,
        }
    }
    Ok(())
}

/// Returns some different rows.
fn some_rows(random: &mut Random) -> Vec<u16> {
    let (first, step) = (random.below(ROWS.into()) as u16, [1, 5, 7, 11][random.below(4) as usize]);
    (0..2 + random.below(3) as u16).map(|number| (first + number * step) % ROWS).collect()
}

/// Exchanges codes of some rows, perhaps with a part that is undone.
fn exchange<P: Protocol>(
    parcels: &Table<Parcel, P>,
    session: &mut Session<P>,
    random: &mut Random,
) {
    let (rows, others, kind) = (some_rows(random), some_rows(random), random.below(6));
    let done = session.run(|tx| {
        let undo = |part: &dyn Fn() -> Result<(), Abort>| {
            let undone = tx.attempt(|_| part().and(Err::<(), _>(Abort::Overflow)));
            undone.or_else(|abort| if abort == Abort::Overflow { Ok(()) } else { Err(abort) })
        };
        match kind {
            0 => undo(&|| rotate(parcels, tx, &others))?,
            1 => {
                let code = parcels.read(tx, (1, others[0]), Parcel::CODE)?;
                let twin = Parcel { code, ..Parcel::new(1, 99) };
                undo(&|| {
                    // It is unknown whether the index exists now.
                    let refused = tx.attempt(|tx| parcels.insert(tx, twin));
                    refused.or_else(|abort| match abort {
                        Abort::NotUnique => Ok(()),
                        other => Err(other),
                    })
                })?;
            }
            2 => tx.attempt(|tx| rotate(parcels, tx, &others))?,
            3 => {
                // A row waits for a key from before a part that is undone.
                let code = parcels.read(tx, (1, rows[1]), Parcel::CODE)?;
                let own = parcels
                    .modify(tx, (1, rows[0]), Parcel::CODE, |old| std::mem::replace(old, code))?;
                undo(&|| parcels.delete(tx, (1, rows[1])))?;
                return parcels.modify(tx, (1, rows[1]), Parcel::CODE, |old| *old = own);
            }
            _ => {}
        }
        rotate(parcels, tx, &rows)
    });
    assert_eq!(done, Ok(()), "{}: {rows:?}, kind {kind}, {others:?}", P::NAME);
}

protocol_tests!(concurrent: rows_exchange_keys_while_their_index_comes_and_goes);
fn rows_exchange_keys_while_their_index_comes_and_goes<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let rows = (0..ROWS).map(|number| Parcel { code: number.into(), ..Parcel::new(1, number) });
    db.run(|tx| parcels.insert_many(tx, rows.clone())).unwrap();
    let done = AtomicBool::new(false);
    let unique = || IndexOptions::hashed().unique();
    let checked = |session: &mut Session<P>, has_index: bool| {
        let by_code = has_index.then(|| parcels.create_index("by_code", Parcel::CODE, unique()));
        let by_code = by_code.transpose().unwrap_or_else(|e| panic!("{}: {e}", P::NAME));
        let codes = session.run(|tx| {
            let mut codes = Vec::new();
            for row in parcels.iter(tx, Parcel::CODE) {
                let ((_, number), code) = row?;
                codes.push(code);
                if let Some(by_code) = &by_code {
                    let found = by_code.get(tx, code, Parcel::NUMBER)?;
                    if found != Some(number) {
                        return Ok(Err((number, code, found)));
                    }
                }
            }
            codes.sort_unstable();
            Ok(Ok(codes))
        });
        let codes = codes.unwrap().unwrap_or_else(|wrong| panic!("{}: {wrong:?}", P::NAME));
        assert_eq!(codes, Vec::from_iter(0..u32::from(ROWS)), "{}", P::NAME);
    };
    std::thread::scope(|scope| {
        let (db, parcels, done, checked) = (&db, &parcels, &done, &checked);
        let writers = (0..THREADS).map(|number| {
            spawn(scope, move || {
                let (mut session, mut random) = (db.session().unwrap(), Random::seeded(number));
                for _ in 0..400 * stress() {
                    exchange(parcels, &mut session, &mut random);
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        spawn(scope, move || {
            let mut session = db.session().unwrap();
            while !done.load(Ordering::Relaxed) {
                checked(&mut session, true);
                parcels.drop_index("by_code").unwrap();
                checked(&mut session, false);
            }
        });
        let ends: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        ends.into_iter()
            .for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
    let mut session = db.session().unwrap();
    checked(&mut session, true);
    assert_entries_match_rows(&mut session, &parcels);
}
