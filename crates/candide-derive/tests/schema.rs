//! What derived rows say about themselves: groups, sizes, names, indexes.

use candide::schema::{BytesUpTo, IndexOf, RowMeta};
use candide::{Group, Hashed, Key, Ordered, Record, Text};
use std::any::TypeId;

#[derive(Clone, Copy, Record)]
#[allow(dead_code)]
struct Packed {
    flag: bool,
    #[key]
    id: u64,
    small: u8,
    wide: u64,
    middle: u32,
    sign: i16,
    text: Text<9>,
    other: bool,
}

#[derive(Clone, Copy, Key)]
#[allow(dead_code)]
enum Colour {
    Red,
    Green,
    Blue,
    Black,
    White,
}

#[derive(Clone, Copy, Record)]
#[record(ordered)]
#[index(name = by_both, columns(b, a))]
#[unique(columns(c, a), ordered)]
#[allow(dead_code)]
struct Grouped {
    #[key]
    id: u32,
    #[group(late)]
    #[index(hash)]
    a: u8,
    #[group(r#type)]
    b: Colour,
    #[group(late)]
    #[unique(name = the_c)]
    c: u64,
    plain: [bool; 70],
    #[group(row)]
    more: bool,
}

#[derive(Clone, Copy, Record)]
#[allow(dead_code)]
struct Explicit {
    #[key]
    id: u32,
    #[group(only)]
    a: Option<bool>,
}

fn words<R: Record>() -> Vec<(&'static str, usize)> {
    R::GROUPS.iter().map(|Group { name, words }| (*name, *words)).collect()
}

#[test]
fn small_fields_are_packed_into_shared_words() {
    // One word of `wide`, three of text, and 32 + 16 + 8 + 1 + 1 bits.
    assert_eq!(words::<Packed>(), [("row", 5)]);
    assert_eq!(size_of::<<Packed as Record>::Image>(), 40);
    assert_eq!(format!("{:?}", Packed::TEXT), "text (group 0, word 1, bit 0)");
    assert_eq!(format!("{:?}", Packed::WIDE), "wide (group 0, word 0, bit 0)");
    assert_eq!(format!("{:?}", Packed::MIDDLE), "middle (group 0, word 4, bit 0)");
    assert_eq!(format!("{:?}", Packed::SIGN), "sign (group 0, word 4, bit 32)");
    assert_eq!(format!("{:?}", Packed::SMALL), "small (group 0, word 4, bit 48)");
    assert_eq!(format!("{:?}", Packed::FLAG), "flag (group 0, word 4, bit 56)");
    assert_eq!(format!("{:?}", Packed::OTHER), "other (group 0, word 4, bit 57)");
}

#[test]
fn groups_are_in_order_of_appearance_after_that_of_unmarked_fields() {
    // Three bits of colour; seventy booleans take two words of their own, and another one begins a
    // third.
    assert_eq!(words::<Grouped>(), [("row", 3), ("late", 2), ("type", 1)]);
    assert_eq!(words::<Explicit>(), [("only", 1)]);
}

#[test]
fn names_of_tables_and_types_are_those_of_the_derive() {
    assert_eq!(
        (Packed::NAME, Grouped::PLAIN.name(), Grouped::ID.name()),
        ("Packed", "plain", "id")
    );
    assert_eq!(TypeId::of::<<Packed as Record>::Index>(), TypeId::of::<Hashed>());
    assert_eq!(TypeId::of::<<Grouped as Record>::Index>(), TypeId::of::<Ordered>());
    assert_eq!(TypeId::of::<<Grouped as Record>::Key>(), TypeId::of::<u32>());
}

#[test]
fn derived_indexes_have_constants_and_kinds() {
    let by_a: candide::schema::IndexOf<Grouped, u8, Hashed> = Grouped::BY_A;
    let the_c: candide::schema::IndexOf<Grouped, u64, Hashed> = Grouped::THE_C;
    let by_both: candide::schema::IndexOf<Grouped, (Colour, u8), Ordered> = Grouped::BY_BOTH;
    let by_c_a: candide::schema::IndexOf<Grouped, (u64, u8), Ordered> = Grouped::BY_C_A;
    let names =
        [format!("{by_a:?}"), format!("{the_c:?}"), format!("{by_both:?}"), format!("{by_c_a:?}")];
    assert_eq!(names, ["Grouped.by_a", "Grouped.the_c", "Grouped.by_both", "Grouped.by_c_a"]);
    assert_eq!(Grouped::INDEXES.len(), 4);
    assert!(Packed::INDEXES.is_empty());
}

#[derive(Clone, Record)]
#[index(name = by_both, columns(name(bytes = 7), id))]
#[allow(dead_code)]
struct Long {
    #[key]
    id: u32,
    #[index]
    name: String,
    #[unique(bytes = 240, ordered)]
    photo: Vec<u8>,
    #[index(hash, bytes = 1)]
    nickname: Option<Name>,
    #[index]
    hash: std::option::Option<std::vec::Vec<u8>>,
}

type Name = String;

#[test]
fn indexes_of_columns_of_any_length_have_keys_up_to_their_limit() {
    let by_name: IndexOf<Long, Text<64>, Ordered> = Long::BY_NAME;
    let by_photo: IndexOf<Long, BytesUpTo<240>, Ordered> = Long::BY_PHOTO;
    let by_nickname: IndexOf<Long, Option<Text<1>>, Hashed> = Long::BY_NICKNAME;
    let by_hash: IndexOf<Long, Option<BytesUpTo<64>>, Ordered> = Long::BY_HASH;
    let by_both: IndexOf<Long, (Text<7>, u32), Ordered> = Long::BY_BOTH;
    let names = (format!("{by_name:?} {by_photo:?}"), format!("{by_nickname:?} {by_hash:?}"));
    assert_eq!(names.0, "Long.by_name Long.by_photo");
    assert_eq!(
        (&*names.1, format!("{by_both:?}")),
        ("Long.by_nickname Long.by_hash", "Long.by_both".into())
    );
}

/// A change of what the number depends on makes earlier exports unreadable.
#[test]
fn schema_hashes_do_not_depend_on_the_build() {
    assert_eq!(Grouped::SCHEMA, 0x13ef_3ce4_a418_4cf4);
    assert_ne!(Packed::SCHEMA, Grouped::SCHEMA);
}

/// The same columns, differently grouped.
mod regrouped {
    #[derive(Clone, Copy, candide::Record)]
    #[allow(dead_code)]
    pub(super) struct Explicit {
        #[key]
        id: u32,
        a: Option<bool>,
    }
}

#[test]
fn schema_hashes_depend_on_column_groups() {
    assert_ne!(Explicit::SCHEMA, regrouped::Explicit::SCHEMA);
}

/// Rows that are written alike, of types that are not.
macro_rules! rows_of {
    ($version:ident: $($variant:ident)*, $number:ty, $length:literal) => {
        mod $version {
            #![allow(dead_code)]
            use candide::{Bytes, Key, Record, Text};

            #[derive(Clone, Copy, Key)]
            pub(super) enum State {
                $($variant),*
            }

            #[derive(Clone, Copy, Key)]
            pub(super) struct Number($number);

            #[derive(Clone, Copy, Key)]
            pub(super) struct Code(Bytes<$length>);

            type Label = Text<$length>;
            type Codes = [u8; $length];

            #[derive(Clone, Copy, Record)]
            pub(super) struct OfState {
                #[key]
                id: u64,
                state: State,
                flag: bool,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct OfStates {
                #[key]
                id: u64,
                states: Option<[State; 8]>,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct OfNumber {
                #[key]
                id: u64,
                number: Number,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct OfLabel {
                #[key]
                id: u64,
                label: Label,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct OfCode {
                #[key]
                id: u64,
                code: Code,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct OfCodes {
                #[key]
                id: u64,
                codes: Codes,
            }

            #[derive(Clone, Copy, Key)]
            pub(super) struct Title {
                number: u8,
                label: Text<$length>,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct ByTitle {
                #[key]
                title: Title,
                flag: bool,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct ByLabel {
                #[key]
                id: u64,
                #[key]
                label: Option<Label>,
                flag: bool,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct ByCode {
                #[key]
                code: Code,
                flag: bool,
            }

            #[derive(Clone, Copy, Record)]
            pub(super) struct ByNumber {
                #[key]
                id: Number,
                #[key]
                state: State,
            }
        }
    };
}

rows_of!(old: A B C D, u16, 3);
rows_of!(new: A B C D E, u32, 4);
rows_of!(more: A B C D E F, u32, 4);

/// Columns would be looked for where others were: import must not read one version's rows as the
/// other's.
#[test]
fn schema_hashes_depend_on_sizes_of_columns() {
    assert_ne!(old::OfState::SCHEMA, new::OfState::SCHEMA);
    assert_ne!(old::OfNumber::SCHEMA, new::OfNumber::SCHEMA);
    assert_ne!(old::ByNumber::SCHEMA, new::ByNumber::SCHEMA);
}

/// Eight states take a word, whether each of them has two bits or three; three bytes take one, and
/// so do four.
#[test]
fn schema_hashes_depend_on_types_of_columns() {
    assert_eq!(old::OfStates::GROUPS, new::OfStates::GROUPS);
    assert_ne!(old::OfStates::SCHEMA, new::OfStates::SCHEMA);
    assert_eq!(old::OfLabel::GROUPS, new::OfLabel::GROUPS);
    assert_ne!(old::OfLabel::SCHEMA, new::OfLabel::SCHEMA);
    assert_ne!(old::OfCode::SCHEMA, new::OfCode::SCHEMA);
    assert_ne!(old::OfCodes::SCHEMA, new::OfCodes::SCHEMA);
}

/// Texts of three bytes have as many words in a key as texts of four. A key that was read as the
/// other's could be longer than its type allows.
#[test]
fn schema_hashes_depend_on_lengths_of_texts_in_keys() {
    fn widths<R: Record>() -> &'static [u32] {
        R::Key::WIDTHS
    }
    assert_eq!(widths::<old::ByTitle>(), widths::<new::ByTitle>());
    assert_ne!(old::ByTitle::SCHEMA, new::ByTitle::SCHEMA);
    assert_eq!(widths::<old::ByLabel>(), widths::<new::ByLabel>());
    assert_ne!(old::ByLabel::SCHEMA, new::ByLabel::SCHEMA);
    assert_eq!(widths::<old::ByCode>(), widths::<new::ByCode>());
    assert_ne!(old::ByCode::SCHEMA, new::ByCode::SCHEMA);
    assert_eq!(new::ByTitle::SCHEMA, more::ByTitle::SCHEMA);
}

/// Rows whose keys are structs with the same components in another order.
macro_rules! rows_by {
    ($version:ident: $first:ident $second:ident) => {
        mod $version {
            #[derive(Clone, Copy, candide::Key)]
            pub(super) struct Place {
                $first: u32,
                $second: u32,
            }

            #[derive(Clone, Copy, candide::Record)]
            #[allow(dead_code)]
            pub(super) struct ByPlace {
                #[key]
                place: Place,
                flag: bool,
            }
        }
    };
}

rows_by!(here: row column);
rows_by!(there: column row);

#[test]
fn schema_hashes_depend_on_the_order_of_key_components() {
    assert_ne!(here::ByPlace::SCHEMA, there::ByPlace::SCHEMA);
}

/// A variant more that needs no bit more leaves what was exported readable.
#[test]
fn schema_hashes_do_not_depend_on_enum_variants_of_equal_size() {
    assert_eq!(new::OfState::SCHEMA, more::OfState::SCHEMA);
    assert_eq!(new::OfStates::SCHEMA, more::OfStates::SCHEMA);
    assert_eq!(new::ByNumber::SCHEMA, more::ByNumber::SCHEMA);
}
