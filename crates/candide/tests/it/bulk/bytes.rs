//! Tests of reads that append a column's bytes to a buffer.

use crate::common::{builder, database_with, run, spawn};
use candide::{Abort, Bytes, Protocol, Record, Session, Table};

#[derive(Record, Debug, Clone, Copy)]
struct Document {
    #[key]
    id: u64,
    length: u32,
    head: Bytes<13>,
    #[group(body)]
    number: u32,
    #[group(body)]
    body: Bytes<1000>,
    #[group(body)]
    tail: Bytes<3>,
}

fn document(id: u64, byte: u8) -> Document {
    Document {
        id,
        length: u32::MAX,
        head: Bytes::from_fn(|index| byte ^ index as u8),
        number: u32::MAX,
        body: Bytes::from_fn(|index| byte.wrapping_add(index as u8)),
        tail: Bytes::new([byte, !byte, 7]),
    }
}

/// Appends all columns of bytes, and compares them with those of the row.
fn check<P: Protocol>(
    session: &mut Session<P>,
    table: &Table<Document, P>,
    row: &Document,
) -> Vec<u8> {
    let content = run(session, |tx| {
        let found = table.find(tx, &row.id)?;
        let mut content = b"before".to_vec();
        found.append_bytes(Document::BODY, &mut content)?;
        found.append_bytes(Document::TAIL, &mut content)?;
        found.append_bytes(Document::HEAD, &mut content)?;
        Ok(content)
    });
    let (head, body, tail) = (row.head.as_bytes(), row.body.as_bytes(), row.tail.as_bytes());
    assert_eq!(content, [b"before", &body[..], tail, head].concat(), "{}", P::NAME);
    content
}

protocol_tests!(all: appended_bytes_are_those_that_a_read_returns);
fn appended_bytes_are_those_that_a_read_returns<P: Protocol>() {
    for ts in [true, false] {
        let db = builder::<P>().timestamp_splitting(ts).build().unwrap();
        let table = db.table::<Document>("documents").unwrap();
        let mut session = db.session().unwrap();
        run(&mut session, |tx| (0..3).try_for_each(|id| table.insert(tx, document(id, 9))));
        for id in 0..3 {
            check(&mut session, &table, &document(id, 9));
        }
        // The transaction sees its own writes: a whole row, a column, a deletion.
        run(&mut session, |tx| {
            table.put(tx, document(0, 77))?;
            table.update(tx, 1, Document::TAIL.set(Bytes::new(*b"new")))?;
            table.delete(tx, 2)?;
            let mut content = Vec::new();
            table.find(tx, 0)?.append_bytes(Document::BODY, &mut content)?;
            assert_eq!(content, document(0, 77).body.as_bytes());
            table.find(tx, 1)?.append_bytes(Document::TAIL, &mut content)?;
            assert_eq!(content[1000..], *b"new");
            let gone = table.find(tx, 2)?.append_bytes(Document::BODY, &mut content);
            assert_eq!((gone, content.len()), (Err(Abort::NotFound), 1003));
            let never = table.find(tx, 3)?.append_bytes(Document::BODY, &mut content);
            assert_eq!((never, content.len()), (Err(Abort::NotFound), 1003));
            Ok(())
        });
        check(&mut session, &table, &document(0, 77));
        check(&mut session, &table, &Document { tail: Bytes::new(*b"new"), ..document(1, 9) });
    }
}

protocol_tests!(concurrent: appended_bytes_are_of_one_version);
/// Writers fill a row with one byte each; a reader never sees two of them.
fn appended_bytes_are_of_one_version<P: Protocol>() {
    let (db, table) = database_with::<Document, P>("documents");
    db.run(|tx| table.insert(tx, document(0, 0))).unwrap();
    let constant = |byte| Bytes::new([byte; 1000]);
    db.run(|tx| table.update(tx, 0, Document::BODY.set(constant(0)))).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2u8 {
            let (db, table) = (&db, &table);
            spawn(scope, move || {
                for number in 0..500u32 {
                    let body = constant(number as u8 ^ writer << 7);
                    db.run(|tx| table.update(tx, 0, Document::BODY.set(body))).unwrap();
                }
            });
        }
        let mut content = Vec::new();
        for _ in 0..1_000 {
            db.run(|tx| {
                content.clear();
                table.find(tx, 0)?.append_bytes(Document::BODY, &mut content)
            })
            .unwrap();
            assert!(content.iter().all(|&byte| byte == content[0]), "{}", P::NAME);
        }
    });
}
