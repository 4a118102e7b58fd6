//! Random fields, and the values that they have.

use crate::damage::{expect, seal_again};
use crate::draws::Draws;
use crate::samples;
use candide_log::format::manifest::{Manifest, fields_hash};
use candide_log::schema::{
    EnumSchema, FieldPlace, FieldSchema, PartSchema, Sides, StructSchema, TableSchema, TypeSchema,
    VariantSchema,
};

fn part(name: &str, bit: u32, ty: TypeSchema) -> PartSchema {
    PartSchema { name: name.into(), bit, ty }
}

fn variant(name: &str, tag: u64, parts: Vec<PartSchema>) -> VariantSchema {
    VariantSchema { name: name.into(), tag, parts }
}

/// Returns a type that columns have, within `depth` other types.
fn of_column(draws: &mut Draws, depth: usize) -> TypeSchema {
    let ints = [8, 16, 32, 64, 128];
    match draws.below(if depth > 2 { 8 } else { 12 }) {
        0 => TypeSchema::Opaque { bits: 1 + draws.below(200) as u32, key_words: 0, layout: 9 },
        1 => TypeSchema::Bool,
        2 => TypeSchema::Unsigned(ints[draws.below(5)]),
        3 => TypeSchema::Signed(ints[draws.below(5)]),
        4 => TypeSchema::Float([32, 64][draws.below(2)]),
        5 => TypeSchema::Char,
        6 => TypeSchema::Text(draws.below(20) as u32),
        7 => TypeSchema::Bytes(draws.below(20) as u32),
        8 => TypeSchema::Option(Box::new(of_column(draws, depth + 1))),
        9 => TypeSchema::Array(Box::new(of_column(draws, depth + 1)), draws.below(4) as u32),
        10 => {
            let ty = of_column(draws, depth + 1);
            let bits = ty.bits().unwrap() as u32;
            let parts = vec![part("0", 0, ty)];
            TypeSchema::Struct(Box::new(StructSchema { name: "Of".into(), bits, parts }))
        }
        _ => {
            let ty = of_column(draws, depth + 1);
            let bits = 64 + ty.bits().unwrap() as u32;
            let variants =
                vec![variant("One", 0, vec![]), variant("Two", 3, vec![part("x", 64, ty)])];
            let of = EnumSchema { name: "Either".into(), bits, tag_bits: 2, variants };
            TypeSchema::Enum(Box::new(of))
        }
    }
}

/// Returns fields of a table with these groups, whose keys have this many words.
pub fn fields(draws: &mut Draws, key_words: u16, groups: &[(String, u32)]) -> Vec<FieldSchema> {
    let mut fields = Vec::new();
    let mut word = 0;
    while word < key_words {
        let left = u32::from(key_words - word);
        let ty = match draws.below(4) {
            0 => TypeSchema::Signed(32),
            1 if left > 1 => TypeSchema::Option(Box::new(TypeSchema::Char)),
            2 if left > 2 => TypeSchema::Text(16),
            _ => TypeSchema::Bytes(8 * left),
        };
        let place = FieldPlace::Key { word: word as u8 };
        word += ty.key_words().unwrap() as u16;
        fields.push(FieldSchema { name: format!("k{}", fields.len()), place, ty, default: None });
    }
    for (group, (_, room)) in groups.iter().enumerate() {
        let mut word = 0;
        for _ in 0..draws.below(5) {
            let ty = match draws.below(8) {
                0 => TypeSchema::LongText,
                1 => TypeSchema::Option(Box::new(TypeSchema::LongBytes)),
                _ => of_column(draws, 1),
            };
            let bits = ty.bits().unwrap();
            let words = bits.div_ceil(64) as u32;
            if word + words > *room {
                break;
            }
            let shift = if bits < 64 { draws.below(65 - bits as usize) as u8 } else { 0 };
            let bytes = if ty.is_value() { 5 } else { 8 * words };
            let default = (draws.below(3) == 0).then(|| vec![7; bytes as usize]);
            let place = FieldPlace::Column { group: group as u16, word: word as u16, shift };
            fields.push(FieldSchema { name: format!("c{}", fields.len()), place, ty, default });
            word += words;
        }
    }
    fields
}

/// Returns a table with the fields.
fn table(fields: Vec<FieldSchema>) -> TableSchema {
    let schema = fields_hash(&fields);
    TableSchema { schema, fields, ..samples::described() }
}

#[test]
fn values_are_read_from_words() {
    let described = samples::described();
    let key = described.key_values(&[1 << 31 | 7, 0x6162_0000_0000_0000, 2]).unwrap();
    let key: Vec<String> = key.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(key, ["branch: 7", "code: Code(\"ab\")"]);
    let words = [u64::MAX - 4, 0, 0, 0b101, u64::from_le_bytes(*b"candide\0"), 7, 1 << 32 | 2];
    let read = described.column_values(0, &words).unwrap();
    let read: Vec<String> = read.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        read,
        [
            "cents: -5",
            "limit: None",
            "state: Closed",
            "is_frozen: true",
            "owner: \"candide\"",
            "months: [2, 1]",
        ]
    );
    // Only columns whose words are all there have values.
    let read = described.column_values(3, &words[3..6]).unwrap();
    assert_eq!(
        read.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["state", "is_frozen", "owner"]
    );
    let wrong = [
        (3, 0b110, "field \"state\": State has no variant with tag 3"),
        (5, 9, "field \"owner\": a text of 9 bytes, where 8 are the most"),
    ];
    for (place, word, what) in wrong {
        let mut words = words;
        words[place] = word;
        assert_eq!(described.column_values(0, &words).unwrap_err(), what);
    }
    assert_eq!(
        described.key_values(&[1]).unwrap_err(),
        "field \"code\": there are not enough words"
    );
}

#[test]
fn drawn_words_are_values_of_drawn_types_or_refused() {
    let mut draws = Draws::new(70);
    for _ in 0..300 {
        let mut table = samples::described();
        table.groups = vec![("row".into(), 40)];
        table.indexes.clear();
        table.fields = fields(&mut draws, table.key_words, &table.groups);
        table.schema = fields_hash(&table.fields);
        table.check().unwrap();
        let words: Vec<u64> = (0..40).map(|_| draws.number()).collect();
        let (key, row) = (table.key_values(&words[..3]), table.column_values(0, &words));
        let zeros = table.column_values(0, &[0; 40]).unwrap();
        let long = table.fields.iter().filter(|field| field.ty.is_value()).count();
        let keys = table.fields.iter().filter(|field| field.is_key()).count();
        assert_eq!(zeros.len() + long + keys, table.fields.len());
        for value in key.into_iter().chain(row).flatten() {
            assert!(!value.1.to_string().is_empty() || value.0.is_empty());
        }
    }
}

#[test]
fn fields_that_do_not_fit_their_table_are_refused() {
    let refused = |change: &dyn Fn(&mut Vec<FieldSchema>), what: &str| {
        let mut fields = samples::described().fields;
        change(&mut fields);
        let found = table(fields).check().unwrap_err();
        assert_eq!(found, format!("table 9: {what}"));
    };
    let column = |word, shift| FieldPlace::Column { group: 0, word, shift };
    refused(&|fields| fields[1].name = "branch".into(), "two fields have the name \"branch\"");
    refused(
        &|fields| fields[1].place = FieldPlace::Key { word: 2 },
        "field \"code\" of type Code does not lie in its place",
    );
    refused(&|fields| drop(fields.remove(1)), "its key has 3 words, and those of fields 1");
    refused(
        &|fields| fields[2].place = column(4, 0),
        "field \"cents\" of type i64 does not lie in its place",
    );
    refused(
        &|fields| fields[2].place = column(0, 1),
        "field \"cents\" of type i64 does not lie in its place",
    );
    refused(
        &|fields| fields[4].place = column(0, 63),
        "field \"state\" of type State does not lie in its place",
    );
    refused(
        &|fields| fields[2].place = FieldPlace::Column { group: 2, word: 0, shift: 0 },
        "field \"cents\" of type i64 does not lie in its place",
    );
    refused(
        &|fields| fields[2].default = Some(vec![0; 16]),
        "the default of field \"cents\" has 16 bytes",
    );
    refused(
        &|fields| fields[2].ty = TypeSchema::Signed(63),
        "of field \"cents\": a whole number has 63 bits",
    );
    refused(
        &|fields| {
            let list = TypeSchema::Array(Box::new(TypeSchema::LongText), 2);
            fields[2].ty = TypeSchema::Option(Box::new(list));
        },
        "of field \"cents\": String is a part of another type",
    );
    refused(
        &|fields| {
            let nest = |ty, _| TypeSchema::Option(Box::new(ty));
            fields[2].ty = (0..16).fold(TypeSchema::Bool, nest);
        },
        "of field \"cents\": a type is nested more than 16 deep",
    );
    refused(
        &|fields| {
            let one = |tag| variant("A", tag, vec![]);
            let variants = vec![one(1), one(1)];
            let of = EnumSchema { name: "E".into(), bits: 2, tag_bits: 2, variants };
            fields[2].ty = TypeSchema::Enum(Box::new(of));
        },
        "of field \"cents\": two variants of enum \"E\" have one tag",
    );
    refused(
        &|fields| {
            let parts = vec![part("x", 33, TypeSchema::Unsigned(32))];
            let of = StructSchema { name: "S".into(), bits: 65, parts };
            fields[2].ty = TypeSchema::Struct(Box::new(of));
        },
        "of field \"cents\": part \"x\" of \"S\" does not lie in it",
    );
}

#[test]
fn names_and_parts_beyond_what_their_lengths_can_say_are_refused() {
    let long = "x".repeat(65_536);
    let refused = |ty, what: &str| {
        let mut fields = samples::described().fields;
        fields[2].ty = ty;
        let table = table(fields);
        assert_eq!(table.check().unwrap_err(), format!("table 9: of field \"cents\": {what}"));
    };
    let of = |name: &str, parts| {
        let of = StructSchema { name: name.into(), bits: 64, parts };
        TypeSchema::Struct(Box::new(of))
    };
    let variants = |name: &str, variants| {
        let of = EnumSchema { name: name.into(), bits: 64, tag_bits: 8, variants };
        TypeSchema::Enum(Box::new(of))
    };
    let name = "a type has a name of 65536 bytes; 65535 are the most";
    refused(of(&long, vec![]), name);
    refused(of("S", vec![part(&long, 0, TypeSchema::Bool)]), name);
    refused(variants(&long, vec![]), name);
    refused(variants("E", vec![variant(&long, 0, vec![])]), name);
    refused(variants("E", vec![variant("V", 0, vec![part(&long, 8, TypeSchema::Bool)])]), name);
    refused(
        of("S", vec![part("x", 0, TypeSchema::Bool); 65_536]),
        "\"S\" has 65536 parts; 65535 are the most",
    );
    let what = |change: &dyn Fn(&mut TableSchema)| {
        let mut table = samples::described();
        change(&mut table);
        table.check().unwrap_err()
    };
    let of_field = what(&|table| table.fields[1].name.clone_from(&long));
    assert_eq!(of_field, "table 9: a field has a name of 65536 bytes; 65535 are the most");
    let of_index = what(&|table| table.indexes[0].columns = vec![0; 65_536]);
    assert_eq!(of_index, "index \"by_owner\" has 65536 fields; 65535 are the most");
    let of_default = what(&|table| {
        table.fields[6].ty = TypeSchema::LongText;
        table.fields[6].default = Some(vec![0; (1 << 24) + 1]);
    });
    let most = "table 9: the default of field \"owner\" has 16777217 bytes; 16777216 are the most";
    assert_eq!(of_default, most);
    let of_default = what(&|table| {
        table.fields[6].ty = TypeSchema::Option(Box::new(TypeSchema::Json));
        table.fields[6].default = Some(vec![b'a', 0xff]);
    });
    assert_eq!(of_default, "table 9: the default of field \"owner\" is not UTF-8");
}

#[test]
fn names_of_no_bytes_and_of_the_most_are_read_back() {
    let long = "é".repeat(32_767) + "x";
    assert_eq!(long.len(), 65_535);
    for name in ["", &long] {
        let mut described = samples::described();
        for (place, field) in described.fields.iter_mut().enumerate() {
            // Fields have different names; one of them is the empty one.
            field.name = if place == 0 { name.to_owned() } else { place.to_string() };
        }
        let TypeSchema::Enum(of) = &mut described.fields[4].ty else { panic!("an enum") };
        name.clone_into(&mut of.name);
        name.clone_into(&mut of.variants[1].name);
        let TypeSchema::Struct(of) = &mut described.fields[1].ty else { panic!("a struct") };
        name.clone_into(&mut of.name);
        name.clone_into(&mut of.parts[0].name);
        name.clone_into(&mut described.indexes[0].name);
        name.clone_into(&mut described.groups[0].0);
        name.clone_into(&mut described.row_type);
        name.clone_into(&mut described.name);
        described.schema = fields_hash(&described.fields);
        let mut manifest = samples::manifest();
        manifest.tables.push(described);
        assert_eq!(Manifest::decode(&manifest.encode().unwrap()), Ok(manifest.clone()));
        manifest.tables.push(TableSchema { number: 10, ..manifest.tables[2].clone() });
        let twice = manifest.encode().unwrap_err().what;
        assert_eq!(twice, format!("two tables have the name {name:?}"));
    }
}

#[test]
fn types_that_take_too_much_are_refused_without_an_overflow() {
    let mut ty = TypeSchema::Bytes(u32::MAX);
    for _ in 0..14 {
        ty = TypeSchema::Array(Box::new(ty), u32::MAX);
    }
    assert!(ty.check().is_err());
    let fields = vec![FieldSchema {
        name: "x".into(),
        place: FieldPlace::Key { word: 0 },
        ty: TypeSchema::Bytes(u32::MAX),
        default: None,
    }];
    assert!(table(fields).check().is_err());
}

#[test]
fn a_table_with_another_hash_than_its_fields_is_refused() {
    let mut manifest = samples::manifest();
    manifest.tables.push(samples::described());
    let bytes = manifest.encode().unwrap();
    assert_eq!(Manifest::decode(&bytes).as_ref(), Ok(&manifest));
    manifest.tables[2].schema ^= 1;
    let what = "table 9 has another hash than its fields";
    assert_eq!(manifest.encode().unwrap_err().what, what);
    let hash = samples::described().schema.to_le_bytes();
    let place = bytes.windows(8).position(|window| window == hash).unwrap();
    let mut damaged = bytes.clone();
    damaged[place] ^= 1;
    seal_again(&mut damaged);
    expect(Manifest::decode(&damaged), place as u64 - 4, what);
}

#[test]
fn defaults_do_not_change_the_hash_of_fields() {
    let fields = samples::described().fields;
    let hash = fields_hash(&fields);
    let mut other = fields.clone();
    other[2].default = None;
    assert!(fields != other && fields_hash(&other) == hash);
    other[2].name = "sum".into();
    assert_ne!(fields_hash(&other), hash);
}

#[test]
fn differences_name_the_columns() {
    let there = samples::described();
    let differences = |change: &dyn Fn(&mut Vec<FieldSchema>)| {
        let mut fields = there.fields.clone();
        change(&mut fields);
        there.differences(&table(fields), Sides::FILES)
    };
    assert_eq!(differences(&|_| {}), Vec::<String>::new());
    let changed = differences(&|fields| {
        fields[2].ty = TypeSchema::Signed(32);
        fields[3].name = "phone".into();
        fields[3].ty = TypeSchema::Text(20);
        let mut mail = fields[3].clone();
        (mail.name, mail.default) = ("mail".into(), Some(vec![0; 32]));
        fields.push(mail);
        fields[6].place = FieldPlace::Column { group: 0, word: 0, shift: 0 };
    });
    assert_eq!(
        changed,
        [
            "field `cents` is `i64` in the files and `i32` in the program",
            "column `phone: Text<20>` is new, and has no default",
            "column `owner` is in group `name` in the files and in group `row` in the program",
            "column `mail: Text<20>` is new, and has a default",
            "column `limit: Option<u64>` of the files is not in the program",
        ]
    );
    let changed = differences(&|fields| {
        let TypeSchema::Enum(of) = &mut fields[4].ty else { panic!("an enum") };
        of.variants.swap(0, 1);
        (of.variants[0].tag, of.variants[1].tag) = (0, 1);
        of.variants[2].name = "Gone".into();
        fields[0].ty = TypeSchema::Unsigned(32);
    });
    assert_eq!(
        changed,
        [
            "the key is `branch: i32, code: Code` in the files and `branch: u32, code: Code` in the program",
            "field `branch` is `i32` in the files and `u32` in the program",
            "the type `State` of field `state` has changed; variant `Frozen` is number 1 in the \
             files and 0 in the program; variant `Open` is number 0 in the files and 1 in the \
             program; variant `Gone` is new; variant `Closed` of the files is not in the program",
        ]
    );
    let more = differences(&|fields| {
        let TypeSchema::Enum(of) = &mut fields[4].ty else { panic!("an enum") };
        of.variants.push(variant("Lost", 3, vec![]));
    });
    assert_eq!(more, Vec::<String>::new());
    let moved = differences(&|fields| {
        fields[2].place = FieldPlace::Column { group: 0, word: 3, shift: 0 };
    });
    assert_eq!(moved, ["field `cents` lies in another place of the row"]);
}
