//! Names: visibility, clashes, raw identifiers, other paths, and users' items that are named like
//! the standard library's.

use candide::schema::{RowReader, RowWriter};

/// A crate that re-exports the engine under another name.
mod framework {
    pub mod storage {
        pub use candide::*;
    }

    /// Declares a row, for users that do not know of the engine.
    macro_rules! row {
        ($name:ident, $id:ident: $key:ty, $($field:ident: $ty:ty),*) => {
            #[derive(Clone, Copy, $crate::framework::storage::Record)]
            #[record(crate = $crate::framework::storage)]
            pub(crate) struct $name {
                #[key]
                pub(crate) $id: $key,
                $(pub(crate) $field: $ty),*
            }
        };
    }
    pub(crate) use row;
}

framework::row!(Made, id: u64, count: i64, small: Option<u8>);

#[test]
fn rows_may_be_made_by_macros_of_other_crates() {
    let _: candide::schema::KeyColumn<Made, u64> = Made::ID;
    let _: candide::Column<Made, Option<u8>> = Made::SMALL;
    assert_eq!(Made::COUNT.name(), "count");
}

mod elsewhere {
    use super::framework::storage;

    #[derive(Clone, Copy, storage::Key)]
    #[key(crate = super::framework::storage)]
    pub struct Id(pub u8, pub u8);

    #[derive(Clone, Copy, storage::Record)]
    #[record(crate = crate::framework::storage, ordered)]
    pub struct Row {
        #[key]
        pub id: Id,
        #[index]
        pub(crate) owner: u32,
        pub(super) cents: i64,
        hidden: bool,
    }

    pub fn hidden() -> storage::Column<Row, bool> {
        Row::HIDDEN
    }

    #[derive(Clone, Copy, storage::Field)]
    #[field(crate = super::framework::storage)]
    pub struct Pair {
        pub one: u8,
        pub(crate) other: Option<u8>,
    }

    #[derive(Clone, Copy, storage::Field)]
    #[field(crate = super::framework::storage)]
    pub(crate) enum Choice {
        Nothing,
        Pair(Pair),
    }

    #[derive(storage::Tables)]
    #[tables(crate = crate::framework::storage)]
    pub(super) struct Handles {
        pub(super) rows: storage::Table<Row>,
    }
}

#[test]
fn parts_are_as_visible_as_their_fields_and_tags_as_their_enums() {
    assert_eq!((elsewhere::Pair::ONE.name(), elsewhere::Pair::OTHER.name()), ("one", "other"));
    let pair = elsewhere::Choice::Pair(elsewhere::Pair { one: 1, other: None });
    let nothing = candide::schema::Tag::of(&elsewhere::Choice::Nothing);
    assert!(candide::schema::Tag::of(&pair) == elsewhere::Choice::PAIR);
    assert!(nothing == elsewhere::Choice::NOTHING);
    let db = candide::Database::new();
    assert_eq!(elsewhere::Handles::open(&db).unwrap().rows.name(), "rows");
}

#[test]
fn constants_are_as_visible_as_their_fields() {
    let _ = (
        elsewhere::Row::ID,
        elsewhere::Row::OWNER,
        elsewhere::Row::BY_OWNER,
        elsewhere::Row::CENTS,
    );
    assert_eq!(elsewhere::hidden().name(), "hidden");
}

/// Everything that generated code could name by accident.
mod hostile {
    #![allow(dead_code, non_camel_case_types, non_upper_case_globals, clippy::upper_case_acronyms)]

    pub mod candide {}
    pub mod core {}
    pub mod std {}
    pub struct u64;
    pub struct u32;
    pub struct usize;
    pub struct str;
    pub struct bool;
    pub struct Option;
    pub struct Vec;
    pub struct Some;
    pub struct None;
    pub trait AsRef {}
    pub trait Copy {}
    pub trait Field {}
    pub trait Key {}
    pub trait Record {}
    pub struct Column;
    pub struct Ordered;
    pub struct Hashed;
    pub const words: () = ();
    pub const key: () = ();

    #[derive(Clone, Copy, ::candide::Key)]
    pub enum Kind {
        Self_,
        u64,
        Vec,
        Words,
        Buffer,
        WIDTHS,
        BITS,
    }

    #[derive(Clone, Copy, ::candide::Key)]
    pub struct Id {
        pub words: ::core::primitive::u64,
        pub key: Kind,
    }

    #[derive(Clone, Copy, ::candide::Record)]
    #[index(columns(kind, groups))]
    pub struct Row {
        #[key]
        pub key: Id,
        pub words: ::core::primitive::u64,
        pub name: ::core::option::Option<::core::primitive::bool>,
        #[index]
        pub kind: Kind,
        pub groups: ::core::primitive::u8,
        pub image: [Kind; 3],
        pub schema: ::core::primitive::char,
    }

    #[derive(Clone, ::candide::Record)]
    #[unique(columns(words, name(bytes = 7)))]
    pub struct Long {
        #[key]
        pub key: Id,
        #[index]
        pub name: ::std::string::String,
        #[index]
        pub photo: ::core::option::Option<::std::vec::Vec<::core::primitive::u8>>,
        pub words: ::core::primitive::u64,
    }

    #[derive(Clone, Copy, ::candide::Field)]
    pub struct Both {
        pub bits: ::core::primitive::u64,
        pub words: ::core::primitive::bool,
    }

    #[derive(Clone, Copy, ::candide::Field)]
    pub enum Choice {
        Some(Both),
        None,
        usize { words: ::core::primitive::u32, key: ::core::primitive::u32 },
    }

    #[derive(Clone, Copy, ::candide::Field)]
    pub struct Only(pub ::core::primitive::u64);

    #[derive(::candide::Tables)]
    pub struct Handles {
        pub open: ::candide::Table<Row>,
    }
}

#[test]
fn derived_code_uses_no_name_that_a_program_may_define() {
    let row = hostile::Row {
        key: hostile::Id { words: 1, key: hostile::Kind::Vec },
        words: 2,
        name: Some(true),
        kind: hostile::Kind::u64,
        groups: 3,
        image: [hostile::Kind::Self_; 3],
        schema: 's',
    };
    let mut image = <<hostile::Row as candide::Record>::Image as candide::schema::Buffer>::ZERO;
    candide::Record::store(&row, &mut RowWriter::new(&mut image));
    let again = <hostile::Row as candide::Record>::load(&row.key, &RowReader::new(&image));
    assert_eq!((again.words, again.name, again.groups, again.schema), (2, Some(true), 3, 's'));
    assert_eq!(
        (hostile::Row::NAME.name(), <hostile::Row as candide::schema::RowMeta>::NAME),
        ("name", "Row")
    );
    let both = hostile::Both { bits: u64::MAX, words: true };
    let words =
        [0, 1, 2].map(|word| candide::schema::Field::word(&hostile::Choice::Some(both), word));
    // The tag, and a part of less than a word behind it; then the larger part.
    assert_eq!(words, [0, u64::MAX, 1]);
    assert_eq!((hostile::Both::BITS.name(), hostile::Only::PART_0.name()), ("bits", "0"));
}

/// Constants that would be in each other's way, or in that of one's own.
#[derive(Clone, Copy, candide::Record)]
struct Clashing {
    #[key]
    #[column(KEY)]
    id: u64,
    #[column(FIRST_CENTS)]
    cents: i64,
    #[index]
    r#type: u8,
    #[column(r#CONST)]
    #[allow(dead_code)]
    x: u8,
}

impl Clashing {
    const ID: u64 = 7;
    const CENTS: i64 = 500;
}

#[test]
fn constants_have_other_names_on_demand() {
    let row = Clashing { id: Clashing::ID, cents: Clashing::CENTS, r#type: 1, x: 0 };
    let mut image = [0; 2];
    candide::Record::store(&row, &mut RowWriter::new(&mut image));
    assert_eq!(Clashing::FIRST_CENTS.take(&RowReader::new(&image)), 500);
    assert_eq!((Clashing::KEY.name(), Clashing::FIRST_CENTS.name()), ("id", "cents"));
    assert_eq!(
        (Clashing::TYPE.name(), format!("{:?}", Clashing::BY_TYPE)),
        ("type", "Clashing.by_type".to_string())
    );
}

#[test]
fn rows_may_be_local_to_functions() {
    #[derive(Clone, Copy, candide::Record)]
    struct Local {
        #[key]
        id: u64,
        value: u8,
    }
    let row = Local { id: 1, value: 2 };
    let mut image = [0; 1];
    candide::Record::store(&row, &mut RowWriter::new(&mut image));
    assert_eq!((Local::VALUE.take(&RowReader::new(&image)), Local::ID.name()), (2, "id"));
}

/// Types that say `Self`, which is another type where constants are made of them.
mod of_themselves {
    #[derive(Clone, Copy, Debug, PartialEq, candide::Key)]
    pub(super) struct Code(pub(super) candide::Bytes<{ Self::LENGTH }>);

    impl Code {
        const LENGTH: usize = 3;
    }

    #[derive(Clone, Copy, Debug, PartialEq, candide::Record)]
    #[index(columns(kind, mode))]
    pub(super) struct Year {
        #[key]
        pub(super) id: <Self as Named>::Id,
        pub(super) months: [i64; Self::N],
        pub(super) code: Option<[Code; Self::N / 4]>,
        #[index]
        pub(super) kind: <Self as Named>::Id,
        pub(super) mode: u8,
    }

    impl Year {
        pub(super) const N: usize = 12;
    }

    pub(super) trait Named {
        type Id;
    }

    impl Named for Year {
        type Id = u16;
    }
}

#[test]
fn fields_may_have_types_of_self() {
    use of_themselves::{Code, Year};
    let code = Code(candide::Bytes::new(*b"abc"));
    let year = Year { id: 1759, months: [7; Year::N], code: Some([code; 3]), kind: 1, mode: 2 };
    let mut image = <<Year as candide::Record>::Image as candide::schema::Buffer>::ZERO;
    candide::Record::store(&year, &mut RowWriter::new(&mut image));
    assert_eq!(<Year as candide::Record>::load(&year.id, &RowReader::new(&image)), year);
    let _: candide::Column<Year, [i64; 12]> = Year::MONTHS;
    let _: candide::schema::IndexOf<Year, (u16, u8), candide::Ordered> = Year::BY_KIND_MODE;
}

/// Rows and keys are derived without the standard prelude, and beside a module that has the name of
/// an attribute's namespace.
mod bare {
    #![no_implicit_prelude]

    mod diagnostic {}

    #[derive(::candide::Key, ::std::clone::Clone, ::std::marker::Copy)]
    pub(super) enum State {
        On,
        Off,
    }

    #[derive(::candide::Key, ::std::clone::Clone, ::std::marker::Copy)]
    pub(super) struct Place {
        pub(super) aisle: u8,
        pub(super) shelf: u16,
    }

    #[derive(::candide::Record, ::std::clone::Clone, ::std::marker::Copy)]
    #[record(ordered)]
    pub(super) struct Row {
        #[key]
        pub(super) state: State,
        #[key]
        pub(super) place: Place,
        #[index]
        pub(super) count: u32,
    }
}

#[test]
fn rows_and_keys_are_derived_without_a_prelude() {
    let row = |state, shelf| bare::Row { state, place: bare::Place { aisle: 1, shelf }, count: 7 };
    let db = candide::Database::new();
    let rows = db.table::<bare::Row>("rows").unwrap();
    let keys = db.run(|tx| {
        rows.insert(tx, row(bare::State::Off, 2))?;
        rows.insert(tx, row(bare::State::On, 3))?;
        rows.scan(tx, .., ())
            .map(|row| row.map(|(key, ())| key.1.shelf))
            .collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(keys, Ok(vec![3, 2]));
}
