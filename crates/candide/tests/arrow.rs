//! Rows as record batches of Apache Arrow.

#![cfg(feature = "arrow")]

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use candide::{Bytes, Database, Key, Record, Text};

#[derive(Key, Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    Closed,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Sample {
    #[key]
    place: i32,
    #[key]
    id: u64,
    cents: i64,
    count: Option<u32>,
    ratio: f64,
    is_open: bool,
    maybe: Option<i64>,
    name: Text<8>,
    phone: Option<Text<8>>,
    state: State,
    code: Bytes<2>,
    wide: i128,
    list: [u8; 2],
    mark: char,
}

fn sample(id: u64) -> Sample {
    let is_odd = id % 2 == 1;
    Sample {
        place: -5,
        id,
        cents: -(id as i64),
        count: is_odd.then_some(7),
        ratio: id as f64 / 4.0,
        is_open: is_odd,
        maybe: (!is_odd).then_some(-1),
        name: Text::new("Ann").unwrap(),
        phone: is_odd.then(Text::default),
        state: if is_odd { State::Open } else { State::Closed },
        code: Bytes::new([1, 255]),
        wide: -2,
        list: [3, 4],
        mark: 'é',
    }
}

#[test]
fn batches_have_the_values_of_all_rows() {
    let db = Database::new();
    let table = db.table::<Sample>("samples").unwrap();
    const ROWS: u64 = 10_000;
    for first in (0..ROWS).step_by(1000) {
        db.run(|tx| table.insert_many(tx, (first..first + 1000).map(sample))).unwrap();
    }
    let mut batches: Vec<RecordBatch> = Vec::new();
    assert_eq!(table.export_arrow(|batch| batches.push(batch)), Ok(ROWS));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [8192, 1808]);
    let schema = table.arrow_schema();
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    let types: Vec<String> =
        schema.fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(
        types.join(" "),
        "Int32 UInt64 Int64 UInt32 Float64 Boolean Int64 Utf8 Utf8 Dictionary(Int32, Utf8) \
         FixedSizeBinary(2) FixedSizeBinary(16) Utf8 Utf8"
    );
    let mut seen = vec![false; ROWS as usize];
    for batch in &batches {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let ids = column("id").as_primitive::<UInt64Type>();
        for (row, id) in ids.values().iter().enumerate() {
            let wanted = sample(*id);
            assert!(!std::mem::replace(&mut seen[*id as usize], true));
            assert_eq!(column("place").as_primitive::<Int32Type>().value(row), -5);
            assert_eq!(column("cents").as_primitive::<Int64Type>().value(row), wanted.cents);
            let count = column("count").as_primitive::<UInt32Type>();
            assert_eq!(count.is_valid(row).then(|| count.value(row)), wanted.count);
            assert_eq!(column("ratio").as_primitive::<Float64Type>().value(row), wanted.ratio);
            assert_eq!(column("is_open").as_boolean().value(row), wanted.is_open);
            let maybe = column("maybe").as_primitive::<Int64Type>();
            assert_eq!(maybe.is_valid(row).then(|| maybe.value(row)), wanted.maybe);
            assert_eq!(column("name").as_string::<i32>().value(row), "Ann");
            assert_eq!(column("phone").is_valid(row), wanted.phone.is_some());
            let states = column("state").as_dictionary::<Int32Type>();
            let names = states.values().as_string::<i32>();
            let name = names.value(states.keys().value(row) as usize);
            assert_eq!(name, format!("{:?}", wanted.state));
            assert_eq!(column("code").as_fixed_size_binary().value(row), [1, 255]);
            let wide = column("wide").as_fixed_size_binary().value(row);
            assert_eq!(wide, (-2i128).to_be_bytes());
            assert_eq!(column("list").as_string::<i32>().value(row), "[3,4]");
            assert_eq!(column("mark").as_string::<i32>().value(row), "é");
        }
    }
    assert!(seen.iter().all(|seen| *seen));
}

#[derive(Record, Clone, Debug, PartialEq)]
struct Long {
    #[key]
    id: u64,
    name: String,
    note: Option<String>,
    photo: Vec<u8>,
    hash: Option<Vec<u8>>,
    cents: i64,
}

fn long(id: u64) -> Long {
    let text = |seed: u64| "é".repeat((id * seed % 50) as usize);
    Long {
        id,
        name: text(1),
        note: (!id.is_multiple_of(3)).then(|| text(2)),
        photo: vec![id as u8; (id % 40) as usize],
        hash: (!id.is_multiple_of(4)).then(|| vec![7; (id % 9) as usize]),
        cents: -(id as i64),
    }
}

#[test]
fn batches_have_strings_and_bytes_of_any_length() {
    let db = Database::new();
    let table = db.table::<Long>("long").unwrap();
    const ROWS: u64 = 9_000;
    db.run(|tx| table.insert_many(tx, (0..ROWS).map(long))).unwrap();
    let mut batches: Vec<RecordBatch> = Vec::new();
    assert_eq!(table.export_arrow(|batch| batches.push(batch)), Ok(ROWS));
    let schema = table.arrow_schema();
    let types =
        schema.fields().iter().map(|field| (field.data_type().to_string(), field.is_nullable()));
    let expected = [
        ("UInt64", false),
        ("Utf8", false),
        ("Utf8", true),
        ("Binary", false),
        ("Binary", true),
        ("Int64", false),
    ];
    assert!(types.eq(expected.map(|(ty, is_nullable)| (ty.to_owned(), is_nullable))));
    let mut seen = vec![false; ROWS as usize];
    for batch in &batches {
        assert_eq!(batch.schema(), schema);
        let column = |name: &str| batch.column_by_name(name).unwrap();
        for (row, id) in column("id").as_primitive::<UInt64Type>().values().iter().enumerate() {
            assert!(!std::mem::replace(&mut seen[*id as usize], true));
            let (note, hash) =
                (column("note").as_string::<i32>(), column("hash").as_binary::<i32>());
            let found = Long {
                id: *id,
                name: column("name").as_string::<i32>().value(row).into(),
                note: note.is_valid(row).then(|| note.value(row).into()),
                photo: column("photo").as_binary::<i32>().value(row).into(),
                hash: hash.is_valid(row).then(|| hash.value(row).into()),
                cents: column("cents").as_primitive::<Int64Type>().value(row),
            };
            assert_eq!(found, long(*id));
        }
    }
    assert!(seen.iter().all(|seen| *seen));
}

#[test]
fn a_batch_ends_when_its_values_are_many() {
    let db = Database::new();
    let table = db.table::<Long>("long").unwrap();
    let photo = vec![1; 16 << 20];
    let row = |id| Long { photo: photo.clone(), ..long(id) };
    (0..9).for_each(|id| db.run(|tx| table.insert(tx, row(id))).unwrap());
    let mut rows = Vec::new();
    assert_eq!(table.export_arrow(|batch| rows.push(batch.num_rows())), Ok(9));
    assert_eq!(rows, [4, 4, 1]);
}

/// Prints the rate of five fixed columns: `cargo test --release --features arrow --test arrow --
/// --ignored --nocapture`. `CANDIDE_ROWS` is the number of rows.
#[test]
#[ignore = "a measurement"]
fn the_rate_of_five_fixed_columns_is_printed() {
    #[derive(Record, Clone, Copy)]
    struct Five {
        #[key]
        id: u64,
        cents: i64,
        count: u32,
        ratio: f64,
        is_open: bool,
    }

    let db = Database::new();
    let table = db.table::<Five>("five").unwrap();
    let five = |id| Five { id, cents: 5, count: id as u32, ratio: 0.5, is_open: id % 3 == 0 };
    let rows = std::env::var("CANDIDE_ROWS").map_or(2_000_000, |rows| rows.parse().unwrap());
    table.load((0..rows).map(five), candide::LoadOptions::new()).unwrap();
    for _ in 0..5 {
        let begun = std::time::Instant::now();
        let mut batches = Vec::new();
        let rows = table.export_arrow(|batch| batches.push(batch)).unwrap();
        let rate = rows as f64 / begun.elapsed().as_secs_f64();
        println!("{rows} rows in {} batches: {:.2} M rows/s", batches.len(), rate / 1e6);
    }
}
