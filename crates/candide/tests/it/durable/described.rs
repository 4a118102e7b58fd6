//! Descriptions of row types in the files of a database.

use super::open;
use candide::schema::{RowMeta, RowWriter};
use candide::{Database, Error, IndexOptions, Key, Occ, Record, Text, Whole};
use candide_log::disk::Disk;
use candide_log::format::manifest::Manifest;
use candide_log::schema::{FieldPlace, TableSchema};
use candide_log_testing::SimDisk;

/// Versions of a row type, which differ in the variants of an enum and in a column.
macro_rules! persons {
    ($version:ident: $($variant:ident)*; $cents:literal; $($column:ident: $ty:ty)?) => {
        mod $version {
            #[derive(candide::Key, Clone, Copy, Debug, PartialEq)]
            pub(super) enum State {
                $($variant),*
            }

            #[derive(candide::Record, Clone, Copy, Debug, PartialEq)]
            pub(super) struct Person {
                #[key]
                pub(super) id: u64,
                #[group(money)]
                #[default($cents)]
                pub(super) cents: i64,
                pub(super) state: State,
                #[default = "hermit"]
                #[unique(ordered)]
                pub(super) name: candide::Text<12>,
                $(pub(super) $column: $ty,)?
            }
        }
    };
}

persons!(first: Open Frozen Gone; 5;);
persons!(more_states: Open Frozen Gone Lost; -6;);
persons!(exchanged: Frozen Open Gone; 5;);
persons!(with_phone: Open Frozen Gone; 5; phone: candide::Text<20>);

fn person(id: u64) -> first::Person {
    let name = Text::new("Pangloss").unwrap();
    first::Person { id, cents: -3, state: first::State::Gone, name }
}

fn manifest(disk: &SimDisk) -> Manifest {
    let file = disk.open_to_read("MANIFEST").unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    Manifest::decode(&bytes).unwrap()
}

/// Returns the table of persons in the files.
fn stored(disk: &SimDisk) -> TableSchema {
    manifest(disk).tables.into_iter().find(|table| table.name == "persons").unwrap()
}

/// Makes a database with one person.
fn made() -> SimDisk {
    let disk = SimDisk::new();
    let db: Database<Occ> = open(&disk).unwrap();
    let persons = db.table::<first::Person>("persons").unwrap();
    db.run(|tx| persons.insert(tx, person(7))).unwrap();
    disk
}

/// Removes the descriptions from the files, as earlier versions wrote them.
fn without_descriptions(disk: &SimDisk) {
    let mut manifest = manifest(disk);
    for table in manifest.tables.iter_mut().filter(|table| table.name == "persons") {
        table.fields.clear();
        table.indexes.iter_mut().for_each(|index| index.columns.clear());
        table.schema = first::Person::SCHEMA;
    }
    for name in ["MANIFEST", "MANIFEST.copy"] {
        disk.remove(name).unwrap();
        disk.create(name).unwrap().write_at(0, &[&manifest.encode().unwrap()]).unwrap();
    }
}

fn refused<R: Record>(disk: &SimDisk) -> String {
    let db: Database<Occ> = open(disk).unwrap();
    match db.table::<R>("persons") {
        Err(Error::Schema { difference, .. }) => difference,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_describe_names_types_places_and_defaults() {
    let table = stored(&made());
    let fields: Vec<_> =
        table.fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
    assert_eq!(fields, ["id: u64", "cents: i64", "state: State", "name: Text<12>"]);
    assert_eq!(table.fields[0].place, FieldPlace::Key { word: 0 });
    assert_eq!(table.fields[1].place, FieldPlace::Column { group: 1, word: 0, shift: 0 });
    assert_eq!(table.fields[1].default, Some(5_u64.to_le_bytes().to_vec()));
    let name = table.fields[3].default.clone().unwrap();
    assert_eq!((&name[..6], name[16]), (&b"hermit"[..], 6));
    let index = &table.indexes[0];
    assert_eq!((&index.columns[..], index.unique, index.ordered), (&[3][..], true, true));
    let mut words = Vec::new();
    words.extend(candide::schema::FieldInfo::name(&first::Person::FIELDS[2]).bytes());
    assert_eq!(words, b"state");
}

#[test]
fn a_changed_row_type_is_refused_by_the_names_of_its_columns() {
    let disk = made();
    let what = "column `phone: Text<20>` is new, and has no default";
    assert_eq!(refused::<with_phone::Person>(&disk), what);
    let what = "the type `State` of field `state` has changed; variant `Frozen` is number 1 in the \
                files and 0 in the program; variant `Open` is number 0 in the files and 1 in the \
                program";
    assert_eq!(refused::<exchanged::Person>(&disk), what);
    let db: Database<Occ> = open(&disk).unwrap();
    let persons = db.table::<first::Person>("persons").unwrap();
    assert_eq!(db.run(|tx| persons.read(tx, 7, Whole)), Ok(person(7)));
}

#[test]
fn more_variants_and_other_defaults_are_rows_of_the_same_table() {
    let disk = made();
    let before = stored(&disk);
    let db: Database<Occ> = open(&disk).unwrap();
    let persons = db.table::<more_states::Person>("persons").unwrap();
    let state = db.run(|tx| persons.read(tx, 7, more_states::Person::STATE));
    assert_eq!(state, Ok(more_states::State::Gone));
    drop((db, persons));
    let after = stored(&disk);
    assert_ne!(before.schema, after.schema);
    assert_eq!(after.fields[1].default, Some((-6_i64).to_le_bytes().to_vec()));
    // A value that the files may have is not one of the former type.
    let what = "the type `State` of field `state` has changed; variant `Lost` of the files is not \
                in the program";
    assert_eq!(refused::<first::Person>(&disk), what);
}

/// Returns the names of the indexes in the files, with the numbers of their columns.
fn indexes(disk: &SimDisk) -> Vec<(String, usize)> {
    let indexes = stored(disk).indexes.into_iter();
    indexes.map(|index| (index.name, index.columns.len())).collect()
}

#[test]
fn files_name_indexes_that_the_program_makes_by_calls() {
    let disk = made();
    let declared = ("by_name".to_owned(), 1);
    let both = [declared.clone(), ("by_cents".to_owned(), 0)];
    let unique = IndexOptions::hashed().unique();
    {
        let db: Database<Occ> = open(&disk).unwrap();
        let persons = db.table::<first::Person>("persons").unwrap();
        let name = Text::new("Martin").unwrap();
        db.run(|tx| persons.insert(tx, first::Person { id: 8, name, ..person(8) })).unwrap();
        let failed = persons.create_index("by_cents", first::Person::CENTS, unique).map(drop);
        assert!(matches!(failed, Err(Error::NotUnique { .. })), "{failed:?}");
        assert_eq!(indexes(&disk), std::slice::from_ref(&declared));
        db.run(|tx| persons.update(tx, 8, first::Person::CENTS.set(9))).unwrap();
        persons.create_index("by_cents", first::Person::CENTS, unique).unwrap();
        assert!(stored(&disk).indexes[1].unique);
        let again = persons.create_index("by_cents", first::Person::CENTS, unique).map(drop);
        assert!(matches!(again, Err(Error::IndexExists { .. })), "{again:?}");
        let again = persons.create_index("by_cents", first::Person::CENTS, unique.if_missing());
        again.unwrap();
    }
    assert_eq!(indexes(&disk), both);
    {
        // The description changes, and the program does not make the index.
        let db: Database<Occ> = open(&disk).unwrap();
        let persons = db.table::<more_states::Person>("persons").unwrap();
        assert_eq!(indexes(&disk), both);
        persons.create_index("by_cents", more_states::Person::CENTS, unique).unwrap();
        persons.drop_index("by_cents").unwrap();
        assert_eq!(indexes(&disk), std::slice::from_ref(&declared));
        persons.create_index("by_cents", more_states::Person::CENTS, unique).unwrap();
    }
    let db: Database<Occ> = open(&disk).unwrap();
    let persons = db.table::<more_states::Person>("persons").unwrap();
    assert_eq!(indexes(&disk), both);
    // Only the files know it.
    persons.drop_index("by_cents").unwrap();
    assert_eq!(indexes(&disk), [declared]);
    for name in ["by_cents", "by_name"] {
        assert!(matches!(persons.drop_index(name), Err(Error::NoIndex { .. })));
    }
}

#[test]
fn a_table_of_an_earlier_version_gets_its_description_at_the_first_opening() {
    let disk = made();
    let described = stored(&disk);
    without_descriptions(&disk);
    let difference = refused::<with_phone::Person>(&disk);
    let what = "; open the database once with the type that the table was made with, so that its \
                files describe the columns";
    assert!(difference.ends_with(what), "{difference}");
    assert!(stored(&disk).fields.is_empty());
    let db: Database<Occ> = open(&disk).unwrap();
    let persons = db.table::<first::Person>("persons").unwrap();
    assert_eq!(db.run(|tx| persons.read(tx, 7, Whole)), Ok(person(7)));
    drop((db, persons));
    assert_eq!(stored(&disk), described);
    let what = "column `phone: Text<20>` is new, and has no default";
    assert_eq!(refused::<with_phone::Person>(&disk), what);
}

/// Keys of several words, one of which is a struct.
#[test]
fn parts_of_keys_follow_one_another() {
    #[derive(Key, Clone, Copy)]
    struct Place {
        city: Text<4>,
        house: Option<i16>,
    }

    #[derive(Record, Clone, Copy)]
    #[allow(dead_code)]
    struct House {
        open: bool,
        #[key]
        country: u8,
        #[key]
        place: Place,
    }

    let disk = SimDisk::new();
    let db: Database<Occ> = open(&disk).unwrap();
    let houses = db.table::<House>("persons").unwrap();
    let place = Place { city: Text::new("Lima").unwrap(), house: Some(-3) };
    db.run(|tx| houses.insert(tx, House { open: true, country: 7, place })).unwrap();
    let words = <(u8, Place) as Key>::words(&(7, place));
    let table = stored(&disk);
    let values = table.key_values(words.as_ref()).unwrap();
    let values: Vec<_> = values.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(values, ["country: 7", r#"place: Place { city: "Lima", house: Some(-3) }"#]);
}

/// Columns that consist of parts, and times and addresses.
#[test]
fn parts_of_columns_are_described_and_read_by_their_names() {
    use candide::Field;
    use std::net::Ipv4Addr;
    use std::time::{Duration, SystemTime};

    #[derive(Field, Clone, Copy, Debug, PartialEq)]
    struct Point {
        x: i16,
        y: i16,
    }

    #[derive(Field, Clone, Copy, Debug, PartialEq)]
    enum Work {
        Idle,
        Visit { at: Point, code: u64 },
        Say(Text<4>),
    }

    #[derive(Record, Clone, Copy, Debug, PartialEq)]
    struct Job {
        #[key]
        begin: SystemTime,
        #[key]
        rank: f64,
        urgent: bool,
        at: Point,
        work: Work,
        next: Option<Work>,
        from: Ipv4Addr,
        lasted: Duration,
    }

    let disk = SimDisk::new();
    let begin = SystemTime::UNIX_EPOCH - Duration::from_millis(500);
    let (at, say) = (Point { x: -1, y: 2 }, Text::new("now").unwrap());
    let (work, next) = (Work::Visit { at, code: 9 }, Some(Work::Say(say)));
    let (from, lasted) = (Ipv4Addr::LOCALHOST, Duration::from_millis(1500));
    let job = Job { begin, rank: -1.5, urgent: true, at, work, next, from, lasted };
    let db: Database<Occ> = open(&disk).unwrap();
    let jobs = db.table::<Job>("persons").unwrap();
    db.run(|tx| {
        jobs.insert(tx, job)?;
        jobs.insert(tx, Job { rank: 0.0, work: Work::Idle, ..job })
    })
    .unwrap();
    let table = stored(&disk);
    let words = <(SystemTime, f64) as Key>::words(&job.key());
    let shown = |values: Vec<(&str, candide_log::schema::Value)>| -> Vec<String> {
        values.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    };
    assert_eq!(
        shown(table.key_values(words.as_ref()).unwrap()),
        ["begin: 1969-12-31T23:59:59.5Z", "rank: -1.5"]
    );
    let mut words = vec![0; Job::GROUPS[0].words];
    job.store(&mut RowWriter::new(&mut words));
    assert_eq!(
        shown(table.column_values(0, &words).unwrap()),
        [
            "urgent: true",
            "at: Point { x: -1, y: 2 }",
            "work: Visit { at: Point { x: -1, y: 2 }, code: 9 }",
            r#"next: Some(Say("now"))"#,
            "from: 127.0.0.1",
            "lasted: 1.5s",
        ]
    );
    drop((db, jobs));
    let db: Database<Occ> = open(&disk).unwrap();
    let jobs = db.table::<Job>("persons").unwrap();
    assert_eq!(db.run(|tx| jobs.read(tx, (begin, -1.5), Whole)), Ok(job));
}
