//! The bytes of objects, against the document and against files that versions of the format have
//! written. Every later version of this crate must read these files: change neither them nor what
//! these tests expect of them.

use candide_log::format::{Fault, Malformed};
use candide_reach::object::{
    FIELDS, FloorNumber, HEADER_BYTES, Header, Kind, Link, Object, VERSION,
};
use std::fs;
use std::path::PathBuf;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/file-format.md");

/// Returns one object of each kind, as they are in the golden file, one behind the other.
fn samples() -> Vec<(Header, &'static [u8], &'static [u8])> {
    let new = |kind, generation, place| Header {
        time: 1_764_288_000_000,
        ..Header::new(kind, *b"0123456789abcdef", generation, place)
    };
    let before = |generation, place, crc| Link { generation, place, crc };
    let block = Header {
        before: before(1, 9, 0xAB_CDEF),
        cut: 77,
        stamp_generation: 5,
        floor: FloorNumber { generation: 1, number: 3 },
        ..new(Kind::Block, 2, 1)
    };
    let part = Header {
        part: 1,
        before: before(2, 4, 0x1234_5678),
        cut: 99,
        stamp_generation: 5,
        ..new(Kind::Part, 2, 4)
    };
    let floor = Header { part: 2, number: 0x8765_4321, ..part };
    vec![
        (Header { number: u64::MAX, ..new(Kind::Claim, 2, 0) }, b"", b""),
        (block, b"catalog", b"commit records"),
        (Header { before: before(2, 8, 7), number: 3, ..new(Kind::End, 2, 9) }, b"", b""),
        (part, b"tables", b"rows"),
        (Header { kind: Kind::Floor, place: 1, ..floor }, b"", b"the sum"),
        (Header { number: 3, ..new(Kind::Seal, 2, 2) }, b"", b""),
    ]
}

/// Returns a restart, which has a golden file of its own.
fn restart() -> (Header, &'static [u8], &'static [u8]) {
    let (block, ..) = samples()[1];
    (Header { kind: Kind::Restart, part: 3, number: 0x8765_4321, ..block }, b"", b"")
}

fn written(samples: &[(Header, &[u8], &[u8])]) -> Vec<u8> {
    samples.iter().flat_map(|(header, catalog, payload)| header.encode(catalog, payload)).collect()
}

fn golden(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(file)
}

/// Writes the file; to be run once for each version of the format.
#[test]
#[ignore = "writes the file that the other tests compare with"]
fn writing_the_golden_file_on_request_matches_it() {
    fs::create_dir_all(golden("")).unwrap();
    fs::write(golden("objects"), written(&samples())).unwrap();
    fs::write(golden("restart"), written(&[restart()])).unwrap();
}

#[test]
fn objects_are_written_as_in_the_golden_file() {
    for (file, samples) in [("objects", samples()), ("restart", vec![restart()])] {
        let golden = fs::read(golden(file)).unwrap();
        assert!(written(&samples) == golden, "{file}: they are written in another way");
    }
}

#[test]
fn the_golden_objects_are_read() {
    let bytes = [fs::read(golden("objects")).unwrap(), fs::read(golden("restart")).unwrap()];
    let (bytes, mut at) = (bytes.concat(), 0);
    for (header, catalog, payload) in samples().into_iter().chain([restart()]) {
        let end = at + HEADER_BYTES + catalog.len() + payload.len() + 4;
        let object = Object::decode(bytes[at..end].to_vec()).unwrap();
        assert_eq!((object.header, object.catalog(), object.payload()), (header, catalog, payload));
        let crc = u32::from_le_bytes(bytes[end - 4..end].try_into().unwrap());
        let Header { generation, place, .. } = header;
        assert_eq!(object.link(), Link { generation, place, crc });
        at = end;
    }
    assert_eq!(at, bytes.len());
}

fn decode(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Malformed {
    bytes.truncate(bytes.len() - 4);
    change(&mut bytes);
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    Object::decode(bytes).unwrap_err()
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    for (header, catalog, payload) in samples().into_iter().chain([restart()]) {
        let bytes = header.encode(catalog, payload);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Object::decode(flipped).is_err(), "{:?} bit {bit}", header.kind);
        }
        for length in 0..bytes.len() {
            assert!(
                Object::decode(bytes[..length].to_vec()).is_err(),
                "{:?} {length}",
                header.kind
            );
        }
    }
}

#[test]
fn objects_that_no_encoder_writes_are_refused_with_what_is_wrong() {
    let bytes = |at: usize| {
        let (header, catalog, payload) = samples()[at];
        header.encode(catalog, payload)
    };
    let cases: [(usize, usize, u8, &str); 9] = [
        (0, 12, 9, "there is no kind 9 of objects"),
        (0, 32, 0, "generation of Claim is 0"),
        (0, 40, 1, "place of Claim is 1 instead of 0"),
        (1, 40, 0, "place of Block is 0"),
        (1, 104, 1, "number of Block 1 is 1"),
        (2, 104, 0, "number of End is 0"),
        (2, 72, 1, "cut of End is 1 instead of 0"),
        (4, 48, 0, "part of Floor is 0"),
        (5, 56, 1, "before: generation of Seal is 1 instead of 0"),
    ];
    for (sample, offset, value, what) in cases {
        let error = decode(bytes(sample), |bytes| bytes[offset] = value);
        assert_eq!((error.offset, &*error.what), (offset as u64, what));
    }
    let error = decode(bytes(1), |bytes| bytes[124] += 1);
    assert_eq!(error.what, "a catalog of 7 bytes and a payload of 15 do not make an object of 153");
    let error = decode(bytes(1), |bytes| bytes[8] = 2);
    assert_eq!(error.fault, Fault::Version { found: 2, known: 1 });
    let error = decode(bytes(1), |bytes| bytes[0] = 0);
    assert_eq!(error.fault, Fault::Magic);
    assert_eq!(Object::decode(vec![0; 10]).unwrap_err().fault, Fault::Short);
}

#[test]
fn the_document_lists_the_fields_of_an_object() {
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let section = document.split("## Objects in a place").nth(1).unwrap();
    let table = section.lines().skip_while(|line| !line.starts_with("| offset | size | field |"));
    let rows: Vec<(usize, usize, &str)> = table
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].parse().unwrap(), cells[2].parse().unwrap(), cells[3])
        })
        .collect();
    let fields: Vec<_> = FIELDS.iter().map(|f| (f.offset, f.size, f.name)).collect();
    assert_eq!(rows, fields);
    let end = fields.iter().fold(0, |end, (offset, size, name)| {
        assert_eq!(*offset, end, "{name}");
        end + size
    });
    assert_eq!(end, HEADER_BYTES);
    assert!(section.contains("`candiOBJ`") && section.contains(&format!("| {VERSION} |")));
}
