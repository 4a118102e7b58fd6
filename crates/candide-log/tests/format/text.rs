//! Rows as text: what is written is read again, and what is wrong is refused with its place.

use crate::draws::Draws;
use crate::fields::fields;
use crate::samples;
use candide_log::format::long_row::{LongRow, append_value};
use candide_log::format::manifest::fields_hash;
use candide_log::schema::{FieldSchema, PartSchema, StructSchema, TableSchema, TypeSchema, Value};
use candide_log::text::{TextError, TextFormat, TextReader, TextWriter, json_of};

const FORMATS: [TextFormat; 2] = [TextFormat::Json, TextFormat::Csv];

/// The words of a row: of its key, its columns, and its values.
type Row = (Vec<u64>, Vec<u64>, Vec<u64>);

/// Returns a value of a type.
fn value(draws: &mut Draws, ty: &TypeSchema) -> Value {
    let wide = |draws: &mut Draws| u128::from(draws.number()) << 64 | u128::from(draws.number());
    let words = |draws: &mut Draws, bits: u64| {
        let mut words: Vec<u64> = (0..bits.div_ceil(64)).map(|_| draws.number()).collect();
        let unused = bits.next_multiple_of(64) - bits;
        if let Some(last) = words.last_mut() {
            *last &= u64::MAX >> unused;
        }
        Value::Words(words)
    };
    let parts = |draws: &mut Draws, name: &str, parts: &[PartSchema]| {
        let parts = parts.iter().map(|part| (part.name.clone(), value(draws, &part.ty)));
        Value::Parts(name.to_owned(), parts.collect())
    };
    match ty {
        TypeSchema::Bool => Value::Bool(draws.below(2) == 0),
        TypeSchema::Unsigned(bits) => Value::Unsigned(wide(draws) >> (128 - u32::from(*bits))),
        TypeSchema::Signed(bits) => {
            Value::Signed((wide(draws) as i128) >> (128 - u32::from(*bits)))
        }
        TypeSchema::Float(32) => {
            Value::Float32([0.1, -0.0, f32::MAX, f32::NEG_INFINITY][draws.below(4)])
        }
        TypeSchema::Float(_) => {
            Value::Float64([0.1, 1e300, f64::MIN_POSITIVE, f64::INFINITY][draws.below(4)])
        }
        TypeSchema::Char => Value::Char(['a', ',', '"', '\n', ' ', '漢'][draws.below(6)]),
        TypeSchema::Text(most) => {
            let mut text = String::new();
            for _ in 0..draws.below(9) {
                let next = ['a', 'é', '\0', '"', ',', '\r', '\n', ' ', '𝄞', '\\'][draws.below(10)];
                if text.len() + next.len_utf8() <= *most as usize {
                    text.push(next);
                }
            }
            Value::Text(text)
        }
        TypeSchema::Bytes(count) => Value::Bytes((0..*count).map(|_| draws.word() as u8).collect()),
        TypeSchema::Option(_) if draws.below(3) == 0 => Value::None,
        TypeSchema::Option(inner) => Value::Some(Box::new(value(draws, inner))),
        TypeSchema::Array(inner, count) => {
            Value::List((0..*count).map(|_| value(draws, inner)).collect())
        }
        TypeSchema::Struct(of) => parts(draws, &of.name, &of.parts),
        TypeSchema::Enum(of) => {
            let variant = &of.variants[draws.below(of.variants.len())];
            parts(draws, &variant.name, &variant.parts)
        }
        TypeSchema::Opaque { bits: 0, key_words, .. } => words(draws, 64 * u64::from(*key_words)),
        TypeSchema::Opaque { bits, .. } => words(draws, (*bits).into()),
        TypeSchema::LongText | TypeSchema::Json => value(draws, &TypeSchema::Text(40)),
        TypeSchema::LongBytes => {
            let count = draws.below(20) as u32;
            value(draws, &TypeSchema::Bytes(count))
        }
    }
}

/// Returns the bytes of a value of any length.
fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Text(text) => Some(text.clone().into_bytes()),
        Value::Bytes(bytes) => Some(bytes.clone()),
        Value::Some(value) => bytes_of(value),
        _ => None,
    }
}

/// Returns a row with these values of the fields.
fn row_of(table: &TableSchema, values: &[Value]) -> Row {
    let (mut key, mut words) = (Vec::new(), vec![0; table.row_words()]);
    let mut long = Vec::new();
    for (number, (field, value)) in table.fields.iter().zip(values).enumerate() {
        if !field.ty.is_value() {
            table.store(number, value, &mut key, &mut words).unwrap();
        } else if let Some(bytes) =
            bytes_of(value).filter(|bytes| !bytes.is_empty() || !field.ty.is_long())
        {
            long.push((table.place_in_row(field).unwrap() as u16, bytes));
        }
    }
    long.sort();
    let (mut all, mut last) = (Vec::new(), None);
    long.iter().for_each(|(place, bytes)| append_value(&mut all, &mut last, *place, bytes));
    (key, words, all)
}

fn text_of(table: &TableSchema, format: TextFormat, rows: &[Row]) -> String {
    let mut writer = TextWriter::new(table, format);
    let mut text = writer.head().to_owned();
    for (key, words, values) in rows {
        text.push_str(writer.row(LongRow::of(key, words, values).unwrap()).unwrap());
    }
    text
}

/// Reads all rows, up to the first fault.
fn rows_of(table: &TableSchema, format: TextFormat, bytes: &[u8]) -> (Vec<Row>, Option<TextError>) {
    let mut from = bytes;
    let mut reader = TextReader::new(table, format, &mut from);
    let mut rows = Vec::new();
    loop {
        let (mut key, mut words, mut values) = (vec![7], vec![9], vec![5]);
        match reader.next(&mut key, &mut words, &mut values) {
            Ok(true) => rows.push((key, words, values)),
            Ok(false) => return (rows, None),
            Err(error) => return (rows, Some(error)),
        }
    }
}

#[test]
fn rows_of_drawn_types_are_read_as_they_were_written() {
    let mut draws = Draws::new(71);
    for _ in 0..400 {
        let mut table = samples::described();
        table.groups = vec![("row".into(), 40), ("other".into(), 7)];
        table.indexes.clear();
        table.fields = fields(&mut draws, table.key_words, &table.groups);
        table.schema = fields_hash(&table.fields);
        table.check().unwrap();
        let rows: Vec<Row> = (0..4)
            .map(|_| {
                let of = |field: &FieldSchema| value(&mut draws, &field.ty);
                row_of(&table, &table.fields.iter().map(of).collect::<Vec<_>>())
            })
            .collect();
        for format in FORMATS {
            let text = text_of(&table, format, &rows);
            let (read, error) = rows_of(&table, format, text.as_bytes());
            assert!(error.is_none(), "{error:?} of {text}");
            assert_eq!(read, rows, "{text}");
        }
    }
}

#[test]
fn values_are_stored_as_they_are_read() {
    let mut draws = Draws::new(72);
    for _ in 0..400 {
        let mut table = samples::described();
        table.groups = vec![("row".into(), 40)];
        table.fields = fields(&mut draws, table.key_words, &table.groups);
        let values: Vec<Value> =
            table.fields.iter().map(|field| value(&mut draws, &field.ty)).collect();
        let (key, words, all) = row_of(&table, &values);
        let row = LongRow::of(&key, &words, &all).unwrap();
        for (field, value) in table.fields.iter().zip(&values) {
            assert_eq!(row.value_of(&table, field).as_ref(), Ok(value));
        }
    }
}

#[test]
fn a_table_without_a_description_has_its_words_as_text() {
    let mut table = samples::described();
    table.fields.clear();
    table.indexes.clear();
    let rows = [(vec![1, 2, u64::MAX], vec![0, 1 << 63, 3, 4, 5, 6, 7], Vec::new())];
    for format in FORMATS {
        let text = text_of(&table, format, &rows);
        assert!(text.contains("key2") && text.contains("word6"), "{text}");
        assert_eq!(rows_of(&table, format, text.as_bytes()).0, rows);
    }
}

const ROW: &str = "{\"branch\":7,\"code\":\"ab\",\"cents\":\"-5\",\"limit\":null,\
                   \"state\":\"Closed\",\"is_frozen\":true,\"owner\":\"candide\",\"months\":[2,1]}\n";
const HEAD: &str = "branch,code,cents,limit,state,is_frozen,owner,months\n";
const CELLS: &str = "7,ab,-5,,Closed,true,candide,\"[2,1]\"\n";

#[test]
fn rows_are_read_with_fields_in_any_order() {
    let table = samples::described();
    let words = vec![u64::MAX - 4, 0, 0, 0b101, u64::from_le_bytes(*b"candide\0"), 7, 1 << 32 | 2];
    let row = (vec![1 << 31 | 7, 0x6162_0000_0000_0000, 2], words, Vec::new());
    let read = |format, text: &str| {
        let (rows, error) = rows_of(&table, format, text.as_bytes());
        assert!(error.is_none(), "{error:?}");
        rows
    };
    assert_eq!(read(TextFormat::Json, ROW), std::slice::from_ref(&row));
    assert_eq!(read(TextFormat::Csv, &format!("{HEAD}{CELLS}")), std::slice::from_ref(&row));
    let other = " { \"months\" : [ 2 , 1 ] , \"owner\":\"c\\u0061ndide\", \"is_frozen\":true,\
                 \"state\":\"Closed\",\"limit\":null,\"cents\":-5,\"code\":\"ab\",\"branch\":7 } \
                 \r\n\n";
    assert_eq!(
        read(TextFormat::Json, &format!("\u{feff}{other}{}", ROW.trim())),
        [row.clone(), row.clone()]
    );
    let other = "\u{feff}months,owner,is_frozen,state,limit,cents,code,branch\r\n\
                 \"[2,1]\",\"candide\",true,Closed,,-5,ab,7\r\n";
    assert_eq!(read(TextFormat::Csv, other), [row]);
    assert_eq!(read(TextFormat::Json, ""), []);
}

/// Checks the fault of the last of several lines.
fn refused(format: TextFormat, text: &str, wanted: &str) {
    let (rows, error) = rows_of(&samples::described(), format, text.as_bytes());
    let found = error.expect("refused").to_string();
    assert!(found.starts_with(wanted), "{found:?}, not {wanted:?}");
    let line: usize = found["line ".len()..].split(',').next().unwrap().parse().unwrap();
    let before = if format == TextFormat::Json { 1 } else { 2 };
    assert_eq!(rows.len(), line.saturating_sub(before), "{found}");
}

#[test]
fn wrong_lines_of_json_are_refused_with_line_and_column() {
    let json = |from: &str, to: &str, wanted: &str| {
        let wrong = ROW.replace(from, to);
        assert_ne!(wrong, ROW, "{from}");
        refused(TextFormat::Json, &format!("{ROW}{wrong}{ROW}"), wanted);
    };
    json("\"cents\":\"-5\",", "", "line 2, column 1: the row has no `cents`");
    json(
        "\"limit\":null",
        "\"limit\":null,\"x\":1",
        "line 2, column 51: the row has `x`, and there are only `branch`, `code`, ",
    );
    json(
        "\"limit\":null",
        "\"limit\":null,\"limit\":1",
        "line 2, column 51: the row has `limit` twice",
    );
    json(
        ":7,",
        ":7.5,",
        "line 2, column 11: `7.5` is no value of `branch: i32`, which is a number",
    );
    json(":7,", ":2147483648,", "line 2, column 11: `2147483648` is no value of `branch: i32`");
    json(":7,", ":null,", "line 2, column 11: `null` is no value of `branch: i32`, which is a ");
    json(
        "\"ab\"",
        "\"abc\"",
        "line 2, column 20: `abc` is no value of `code: Text<2>`, which is at",
    );
    json("\"ab\"", "5", "line 2, column 20: `5` is no value of `code: Text<2>`, which is a string");
    json(
        "Closed",
        "closed",
        "line 2, column 59: `closed` is no value of `state: State`, which is \
        one of `Open`, `Frozen`, `Closed`",
    );
    json(
        "true",
        "1",
        "line 2, column 80: `1` is no value of `is_frozen: bool`, which is `true` or",
    );
    json(
        "[2,1]",
        "[2]",
        "line 2, column 112: `[2]` is no value of `months: [u32; 2]`, which is an \
        array of 2 values, not 1",
    );
    json("[2,1]", "[2,-1]", "line 2, column 115: `-1` is no value of `months: u32`, which is a ");
    json(
        "[2,1]",
        "7",
        "line 2, column 112: `7` is no value of `months: [u32; 2]`, which is a list",
    );
    json("\"months\":[2,1]}\n", "\"mon\n", "line 2, column 107: a string is cut off here");
    json(":[2,1]}\n", ":[2,1]\n", "line 2, column 117: an object is cut off here");
    json("null", "nul", "line 2, column 49: expected ident");
    json(":7,", ":07,", "line 2, column 12: invalid number");
    json("}\n", "} x\n", "line 2, column 119: trailing characters");
    json("ab", "\\ud800", "line 2, column 27: unexpected end of hex escape");
    json("ab", "\\x", "line 2, column 22: invalid escape");
    json(ROW, "[]\n", "line 2, column 1: a row is an object in a line of its own");
    json(ROW, "7\n", "line 2, column 1: a row is an object in a line of its own");
    let deep = format!("{}7{}", "[".repeat(70), "]".repeat(70));
    json("null", &deep, "line 2, column 46: `[[[[[[");
}

#[test]
fn wrong_records_of_comma_separated_values_are_refused_with_line_and_column() {
    let csv = |from: &str, to: &str, wanted: &str| {
        let wrong = CELLS.replace(from, to);
        assert_ne!(wrong, CELLS, "{from}");
        refused(TextFormat::Csv, &format!("{HEAD}{CELLS}{wrong}{CELLS}"), wanted);
    };
    csv(",candide", "", "line 3, column 29: the row has 7 cells; it lacks `months`");
    csv(",candide", ",can,dide", "line 3, column 31: the row has 9 cells, not 8");
    csv("-5", "x", "line 3, column 6: `x` is no value of `cents: i64`, which is a number from ");
    csv("-5", "", "line 3, column 6: `` is no value of `cents: i64`, which is a number from ");
    csv("ab", " ab", "line 3, column 3: ` ab` is no value of `code: Code`, which is at most 2");
    csv("[2,1]", "[2,", "line 3, column 30: a value is cut off here");
    csv("candide", "c\"x", "line 3, column 23: a quote, or a carriage return, in a cell");
    csv("\"\n", "\"x\n", "line 3, column 30: something follows the closing quote of");
    let head = |from: &str, to: &str, wanted: &str| {
        let head = HEAD.replace(from, to);
        refused(TextFormat::Csv, &format!("{head}{CELLS}"), wanted);
    };
    head(
        "cents",
        "sous",
        "line 1, column 13: the first line has `sous`, and there are only `branch`",
    );
    head("cents", "code", "line 1, column 13: the first line has `code` twice");
    head(",months", "", "line 1, column 46: the first line has no `months`");
    refused(TextFormat::Csv, "", "line 1, column 1: the first line, with the names of the fields");
    let cut = CELLS.trim_end();
    refused(
        TextFormat::Csv,
        &format!("{HEAD}{CELLS}{cut}"),
        "line 3, column 30: the text ends in this cell: it is cut off, or",
    );
    refused(
        TextFormat::Csv,
        &format!("{HEAD}{CELLS}7,\"ab"),
        "line 3, column 3: the text ends in this cell: it is cut off, or",
    );
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_place() {
    for (format, head, text) in [(TextFormat::Json, "", ROW), (TextFormat::Csv, HEAD, CELLS)] {
        let mut bytes = format!("{head}{text}{text}").into_bytes();
        let place = bytes.len() - text.len() + 5;
        bytes[place] = 0xff;
        let (rows, error) = rows_of(&samples::described(), format, &bytes);
        let line = 2 + usize::from(!head.is_empty());
        let wanted = format!("line {line}, column 6: byte 0xff is not UTF-8");
        assert_eq!(error.map(|error| error.to_string()), Some(wanted));
        assert_eq!(rows.len(), 1);
    }
}

#[test]
fn a_failing_reader_ends_the_rows_with_its_error() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }
    let table = samples::described();
    let mut from = std::io::BufReader::new(std::io::Read::chain(ROW.as_bytes(), Broken));
    let mut reader = TextReader::new(&table, TextFormat::Json, &mut from);
    let (mut key, mut words, mut values) = (Vec::new(), Vec::new(), Vec::new());
    assert!(reader.next(&mut key, &mut words, &mut values).unwrap());
    let error = reader.next(&mut key, &mut words, &mut values).unwrap_err();
    assert!(matches!(error, TextError::Io(_)), "{error}");
}

#[test]
fn large_numbers_and_values_that_can_be_null_twice_stay_apart() {
    let number = |value| json_of(&TypeSchema::Unsigned(64), &Value::Unsigned(value));
    assert_eq!(
        [number((1 << 53) - 1), number(1 << 53)],
        ["9007199254740991", "\"9007199254740992\""]
    );
    let twice = TypeSchema::Option(Box::new(TypeSchema::Option(Box::new(TypeSchema::Bool))));
    let some = |value| Value::Some(Box::new(value));
    let values = [Value::None, some(Value::None), some(some(Value::Bool(true)))];
    let shown = values.map(|value| json_of(&twice, &value));
    assert_eq!(shown, ["null", "[null]", "[true]"]);
}

/// Returns the value of a struct of these parts.
fn known(name: &str, parts: &[(&str, TypeSchema, Value)]) -> (TypeSchema, Value) {
    let types = parts.iter().map(|(name, ty, _)| PartSchema {
        name: (*name).into(),
        bit: 0,
        ty: ty.clone(),
    });
    let of = StructSchema { name: name.into(), bits: 128, parts: types.collect() };
    let values = parts.iter().map(|(name, _, value)| ((*name).into(), value.clone()));
    (TypeSchema::Struct(Box::new(of)), Value::Parts(name.into(), values.collect()))
}

#[test]
fn times_addresses_and_decimal_numbers_have_texts_of_their_own() {
    let one = |name, ty, value| known(name, &[("0", ty, value)]);
    let seconds = |name, secs: i128, nanos| {
        let nanos = ("nanos", TypeSchema::Unsigned(32), Value::Unsigned(nanos));
        known(name, &[("secs", TypeSchema::Signed(64), Value::Signed(secs)), nanos])
    };
    let days = |days| one("Date", TypeSchema::Signed(32), Value::Signed(days));
    let decimal = |low: u128, high: u128, scale, negative| {
        let low = ("low", TypeSchema::Unsigned(64), Value::Unsigned(low));
        let high = ("high", TypeSchema::Unsigned(32), Value::Unsigned(high));
        let scale = ("scale", TypeSchema::Unsigned(8), Value::Unsigned(scale));
        let negative = ("negative", TypeSchema::Bool, Value::Bool(negative));
        known("Decimal", &[low, high, scale, negative])
    };
    let uuid = 0x0190_0000_0000_7000_8000_0000_00ab_cdef_u128;
    let time = Value::Unsigned(86_399_500_000_000);
    let values = [
        (one("Ipv4Addr", TypeSchema::Unsigned(32), Value::Unsigned(0x7f00_0001)), "127.0.0.1"),
        (one("Ipv6Addr", TypeSchema::Unsigned(128), Value::Unsigned(1)), "::1"),
        (
            one("Uuid", TypeSchema::Bytes(16), Value::Bytes(uuid.to_be_bytes().to_vec())),
            "01900000-0000-7000-8000-000000abcdef",
        ),
        (days(0), "1970-01-01"),
        (days(-1), "1969-12-31"),
        (days(11_016), "2000-02-29"),
        (days(-719_529), "-0001-12-31"),
        (days(20_785), "2026-11-28"),
        (days(47_540), "2100-02-28"),
        (one("Time", TypeSchema::Unsigned(64), time), "23:59:59.5"),
        (seconds("SystemTime", -1, 1), "1969-12-31T23:59:59.000000001Z"),
        (seconds("NaiveDateTime", 951_782_400, 0), "2000-02-29T00:00:00"),
        (seconds("SignedDuration", -1, 750_000_000), "-0.25s"),
        (seconds("TimeDelta", 61, 0), "61s"),
        (decimal(1250, 0, 2, true), "-12.50"),
        (decimal(7, 0, 3, false), "0.007"),
        (decimal(u64::MAX.into(), 1, 0, false), "36893488147419103231"),
    ];
    for ((ty, value), text) in values {
        assert_eq!(value.to_string(), text);
        assert_eq!(json_of(&ty, &value), format!("\"{text}\""));
        assert_eq!(Value::of_text(&ty, text), Ok(value), "{text}");
        for wrong in ["", "x", "2001-02-29", "24:00:00", "1.", "-s", "+1s", "1970-1-1", "1..2"] {
            assert!(Value::of_text(&ty, wrong).is_err(), "{wrong} of {ty}");
        }
    }
    // A struct of such a name with other parts is one like any other.
    let (ty, value) = known("Date", &[("day", TypeSchema::Unsigned(8), Value::Unsigned(7))]);
    assert_eq!(json_of(&ty, &value), "{\"day\":7}");
}

#[test]
fn every_day_of_many_years_is_read_as_it_is_written() {
    let ty = known("Date", &[("0", TypeSchema::Signed(32), Value::None)]).0;
    let mut texts = std::collections::HashSet::new();
    for days in (-800_000..800_000).step_by(7).chain((0..400).map(|n| i128::from(i32::MIN) + n)) {
        let value = known("Date", &[("0", TypeSchema::Signed(32), Value::Signed(days))]).1;
        let text = value.to_string();
        assert_eq!(Value::of_text(&ty, &text), Ok(value), "{text}");
        assert!(texts.insert(text));
    }
}
