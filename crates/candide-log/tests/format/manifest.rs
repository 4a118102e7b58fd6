use crate::damage::{
    every_flip_is_refused, every_truncation_is_refused, expect, seal_again, store,
};
use crate::draws::Draws;
use crate::samples;
use candide_log::format::Fault;
use candide_log::format::manifest::{
    BASE_BYTES_MAX, Checkpoint, Entry, Front, HEADER_BYTES, Manifest, check_length, file_bytes_max,
};
use candide_log::schema::TableSchema;

#[test]
fn a_written_manifest_is_read_again() {
    let mut draws = Draws::new(30);
    for _ in 0..2000 {
        let manifest = draws.manifest();
        let bytes = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest));
    }
}

#[test]
fn every_flipped_bit_and_truncation_of_a_manifest_is_refused() {
    let mut described = samples::manifest();
    described.tables.push(samples::described());
    for manifest in [described, Draws::new(31).manifest()] {
        let bytes = manifest.encode().unwrap();
        every_flip_is_refused(&bytes, Manifest::decode);
        every_truncation_is_refused(&bytes, Manifest::decode);
        let longer = [bytes, vec![0]].concat();
        Manifest::decode(&longer).unwrap_err();
    }
}

#[test]
fn a_manifest_with_a_changed_byte_and_valid_checksum_does_not_panic() {
    let mut described = samples::manifest();
    described.tables.push(samples::described());
    let bytes = described.encode().unwrap();
    for place in 0..bytes.len() - 4 {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[place] = byte;
            seal_again(&mut changed);
            // What is accepted means something else, or is what was written.
            if let Ok(manifest) = Manifest::decode(&changed) {
                // A base of earlier versions has other tables, unless it has none.
                assert_eq!(changed[8], 3, "byte {place}");
                assert_eq!(manifest.encode().unwrap(), changed, "byte {place}");
            }
        }
    }
}

#[test]
fn a_truncated_manifest_with_valid_checksum_does_not_panic() {
    let bytes = samples::manifest().encode().unwrap();
    for length in 4..bytes.len() {
        let mut cut = bytes[..length].to_vec();
        if length >= 24 {
            store(&mut cut, 16, 8, length.max(HEADER_BYTES + 4) as u64);
        }
        seal_again(&mut cut);
        Manifest::decode(&cut).unwrap_err();
    }
}

#[test]
fn false_counts_in_a_manifest_are_refused_before_use() {
    let with = |offset, size, value| {
        let mut bytes = samples::manifest().encode().unwrap();
        store(&mut bytes, offset, size, value);
        seal_again(&mut bytes);
        Manifest::decode(&bytes)
    };
    let tables = samples::manifest().encode().unwrap().len() - 96 - 4;
    let what = format!("the list of parts needs 51539607540 bytes, and {tables} are left");
    expect(with(80, 4, u32::MAX.into()), 96, &what);
    let end = 96 + tables as u64;
    expect(with(84, 4, u32::MAX.into()), end, "a table's number needs 4 bytes, and 0 are left");
    // The number of groups of the first table, whose names and words are taken for groups.
    let error = with(96 + 12 + 18, 2, 0xffff).unwrap_err();
    assert_eq!(error.fault, Fault::Short, "{error}");
}

#[test]
fn each_mistake_in_a_manifest_has_its_own_error() {
    let with = |offset, size, value| {
        let mut bytes = samples::manifest().encode().unwrap();
        store(&mut bytes, offset, size, value);
        seal_again(&mut bytes);
        Manifest::decode(&bytes)
    };
    let length = samples::manifest().encode().unwrap().len();
    expect(Manifest::decode(b""), 0, "MANIFEST ends after 0 bytes");
    assert_eq!(Manifest::decode(b"").unwrap_err().fault, Fault::Short);
    expect(Manifest::decode(&[0; 99]), 0, "this is not MANIFEST");
    assert_eq!(Manifest::decode(&[0; 99]).unwrap_err().fault, Fault::Magic);
    expect(with(8, 4, 9), 8, "MANIFEST has version 9 of the format; 3 is known");
    assert_eq!(with(8, 4, 9).unwrap_err().fault, Fault::Version { found: 9, known: 3 });
    assert_eq!(with(8, 4, 0).unwrap_err().fault, Fault::Version { found: 0, known: 3 });
    expect(with(12, 1, 1), 12, "a reserved byte is not zero");
    let what = "MANIFEST has a base of 99 bytes; 100 are the least, and 268435456 the most";
    expect(with(16, 8, 99), 16, what);
    let what = format!("MANIFEST has {length} bytes, and states 5000");
    expect(with(16, 8, 5000), 16, &what);
    expect(with(64, 8, 0), 64, "there is a checkpoint, and its generation is 0");
    // The first table is behind one part.
    let table = 96 + 12;
    expect(with(table, 4, 70_000), table as u64, "table 70000 has a number above 65535");
    expect(with(table + 12, 2, 64), 120, "a table has the flags 0x0040");
    expect(with(table + 12, 2, 48), 120, "a table has the flags 0x0030");
    expect(with(table + 12, 2, 4), 120, "a table has the flags 0x0004");
    expect(
        with(table + 14, 2, 300),
        table as u64,
        "table \"accounts\" has keys of 300 words; 255 are the most",
    );
    expect(with(table + 26, 1, 0xff), 134, "a table's name is not UTF-8");
    let what = "table 1 is not in use, and has the name \"accounts\"";
    expect(with(table + 12, 2, 1 + 2 + 4 + 8 + 16), table as u64, what);
    let second = with(table, 4, 9).unwrap_err();
    assert_eq!(second.what, "table 2 comes after table 9");
    let mut same = samples::manifest();
    same.tables[1].name = same.tables[0].name.clone();
    let error = same.encode().unwrap_err();
    assert_eq!(error.what, "two tables have the name \"accounts\"");
    let mut twice = samples::manifest();
    twice.tables[1].number = 1;
    assert_eq!(twice.encode().unwrap_err().what, "table 1 comes after table 1");
    let mut unordered = samples::manifest();
    unordered.tables.swap(0, 1);
    assert_eq!(unordered.encode().unwrap_err().what, "table 1 comes after table 2");
    let mut none = samples::manifest();
    none.checkpoint = Some(Checkpoint { number: 1, generation: 0, cut: 0, parts: vec![] });
    expect(none.encode(), 64, "there is a checkpoint, and its generation is 0");
    none.checkpoint = Some(Checkpoint { number: 0, generation: 0, cut: 0, parts: vec![] });
    expect(none.encode(), 0, "MANIFEST would not be read back as it is");
    let last = length - 4 - 3;
    expect(with(last, 1, 4), last as u64, "an index has the kind 4");
}

#[test]
fn a_table_that_breaks_a_limit_is_refused_with_the_limit() {
    let refused = |change: fn(&mut TableSchema), what: &str| {
        let mut manifest = samples::manifest();
        change(&mut manifest.tables[0]);
        assert_eq!(manifest.tables[0].check().unwrap_err(), what);
        expect(manifest.encode(), 84, what);
    };
    refused(|table| table.number = 65_536, "table 65536 has a number above 65535");
    refused(
        |table| table.key_words = 256,
        "table \"accounts\" has keys of 256 words; 255 are the most",
    );
    refused(
        |table| table.key_widths = vec![65],
        "table \"accounts\" has a key component of 65 bits; 64 are the most",
    );
    refused(
        |table| table.groups = vec![("a".into(), 65_535), ("b".into(), 1)],
        "table \"accounts\" has rows of 65536 words; 65535 are the most",
    );
    refused(
        |table| (table.key_words, table.groups) = (0, vec![]),
        "neither the keys nor the rows of table \"accounts\" have a word",
    );
    refused(
        |table| table.groups = vec![(String::new(), 0); 65_536],
        "table \"accounts\" has 65536 groups; 65535 are the most",
    );
    refused(
        |table| table.policy = Some("x".repeat(65_536)),
        "table 1: its policy has a name of 65536 bytes; 65535 are the most",
    );
    let mut large = samples::manifest();
    large.tables[0].groups = vec![("a".into(), u32::MAX); 3];
    assert_eq!(large.tables[0].row_words() as u64, 3 * u64::from(u32::MAX));
    large.tables[0].groups = vec![("x".repeat(65_535), 65_535)];
    assert_eq!(Manifest::decode(&large.encode().unwrap()), Ok(large));
}

/// Returns a file with the golden contents and three entries, and the places where they begin.
fn with_entries() -> (Vec<u8>, Manifest, Vec<usize>) {
    let mut manifest = samples::manifest();
    let mut file = manifest.encode().unwrap();
    let mut places = Vec::new();
    for entry in samples::entries() {
        places.push(file.len());
        file.extend_from_slice(&entry.encode(&manifest).unwrap());
        manifest.apply(entry);
    }
    (file, manifest, places)
}

#[test]
fn entries_are_read_behind_their_base() {
    let mut draws = Draws::new(32);
    for _ in 0..200 {
        let mut manifest = draws.manifest();
        let mut file = manifest.encode().unwrap();
        for _ in 0..3 {
            let entry = draws.entry(&manifest);
            let bytes = entry.encode(&manifest).unwrap();
            if (file.len() + bytes.len()) as u64 > file_bytes_max(2048) {
                break;
            }
            file.extend_from_slice(&bytes);
            manifest.apply(entry);
            assert_eq!(Manifest::decode(&file).as_ref(), Ok(&manifest));
        }
    }
}

/// So a program that does not know a version reads its number, and not damage.
#[test]
fn the_last_bytes_of_a_file_are_the_checksum_of_all_before() {
    let (file, _, places) = with_entries();
    for end in places.into_iter().chain([file.len()]) {
        let mut sealed = file[..end].to_vec();
        seal_again(&mut sealed);
        assert_eq!(sealed, file[..end]);
        store(&mut sealed, 8, 4, 4);
        seal_again(&mut sealed);
        let fault = Manifest::decode(&sealed).unwrap_err().fault;
        assert_eq!(fault, Fault::Version { found: 4, known: 3 });
    }
}

#[test]
fn entries_before_a_flipped_bit_are_read() {
    let (file, manifest, places) = with_entries();
    every_flip_is_refused(&file, Manifest::decode);
    let last = places[places.len() - 1];
    let before = Manifest::decode(&file[..last]).unwrap();
    for bit in 8 * last..8 * file.len() {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let front = Front::decode(&damaged).unwrap();
        assert_eq!((&front.manifest, front.bytes), (&before, last));
        assert!(front.tail.unwrap().offset >= last as u64, "bit {bit}");
    }
    let whole = Front::decode(&file).unwrap();
    assert_eq!(whole, Front { manifest, bytes: file.len(), tail: None });
}

#[test]
fn entries_before_a_truncated_one_are_read() {
    let (file, _, places) = with_entries();
    let ends = [&places[..], &[file.len()]].concat();
    for length in places[0]..=file.len() {
        let front = Front::decode(&file[..length]).unwrap();
        let end = ends.iter().rfind(|end| **end <= length).unwrap();
        assert_eq!(front.bytes, *end);
        assert_eq!(front.tail.is_none(), length == *end, "{length} bytes");
        // A file that has grown without its last bytes.
        let mut zeros = file[..length].to_vec();
        zeros.resize(file.len() + 100, 0);
        let front = Front::decode(&zeros).unwrap();
        assert_eq!((front.bytes, front.tail.is_some()), (*end, true), "{length} bytes and zeros");
    }
}

#[test]
fn a_valid_entry_that_contradicts_its_manifest_is_damage() {
    let (file, manifest, places) = with_entries();
    let with = |place: usize, offset: usize, size: usize, value: u64| {
        let end = places.iter().find(|end| **end > place).copied().unwrap_or(file.len());
        let mut file = file[..end].to_vec();
        store(&mut file, place + offset, size, value);
        seal_again(&mut file);
        Front::decode(&file)
    };
    let [first, second, _] = places[..] else { panic!("three entries") };
    expect(with(first, 4, 4, 4), first as u64 + 4, "an entry has the kind 4");
    expect(with(first, 4, 4, 3), first as u64, "there is no table 3");
    expect(with(first, 8, 8, 9), first as u64 + 8, "sequence number 9 comes after 5");
    expect(with(first, 16, 4, 2), first as u64, "there is a table 2 already");
    let what = "the last segment 6 comes after 6";
    expect(with(second, 16, 8, 6), second as u64 + 16, what);
    let table = Entry::Table(TableSchema { number: 70_000, ..manifest.tables[0].clone() });
    let what = "table 70000 has a number above 65535";
    expect(table.encode(&manifest), 16, what);
    let same = Entry::Table(TableSchema { number: 9, ..manifest.tables[0].clone() });
    let file = [file, same.encode(&manifest).unwrap()].concat();
    let what = "two tables have the name \"accounts\"";
    expect(Front::decode(&file), (file.len() - same.encode(&manifest).unwrap().len()) as u64, what);
}

#[test]
fn a_manifest_longer_than_its_header_allows_is_not_read() {
    let (file, ..) = with_entries();
    let start = &file[..HEADER_BYTES];
    assert_eq!(check_length(start, file.len() as u64), Ok(()));
    expect(
        check_length(start, 1 << 40),
        8192,
        "MANIFEST has 1099511627776 bytes, and 8192 are the most",
    );
    let mut long = start.to_vec();
    store(&mut long, 16, 8, 1 << 40);
    let what =
        "MANIFEST has a base of 1099511627776 bytes; 100 are the least, and 268435456 the most";
    expect(check_length(&long, 1 << 40), 16, what);
    store(&mut long, 16, 8, BASE_BYTES_MAX);
    assert_eq!(check_length(&long, 2 * BASE_BYTES_MAX), Ok(()));
    // A version that is not known may have other fields.
    store(&mut long, 8, 4, 4);
    let what = "MANIFEST has 1099511627776 bytes, and 536870912 are the most";
    expect(check_length(&long, 1 << 40), 2 * BASE_BYTES_MAX, what);
    // The first version has no entries.
    let mut first = file.clone();
    store(&mut first, 8, 4, 1);
    let base = samples::manifest().encode().unwrap().len();
    let what = format!("MANIFEST has {} bytes, and states {base}", file.len());
    expect(check_length(&first[..HEADER_BYTES], file.len() as u64), 16, &what);
}
