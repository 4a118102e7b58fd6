//! The document of the format against the code.

use candide_log::format::bytes::Field;
use candide_log::format::{block, checkpoint, manifest, segment};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/file-format.md");

/// Returns the rows of the first table below a heading, as `offset, size, name`.
fn table(document: &str, heading: &str) -> Vec<(usize, usize, String)> {
    let lines = document.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('#'));
    let table = lines.skip_while(|line| !line.starts_with("| offset | size | field |"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number = |cell: &str| cell.parse().unwrap_or_else(|_| panic!("{heading}: {line}"));
        (number(cells[1]), number(cells[2]), cells[3].to_string())
    };
    table.skip(2).take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn the_document_lists_the_fields_of_the_formats() {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let headers: [(&str, &[Field], usize); 6] = [
        ("## MANIFEST", manifest::FIELDS, manifest::HEADER_BYTES),
        ("### An entry of MANIFEST", manifest::ENTRY_FIELDS, 16),
        ("### The header of a segment", segment::FIELDS, segment::SEGMENT_HEADER_BYTES),
        ("### The header of a block", block::FIELDS, block::BLOCK_HEADER_BYTES),
        ("### The header of a part", checkpoint::FIELDS, checkpoint::PART_HEADER_BYTES),
        (
            "### The header of a block in a part",
            checkpoint::BLOCK_FIELDS,
            checkpoint::PART_BLOCK_HEADER_BYTES,
        ),
    ];
    for (heading, fields, bytes) in headers {
        let place = |field: &Field| (field.offset, field.size, field.name.to_string());
        let places: Vec<_> = fields.iter().map(place).collect();
        assert_eq!(table(&document, heading), places, "{heading}");
        // Fields leave no byte out.
        let end = fields.iter().fold(0, |end, field| {
            assert_eq!(field.offset, end, "{heading}: {}", field.name);
            end + field.size
        });
        assert_eq!(end, bytes, "{heading}");
    }
}

#[test]
fn the_document_states_the_versions_of_the_formats() {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let history = document.split("## Versions of the format").nth(1).unwrap();
    let last = history.lines().rfind(|line| line.starts_with('|')).unwrap();
    let versions: Vec<&str> = last.split('|').map(str::trim).collect();
    assert_eq!(versions[1], manifest::VERSION.to_string());
    assert_eq!(versions[2], segment::VERSION.to_string());
    assert_eq!(segment::VERSION, checkpoint::VERSION);
}
