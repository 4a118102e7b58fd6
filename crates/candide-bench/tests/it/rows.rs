//! The tables and rows of databases in files, as the command prints them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use candide::{Bytes, Database, IndexOptions, Key, LogOptions, Occ, Record, Text};
use serde_json::{Value, json};

use crate::common::{file, place, run};

#[derive(Key, Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    Closed,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Customer {
    #[index]
    cents: i64,
    #[key]
    name: Text<16>,
    #[key]
    number: i32,
    #[default(State::Open)]
    state: State,
    phone: Option<Text<12>>,
    #[unique(ordered)]
    code: Bytes<2>,
    large: u64,
    months: [u8; 3],
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Visit {
    #[key]
    id: u64,
    page: u32,
}

/// Makes a database with two tables. Returns its directory, and the database.
fn made(name: &str) -> (PathBuf, Database<Occ>) {
    let place = place(name);
    // Small files, so that a checkpoint has several parts.
    let options = LogOptions::new().segment_bytes(64 << 10);
    let db: Database<Occ> = Database::builder().open(&place, options).expect("opened");
    let customers = db.table::<Customer>("customers").expect("made");
    let ann = Customer {
        name: Text::new("Ann").expect("it fits"),
        number: -7,
        cents: 5,
        state: State::Closed,
        phone: None,
        code: Bytes::new([0, 255]),
        large: 1 << 60,
        months: [1, 2, 3],
    };
    let doe = Customer {
        name: Text::new("Doe, \"Jane\"").expect("it fits"),
        number: 2,
        cents: -1,
        state: State::Open,
        phone: Some(Text::default()),
        code: Bytes::new([1, 2]),
        large: 9,
        ..ann
    };
    let visits = db.table::<Visit>("visits").expect("made");
    db.run(|tx| {
        customers.insert(tx, ann)?;
        customers.insert(tx, doe)?;
        visits.insert_many(tx, (0..10_000).map(|id| Visit { id, page: 3 }))
    })
    .expect("committed");
    (place, db)
}

fn closed(name: &str) -> PathBuf {
    made(name).0
}

/// Runs a tool with a directory, and with further arguments. Returns what it printed.
fn printed(tool: &str, place: &Path, arguments: &[&str]) -> String {
    let (status, printed, message) = all(tool, place, arguments);
    assert_eq!((status, &message[..]), (0, ""), "{tool} {arguments:?}");
    printed
}

/// Runs a tool that fails. Returns its exit status and its message.
fn refused(tool: &str, place: &Path, arguments: &[&str]) -> (i32, String) {
    let (status, printed, message) = all(tool, place, arguments);
    assert_eq!(printed, "", "{tool} {arguments:?}");
    (status, message)
}

fn all(tool: &str, place: &Path, arguments: &[&str]) -> (i32, String, String) {
    let arguments = arguments.iter().map(PathBuf::from);
    let paths: Vec<PathBuf> = [place.to_path_buf()].into_iter().chain(arguments).collect();
    run(tool, &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>())
}

#[test]
fn tables_are_printed_with_columns_and_indexes() {
    let place = closed("rows-tables");
    let expected = "\
customers (Customer): 2 rows
  cents: i64
  name: Text<16>, in the key
  number: i32, in the key
  state: State, with a default
  phone: Option<Text<12>>
  code: Bytes<2>
  large: u64
  months: [u8; 3]
  index by_cents of cents
  unique index by_code of code
visits (Visit): 10,000 rows
  id: u64, in the key
  page: u32
";
    assert_eq!(printed("tables", &place, &[]), expected);
}

#[test]
fn rows_are_dumped_as_json_and_as_csv() {
    let place = closed("rows-dump");
    let rows = printed("dump", &place, &["customers"]);
    let rows: Vec<Value> =
        rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ann = json!({
        "cents": 5, "name": "Ann", "number": -7, "state": "Closed", "phone": null, "code": "00ff",
        "large": "1152921504606846976", "months": [1, 2, 3],
    });
    let doe = json!({
        "cents": -1, "name": "Doe, \"Jane\"", "number": 2, "state": "Open", "phone": "",
        "code": "0102", "large": 9, "months": [1, 2, 3],
    });
    assert_eq!(rows, [ann, doe]);
    assert_eq!(printed("dump --json", &place, &["customers"]).lines().count(), 2);
    let expected = "\
cents,name,number,state,phone,code,large,months
5,Ann,-7,Closed,,00ff,1152921504606846976,\"[1,2,3]\"
-1,\"Doe, \"\"Jane\"\"\",2,Open,\"\",0102,9,\"[1,2,3]\"
";
    assert_eq!(printed("dump --csv", &place, &["customers"]), expected);
    let visits = printed("dump --csv", &place, &["visits"]);
    assert_eq!(visits.lines().nth(7), Some("6,3"));
    assert_eq!(visits.lines().count(), 10_001);
}

#[test]
fn one_row_is_found_by_its_key() {
    let place = closed("rows-get");
    assert_eq!(printed("get", &place, &["visits", "9999"]), "{\"id\":9999,\"page\":3}\n");
    assert_eq!(printed("get --csv", &place, &["visits", "7"]), "id,page\n7,3\n");
    let name = |text: &str| {
        let row: Value = serde_json::from_str(text).expect("JSON");
        row["name"].as_str().expect("a text").to_owned()
    };
    assert_eq!(name(&printed("get", &place, &["customers", "Ann,-7"])), "Ann");
    let quoted = "\"Doe, \"\"Jane\"\"\",2";
    assert_eq!(name(&printed("get", &place, &["customers", quoted])), "Doe, \"Jane\"");
    let key = file("rows-get-key.txt");
    fs::write(&key, format!("{quoted}\r\n")).expect("written");
    let at = format!("@{}", key.display());
    assert_eq!(name(&printed("get", &place, &["customers", &at])), "Doe, \"Jane\"");
}

#[test]
fn wrong_tables_and_keys_are_refused_with_what_is_there() {
    let place = closed("rows-refused");
    let (status, message) = refused("dump", &place, &["visit"]);
    assert_eq!(status, 2);
    let there = "there is no table `visit`; its tables are customers, visits";
    assert!(message.contains(there), "{message}");
    let (status, message) = refused("get", &place, &["visits", "x"]);
    assert_eq!(status, 2);
    let what = "`x` is no key of table `visits`: `x` is no value of `id: u64`, which is a number \
                from 0 to 18446744073709551615; a key is `id: u64`";
    assert!(message.contains(what), "{message}");
    let (status, message) = refused("get", &place, &["customers", "Ann"]);
    assert_eq!(status, 2);
    let what = "there is no component for `number`; a key is `name: Text<16>, number: i32`";
    assert!(message.contains(what), "{message}");
    let (status, message) = refused("get", &place, &["visits", "-1"]);
    assert_eq!(status, 2, "{message}");
    let (status, message) = refused("get --csv", &place, &["visits", "10000"]);
    assert_eq!(status, 1);
    assert!(message.contains("table `visits` has no row with the key 10000"), "{message}");
    let (status, message) = refused("get", &place, &["visits", "@rows-no-file.txt"]);
    assert_eq!(status, 2);
    assert!(message.contains("the key cannot be read from rows-no-file.txt: "), "{message}");
    let key = file("rows-refused-key.txt");
    fs::write(&key, [b'7', 0xff]).expect("written");
    let (status, message) = refused("get", &place, &["visits", &format!("@{}", key.display())]);
    assert_eq!(status, 2);
    assert!(message.contains("the file is not UTF-8"), "{message}");
}

#[test]
fn a_database_in_use_is_refused_with_its_process() {
    let (place, _db) = made("rows-in-use");
    for (tool, arguments) in
        [("tables", &[][..]), ("dump", &["visits"][..]), ("get", &["visits", "7"][..])]
    {
        let (status, message) = refused(tool, &place, arguments);
        assert_eq!(status, 1, "{tool}");
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
    }
}

#[test]
fn damage_is_told_with_the_last_row_before_it() {
    let (place, db) = made("rows-damaged");
    db.checkpoint().expect("made");
    drop(db);
    let part = place.join("checkpoint-0000000001-0001");
    let mut bytes = fs::read(&part).expect("read");
    bytes[1000] ^= 1;
    fs::write(&part, bytes).expect("written");
    assert_eq!(printed("dump", &place, &["customers"]).lines().count(), 2);
    let (status, lines, message) = all("dump --csv", &place, &["visits"]);
    assert_eq!(status, 1);
    assert!(message.contains("checkpoint-0000000001-0001 is damaged at byte "), "{message}");
    let last = lines.lines().last().expect("some").split(',').next().expect("an id");
    let told = format!("; all rows up to the key id: {last} have been printed, and none behind it");
    assert!(message.contains(&told), "{message}");
    assert_eq!(lines.lines().count(), last.parse::<usize>().expect("a number") + 2);
}

#[test]
fn a_closed_pipe_ends_a_dump_without_a_message() {
    let place = closed("rows-pipe");
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.arg("dump").arg(&place).arg("visits");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

/// Runs `load` with rows of standard input.
fn loaded(place: &Path, table: &str, options: &[&str], rows: &[u8]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.arg("load").args(options).arg(place).args([table, "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    // The command may end before it has read everything.
    let _ = input.write_all(rows);
    drop(input);
    let output = child.wait_with_output().expect("ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("it ends"), text(output.stdout), text(output.stderr))
}

/// Makes a database with the same tables and no rows.
fn empty(name: &str) -> PathBuf {
    let place = place(name);
    let db: Database<Occ> = Database::builder().open(&place, LogOptions::new()).expect("opened");
    db.table::<Customer>("customers").expect("made");
    db.table::<Visit>("visits").expect("made");
    place
}

#[test]
fn dumped_rows_are_loaded_into_another_database() {
    let place = closed("rows-load");
    for (form, ending) in [("dump --csv", "csv"), ("dump --json", "jsonl")] {
        let copy = empty("rows-load-copy");
        for table in ["customers", "visits"] {
            let rows = printed(form, &place, &[table]);
            let from = file(&format!("rows-load-{table}.{ending}"));
            fs::write(&from, &rows).expect("written");
            let said = printed("load", &copy, &[table, &from.display().to_string()]);
            let count = if table == "visits" { "10,000 rows" } else { "2 rows" };
            let wanted = format!("{count} of {} are now in table `{table}`\n", from.display());
            assert_eq!(said, wanted);
            assert_eq!(printed(form, &copy, &[table]), rows);
        }
        let db: Database<Occ> = Database::builder().open(&copy, LogOptions::new()).expect("opened");
        let customers = db.table::<Customer>("customers").expect("with its indexes");
        assert_eq!(customers.for_each_quiescent(|_| ()), Ok(2));
    }
}

#[test]
fn rows_before_a_wrong_one_are_loaded_and_none_behind_it() {
    let place = closed("rows-load-wrong");
    let refused = |table: &str, rows: &[u8], wanted: &str| {
        let (status, printed, message) = loaded(&place, table, &["--csv"], rows);
        assert_eq!((status, &printed[..]), (1, ""), "{message}");
        assert!(message.contains(wanted), "{message}");
    };
    refused(
        "visits",
        b"id,page\n10000,1\n10001,2\n10002,x\n10003,4\n",
        "standard input: line 4, column 7: `x` is no value of `page: u32`, which is a number from \
         0 to 4294967295; all rows up to the key id: 10001 have been loaded, 2 in all, and none \
         behind it",
    );
    let last = printed("dump --csv", &place, &["visits"]);
    assert_eq!(last.lines().last(), Some("10001,2"));
    refused(
        "visits",
        b"id,page\n7,1\n",
        "line 2, column 1: a row has the key id: 7 already; no row",
    );
    refused("visits", b"id,page\n20000,1\n20001", "line 3, column 1: the text ends in this cell");
    refused("visits", b"id,page\n30000,\xff\n", "line 2, column 7: byte 0xff is not UTF-8");
    refused("visits", b"id\n1\n", "line 1, column 3: the first line has no `page`");
    let head = "cents,name,number,state,phone,code,large,months\n";
    let twice =
        format!("{head}1,Cat,1,Open,,00fe,1,\"[1,2,3]\"\n1,Dan,1,Open,,00ff,1,\"[1,2,3]\"\n");
    refused(
        "customers",
        twice.as_bytes(),
        "line 3, column 1: another row has the key code: b\"\\x00\\xff\" in unique index `by_code`; \
         all rows up to the key name: \"Cat\", number: 1 have been loaded, 1 in all",
    );
    // What has been refused keeps no program from opening the database.
    let db: Database<Occ> = Database::builder().open(&place, LogOptions::new()).expect("opened");
    let customers = db.table::<Customer>("customers").expect("with its indexes");
    assert_eq!(customers.for_each_quiescent(|_| ()), Ok(3));
}

#[test]
fn an_index_of_the_program_is_named_in_a_warning_and_checked_when_it_is_made_again() {
    let (place, db) = made("rows-load-made");
    let visits = db.table::<Visit>("visits").expect("made");
    let unique = IndexOptions::ordered().unique();
    let pages = (Visit::ID, Visit::PAGE);
    visits.create_index("by_both", pages, unique).expect("made");
    visits.create_index("by_page", Visit::PAGE, IndexOptions::hashed()).expect("made");
    drop((visits, db));
    let (status, printed, message) = loaded(&place, "visits", &["--csv"], b"id,page\n10000,4\n");
    assert_eq!((status, printed.lines().count()), (0, 1), "{message}");
    assert!(message.contains("unique index `by_both`; the program checks it when it"), "{message}");
    assert!(!message.contains("by_page"), "{message}");
    let db: Database<Occ> = Database::builder().open(&place, LogOptions::new()).expect("opened");
    let visits = db.table::<Visit>("visits").expect("found");
    visits.create_index("by_both", pages, unique).expect("made again");
    visits.create_index("by_page", Visit::PAGE, unique).expect_err("page 3 has many visits");
}

#[test]
fn rows_for_wrong_places_are_refused_before_anything_changes() {
    let (place, db) = made("rows-load-refused");
    let (status, _, message) = loaded(&place, "visits", &[], b"");
    assert_eq!(status, 1);
    assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
    drop(db);
    let (status, _, message) = loaded(&place, "visit", &[], b"");
    assert_eq!(status, 2);
    assert!(message.contains("there is no table `visit`; its tables are customers, visits"));
    let (status, message) = refused("load", &place, &["visits", "no-such-file"]);
    assert_eq!(status, 2);
    assert!(message.contains("the rows cannot be read from no-such-file: "), "{message}");
    assert_eq!(
        loaded(&place, "visits", &[], b"").1,
        "0 rows of standard input are now in table `visits`\n"
    );
}
