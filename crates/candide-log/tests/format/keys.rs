//! Keys that are given as text.

use crate::draws::Draws;
use crate::samples;
use candide_log::format::manifest::fields_hash;
use candide_log::schema::{
    EnumSchema, FieldPlace, FieldSchema, PartSchema, StructSchema, TableSchema, TypeSchema, Value,
    VariantSchema,
};

/// Returns a table whose key has parts of these types, which are called `k0`, `k1`, and so on.
fn table(types: &[TypeSchema]) -> TableSchema {
    let mut word = 0;
    let field = |(number, ty): (usize, &TypeSchema)| {
        let place = FieldPlace::Key { word: word as u8 };
        word += ty.key_words().unwrap();
        FieldSchema { name: format!("k{number}"), place, ty: ty.clone(), default: None }
    };
    let fields: Vec<FieldSchema> = types.iter().enumerate().map(field).collect();
    let schema = fields_hash(&fields);
    let key_words = word as u16;
    let table = TableSchema {
        schema,
        fields,
        key_words,
        key_widths: vec![64; key_words.into()],
        indexes: vec![],
        ..samples::described()
    };
    table.check().unwrap();
    table
}

fn state() -> TypeSchema {
    let variant =
        |(tag, name): (u64, &&str)| VariantSchema { name: (*name).into(), tag, parts: vec![] };
    let variants = (0..).zip(&["Open", "Closed"]).map(variant).collect();
    TypeSchema::Enum(Box::new(EnumSchema { name: "State".into(), bits: 1, tag_bits: 1, variants }))
}

fn place() -> TypeSchema {
    let part = |name: &str, ty| PartSchema { name: name.into(), bit: 0, ty };
    let parts = vec![part("city", TypeSchema::Text(16)), part("number", TypeSchema::Signed(16))];
    TypeSchema::Struct(Box::new(StructSchema { name: "Place".into(), bits: 0, parts }))
}

fn option(ty: TypeSchema) -> TypeSchema {
    TypeSchema::Option(Box::new(ty))
}

/// Returns the key that the text describes, as the table shows it.
fn shown(types: &[TypeSchema], text: &str) -> String {
    let table = table(types);
    let words = table.key_of_text(text).unwrap_or_else(|what| panic!("{text}: {what}"));
    assert_eq!(words.len(), usize::from(table.key_words), "{text}");
    let values = table.key_values(&words).unwrap();
    values.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn keys_are_read_from_text() {
    let (u32, u64) = (TypeSchema::Unsigned(32), TypeSchema::Unsigned(64));
    let text = || TypeSchema::Text(16);
    let (least, most) = (&i128::MIN.to_string()[..], &u128::MAX.to_string()[..]);
    for (types, given, expected) in [
        (vec![u64.clone()], "7", "7"),
        (vec![u64.clone()], "18446744073709551615", "18446744073709551615"),
        (vec![u64.clone(), u32.clone()], " 7 , 2 ", "7 2"),
        (vec![text(), u32], "\"a,b\",7", "\"a,b\" 7"),
        (vec![text()], "\"a \"\"b\"\" \"", "\"a \\\"b\\\" \""),
        (vec![text()], "", "\"\""),
        (vec![text(), text()], "\"\",é", "\"\" \"é\""),
        (vec![TypeSchema::Signed(8)], "-128", "-128"),
        (vec![TypeSchema::Signed(64)], "-1", "-1"),
        (vec![TypeSchema::Signed(128)], least, least),
        (vec![TypeSchema::Unsigned(128)], most, most),
        (vec![TypeSchema::Bool, TypeSchema::Char], "true,\",\"", "true ','"),
        (vec![TypeSchema::Float(64), TypeSchema::Float(32)], "-1.5,0.1", "-1.5 0.1"),
        (vec![TypeSchema::Float(64), TypeSchema::Float(32)], "-0.0,-inf", "-0.0 -inf"),
        (vec![TypeSchema::Bytes(3)], "00fFa1", "b\"\\x00\\xff\\xa1\""),
        (vec![state()], "Closed", "Closed"),
        (vec![option(text()), u64.clone()], "None,1", "None 1"),
        (vec![option(text()), u64.clone()], "\"None\",1", "Some(\"None\") 1"),
        (vec![option(place()), u64.clone()], "None,1", "None 1"),
        (vec![place(), u64], "Porto,-5,1", "Place { city: \"Porto\", number: -5 } 1"),
    ] {
        assert_eq!(shown(&types, given), expected, "{given}");
    }
    let opaque = TypeSchema::Opaque { bits: 0, key_words: 2, layout: 1 };
    assert_eq!(table(&[opaque]).key_of_text("0xff,3"), Ok(vec![255, 3]));
    let mut unknown = table(&[TypeSchema::Unsigned(64), TypeSchema::Unsigned(64)]);
    (unknown.fields, unknown.schema) = (vec![], 1);
    assert_eq!(unknown.key_of_text("0xff,3"), Ok(vec![255, 3]));
    unknown.key_words = 0;
    assert_eq!(unknown.key_of_text(""), Ok(vec![]));
}

#[test]
fn texts_that_are_no_keys_are_refused_with_the_part() {
    let u32 = || TypeSchema::Unsigned(32);
    let key = "a key is `k0: u32, k1: Text<4>`";
    let refused = |types: &[TypeSchema], text: &str| table(types).key_of_text(text).unwrap_err();
    for (text, what) in [
        ("7", "there is no component for `k1`"),
        ("", "`` is no value of `k0: u32`, which is a number from 0 to 4294967295"),
        (
            "4294967296,a",
            "`4294967296` is no value of `k0: u32`, which is a number from 0 to 4294967295",
        ),
        ("-1,a", "`-1` is no value of `k0: u32`, which is a number from 0 to 4294967295"),
        ("\"7\",a", "`\"7\"` is no value of `k0: u32`, which is not in quotes"),
        ("7,abcde", "`abcde` is no value of `k1: Text<4>`, which is at most 4 bytes, not 5"),
        ("7,a,b", "components left over: 1"),
        ("7,a,", "components left over: 1"),
    ] {
        let found = refused(&[u32(), TypeSchema::Text(4)], text);
        assert_eq!(found, format!("{what}; {key}"), "{text}");
    }
    for (text, what) in [
        ("\"a", "a quote before `a` is not closed"),
        ("\"a\"b", "there is no comma between a closing quote and `b`"),
    ] {
        assert_eq!(refused(&[TypeSchema::Text(4)], text), what);
    }
    for (ty, text, can_be) in [
        (TypeSchema::Signed(8), "128", "a number from -128 to 127"),
        (TypeSchema::Float(32), "one", "a floating-point number"),
        (TypeSchema::Bool, "1", "`true` or `false`"),
        (TypeSchema::Char, "ab", "one character"),
        (TypeSchema::Bytes(2), "0af", "4 hexadecimal digits"),
        (TypeSchema::Bytes(2), "0a0g", "4 hexadecimal digits"),
        (state(), "Gone", "one of `Open`, `Closed`"),
    ] {
        let found = refused(&[ty], text);
        assert!(found.contains(&format!(", which is {can_be}; a key is")), "{found}");
    }
    let found = refused(&[TypeSchema::Opaque { bits: 0, key_words: 1, layout: 1 }], "0xg");
    assert!(found.starts_with("`0xg` is no word of `k0`, which is a number of 64 bits"), "{found}");
}

#[test]
fn numbers_are_read_back_from_their_words() {
    let mut draws = Draws::new(71);
    for bits in [8, 16, 32, 64, 128] {
        for _ in 0..100 {
            let wide = u128::from(draws.number()) << 64 | u128::from(draws.number());
            let unused = 128 - u32::from(bits);
            let (unsigned, signed) = (wide >> unused, wide as i128 >> unused);
            let table = table(&[TypeSchema::Unsigned(bits), TypeSchema::Signed(bits)]);
            let words = table.key_of_text(&format!("{unsigned},{signed}")).unwrap();
            let values: Vec<Value> =
                table.key_values(&words).unwrap().into_iter().map(|(_, value)| value).collect();
            assert_eq!(values, [Value::Unsigned(unsigned), Value::Signed(signed)]);
            assert!(words.iter().all(|word| bits > 32 || word >> bits == 0), "{words:x?}");
        }
    }
}
