use crate::damage::{
    every_flip_is_refused, every_truncation_is_refused, expect, seal_again, store,
};
use crate::draws::Draws;
use candide_log::format::Fault;
use candide_log::format::segment::{GenerationEnd, SegmentHeader};

fn header(draws: &mut Draws) -> SegmentHeader {
    let number = 1 + draws.number() / 2;
    let generation = 1 + draws.number() / 2;
    let end = GenerationEnd {
        cut: draws.number(),
        segment: number - 1,
        offset: (1 + draws.number() / 8192) * 4096,
    };
    SegmentHeader {
        uuid: draws.uuid(),
        number,
        generation,
        end_before: if generation == 1 { GenerationEnd::default() } else { end },
        salt: draws.word(),
        bytes: (2 + draws.number() / 8192) * 4096,
    }
}

#[test]
fn a_written_segment_is_read_again() {
    let mut draws = Draws::new(20);
    for _ in 0..2000 {
        let header = header(&mut draws);
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&[7; 100]);
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
    }
}

#[test]
fn every_flipped_bit_and_truncation_of_a_segment_is_refused() {
    let bytes = header(&mut Draws::new(21)).encode();
    every_flip_is_refused(&bytes, SegmentHeader::decode);
    every_truncation_is_refused(&bytes, SegmentHeader::decode);
}

#[test]
fn every_loss_of_sectors_is_refused() {
    let bytes = header(&mut Draws::new(22)).encode();
    let mut refused = 0;
    for lost in 1..256_u32 {
        let mut torn = bytes;
        for sector in (0..8).filter(|sector| lost >> sector & 1 == 1) {
            torn[512 * sector..512 * (sector + 1)].fill(0);
        }
        // Sectors of zeros lose nothing.
        if torn != bytes {
            SegmentHeader::decode(&torn).unwrap_err();
            refused += 1;
        }
    }
    assert_eq!(refused, 255 - 63);
}

#[test]
fn zeros_and_foreign_files_are_no_segments() {
    expect(SegmentHeader::decode(&[0; 4096]), 0, "this is not the header of a segment");
    assert_eq!(SegmentHeader::decode(&[0; 4096]).unwrap_err().fault, Fault::Magic);
}

#[test]
fn a_segment_of_another_version_has_another_error_than_a_damaged_one() {
    let mut bytes = header(&mut Draws::new(23)).encode();
    store(&mut bytes, 8, 4, 3);
    assert_eq!(SegmentHeader::decode(&bytes).unwrap_err().fault, Fault::Damaged);
    seal_again(&mut bytes);
    let error = SegmentHeader::decode(&bytes).unwrap_err();
    assert_eq!(error.fault, Fault::Version { found: 3, known: 2 });
    let what = "the header of a segment has version 3 of the format; 2 is known";
    expect(Err::<(), _>(error), 8, what);
}

#[test]
fn each_mistake_in_a_segment_has_its_own_error() {
    let end_before = GenerationEnd { cut: 5, segment: 6, offset: 8192 };
    let header =
        SegmentHeader { uuid: [1; 16], number: 7, generation: 2, end_before, salt: 3, bytes: 8192 };
    let with = |offset, size, value| {
        let mut bytes = header.encode();
        store(&mut bytes, offset, size, value);
        seal_again(&mut bytes);
        SegmentHeader::decode(&bytes)
    };
    expect(SegmentHeader::decode(&[0; 9]), 9, "the header of a segment ends after 9 bytes");
    expect(with(13, 1, 1), 13, "a reserved byte is not zero");
    expect(with(4091, 1, 1), 4091, "a reserved byte is not zero");
    expect(with(40, 8, 0), 40, "the generation is 0");
    expect(with(40, 8, 1), 48, "the first generation names an earlier one");
    expect(
        with(56, 8, 7),
        56,
        "segment 7 says that the previous generation ended in segment 7, which is not earlier",
    );
    expect(with(64, 8, 0), 64, "no block ends at byte 0");
    expect(with(64, 8, 4097), 64, "no block ends at byte 4097");
    expect(with(80, 8, 4096), 80, "a segment cannot have 4096 bytes");
    expect(with(80, 8, 8193), 80, "a segment cannot have 8193 bytes");
    let mut bytes = header.encode();
    bytes[4092] ^= 1;
    let error = SegmentHeader::decode(&bytes).unwrap_err();
    assert_eq!((error.offset, error.fault), (4092, Fault::Damaged));
    assert!(error.what.starts_with("the checksum of the header of a segment is 0x"), "{error}");
}
