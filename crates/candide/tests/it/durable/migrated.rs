//! Tables whose rows become rows of another type.

use super::dropped::{choices, crashes, open_as};
use super::{open, options};
use crate::common::{builder, eventually};
use candide::any::{Chosen, Erased};
use candide::schema::RowMeta;
use candide::{
    Abort, Builder, Database, Error, Key, Migration, Mvcc, Mvto, Occ, Protocol, Record, Table,
};
use candide::{TableOptions, Text, Versioned, Whole};
use candide_log::disk::Disk;
use candide_log::format::manifest::Manifest;
use candide_log::schema::TableState;
use candide_log_testing::{Fault, SimDisk};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows as the first version of the program has them.
mod first {
    #[derive(candide::Key, Clone, Copy, Debug, PartialEq)]
    pub(super) enum State {
        Open,
        Frozen,
        Gone,
    }

    #[derive(candide::Record, Clone, Copy, Debug, PartialEq)]
    pub(super) struct User {
        #[key]
        pub(super) id: u32,
        pub(super) age: u8,
        pub(super) state: State,
        pub(super) balance: i32,
        pub(super) mail: candide::Text<12>,
        pub(super) boss: Option<u16>,
    }
}

/// Variants have other places, and columns other places, groups, sizes and names; one is gone, and
/// two are new.
#[derive(Key, Clone, Copy, Debug, PartialEq, Default)]
enum State {
    Gone,
    #[default]
    New,
    Open,
    Frozen,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
struct User {
    #[key]
    id: u64,
    #[unique]
    #[renamed = "mail"]
    address: Text<40>,
    #[default = "none"]
    phone: Text<20>,
    boss: Option<u32>,
    #[group(money)]
    balance: i64,
    state: State,
    #[default]
    next: State,
}

fn former(id: u32) -> first::User {
    let state = [first::State::Open, first::State::Frozen, first::State::Gone][id as usize % 3];
    first::User {
        id,
        age: 7,
        state,
        balance: -(id as i32),
        mail: Text::new(&format!("m{id}")).unwrap(),
        boss: (id % 2 == 1).then_some(60_000),
    }
}

fn migrated(id: u32) -> User {
    User {
        id: id.into(),
        address: Text::new(&format!("m{id}")).unwrap(),
        phone: Text::new("none").unwrap(),
        boss: (id % 2 == 1).then_some(60_000),
        balance: -i64::from(id),
        state: [State::Open, State::Frozen, State::Gone][id as usize % 3],
        next: State::New,
    }
}

/// Makes a database with a table of this many users.
fn made(users: u32) -> SimDisk {
    let disk = SimDisk::new();
    let db: Database<Occ> = open(&disk).unwrap();
    let table = db.table::<first::User>("users").unwrap();
    db.run(|tx| (0..users).try_for_each(|id| table.insert(tx, former(id)))).unwrap();
    disk
}

fn applying<P: Protocol>() -> Builder<P> {
    builder::<P>().migration(Migration::Apply)
}

fn open_with<P: Protocol>(builder: Builder<P>, disk: &SimDisk) -> Database<P> {
    builder.open_on(Arc::new(disk.clone()), options()).unwrap()
}

fn rows<R: Record, P: Protocol>(table: &Table<R, P>) -> Vec<R> {
    let mut rows = Vec::new();
    table.for_each_quiescent(|row| rows.push(row.clone())).unwrap();
    rows
}

/// Returns the tables in the files with these names.
fn manifest(disk: &SimDisk) -> Manifest {
    let file = disk.open_to_read("MANIFEST").unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    Manifest::decode(&bytes).unwrap()
}

/// Checks that the first version's rows are in the table, which can be used.
fn check_former(disk: &SimDisk, users: u32) {
    let db: Database<Occ> = open(disk).unwrap();
    let table = db.table::<first::User>("users").unwrap();
    let mut found = rows(&table);
    found.sort_by_key(|user| user.id);
    assert_eq!(found, (0..users).map(former).collect::<Vec<_>>());
    db.run(|tx| table.put(tx, former(0))).unwrap();
}

#[test]
fn rows_become_rows_of_another_type_by_the_names_of_fields() {
    for chosen in choices() {
        let disk = made(700);
        let (policy, splitting) = chosen.clone();
        let builder = Database::<Erased>::builder().policy(policy).timestamp_splitting(splitting);
        let db = open_with(builder.migration(Migration::Apply), &disk);
        let users = db.table::<User>("users").unwrap();
        let mut found = rows(&users);
        found.sort_by_key(|user| user.id);
        assert_eq!(found, (0..700).map(migrated).collect::<Vec<_>>());
        let by_address = users.index(User::BY_ADDRESS);
        assert_eq!(db.run(|tx| by_address.get(tx, "m77", User::ID)), Ok(Some(77)));
        let twin = User { id: 900, ..migrated(5) };
        assert_eq!(db.run(|tx| users.insert(tx, twin)), Err(Abort::NotUnique));
        db.run(|tx| users.delete(tx, 5)).unwrap();
        drop((db, users, by_address));
        // The files have the new rows, and no migration takes place.
        let db = open_as(&chosen, &disk);
        let users = db.table::<User>("users").unwrap();
        assert_eq!(rows(&users).len(), 699);
        db.checkpoint().unwrap();
        drop((db, users));
        let tables = manifest(&disk).tables;
        assert_eq!(tables.len(), 1, "{tables:?}");
    }
}

#[test]
fn a_migration_that_is_not_asked_for_is_refused_with_its_plan() {
    let disk = made(1_204);
    let db: Database<Occ> = open(&disk).unwrap();
    let refused = db.table::<User>("users").unwrap_err();
    let Error::Schema { advice, .. } = &refused else { panic!("{refused}") };
    let plan = "a migration would change `id` from `u32` to `u64`, rename `mail` to `address`, \
                change `address` from `Text<12>` to `Text<40>`, add `phone: Text<20>`, \
                change `boss` from `Option<u16>` to `Option<u32>`, \
                change `balance` from `i32` to `i64`, move `balance` to group `money`, \
                change the parts of `state`, add `next: State`, drop `age: u8`, \
                keep keys in order, rewrite 1,204 rows; \
                `Builder::migration(Migration::Apply)` asks for it";
    assert_eq!(advice, plan);
    drop(db);
    check_former(&disk, 1_204);
}

/// Fields that cannot come from the files by their names.
mod not_by_names {
    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct WithoutDefault {
        #[key]
        pub(super) id: u32,
        pub(super) zip: u32,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct OtherKey {
        #[key]
        pub(super) age: u8,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct OtherType {
        #[key]
        pub(super) id: u32,
        pub(super) mail: u64,
    }
}

#[test]
fn what_has_no_migration_is_refused_with_the_reason() {
    let disk = made(3);
    let db = open_with(applying::<Occ>(), &disk);
    let advice = |refused: Error| match refused {
        Error::Schema { advice, .. } => advice,
        other => panic!("{other}"),
    };
    let refused = advice(db.table::<not_by_names::WithoutDefault>("users").unwrap_err());
    assert!(refused.contains("column `zip: u32` is new, and has no default"), "{refused}");
    let refused = advice(db.table::<not_by_names::OtherKey>("users").unwrap_err());
    assert!(refused.contains("`age` was a column and is a part of the key"), "{refused}");
    let refused = advice(db.table::<not_by_names::OtherType>("users").unwrap_err());
    assert!(refused.contains("field `mail`: `Text<12>` does not become `u64`"), "{refused}");
    let inside = db.run(|_| Ok(db.table::<User>("users").map(drop)));
    assert_eq!(inside, Ok(Err(Error::Transaction(Abort::Nested))));
    let volatile = TableOptions::default().volatile();
    let refused = db.table_with::<User>("users", volatile).unwrap_err();
    assert!(matches!(refused, Error::TableOption { .. }), "{refused}");
    drop(db);
    check_former(&disk, 3);
}

/// Types to which some of the rows have no values.
mod too_small {
    use super::State as Every;

    #[derive(candide::Key, Clone, Copy, Debug, PartialEq)]
    pub(super) enum State {
        Open,
        Frozen,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct Balance {
        #[key]
        pub(super) id: u32,
        pub(super) balance: i8,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct Mail {
        #[key]
        pub(super) id: u32,
        pub(super) mail: candide::Text<3>,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct Boss {
        #[key]
        pub(super) id: u32,
        pub(super) boss: u64,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct Variant {
        #[key]
        pub(super) id: u32,
        pub(super) state: State,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct Id {
        #[key]
        pub(super) id: u8,
        #[default]
        pub(super) state: Every,
    }

    #[derive(candide::Record, Clone, Copy, Debug)]
    pub(super) struct UniqueAge {
        #[key]
        pub(super) id: u32,
        #[unique]
        pub(super) age: u8,
    }
}

/// Names the table with a type for which a row is in the way, and returns the key and the problem.
fn failed<R: Record>(db: &Database<impl Protocol>) -> (String, String) {
    match db.table::<R>("users") {
        Err(Error::Migration { table, key, problem }) => {
            assert_eq!(table, "users");
            (key, problem)
        }
        other => panic!("{:?}", other.map(drop)),
    }
}

/// Opens a database that migrates, under a protocol that is chosen at run time.
fn open_to_migrate((chosen, splitting): &(Chosen, bool), disk: &SimDisk) -> Database<Erased> {
    let builder = applying::<Erased>().policy(chosen.clone());
    open_with(builder.timestamp_splitting(*splitting), disk)
}

/// Returns the id in the text of a key of a user.
fn id_of(key: &str) -> u32 {
    key.strip_prefix("id: ").unwrap().parse().unwrap()
}

#[test]
fn a_row_in_the_way_is_named_and_the_table_stays_as_it_was() {
    for chosen in choices() {
        check_rows_in_the_way(&chosen);
    }
}

fn check_rows_in_the_way(chosen: &(Chosen, bool)) {
    let disk = made(400);
    let db = open_to_migrate(chosen, &disk);
    let (key, problem) = failed::<too_small::Balance>(&db);
    let id = id_of(&key);
    assert_eq!(problem, format!("column `balance`: -{id} does not fit i8"));
    assert!(id > 128);
    let (key, problem) = failed::<too_small::Mail>(&db);
    assert!(key.len() == "id: 100".len(), "{key}");
    assert_eq!(problem, "column `mail`: a text of 4 bytes does not fit Text<3>");
    let (key, problem) = failed::<too_small::Boss>(&db);
    assert_eq!(problem, "column `boss`: None is no value any more");
    assert_eq!(id_of(&key) % 2, 0);
    let (key, problem) = failed::<too_small::Variant>(&db);
    assert_eq!(problem, "column `state`: variant `Gone` of State is gone");
    assert_eq!(id_of(&key) % 3, 2);
    let (key, problem) = failed::<too_small::Id>(&db);
    assert_eq!(problem, format!("part `id` of the key: {} does not fit u8", id_of(&key)));
    let (key, problem) = failed::<too_small::UniqueAge>(&db);
    assert!(id_of(&key) < 400);
    let what = "another row has the same key in the unique index \"by_age\" of `age`";
    assert_eq!(problem, what);
    drop(db);
    // What was begun has been dropped.
    let states = manifest(&disk).tables.into_iter().map(|table| table.state);
    assert!(states.into_iter().all(|state| !matches!(state, TableState::Unfinished { .. })));
    check_former(&disk, 400);
}

#[test]
fn of_two_rows_with_one_key_in_a_new_unique_index_one_is_named() {
    for chosen in choices() {
        let disk = made(300);
        {
            let db: Database<Occ> = open(&disk).unwrap();
            let users = db.table::<first::User>("users").unwrap();
            let mail = Text::new("m77").unwrap();
            db.run(|tx| users.insert(tx, first::User { mail, ..former(300) })).unwrap();
        }
        let db = open_to_migrate(&chosen, &disk);
        let (key, problem) = failed::<User>(&db);
        assert!([77, 300].contains(&id_of(&key)), "{key}");
        let what = "another row has the same key in the unique index \"by_address\" of `address`";
        assert_eq!(problem, what);
        // The table has its rows, and can be used.
        let users = db.table::<first::User>("users").unwrap();
        db.run(|tx| users.delete(tx, 300)).unwrap();
        drop((db, users));
        check_former(&disk, 300);
        let db = open_to_migrate(&chosen, &disk);
        assert_eq!(rows(&db.table::<User>("users").unwrap()).len(), 300);
    }
}

#[test]
fn of_two_rows_that_get_one_key_one_is_named() {
    for chosen in choices() {
        let disk = made(300);
        let builder = applying::<Erased>().policy(chosen.0.clone());
        let builder = builder.timestamp_splitting(chosen.1);
        let merges = |old: first::User| {
            let number = if old.id == 280 { 17 } else { old.id };
            Account { kind: 1, number, cents: 0 }
        };
        let db = open_with(builder.migrate("users", merges), &disk);
        let (key, problem) = failed::<Account>(&db);
        assert!([17, 280].contains(&id_of(&key)), "{key}");
        assert_eq!(problem, "another row has got the key (1, 17), too");
        drop(db);
        check_former(&disk, 300);
    }
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Account {
    #[key]
    kind: u8,
    #[key]
    number: u32,
    cents: i64,
}

#[test]
fn a_function_may_change_the_key() {
    let disk = made(300);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let function = move |old: first::User| {
        counted.fetch_add(1, Ordering::Relaxed);
        Account { kind: old.age, number: old.id, cents: i64::from(old.balance) * 100 }
    };
    // A function for another type does not count.
    let builder = builder::<Occ>().migrate("users", |old: User| Account {
        kind: 0,
        number: old.id as u32,
        cents: 0,
    });
    let builder = builder.migrate("users", function);
    let refused = open_with(builder.clone(), &disk).table::<Account>("users").unwrap_err();
    let plan = "a migration would call the function that was given for the table, rewrite 300 rows";
    assert!(refused.to_string().contains(plan), "{refused}");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let db = open_with(builder.migration(Migration::Apply), &disk);
    let accounts = db.table::<Account>("users").unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 300);
    assert_eq!(rows(&accounts).len(), 300);
    let account = db.run(|tx| accounts.read(tx, (7, 33), Whole));
    assert_eq!(account, Ok(Account { kind: 7, number: 33, cents: -3_300 }));
}

#[test]
fn a_table_of_an_earlier_version_is_migrated_from_its_own_type() {
    let disk = made(5);
    // Earlier versions did not describe fields.
    let mut manifest = manifest(&disk);
    for table in &mut manifest.tables {
        table.fields.clear();
        table.schema = first::User::SCHEMA;
    }
    for name in ["MANIFEST", "MANIFEST.copy"] {
        disk.remove(name).unwrap();
        disk.create(name).unwrap().write_at(0, &[&manifest.encode().unwrap()]).unwrap();
    }
    let refused = open_with(applying::<Occ>(), &disk).table::<Account>("users").unwrap_err();
    assert!(refused.to_string().contains("or give that as `Old` to `Builder::migrate`"));
    let function = |old: first::User| Account { kind: 1, number: old.id, cents: 0 };
    let db = open_with(applying::<Occ>().migrate("users", function), &disk);
    assert_eq!(rows(&db.table::<Account>("users").unwrap()).len(), 5);
}

#[test]
fn a_function_that_fails_leaves_the_table_as_it_was() {
    let disk = made(300);
    let panics = |old: first::User| match old.id {
        280 => panic!("no such user"),
        id => Account { kind: 0, number: id, cents: 0 },
    };
    let db = open_with(applying::<Occ>().migrate("users", panics), &disk);
    let (key, problem) = failed::<Account>(&db);
    assert_eq!(key, "id: 280");
    assert_eq!(problem, "the function of the migration has panicked: no such user");
    drop(db);
    let merges = |old: first::User| Account { kind: 1, number: old.id / 2, cents: 0 };
    let db = open_with(applying::<Occ>().migrate("users", merges), &disk);
    let (key, problem) = failed::<Account>(&db);
    assert_eq!(problem, format!("another row has got the key (1, {}), too", id_of(&key) / 2));
    // The table can still be named with its own type, and used.
    let users = db.table::<first::User>("users").unwrap();
    db.run(|tx| users.insert(tx, former(300))).unwrap();
    drop((db, users));
    check_former(&disk, 301);
}

#[test]
fn a_migration_without_room_in_memory_leaves_the_table_as_it_was() {
    let disk = made(60_000);
    let limit = 16 << 20;
    let db = open_with(applying::<Occ>().memory_limit(limit), &disk);
    let (key, problem) = failed::<User>(&db);
    assert!(problem.contains("memory limit"), "{problem}");
    assert!(id_of(&key) < 60_000);
    let users = db.table::<first::User>("users").unwrap();
    assert_eq!(rows(&users).len(), 60_000);
    drop((db, users));
    check_former(&disk, 60_000);
}

/// Rows with an index whose key cannot be made of every balance.
mod even {
    use candide::schema::{AsKey, Field, FieldType};
    use candide::{Key, Record};

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct Even(pub(super) i32);

    impl AsKey<Even> for Even {
        type Given = Self;

        fn into_key(self) -> Option<Self> {
            Some(self)
        }
    }

    impl Key for Even {
        type Words = [u64; 1];
        const WIDTHS: &'static [u32] = &[32];

        fn words(&self) -> [u64; 1] {
            assert!(self.0 % 2 == 0, "an odd balance");
            [u64::from(self.0 as u32)]
        }

        fn from_words(words: &[u64]) -> Even {
            Even(words[0] as i32)
        }
    }

    impl Field for Even {
        const BITS: u32 = 32;
        const TYPE: &'static FieldType = <i32 as Field>::TYPE;
        type Buffer = <i32 as Field>::Buffer;

        fn word(&self, index: usize) -> u64 {
            self.0.word(index)
        }

        fn from_buffer(buffer: &Self::Buffer) -> Even {
            Even(i32::from_buffer(buffer))
        }
    }

    #[derive(Record, Clone, Copy, Debug)]
    pub(super) struct User {
        #[key]
        pub(super) id: u32,
        #[index]
        pub(super) balance: Even,
    }
}

#[test]
fn code_of_an_index_that_panics_leaves_the_table_as_it_was() {
    let disk = made(3);
    let db = open_with(applying::<Occ>(), &disk);
    let (key, problem) = failed::<even::User>(&db);
    let what = "the code of an index has panicked: an odd balance";
    assert_eq!((&key[..], &problem[..]), ("id: 1", what));
    let users = db.table::<first::User>("users").unwrap();
    db.run(|tx| users.update(tx, 1, first::User::BALANCE.set(-2))).unwrap();
    drop((db, users));
    let db = open_with(applying::<Occ>(), &disk);
    assert_eq!(rows(&db.table::<even::User>("users").unwrap()).len(), 3);
}

#[test]
fn a_second_thread_waits_for_the_table_and_not_for_others() {
    let disk = made(300);
    {
        let db: Database<Occ> = open(&disk).unwrap();
        db.table::<first::User>("others").unwrap();
    }
    let (begun, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (has_begun, may_go_on) = (begun.clone(), go_on.clone());
    let slow = move |old: first::User| {
        has_begun.store(1, Ordering::Release);
        eventually("the function may go on", || may_go_on.load(Ordering::Acquire) == 1);
        Account { kind: 0, number: old.id, cents: 0 }
    };
    let db = open_with(applying::<Occ>().migrate("users", slow), &disk);
    let name = || {
        let accounts = db.table::<Account>("users").unwrap();
        db.run(|tx| accounts.len(tx)).unwrap()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(name);
        eventually("the function is called", || begun.load(Ordering::Acquire) == 1);
        let second = scope.spawn(name);
        // Tables of other names can be adopted, made and used meanwhile.
        let others = db.table::<first::User>("others").unwrap();
        let new = db.table::<User>("new").unwrap();
        db.run(|tx| others.insert(tx, former(1))).unwrap();
        db.run(|tx| new.insert(tx, migrated(1))).unwrap();
        assert!(!second.is_finished());
        go_on.store(1, Ordering::Release);
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (300, 300));
    });
}

/// Opens what a crash has left, and checks that the users are there, as rows of one type.
fn check_crashed(chosen: &(candide::any::Chosen, bool), disk: &SimDisk, users: u32) -> bool {
    let db = open_as(chosen, disk);
    let is_new = match db.table::<User>("users") {
        Ok(table) => {
            let mut found = rows(&table);
            found.sort_by_key(|user| user.id);
            assert_eq!(found, (0..users).map(migrated).collect::<Vec<_>>());
            true
        }
        Err(Error::Schema { .. }) => {
            let table = db.table::<first::User>("users").unwrap();
            let mut found = rows(&table);
            found.sort_by_key(|user| user.id);
            assert_eq!(found, (0..users).map(former).collect::<Vec<_>>());
            false
        }
        Err(other) => panic!("{other}"),
    };
    db.checkpoint().unwrap();
    drop(db);
    let tables = manifest(disk).tables;
    // The other one may be named as long as the log has records of it above the last cut.
    let in_use = tables.iter().filter(|table| table.state == TableState::InUse);
    let dropped = tables.iter().filter(|table| table.state == TableState::Dropped);
    let counts = (in_use.count(), dropped.count());
    assert!(counts.0 == 1 && counts.0 + counts.1 == tables.len(), "{tables:?}");
    is_new
}

#[test]
fn every_crash_leaves_the_old_table_or_the_new_one() {
    const USERS: u32 = 300;
    let (mut old, mut new) = (0, 0);
    for (turn, chosen) in choices().enumerate() {
        let disk = made(USERS);
        let begun = disk.position();
        let (policy, splitting) = chosen.clone();
        let builder = Database::<Erased>::builder().policy(policy).timestamp_splitting(splitting);
        let db = open_with(builder.migration(Migration::Apply), &disk);
        drop(db.table::<User>("users").unwrap());
        let last = disk.position();
        drop(db);
        let crashes = crashes(begun, last);
        for state in disk.crash_states(&crashes).skip(turn).step_by(12) {
            let is_new = check_crashed(&chosen, &state.disk(), USERS);
            assert!(is_new || state.id().position < last, "{}", state.describe());
            *(if is_new { &mut new } else { &mut old }) += 1;
        }
    }
    assert!(old > 20 && new > 5, "{old} and {new}");
}

#[test]
fn a_fault_at_any_operation_leaves_the_old_table_or_the_new_one() {
    for fault in [Fault::Error, Fault::StorageFull] {
        for operation in 1.. {
            let disk = made(10);
            let db = open_with(applying::<Occ>(), &disk);
            disk.fail(operation, fault);
            let named = db.table::<User>("users").map(drop);
            drop(db);
            let has_failed = disk.pending_faults() == 0;
            disk.clear_faults();
            let chosen = choices().next().unwrap();
            let is_new = check_crashed(&chosen, &disk, 10);
            match named {
                Ok(()) => assert!(is_new),
                Err(Error::Files { .. } | Error::Transaction(_)) => {}
                Err(other) => panic!("{other}"),
            }
            if !has_failed {
                assert!(operation > 10, "{operation}");
                break;
            }
        }
    }
}

#[test]
fn rows_become_permanent_ones_of_another_type() {
    let disk = made(5);
    let db = open_with(applying::<Occ>(), &disk);
    let frozen = TableOptions::default().frozen();
    let users = db.table_with::<User>("users", frozen).unwrap();
    assert_eq!(rows(&users).len(), 5);
    assert_eq!(db.run(|tx| users.delete(tx, 1)), Err(Abort::Permanent));
    assert_eq!(db.run(|tx| users.update(tx, 1, User::BALANCE.set(1))), Err(Abort::Frozen));
    db.run(|tx| users.insert(tx, migrated(5))).unwrap();
    drop((db, users));
    let db: Database<Occ> = open(&disk).unwrap();
    let permanent = TableOptions::default().permanent();
    let users = db.table_with::<User>("users", permanent).unwrap();
    assert_eq!(db.run(|tx| users.delete(tx, 5)), Err(Abort::Permanent));
}

/// A third version of the rows.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Third {
    #[key]
    id: u64,
    #[renamed = "address"]
    #[renamed = "mail"]
    contact: Text<60>,
    #[default = 3]
    level: u8,
}

fn check_third(db: &Database<Erased>, users: u32) {
    let mut found = rows(&db.table::<Third>("users").unwrap());
    found.sort_by_key(|user| user.id);
    let third =
        |id: u32| Third { id: id.into(), contact: Text::new(&format!("m{id}")).unwrap(), level: 3 };
    assert_eq!(found, (0..users).map(third).collect::<Vec<_>>());
}

#[test]
fn a_migration_that_a_crash_ended_can_be_followed_by_any_other() {
    const USERS: u32 = 300;
    for (turn, chosen) in choices().enumerate() {
        let (policy, splitting) = chosen.clone();
        let builder = || {
            let builder = Database::<Erased>::builder().policy(policy.clone());
            builder.timestamp_splitting(splitting).migration(Migration::Apply)
        };
        let disk = made(USERS);
        let begun = disk.position();
        drop(open_with(builder(), &disk).table::<User>("users").unwrap());
        let crashes = crashes(begun, disk.position());
        for (number, state) in disk.crash_states(&crashes).skip(turn).step_by(30).enumerate() {
            let disk = state.disk();
            // A checkpoint may free the number of the copy that was begun.
            let db = open_with(builder(), &disk);
            if number % 2 == 0 {
                db.checkpoint().unwrap();
            }
            if number % 3 == 0 {
                drop(db.table::<User>("users").unwrap());
                drop(db);
                check_crashed(&chosen, &disk, USERS);
            } else {
                drop(db);
            }
            check_third(&open_with(builder(), &disk), USERS);
            check_third(&open_as(&chosen, &disk), USERS);
        }
    }
}

fn check_older_snapshot<P: Versioned>() {
    let db = open_with(applying::<P>(), &made(300));
    let snapshot = db.snapshot();
    // A snapshot from before the migration has all rows, or is in the way of the migration.
    match db.table::<User>("users") {
        Ok(users) => assert_eq!(snapshot.run(|tx| users.len(tx)), Ok(300)),
        Err(Error::Migration { problem, .. }) => assert!(problem.contains("snapshot"), "{problem}"),
        Err(other) => panic!("{other}"),
    }
    drop(snapshot);
    let users = db.table::<User>("users").unwrap();
    assert_eq!(db.snapshot().run(|tx| users.len(tx)), Ok(300));
}

#[test]
fn a_snapshot_from_before_a_migration_does_not_miss_the_rows() {
    check_older_snapshot::<Mvcc>();
    check_older_snapshot::<Mvto>();
}
