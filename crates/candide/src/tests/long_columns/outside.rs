//! Strings and bytes of any length in exports, imports and texts.

use super::{User, all, scene, settle};
use crate::engine::Protocol;
use crate::{Abort, Database, Error, Mvcc, Occ, StreamError, Table};
use candide_derive::Record;

/// Returns the export of a table with these rows.
fn exported<P: Protocol>(rows: &[User]) -> Vec<u8> {
    let (db, users) = scene::<P>();
    db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
    let mut stream = Vec::new();
    assert_eq!(users.export(&mut stream), Ok(rows.len() as u64));
    stream
}

fn rows_of<P: Protocol>(db: &Database<P>, users: &Table<User, P>) -> Vec<User> {
    all(&mut db.session().unwrap(), users)
}

protocol_tests!(all: an_import_restores_values_of_all_lengths);
fn an_import_restores_values_of_all_lengths<P: Protocol>() {
    // The rows take more than a piece by their words.
    for count in [0, 1, 40] {
        let rows: Vec<User> = (0..count).map(User::new).collect();
        let stream = exported::<P>(&rows);
        let (db, users) = scene::<P>();
        assert_eq!(users.import(&mut &stream[..]), Ok(count as u64));
        assert_eq!(rows_of(&db, &users), rows);
        settle(&db, &rows);
        if count > 0 {
            let refused = Error::Load { rows: 0, cause: Abort::Duplicate };
            assert_eq!(users.import(&mut &stream[..]), Err(StreamError::Refused(refused)));
            settle(&db, &rows);
        }
    }
}

#[test]
fn a_stream_of_many_short_values_has_several_pieces() {
    let name = |id: u64| format!("user {id}");
    let rows: Vec<User> =
        (0..2_500).map(|id| User { id, name: name(id), ..golden_row() }).collect();
    let stream = exported::<Occ>(&rows);
    let (db, users) = scene::<Occ>();
    assert_eq!(users.import(&mut &stream[..]), Ok(2_500));
    assert_eq!(rows_of(&db, &users), rows);
}

fn words(stream: &[u8]) -> Vec<u64> {
    stream.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn sum(words: &[u64]) -> u64 {
    let add = |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    words.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Returns the number of words of a stream before its rows.
fn head_words(words: &[u64]) -> usize {
    6 + (words[4] as usize).div_ceil(8)
}

fn golden_row() -> User {
    User {
        id: 7,
        name: "Ann".into(),
        visits: 5,
        photo: (1..=9).collect(),
        nickname: Some(String::new()),
        hash: None,
        age: 40,
    }
}

#[test]
fn the_stream_of_values_has_the_bytes_of_its_format() {
    let stream = exported::<Occ>(&[golden_row()]);
    let words = words(&stream);
    assert_eq!(words[0], u64::from_le_bytes(*b"candide\x05"));
    let value = |place: u64, length: u64| place << 32 | length;
    let row = [
        // The words of the values, the key, the words: those of values are zeros.
        6,
        7,
        0,
        5,
        0,
        0,
        0,
        40,
        value(0, 3),
        u64::from_le_bytes(*b"Ann\0\0\0\0\0"),
        value(2, 9),
        u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]),
        9,
        value(3, 0) | 1 << 63,
    ];
    let begin = [1, row.len() as u64];
    let mut expected = [&begin[..], &[sum(&begin)], &row].concat();
    expected.push(sum(&expected));
    let end = [0, 1];
    let expected = [&expected[..], &end, &[sum(&end)]].concat();
    assert_eq!(words[head_words(&words)..], expected);
    let (db, users) = scene::<Occ>();
    assert_eq!(users.import(&mut &stream[..]), Ok(1));
    assert_eq!(rows_of(&db, &users), [golden_row()]);
}

/// A program reads streams of this version as long as its row type keeps the fields.
#[test]
fn an_export_of_this_version_can_be_read_later() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/long_columns/golden.export");
    if std::env::var_os("CANDIDE_WRITE_GOLDEN").is_some() {
        std::fs::write(path, exported::<Occ>(&[golden_row(), User::new(1)])).unwrap();
    }
    let golden = std::fs::read(path).unwrap();
    let (db, users) = scene::<Mvcc>();
    assert_eq!(users.import(&mut &golden[..]), Ok(2));
    assert_eq!(rows_of(&db, &users), [User::new(1), golden_row()]);
}

#[test]
fn damaged_values_of_a_stream_are_refused_and_nothing_is_inserted() {
    let stream = exported::<Occ>(&[golden_row(), User::new(1)]);
    let (db, users) = scene::<Occ>();
    for byte in 0..stream.len() {
        let mut damaged = stream.clone();
        damaged[byte] ^= 0x10;
        let error = users.import(&mut &damaged[..]).unwrap_err();
        let is_expected = matches!(error, StreamError::Format(_) | StreamError::Schema { .. })
            || matches!(&error, StreamError::Io(io) if io.kind() == std::io::ErrorKind::UnexpectedEof);
        assert!(is_expected, "byte {byte}: {error}");
        let cut_off = users.import(&mut &stream[..byte]);
        assert!(cut_off.is_err(), "{byte} bytes");
        // Only the line of the end can be damaged behind the rows.
        let is_end = byte >= stream.len() - 3 * 8;
        assert_eq!(rows_of(&db, &users).is_empty(), !is_end, "byte {byte}");
        if is_end {
            db.run(|tx| users.clear(tx)).unwrap();
        }
    }
    settle(&db, &[]);
}

/// Returns the stream with other words of its row, and right checksums.
fn changed(change: impl FnOnce(&mut Vec<u64>)) -> Vec<u8> {
    let stream = words(&exported::<Occ>(&[golden_row()]));
    let head = head_words(&stream);
    let mut row = stream[head + 3..stream.len() - 4].to_vec();
    change(&mut row);
    let begin = [1, row.len() as u64];
    let mut line = [&begin[..], &[sum(&begin)], &row].concat();
    line.push(sum(&line));
    bytes(&[&stream[..head], &line, &stream[stream.len() - 3..]].concat())
}

#[test]
fn values_that_are_none_of_the_table_are_refused_by_name() {
    let (db, users) = scene::<Occ>();
    let refused = |change: fn(&mut Vec<u64>), what: &str| {
        let stream = changed(change);
        let error = users.import(&mut &stream[..]).unwrap_err();
        assert!(matches!(error, StreamError::Format(_)), "{error}");
        assert!(error.to_string().ends_with(what), "{error}, not {what}");
    };
    refused(|row| row[9] = 0xff, "row 1: the text of column \"name\" is not UTF-8");
    refused(|row| row[2] = 0x22, "row 1: the word of a value is not 0");
    // Words that look like the address of a block, in a column without a value.
    refused(|row| row[6] = 0x7000_0000_1002, "row 1: the word of column \"hash\" is not 0");
    refused(|row| row[8] += 100, "row 1: a value is cut off");
    refused(|row| row[8] = (1 << 24) + 1, "row 1: a value is too long");
    let of_other_column = |row: &mut Vec<u64>| (row[3], row[8]) = (0, row[8] | 1 << 32);
    refused(of_other_column, "row 1: a value of word 1, which has none");
    refused(|row| row[10] = 9, "row 1: values are not in the order of their places");
    refused(|row| row[13] = 9 << 32 | 1 << 63, "row 1: a value is beyond the row");
    refused(|row| row[0] = u64::MAX, "row 1: a row with values is cut off");
    refused(|row| row.push(0), "there are words behind row 1");
    assert_eq!(rows_of(&db, &users), []);
    // A stream that states too many words has right checksums.
    let mut stream = words(&exported::<Occ>(&[golden_row()]));
    let head = head_words(&stream);
    stream[head + 1] = 1 << 40;
    stream[head + 2] = sum(&stream[head..head + 2]);
    let error = users.import(&mut &bytes(&stream)[..]).unwrap_err().to_string();
    assert!(error.contains("a piece has 1 rows of 1099511627776 words; at most 1024"), "{error}");
}

#[derive(Debug, Clone, PartialEq, Record)]
#[record(crate = crate, ordered)]
struct Fixed {
    #[key]
    id: u64,
    visits: u32,
}

#[test]
fn streams_of_other_rows_are_refused() {
    let (_db, users) = scene::<Occ>();
    let db = Database::new();
    let fixed = db.table::<Fixed>("users").unwrap();
    db.run(|tx| fixed.insert(tx, Fixed { id: 1, visits: 2 })).unwrap();
    let mut stream = Vec::new();
    fixed.export(&mut stream).unwrap();
    let refused = |imported: Result<u64, StreamError>| {
        assert!(matches!(imported, Err(StreamError::Schema { .. })), "{imported:?}");
    };
    refused(users.import(&mut &stream[..]));
    refused(fixed.import(&mut &exported::<Occ>(&[golden_row()])[..]));
    // The first word of the one, and all else of the other.
    for (mut stream, of_users) in [(stream, false), (exported::<Occ>(&[golden_row()]), true)] {
        stream[7] ^= 1;
        let head = words(&stream);
        let end = head_words(&head) - 1;
        stream[end * 8..(end + 1) * 8].copy_from_slice(&sum(&head[..end]).to_le_bytes());
        let imported =
            if of_users { users.import(&mut &stream[..]) } else { fixed.import(&mut &stream[..]) };
        assert!(matches!(imported, Err(StreamError::Format(_))), "{imported:?}");
    }
}

#[cfg(feature = "text")]
mod texts {
    use super::*;
    use crate::tests::long_columns::text;

    type Write<P> = fn(&Table<User, P>, &mut Vec<u8>) -> Result<u64, StreamError>;
    type Read<P> = fn(&Table<User, P>, &mut &[u8]) -> Result<u64, StreamError>;

    fn forms<P: Protocol>() -> [(Write<P>, Read<P>); 2] {
        [
            (|users, to| users.export_json(to), |users, from| users.import_json(from)),
            (|users, to| users.export_csv(to), |users, from| users.import_csv(from)),
        ]
    }

    protocol_tests!(all: texts_restore_values_of_all_lengths);
    fn texts_restore_values_of_all_lengths<P: Protocol>() {
        let mut rows: Vec<User> = (0..20).map(User::new).collect();
        rows[5].name = "\0 \"quoted\", and\r\na line; é 漢 𝄞 \\ ".into();
        rows[6].nickname = Some(" ".into());
        let (db, users) = scene::<P>();
        db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
        for (write, read) in forms::<P>() {
            let mut written = Vec::new();
            assert_eq!(write(&users, &mut written), Ok(rows.len() as u64));
            let (other, copy) = scene::<P>();
            assert_eq!(read(&copy, &mut &written[..]), Ok(rows.len() as u64));
            assert_eq!(rows_of(&other, &copy), rows);
            settle(&other, &rows);
        }
    }

    #[test]
    fn texts_of_many_rows_are_inserted_in_several_transactions() {
        let name = |id: u64| format!("user {id}");
        let row = |id: u64| User { id, name: name(id), ..golden_row() };
        let rows: Vec<User> = (0..700).map(row).collect();
        let (db, users) = scene::<Occ>();
        db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
        let mut written = Vec::new();
        users.export_json(&mut written).unwrap();
        let (other, copy) = scene::<Occ>();
        // A row in the way is refused alone, and those before it stay.
        other.run(|tx| copy.insert(tx, row(400))).unwrap();
        let refused = copy.import_json(&mut &written[..]).unwrap_err();
        assert!(matches!(refused, StreamError::Text { rows: 400, .. }), "{refused}");
        assert_eq!(rows_of(&other, &copy), rows[..401]);
    }

    #[test]
    fn texts_have_the_values_as_programs_write_them() {
        let (db, users) = scene::<Occ>();
        let second = User { id: 8, name: String::new(), nickname: None, ..golden_row() };
        let second = User { photo: Vec::new(), hash: Some(Vec::new()), ..second };
        db.run(|tx| users.insert_many(tx, [golden_row(), second.clone()])).unwrap();
        let (mut json, mut csv) = (Vec::new(), Vec::new());
        users.export_json(&mut json).unwrap();
        users.export_csv(&mut csv).unwrap();
        let expected = "{\"id\":7,\"name\":\"Ann\",\"visits\":5,\"photo\":\"010203040506070809\",\
                        \"nickname\":\"\",\"hash\":null,\"age\":40}\n\
                        {\"id\":8,\"name\":\"\",\"visits\":5,\"photo\":\"\",\"nickname\":null,\
                        \"hash\":\"\",\"age\":40}\n";
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        let expected = "id,name,visits,photo,nickname,hash,age\n\
                        7,Ann,5,010203040506070809,\"\",,40\n8,\"\",5,\"\",,\"\",40\n";
        assert_eq!(String::from_utf8(csv.clone()).unwrap(), expected);
        let (other, copy) = scene::<Occ>();
        copy.import_csv(&mut &csv[..]).unwrap();
        assert_eq!(rows_of(&other, &copy), [golden_row(), second]);
    }

    #[test]
    fn a_text_that_is_no_value_is_refused_with_its_place() {
        let (db, users) = scene::<Occ>();
        let json = |name: &str, photo: &str| {
            format!(
                "{{\"id\":7,\"name\":{name},\"visits\":5,\"photo\":{photo},\"nickname\":null,\
                 \"hash\":null,\"age\":40}}\n"
            )
        };
        let refused = |line: &str, what: &str| {
            let all = json("\"Bob\"", "\"\"").replace("7", "1") + line;
            let error = users.import_json(&mut all.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(what), "{error}, not {what}");
            let rows = rows_of(&db, &users);
            assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [1]);
            db.run(|tx| users.clear(tx)).unwrap();
        };
        refused(&json("3", "\"\""), "`3` is no value of `name: String`, which is a string");
        refused(&json("[]", "\"\""), "`[]` is no value of `name: String`, which is a string");
        let odd = "`abc` is no value of `photo: Vec<u8>`, which is pairs of hexadecimal digits";
        refused(&json("\"\"", "\"abc\""), odd);
        let long = text((16 << 20) + 1, 0);
        let what = "is no value of `name: String`, which is at most 16777216 bytes, not 16777217";
        refused(&json(&format!("{long:?}"), "\"\""), what);
        settle(&db, &[]);
    }

    /// A line may be as long as its values need: a byte may take six.
    #[test]
    fn a_value_of_16_mib_goes_through_json() {
        let (db, users) = scene::<Occ>();
        let row = User { name: "\u{1}".repeat(16 << 20), ..golden_row() };
        db.run(|tx| users.insert(tx, row.clone())).unwrap();
        let mut written = Vec::new();
        assert_eq!(users.export_json(&mut written), Ok(1));
        assert!(written.len() > 6 << 24);
        let (other, copy) = scene::<Occ>();
        assert_eq!(copy.import_json(&mut &written[..]), Ok(1));
        assert!(rows_of(&other, &copy) == [row]);
    }
}
