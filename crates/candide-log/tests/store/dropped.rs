//! Tables that are dropped, renamed, or not finished.

use crate::crashes::few;
use crate::support::*;
use candide_log::disk::{Disk, RealDisk};
use candide_log::format::manifest::{Manifest, fields_hash, table_bytes};
use candide_log::schema::{FieldPlace, FieldSchema, TableState, TypeSchema};
use candide_log::tools::{repair, stats, verify};
use candide_log::{StoreError, TableSchema};
use candide_log_testing::{CrashOptions, Fault, SimDisk};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The keys of all tables, by name.
type Contents = BTreeMap<String, Vec<u64>>;

fn contents(opened: &Opened) -> Contents {
    let keys = |table: TableSchema| {
        let of = opened.rows.keys().filter(|(number, _)| *number == table.number);
        (table.name, of.map(|(_, key)| key[0]).collect())
    };
    opened.store.tables().into_iter().map(keys).collect()
}

/// A database that is changed in steps, each of which is durable at its end.
struct Script {
    disk: SimDisk,
    /// Returns the schema of a table of this name.
    schema: fn(&str) -> TableSchema,
    opened: Opened,
    stamp: u64,
    now: Contents,
    /// The contents after each step, and the position of the disk there.
    steps: Vec<(usize, Contents)>,
}

impl Script {
    fn new() -> Script {
        Script::with(schema)
    }

    fn with(schema: fn(&str) -> TableSchema) -> Script {
        let disk = SimDisk::new();
        let opened = open(disk.clone()).unwrap();
        let steps = vec![(disk.position(), Contents::new())];
        Script { disk, schema, opened, stamp: 0, now: Contents::new(), steps }
    }

    fn done(&mut self) {
        self.steps.push((self.disk.position(), self.now.clone()));
    }

    fn add(&mut self, name: &str) -> u32 {
        let number = self.opened.store.add_table((self.schema)(name)).unwrap();
        self.now.insert(name.to_string(), Vec::new());
        self.done();
        number
    }

    fn put(&mut self, name: &str, number: u32, key: u64) {
        self.stamp += 1;
        let record = put(self.stamp, number, key, key);
        self.opened.log.write(&[&record], self.stamp).unwrap();
        self.opened.log.sync().unwrap();
        self.now.get_mut(name).unwrap().push(key);
        self.done();
    }

    fn drop_table(&mut self, name: &str, number: u32) {
        self.opened.store.drop_table(number).unwrap();
        self.now.remove(name).unwrap();
        self.done();
    }

    fn rename(&mut self, from: &str, number: u32, to: &str) {
        self.opened.store.change_table(number, |table| table.name = to.to_string()).unwrap();
        let keys = self.now.remove(from).unwrap();
        self.now.insert(to.to_string(), keys);
        self.done();
    }

    fn checkpoint(&mut self) {
        self.opened.store.checkpoint().unwrap();
        self.done();
    }

    fn reopen(&mut self) {
        let disk = self.disk.clone();
        self.stamp = 0;
        // The directory is locked until the database is closed.
        let closed = open(SimDisk::new()).unwrap();
        drop(std::mem::replace(&mut self.opened, closed));
        self.opened = open(disk).unwrap();
        assert_eq!(contents(&self.opened), self.now);
        self.done();
    }
}

/// Makes, fills, renames and drops tables, before and after checkpoints.
fn script(schema: fn(&str) -> TableSchema) -> Script {
    let mut script = Script::with(schema);
    let accounts = script.add("accounts");
    script.put("accounts", accounts, 1);
    let lines = script.add("lines");
    script.put("lines", lines, 2);
    script.drop_table("accounts", accounts);
    let again = script.add("accounts");
    assert_eq!((accounts, lines, again), (1, 2, 3));
    script.put("accounts", again, 3);
    script.checkpoint();
    script.rename("lines", lines, "order lines");
    script.put("order lines", lines, 4);
    script.drop_table("accounts", again);
    script.reopen();
    script.put("order lines", lines, 5);
    script.checkpoint();
    // The number of the last table is free again, and its old rows do not come back.
    let third = script.add("accounts");
    assert_eq!(third, 3);
    script.put("accounts", third, 6);
    script.reopen();
    script
}

/// Opens what each crash of the script leaves.
fn check_crashes(script: &Script, options: &CrashOptions) {
    for state in script.disk.crash_states(options) {
        let position = state.id().position;
        let opened = open(state.disk());
        let opened = opened.unwrap_or_else(|error| panic!("{}{error}", state.describe()));
        let found = contents(&opened);
        // The step that had ended, and the one that had begun.
        let ended = script.steps.iter().rposition(|(end, _)| *end <= position);
        let possible = &script.steps[ended.unwrap_or(0)..];
        let is_possible = possible.iter().take(2).any(|(_, contents)| *contents == found);
        assert!(is_possible, "{}{found:?}", state.describe());
        let known = opened.store.tables();
        let is_whole = |table: &TableSchema| {
            *table == TableSchema { number: table.number, ..(script.schema)(&table.name) }
        };
        assert!(known.iter().all(is_whole), "{}a description has changed", state.describe());
    }
}

#[test]
fn every_crash_leaves_a_table_as_it_was_or_as_it_is_to_be() {
    check_crashes(&script(schema), &few());
}

/// Returns the schema of a table whose description is longer than a page.
fn described(name: &str) -> TableSchema {
    let place = |word| FieldPlace::Column { group: 1, word: word / 64, shift: (word % 64) as u8 };
    let column = |number: u16| FieldSchema {
        name: format!("a column with a name of some length, {number}"),
        place: place(number),
        ty: TypeSchema::Bool,
        default: Some(vec![1; 8]),
    };
    let key = FieldSchema {
        name: "id".to_string(),
        place: FieldPlace::Key { word: 0 },
        ty: TypeSchema::Unsigned(64),
        default: None,
    };
    let fields: Vec<FieldSchema> = [key].into_iter().chain((0..80).map(column)).collect();
    TableSchema { schema: fields_hash(&fields), fields, ..schema(name) }
}

#[test]
fn every_crash_leaves_a_description_longer_than_a_page_whole_or_absent() {
    let bytes = table_bytes(&described("lines")).unwrap().len();
    assert!(bytes > 4096, "{bytes} bytes");
    let options = CrashOptions { exhaustive: 3, pieces: 12, samples: 3, ..few() };
    check_crashes(&script(described), &options);
}

#[test]
fn unnamed_tables_take_no_name() {
    let disk = SimDisk::new();
    let opened = open(disk.clone()).unwrap();
    let first = opened.store.add_table(schema("")).unwrap();
    let again = opened.store.add_table(schema(""));
    assert!(matches!(again, Err(StoreError::TableExists { name }) if name.is_empty()));
    opened.store.drop_table(first).unwrap();
    let second = opened.store.add_table(schema("")).unwrap();
    drop((opened.store, opened.log));
    // Of the two, one is dropped, and one has the empty name.
    let opened = open(disk.clone()).unwrap();
    let taken = opened.store.add_table(schema(""));
    assert!(matches!(taken, Err(StoreError::TableExists { .. })));
    opened.store.drop_table(second).unwrap();
    drop((opened.store, opened.log));
    // Both are dropped, so no table has the name.
    let opened = open(disk).unwrap();
    opened.store.add_table(schema("")).unwrap();
}

#[test]
fn a_number_is_used_again_when_all_have_been_used() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    drop((opened.store, opened.log));
    // The last number is in use, so the next table gets one that a checkpoint has freed.
    change_manifest(&disk, |manifest| {
        let last = TableSchema { number: 65_535, ..schema("last") };
        manifest.tables.extend((2..65_535).map(|number| TableSchema {
            number,
            name: String::new(),
            ..last.dropped()
        }));
        manifest.tables.push(last);
    });
    let mut opened = open(disk.clone()).unwrap();
    assert_eq!(opened.rows, rows(table, [1]));
    opened.store.drop_table(table).unwrap();
    let begin = disk.position();
    let next = opened.store.add_table(schema("next")).unwrap();
    assert_eq!(next, 1);
    opened.log.write(&[&put(2, next, 2, 2)], 2).unwrap();
    opened.log.sync().unwrap();
    let states = disk.crash_states(&CrashOptions { first: begin, ..few() });
    for state in states.step_by(7) {
        let opened = open(state.disk());
        let opened = opened.unwrap_or_else(|error| panic!("{}{error}", state.describe()));
        let found = contents(&opened);
        // The rows of the table that had the number before do not come back.
        let is_possible = match found.get("next") {
            Some(keys) => keys.is_empty() || *keys == [2],
            None => true,
        };
        assert!(is_possible && found["last"].is_empty(), "{}{found:?}", state.describe());
    }
}

#[test]
fn a_drop_is_not_durable_before_the_commits_before_it() {
    let (disk, mut opened, table) = open_new();
    let copy_of = opened.store.add_table(schema("copy")).unwrap();
    opened.log.write(&[&put(1, table, 7, 7)], 1).unwrap();
    opened.log.sync().unwrap();
    let begin = disk.position();
    // The row moves to the other table, which the program does not wait for.
    opened.log.write(&[&put(2, copy_of, 7, 7)], 2).unwrap();
    opened.store.drop_table(table).unwrap();
    for state in disk.crash_states(&CrashOptions { first: begin, ..few() }) {
        let found = contents(&open(state.disk()).unwrap());
        let is_there = |name: &str| found.get(name).is_some_and(|keys| *keys == [7]);
        assert!(is_there("accounts") || is_there("copy"), "{}{found:?}", state.describe());
    }
}

#[test]
fn rows_of_dropped_tables_are_skipped_by_all_tools() {
    let mut script = Script::new();
    let (one, two) = (script.add("one"), script.add("two"));
    (1..=3).for_each(|key| script.put("one", one, key));
    script.checkpoint();
    (4..=5).for_each(|key| script.put("one", one, key));
    script.put("two", two, 9);
    script.drop_table("one", one);
    let Script { disk, opened, .. } = script;
    drop((opened.log, opened.store));
    let verified = verify(&disk).unwrap();
    assert_eq!((verified.rows, verified.tables), (1, 1));
    assert_eq!(stats(&disk).unwrap().tables.len(), 1);
    let copy = SimDisk::new();
    assert_eq!(repair(&disk, Arc::new(copy.clone()), None).unwrap().rows, 1);
    let manifest = Manifest::decode(&read_file(&copy, "MANIFEST")).unwrap();
    assert_eq!(manifest.tables.iter().map(|table| table.number).collect::<Vec<_>>(), [two]);
    assert_eq!(open(copy).unwrap().rows, rows(two, [9]));
    assert_eq!(open(disk).unwrap().rows, rows(two, [9]));
}

#[test]
fn a_checkpoint_frees_a_dropped_table_although_the_log_has_nothing_new() {
    let mut script = Script::new();
    let one = script.add("one");
    script.put("one", one, 1);
    script.checkpoint();
    script.drop_table("one", one);
    let manifest = |disk: &SimDisk| Manifest::decode(&read_file(disk, "MANIFEST")).unwrap();
    assert_eq!(manifest(&script.disk).dropped(), [one]);
    script.checkpoint();
    assert!(manifest(&script.disk).tables.is_empty());
    script.reopen();
}

#[test]
fn a_pending_record_keeps_a_dropped_table_in_the_manifest() {
    let mut script = Script::new();
    let one = script.add("one");
    // The record is above the cut, so that the checkpoint keeps it.
    script.opened.log.write(&[&put(9, one, 1, 1)], 5).unwrap();
    script.opened.log.sync().unwrap();
    script.opened.store.drop_table(one).unwrap();
    script.opened.store.checkpoint().unwrap();
    let manifest = Manifest::decode(&read_file(&script.disk, "MANIFEST")).unwrap();
    assert_eq!(manifest.dropped(), [one]);
    let disk = script.disk.clone();
    drop((script.opened.log, script.opened.store));
    assert_eq!(open(disk).unwrap().rows, Map::new());
}

#[test]
fn names_of_dropped_and_renamed_tables_are_free() {
    let (_disk, opened, table) = open_new();
    let store = &opened.store;
    let other = store.add_table(schema("other")).unwrap();
    let taken = store.change_table(other, |table| table.name = "accounts".to_string());
    assert!(matches!(taken, Err(StoreError::TableExists { name }) if name == "accounts"));
    store.change_table(table, |table| table.name = "persons".to_string()).unwrap();
    store.change_table(other, |table| table.name = "accounts".to_string()).unwrap();
    store.drop_table(other).unwrap();
    store.add_table(schema("accounts")).unwrap();
    let names: Vec<_> = store.tables().into_iter().map(|table| table.name).collect();
    assert_eq!(names, ["persons", "accounts"]);
}

/// Writes both files of MANIFEST anew with other contents.
fn change_manifest(disk: &SimDisk, change: impl FnOnce(&mut Manifest)) {
    let mut manifest = Manifest::decode(&read_file(disk, "MANIFEST")).unwrap();
    change(&mut manifest);
    for name in ["MANIFEST", "MANIFEST.copy"] {
        disk.remove(name).unwrap();
        write_file(disk, name, &manifest.encode().unwrap());
    }
}

#[test]
fn an_unfinished_table_is_dropped_by_the_next_opening() {
    let (disk, mut opened, table) = open_new();
    opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
    let next = opened.store.add_table(schema("next")).unwrap();
    opened.log.write(&[&put(2, next, 2, 2)], 2).unwrap();
    opened.log.close().unwrap();
    drop(opened.store);
    change_manifest(&disk, |manifest| {
        manifest.tables[1].name.clear();
        manifest.tables[1].state = TableState::Unfinished { from: table };
    });
    let opened = open(disk.clone()).unwrap();
    assert_eq!(opened.rows, rows(table, [1]));
    assert_eq!(Manifest::decode(&read_file(&disk, "MANIFEST")).unwrap().dropped(), [next]);
}

/// Makes a copy of a table, which takes its name.
fn replaced(script: &mut Script, name: &str, from: u32, keys: Range<u64>) -> u32 {
    let state = TableState::Unfinished { from };
    let copy = TableSchema { name: String::new(), state, ..(script.schema)(name) };
    let copy = script.opened.store.add_table(copy).unwrap();
    for key in keys.clone() {
        script.stamp += 1;
        let record = put(script.stamp, copy, key, key);
        script.opened.log.write(&[&record], script.stamp).unwrap();
    }
    script.opened.store.finish_table(copy).unwrap();
    script.now.insert(name.to_string(), keys.collect());
    script.done();
    copy
}

#[test]
fn every_crash_leaves_a_replaced_table_or_the_whole_new_one() {
    let mut script = Script::new();
    let (users, lines) = (script.add("users"), script.add("lines"));
    script.put("users", users, 1);
    script.put("lines", lines, 2);
    let users = replaced(&mut script, "users", users, 3..6);
    script.put("users", users, 7);
    script.checkpoint();
    let users = replaced(&mut script, "users", users, 1..3);
    script.reopen();
    script.put("users", users, 9);
    script.checkpoint();
    let manifest = Manifest::decode(&read_file(&script.disk, "MANIFEST")).unwrap();
    assert_eq!(manifest.tables.len(), 2);
    check_crashes(&script, &few());
}

#[test]
fn a_copy_that_is_given_up_is_dropped_and_leaves_the_table() {
    let mut script = Script::new();
    let users = script.add("users");
    script.put("users", users, 1);
    let state = TableState::Unfinished { from: users };
    let copy = TableSchema { name: String::new(), state, ..schema("users") };
    let store = &script.opened.store;
    let (first, second) = (store.add_table(copy.clone()), store.add_table(copy).unwrap());
    store.drop_table(first.unwrap()).unwrap();
    let names: Vec<_> = store.tables().into_iter().map(|table| table.name).collect();
    assert_eq!(names, ["users"]);
    script.disk.fail(3, Fault::Error);
    assert!(store.finish_table(second).is_err());
    store.settle().unwrap();
    script.done();
    script.put("users", users, 2);
    script.reopen();
    check_crashes(&script, &few());
}

#[test]
fn a_change_that_has_failed_is_settled_before_the_table_is_used_again() {
    for operation in 1..5 {
        let mut script = Script::new();
        let users = script.add("users");
        script.put("users", users, 1);
        script.disk.fail(operation, Fault::Error);
        let dropped = script.opened.store.drop_table(users);
        script.disk.clear_faults();
        assert!(dropped.is_err(), "{operation}");
        script.opened.store.settle().unwrap();
        let settled = script.disk.position();
        script.put("users", users, 2);
        let options = CrashOptions { first: settled, ..few() };
        for state in script.disk.crash_states(&options) {
            let found = contents(&open(state.disk()).unwrap());
            assert!(found.contains_key("users"), "{operation} {}", state.describe());
        }
    }
}

#[test]
fn many_dropped_tables_leave_nothing() {
    let mut script = Script::new();
    for number in 0..300 {
        let name = format!("table {number}");
        let table = script.add(&name);
        if number % 50 == 0 {
            script.put(&name, table, number);
        }
        script.drop_table(&name, table);
        if number % 100 == 99 {
            script.checkpoint();
        }
    }
    let manifest = Manifest::decode(&read_file(&script.disk, "MANIFEST")).unwrap();
    assert!(manifest.tables.is_empty());
    let first = script.disk.position() - 20;
    for state in script.disk.crash_states(&CrashOptions { first, ..few() }) {
        open(state.disk()).unwrap_or_else(|error| panic!("{}{error}", state.describe()));
    }
}

#[test]
#[ignore = "takes many seconds in a debug build"]
fn a_hundred_thousand_tables_come_and_go() {
    // In memory, if the system has such a directory: there are 400,000 syncs.
    let memory = std::path::PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let place = place.join(format!("candide-log-tables-{}", std::process::id()));
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&place).unwrap());
    let mut opened = open_shared(Arc::clone(&disk), &options()).unwrap();
    let first = opened.store.add_table(schema("first")).unwrap();
    let mut again = 0;
    for stamp in 1..=100_000 {
        let table = opened.store.add_table(schema("table")).unwrap();
        again += u32::from(table == first + 1);
        if stamp % 1000 == 0 {
            opened.log.write(&[&put(stamp, table, stamp, stamp)], stamp).unwrap();
        }
        opened.store.drop_table(table).unwrap();
    }
    // All numbers were used once, and then again.
    assert_eq!(again, 2);
    opened.store.checkpoint().unwrap();
    let bytes: u64 = std::fs::read_dir(&place)
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 1 << 20, "{bytes} bytes");
    drop((opened.store, opened.log));
    let opened = open_shared(disk, &options()).unwrap();
    assert_eq!(opened.rows, Map::new());
    assert_eq!(opened.store.tables().len(), 1);
    std::fs::remove_dir_all(place).unwrap();
}
