//! Headers of segments, and blocks: bytes of any kind are read or refused, written blocks are read
//! unchanged, and damaged ones refused.

use crate::choices::{Choices, sealed};
use candide_log::format::block::{self, BlockHeader};
use candide_log::format::bytes::{byte_words, word_bytes};
use candide_log::format::segment::{self, SEGMENT_HEADER_BYTES, SegmentHeader};

/// Reads the bytes, and a block with contents that the bytes choose.
pub fn run(bytes: &[u8]) {
    let salt = Choices::new(bytes).word();
    // A block of bytes that are not written by an encoder has hardly ever the right checksum.
    if let Ok((header, payload)) = block::decode(bytes, salt) {
        assert!(header.size() <= bytes.len() as u64 && payload.len() <= bytes.len());
    }
    header(bytes);
    segment(bytes);
    let choices = &mut Choices::new(bytes);
    let whole = written(choices, salt);
    damaged(choices, whole, salt);
}

/// Reads the bytes as the header of a block, and writes it again.
fn header(bytes: &[u8]) {
    let with_magic = [b"cblk", bytes].concat();
    if let Ok(header) = BlockHeader::parse(&with_magic, u64::MAX) {
        assert_eq!(header.encode(), with_magic[..64]);
        assert!(header.check(0, &with_magic).is_err() || header.size() <= bytes.len() as u64 + 4);
    }
}

/// Reads the bytes as the header of a segment whose checksum is right, and writes it again.
fn segment(bytes: &[u8]) {
    let _ = SegmentHeader::decode(bytes);
    let mut padded = bytes.to_vec();
    padded.resize(SEGMENT_HEADER_BYTES, 0);
    let padded = sealed(padded, b"candiLOG", segment::VERSION);
    if let Ok(header) = SegmentHeader::decode(&padded) {
        assert_eq!(header.encode()[..], padded);
    }
}

/// Writes a block and reads it again.
fn written(choices: &mut Choices<'_>, salt: u64) -> Vec<u8> {
    let cut = choices.word();
    let header = BlockHeader {
        sequence: choices.word().max(2),
        generation: choices.word().max(1),
        cut,
        synced: cut.min(choices.word()),
        before: choices.word() as u32,
        ..BlockHeader::default()
    };
    let words: Vec<u64> = (0..choices.below(256) * 3).map(|_| choices.word()).collect();
    let header = header.seal(salt, &[&words]);
    let whole = [&header.encode()[..], &word_bytes(&words), header.padding()].concat();
    let (read, payload) = block::decode(&whole, salt).expect("as it was written");
    assert_eq!(read, header);
    assert_eq!(byte_words(payload).expect("whole words")[..], words);
    whole
}

/// Checks that the block is refused with another byte, and when it ends early.
fn damaged(choices: &mut Choices<'_>, mut whole: Vec<u8>, salt: u64) {
    let place = choices.word() as usize % whole.len();
    block::decode(&whole[..place], salt).expect_err("the block is cut off");
    whole[place] ^= choices.byte().max(1);
    block::decode(&whole, salt).expect_err("a byte is damaged");
}
