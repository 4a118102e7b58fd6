//! Rows that are converted by the names of their fields.

use candide_log::TableSchema;
use candide_log::schema::{
    Conversion, EnumSchema, FieldPlace, FieldSchema, PartSchema, StructSchema, TableState,
    TypeSchema, VariantSchema,
};

/// Returns a table with these fields: parts of the key in order, and columns of one group, each
/// with its first bit in the row.
fn table(key: &[(&str, TypeSchema)], columns: &[(&str, u64, TypeSchema)]) -> TableSchema {
    let mut words = 0;
    let part = |(name, ty): &(&str, TypeSchema)| {
        let place = FieldPlace::Key { word: words };
        words += ty.key_words().unwrap() as u8;
        FieldSchema { name: (*name).to_owned(), place, ty: ty.clone(), default: None }
    };
    let mut fields: Vec<_> = key.iter().map(part).collect();
    let mut row_words = 1;
    for (name, bit, ty) in columns {
        let (word, shift) = ((bit / 64) as u16, (bit % 64) as u8);
        row_words = row_words.max(u32::from(word) + ty.words().unwrap() as u32);
        let place = FieldPlace::Column { group: 0, word, shift };
        fields.push(FieldSchema { name: (*name).to_owned(), place, ty: ty.clone(), default: None });
    }
    let table = TableSchema {
        number: 1,
        name: "rows".to_owned(),
        row_type: "Row".to_owned(),
        schema: 0,
        key_words: words.into(),
        key_widths: vec![64; words.into()],
        groups: vec![("row".to_owned(), row_words)],
        ordered: false,
        splitting: None,
        policy: None,
        indexes: Vec::new(),
        fields,
        state: TableState::InUse,
    };
    table.check().unwrap();
    table
}

fn by_names(from: &TableSchema, to: &TableSchema) -> Conversion {
    from.conversion(to, &|_| Vec::new()).unwrap()
}

/// Converts a row, and returns the fields of the new row as text.
fn converted(
    (from, to): (&TableSchema, &TableSchema),
    conversion: &Conversion,
    row: (&[u64], &[u64]),
) -> Result<String, String> {
    assert_eq!((row.0.len(), row.1.len()), (from.key_words.into(), from.row_words()));
    let (mut key, mut words) = (vec![7; 3], vec![u64::MAX; 2]);
    conversion.convert(row, &|_| None, (&mut key, &mut words), &mut |_, _| panic!("no value"))?;
    assert_eq!((key.len(), words.len()), (to.key_words.into(), to.row_words()));
    let values = to.key_values(&key).unwrap().into_iter();
    let values = values.chain(to.column_values(0, &words).unwrap());
    let shown: Vec<String> = values.map(|(name, value)| format!("{name} {value}")).collect();
    Ok(shown.join(", "))
}

fn u(bits: u8) -> TypeSchema {
    TypeSchema::Unsigned(bits)
}

fn i(bits: u8) -> TypeSchema {
    TypeSchema::Signed(bits)
}

fn option(ty: TypeSchema) -> TypeSchema {
    TypeSchema::Option(Box::new(ty))
}

/// Returns the word of a number with a sign in a key.
fn signed_key(number: i64, bits: u32) -> u64 {
    let word = number as u64 & u64::MAX >> (64 - bits);
    word ^ 1 << (bits - 1)
}

#[test]
fn numbers_become_wider_and_narrower_in_keys_and_columns() {
    let numbers = [0, 1, -1, 127, 128, -128, -129, 300, 32_767, i64::from(i32::MIN)];
    for from in [8_u8, 16, 32, 64] {
        for to in [8_u8, 16, 32, 64, 128] {
            let old = table(&[("id", i(from))], &[("n", 64, i(from)), ("free", 0, u(8))]);
            let new = table(&[("id", i(to))], &[("n", 128, i(to)), ("free", 8, u(16))]);
            let conversion = by_names(&old, &new);
            let fits = |number: i64, bits: u8| {
                let most = i128::MAX >> (128 - u32::from(bits));
                (-most - 1..=most).contains(&i128::from(number))
            };
            for number in numbers.into_iter().filter(|number| fits(*number, from)) {
                let key = signed_key(number, from.into());
                let column = number as u64 & u64::MAX >> (64 - from);
                let found = converted((&old, &new), &conversion, (&[key], &[200, column]));
                match fits(number, to) {
                    true => assert_eq!(found, Ok(format!("id {number}, n {number}, free 200"))),
                    false => {
                        let what = format!("part `id` of the key: {number} does not fit i{to}");
                        assert_eq!(found, Err(what));
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_change_their_sign_if_they_fit() {
    let old = table(&[("id", u(64))], &[("a", 0, i(8)), ("b", 8, u(8))]);
    let new = table(&[("id", i(64))], &[("a", 0, u(64)), ("b", 64, i(8))]);
    let conversion = by_names(&old, &new);
    let convert = |id, a: i8, b: u8| {
        let row = [u64::from(a as u8) | u64::from(b) << 8];
        converted((&old, &new), &conversion, (&[id], &row))
    };
    assert_eq!(convert(5, 3, 127), Ok("id 5, a 3, b 127".to_owned()));
    assert_eq!(convert(5, -3, 1), Err("column `a`: -3 does not fit u64".to_owned()));
    assert_eq!(convert(5, 3, 128), Err("column `b`: 128 does not fit i8".to_owned()));
    let what = "part `id` of the key: 9223372036854775808 does not fit i64";
    assert_eq!(convert(1 << 63, 3, 1), Err(what.to_owned()));
}

#[test]
fn texts_options_and_floats_become_longer() {
    let old = table(
        &[("name", TypeSchema::Text(5)), ("part", option(u(8)))],
        &[
            ("mail", 0, TypeSchema::Text(9)),
            ("f", 192, TypeSchema::Float(32)),
            ("o", 224, option(u(8))),
        ],
    );
    let new = table(
        &[("part", option(u(32))), ("name", TypeSchema::Text(20))],
        &[
            ("o", 0, option(u(64))),
            ("f", 128, TypeSchema::Float(64)),
            ("mail", 192, TypeSchema::Text(40)),
        ],
    );
    let conversion = by_names(&old, &new);
    let name = u64::from_be_bytes(*b"Lima\0\0\0\0");
    let mail = [u64::from_le_bytes(*b"ann@a.or"), u64::from(b'g'), 9];
    let row = [mail[0], mail[1], mail[2], u64::from(1.5_f32.to_bits()) | (1 | 77 << 1) << 32];
    let found = converted((&old, &new), &conversion, (&[name, 4, 1, 9], &row));
    let what = r#"part Some(9), name "Lima", o Some(77), f 1.5, mail "ann@a.org""#;
    assert_eq!(found, Ok(what.to_owned()));
    let none = converted((&old, &new), &conversion, (&[name, 4, 0, 0], &[0; 4]));
    assert_eq!(none, Ok(r#"part None, name "Lima", o None, f 0.0, mail """#.to_owned()));
    let (mut key, mut words) = (Vec::new(), Vec::new());
    let row = (&[name, 4, 1, 9][..], &row[..]);
    let no_value = &mut |_, _: &[u8]| panic!("no value");
    conversion.convert(row, &|_| None, (&mut key, &mut words), no_value).unwrap_or_default();
    assert_eq!(key, [1, 9, name, 0, 0, 4]);
}

fn state(name: &str, variants: &[(&str, u64)]) -> TypeSchema {
    let variant = |(name, tag): &(&str, u64)| VariantSchema {
        name: (*name).to_owned(),
        tag: *tag,
        parts: Vec::new(),
    };
    let variants = variants.iter().map(variant).collect();
    TypeSchema::Enum(Box::new(EnumSchema { name: name.to_owned(), bits: 3, tag_bits: 3, variants }))
}

#[test]
fn variants_keep_their_names() {
    let old = state("State", &[("Open", 0), ("Gone", 1), ("Lost", 2)]);
    let new = state("Status", &[("New", 0), ("Lost", 1), ("Open", 4)]);
    let list = |ty: &TypeSchema| TypeSchema::Array(Box::new(ty.clone()), 22);
    let from = table(&[("key", old.clone())], &[("all", 0, list(&old))]);
    let to = table(&[("key", new.clone())], &[("all", 64, list(&new))]);
    let conversion = by_names(&from, &to);
    // The tag 2 in the first element of the first word, and in the only one of the second.
    let row = (&[2][..], &[2, 2][..]);
    let found = converted((&from, &to), &conversion, row).unwrap();
    assert!(found.starts_with("key Lost, all [Lost, Open, Open"), "{found}");
    assert!(found.ends_with("Open, Lost]"), "{found}");
    let gone = converted((&from, &to), &conversion, (&[0], &[8, 0]));
    assert_eq!(gone, Err("column `all`: variant `Gone` of State is gone".to_owned()));
}

fn of_parts(name: &str, bits: u32, parts: &[(&str, u32, TypeSchema)]) -> TypeSchema {
    let part = |(name, bit, ty): &(&str, u32, TypeSchema)| PartSchema {
        name: (*name).to_owned(),
        bit: *bit,
        ty: ty.clone(),
    };
    let parts = parts.iter().map(part).collect();
    TypeSchema::Struct(Box::new(StructSchema { name: name.to_owned(), bits, parts }))
}

#[test]
fn parts_of_structs_keep_their_names() {
    let old = of_parts("Place", 0, &[("city", 0, u(16)), ("house", 0, i(8))]);
    let new = of_parts("Place", 0, &[("house", 0, i(32)), ("city", 0, u(16))]);
    let (number, id) = (u(32), of_parts("Id", 64, &[("0", 0, u(64))]));
    let from = table(&[("at", old)], &[("id", 0, number)]);
    let to = table(&[("at", new)], &[("id", 0, id)]);
    let conversion = by_names(&from, &to);
    let found = converted((&from, &to), &conversion, (&[9, signed_key(-3, 8)], &[5]));
    assert_eq!(found, Ok("at Place { house: -3, city: 9 }, id Id(5)".to_owned()));
    let back = by_names(&to, &from);
    let found = converted((&to, &from), &back, (&[signed_key(-3, 32), 9], &[5]));
    assert_eq!(found, Ok("at Place { city: 9, house: -3 }, id 5".to_owned()));
}

#[test]
fn new_parts_that_are_options_are_none() {
    let old = [("city", 0, u(16)), ("house", 16, i(8))];
    let new = [("house", 0, i(8)), ("floor", 8, option(u(8))), ("city", 17, u(16))];
    let from = table(
        &[("id", of_parts("Id", 0, &[("a", 0, u(8)), ("b", 0, u(8))]))],
        &[("at", 0, of_parts("Place", 24, &old)), ("all", 64, u(8))],
    );
    let key = [("b", 0, u(8)), ("c", 0, option(u(128))), ("a", 0, u(8))];
    let to = table(
        &[("id", of_parts("Id", 0, &key))],
        &[("all", 0, u(8)), ("at", 8, of_parts("Place", 33, &new))],
    );
    let conversion = by_names(&from, &to);
    assert_eq!(conversion.changes(), ["change the parts of `id`", "change the parts of `at`"]);
    let row = [9 | 0xfd << 16, 77];
    let found = converted((&from, &to), &conversion, (&[1, 2], &row));
    let what =
        "id Id { b: 2, c: None, a: 1 }, all 77, at Place { house: -3, floor: None, city: 9 }";
    assert_eq!(found, Ok(what.to_owned()));

    let plain = [("house", 0, i(8)), ("floor", 8, u(8)), ("city", 16, u(16))];
    let to =
        table(&[("id", from.fields[0].ty.clone())], &[("at", 0, of_parts("Place", 32, &plain))]);
    let refused = from.conversion(&to, &|_| Vec::new()).unwrap_err();
    assert_eq!(refused, "field `at`: part `floor: u8` is new, and is no option");
}

#[test]
fn a_renamed_field_leaves_its_name_to_a_new_one() {
    let old = table(&[("id", u(8))], &[("a", 0, u(8)), ("b", 8, u(8))]);
    let mut new = table(&[("id", u(8))], &[("a", 0, u(8)), ("c", 8, u(8)), ("b", 16, u(8))]);
    new.fields[1].default = Some(33_u64.to_le_bytes().to_vec());
    let former = |name: &str| match name {
        "c" => vec!["x".to_owned(), "a".to_owned()],
        _ => vec!["b".to_owned()],
    };
    let conversion = old.conversion(&new, &former).unwrap();
    assert_eq!(conversion.changes(), ["add `a: u8`", "rename `a` to `c`"]);
    let found = converted((&old, &new), &conversion, (&[1], &[7 | 9 << 8]));
    assert_eq!(found, Ok("id 1, a 33, c 7, b 9".to_owned()));
}

#[test]
fn what_cannot_be_converted_is_named() {
    let old = table(&[("id", u(8)), ("part", u(8))], &[("a", 0, u(8))]);
    let refused = |new: &TableSchema| old.conversion(new, &|_| Vec::new()).unwrap_err();
    let new = table(&[("id", u(8))], &[("a", 0, u(8))]);
    assert_eq!(refused(&new), "part `part: u8` of the key is gone");
    let new = table(&[("id", u(8)), ("part", u(8)), ("more", u(8))], &[("a", 0, u(8))]);
    assert_eq!(refused(&new), "part `more: u8` of the key is new");
    let new = table(&[("id", u(8)), ("part", u(8))], &[("a", 0, u(8)), ("b", 8, u(8))]);
    assert_eq!(refused(&new), "column `b: u8` is new, and has no default");
    let new = table(&[("id", u(8))], &[("part", 0, u(8))]);
    assert_eq!(refused(&new), "field `part` was a part of the key and is a column");
    let new = table(&[("id", u(8)), ("part", u(8))], &[("a", 0, TypeSchema::Bool)]);
    assert_eq!(refused(&new), "field `a`: `u8` does not become `bool`");
}

/// The bytes of a row in columns of any length, by the places of their words.
type Values = Vec<(u16, Vec<u8>)>;

/// Converts a row of one key with these words and values. Returns the words and values of the new
/// row.
fn with_values(
    conversion: &Conversion,
    row: &[u64],
    values: &[(u16, &[u8])],
) -> Result<(Vec<u64>, Values), String> {
    let value = |place| {
        let found = values.iter().find(|(of, _)| *of == place);
        found.map(|(_, bytes)| (*bytes).into())
    };
    let (mut key, mut words, mut new) = (Vec::new(), Vec::new(), Vec::new());
    let add = &mut |place, bytes: &[u8]| new.push((place, bytes.to_vec()));
    conversion.convert((&[1], row), &value, (&mut key, &mut words), add)?;
    Ok((words, new))
}

fn of_column(ty: TypeSchema) -> TableSchema {
    table(&[("id", u(64))], &[("before", 0, u(8)), ("c", 64, ty)])
}

#[test]
fn texts_and_bytes_become_those_of_any_length_and_back() {
    use TypeSchema::{Bytes, LongBytes, LongText, Text};
    // What a row has of each value: the words of the column, and its bytes outside.
    type Form = (Vec<u64>, Option<Vec<u8>>);
    let text = |most: u32, text: &str| {
        let mut words = vec![0; most.div_ceil(8) as usize];
        for (place, byte) in text.bytes().enumerate() {
            words[place / 8] |= u64::from(byte) << (8 * (place % 8));
        }
        words.push(text.len() as u64);
        words
    };
    let outside = |bytes: &str| -> Form { (vec![0], Some(bytes.into())) };
    let nothing = || -> Form { (vec![0], None) };
    let within = |words: Vec<u64>| -> Form { (words, None) };
    let some = |words: Vec<u64>| -> Form { ([vec![1], words].concat(), None) };
    let none = |words| -> Form { (vec![0; words], None) };
    let eight = u64::from_le_bytes(*b"12345678");
    let absent = || Err("column `c`: None is no value any more".to_owned());
    let refused = |what: &str| Err(format!("column `c`: {what}"));
    let cases: Vec<(TypeSchema, Form, TypeSchema, Result<Form, String>)> = vec![
        (Text(12), within(text(12, "Ann")), LongText, Ok(outside("Ann"))),
        (Text(12), within(text(12, "")), LongText, Ok(nothing())),
        (Text(12), within(text(12, "")), option(LongText), Ok(outside(""))),
        (option(Text(12)), some(text(12, "a longer one")), LongText, Ok(outside("a longer one"))),
        (option(Text(12)), none(4), LongText, absent()),
        (option(Text(12)), none(4), option(LongText), Ok(nothing())),
        (option(Text(12)), some(text(12, "")), option(LongText), Ok(outside(""))),
        (LongText, outside("Ann"), Text(3), Ok(within(text(3, "Ann")))),
        (LongText, nothing(), Text(3), Ok(within(text(3, "")))),
        (LongText, outside("Anna"), Text(3), refused("a text of 4 bytes does not fit Text<3>")),
        (LongText, outside("12345678"), option(Text(9)), Ok(some(text(9, "12345678")))),
        (option(LongText), nothing(), option(Text(9)), Ok(none(4))),
        (option(LongText), nothing(), Text(9), absent()),
        (option(LongText), outside(""), option(Text(9)), Ok(some(text(9, "")))),
        (LongText, nothing(), option(LongText), Ok(outside(""))),
        (option(LongText), outside(""), LongText, Ok(nothing())),
        (option(LongText), nothing(), LongText, absent()),
        (Bytes(8), within(vec![eight]), LongBytes, Ok(outside("12345678"))),
        (Bytes(9), within(vec![eight, 57]), option(LongBytes), Ok(outside("123456789"))),
        (LongBytes, outside("12345678"), Bytes(8), Ok(within(vec![eight]))),
        (LongBytes, outside("123456789"), Bytes(9), Ok(within(vec![eight, 57]))),
        (LongBytes, outside("1234567"), Bytes(8), refused("7 bytes do not fit Bytes<8>")),
        (LongBytes, nothing(), Bytes(8), refused("0 bytes do not fit Bytes<8>")),
        (option(LongBytes), nothing(), option(Bytes(8)), Ok(none(2))),
        (TypeSchema::Json, outside("[1]"), LongText, Ok(outside("[1]"))),
    ];
    for (from, (words, value), to, expected) in cases {
        let conversion = by_names(&of_column(from.clone()), &of_column(to.clone()));
        let change = format!("change `c` from `{from}` to `{to}`");
        assert_eq!(conversion.changes(), [change]);
        let value = value.as_deref().map(|bytes| (1, bytes));
        let found = with_values(&conversion, &[&[200], &words[..]].concat(), value.as_slice());
        let expected = expected.map(|(words, value)| {
            let value = value.map(|bytes| (1, bytes));
            ([&[200], &words[..]].concat(), value.into_iter().collect::<Values>())
        });
        assert_eq!(found, expected, "{words:?} of {from} as {to}");
    }
}

#[test]
fn types_that_are_not_alike_do_not_become_those_of_any_length() {
    use TypeSchema::{Bytes, Json, LongBytes, LongText, Text};
    for (from, to) in [
        (Text(8), LongBytes),
        (LongText, Bytes(8)),
        (LongText, LongBytes),
        (LongText, Json),
        (u(64), LongText),
        (LongBytes, u(64)),
        (option(option(Text(8))), option(LongText)),
    ] {
        let error = of_column(from.clone())
            .conversion(&of_column(to.clone()), &|_| Vec::new())
            .unwrap_err();
        assert_eq!(error, format!("field `c`: `{from}` does not become `{to}`"));
    }
}

#[test]
fn columns_of_any_length_move_come_and_go() {
    use TypeSchema::{LongBytes, LongText};
    let old = table(
        &[("id", u(64))],
        &[("a", 0, LongText), ("b", 64, LongBytes), ("gone", 128, LongText)],
    );
    let mut new = table(
        &[("id", u(64))],
        &[
            ("empty", 0, LongText),
            ("b", 64, LongBytes),
            ("word", 128, LongText),
            ("none", 192, option(LongText)),
            ("a", 256, LongText),
        ],
    );
    let refused = old.conversion(&new, &|_| Vec::new()).unwrap_err();
    assert_eq!(refused, "column `empty: String` is new, and has no default");
    new.fields[1].default = Some(Vec::new());
    new.fields[3].default = Some(b"new".to_vec());
    let conversion = by_names(&old, &new);
    let changes = [
        "add `empty: String`",
        "add `word: String`",
        "add `none: Option<String>`",
        "drop `gone: String`",
    ];
    assert_eq!(conversion.changes(), changes);
    let values: [(u16, &[u8]); 3] = [(0, b"A"), (1, b"B"), (2, b"C")];
    let found = with_values(&conversion, &[0; 3], &values).unwrap();
    let expected = [(1, b"B".to_vec()), (2, b"new".to_vec()), (4, b"A".to_vec())];
    assert_eq!(found, (vec![0; 5], expected.to_vec()));
}
