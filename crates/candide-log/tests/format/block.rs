use crate::damage::{every_flip_is_refused, every_truncation_is_refused, expect, store};
use crate::draws::Draws;
use candide_log::format::Fault;
use candide_log::format::block::{BLOCK_HEADER_BYTES, BlockHeader, ZEROS, decode};
use candide_log::format::bytes::word_bytes;

const SALT: u64 = 0xfeed_beef_0bad_cafe;

/// Returns a block as the logger writes it.
pub fn block(header: BlockHeader, salt: u64, payload: &[&[u64]]) -> (BlockHeader, Vec<u8>) {
    let header = header.seal(salt, payload);
    let mut bytes = header.encode().to_vec();
    payload.iter().for_each(|words| bytes.extend_from_slice(&word_bytes(words)));
    bytes.extend_from_slice(header.padding());
    assert_eq!(bytes.len() as u64, header.size());
    (header, bytes)
}

fn header(draws: &mut Draws) -> BlockHeader {
    let cut = draws.number();
    BlockHeader {
        sequence: 2 + draws.number() / 2,
        generation: 1 + draws.number() / 2,
        cut,
        synced: cut - cut.min(draws.number()),
        before: draws.word() as u32,
        ..BlockHeader::default()
    }
}

#[test]
fn a_written_block_is_read_again() {
    let mut draws = Draws::new(10);
    for _ in 0..1000 {
        let records = draws.records(30);
        let parts: Vec<&[u64]> = records.iter().map(Vec::as_slice).collect();
        let (header, mut bytes) = block(header(&mut draws), SALT, &parts);
        bytes.extend_from_slice(&ZEROS);
        let (read, payload) = decode(&bytes, SALT).unwrap();
        assert_eq!(read, header);
        assert_eq!(payload, &word_bytes(&records.concat())[..]);
    }
}

#[test]
fn every_size_around_a_page_is_padded_to_whole_pages() {
    for words in 500..510 {
        let (header, bytes) = block(header(&mut Draws::new(11)), SALT, &[&vec![1; words]]);
        assert_eq!(bytes.len(), if words <= 504 { 4096 } else { 8192 });
        assert_eq!(decode(&bytes, SALT).unwrap().0, header);
    }
}

#[test]
fn every_flipped_bit_and_truncation_of_a_block_is_refused() {
    let mut draws = Draws::new(12);
    for records in [draws.records(0), draws.records(3)] {
        let parts: Vec<&[u64]> = records.iter().map(Vec::as_slice).collect();
        let (_, bytes) = block(header(&mut draws), SALT, &parts);
        every_flip_is_refused(&bytes, |bytes| decode(bytes, SALT).map(|(header, _)| header));
        every_truncation_is_refused(&bytes, |bytes| decode(bytes, SALT).map(|(header, _)| header));
    }
}

#[test]
fn a_block_of_an_earlier_use_of_the_segment_is_refused() {
    let (header, bytes) = block(header(&mut Draws::new(13)), SALT, &[&[1, 2, 3]]);
    for bit in 0..64 {
        let salt = SALT ^ 1 << bit;
        let error = decode(&bytes, salt).unwrap_err();
        assert_eq!((error.offset, error.fault), (52, Fault::Damaged));
        assert_ne!(header.seal(salt, &[&[1, 2, 3]]).crc, header.crc);
    }
}

#[test]
fn false_lengths_in_a_block_are_refused_before_use() {
    let (_, bytes) = block(header(&mut Draws::new(14)), SALT, &[&[1, 2, 3]]);
    let lie = |length: u64| {
        let mut bytes = bytes.clone();
        store(&mut bytes, 8, 8, length);
        decode(&bytes, SALT).map(|_| ())
    };
    for length in [4096 - 56, 1 << 40, u64::MAX - 7, u64::MAX - 4096 - 7, i64::MAX as u64 - 7] {
        let what = format!("a block with {length} bytes of payload does not fit into 4096");
        expect(lie(length), 8, &what);
    }
    expect(lie(25), 8, "a payload of 25 bytes is not whole words");
    assert_eq!(lie(16).unwrap_err().offset, 52, "the checksum is another one");
}

#[test]
fn a_block_header_with_any_size_is_checked_without_a_panic() {
    let header = BlockHeader { payload_bytes: u64::MAX, ..BlockHeader::default() };
    assert_eq!(header.size(), u64::MAX);
    assert!(header.padding().len() < 4096);
    assert_eq!(header.check(SALT, &[]).unwrap_err().fault, Fault::Short);
}

#[test]
fn each_mistake_in_a_block_has_its_own_error() {
    let (_, bytes) = block(header(&mut Draws::new(15)), SALT, &[&[1, 2, 3]]);
    let with = |offset, size, value| {
        let mut bytes = bytes.clone();
        store(&mut bytes, offset, size, value);
        decode(&bytes, SALT).map(|_| ())
    };
    expect(decode(&[1; 63], SALT), 63, "the header of a block ends after 63 bytes");
    expect(decode(&ZEROS, SALT), 0, "no block begins here");
    assert_eq!(decode(&ZEROS, SALT).unwrap_err().fault, Fault::Magic);
    expect(with(6, 1, 1), 6, "a reserved byte is not zero");
    expect(with(63, 1, 1), 63, "a reserved byte is not zero");
    expect(with(16, 8, 0), 16, "the sequence number is 0");
    expect(with(16, 8, 1), 48, "the first block has a block before it");
    expect(with(24, 8, 0), 24, "the generation is 0");
    expect(with(64 + 24, 1, 1), 88, "a byte behind the payload is not zero");
    let mut crossed = bytes.clone();
    store(&mut crossed, 32, 8, 6);
    store(&mut crossed, 40, 8, 7);
    expect(
        decode(&crossed, SALT),
        40,
        "the block says that cut 7 is durable, but closes only cut 6",
    );
    let header = BlockHeader::parse(&bytes, 4096).unwrap();
    expect(header.check(SALT, &bytes[..4000]), 4000, "a block of 4096 bytes ends after 4000");
    let damaged = with(70, 1, 1).unwrap_err();
    let (says, is) = (header.crc, damaged.what.split(' ').nth(6).unwrap().to_string());
    let what = format!("the checksum of the block is {is} and the block states {says:#010x}");
    expect(with(70, 1, 1), 52, &what);
}

#[test]
fn blocks_follow_one_another_in_a_generation() {
    let first = BlockHeader { sequence: 1, generation: 3, cut: 10, ..BlockHeader::default() };
    let first = first.seal(SALT, &[&[1]]);
    first.follows(None).unwrap();
    let fits = BlockHeader { sequence: 2, cut: 12, synced: 10, before: first.crc, ..first };
    fits.follows(Some(&first)).unwrap();
    BlockHeader { cut: 10, synced: 0, ..fits }.follows(Some(&first)).unwrap();
    let check = |header: BlockHeader| header.follows(Some(&first));
    expect(check(BlockHeader { generation: 4, ..fits }), 24, "generation 4 follows 3");
    expect(check(BlockHeader { sequence: 3, ..fits }), 16, "block 3 follows block 1");
    expect(fits.follows(None), 16, "block 2 follows block 0");
    expect(check(BlockHeader { cut: 9, ..fits }), 32, "cut 9 comes after the larger cut 10");
    let (is, was) = (first.crc ^ 1, first.crc);
    expect(
        check(BlockHeader { before: is, ..fits }),
        48,
        &format!(
            "the checksum of the block before is {was:#010x}, and this block states {is:#010x}"
        ),
    );
    expect(
        check(BlockHeader { synced: 11, ..fits }),
        40,
        "cut 11 is said to be synced, after 0 was and up to 10 was written",
    );
    let back = BlockHeader { sequence: 3, synced: 9, before: fits.crc, ..fits };
    expect(
        back.follows(Some(&fits)),
        40,
        "cut 9 is said to be synced, after 10 was and up to 12 was written",
    );
    let claims = BlockHeader { synced: 1, ..first };
    expect(
        claims.follows(None),
        40,
        "cut 1 is said to be synced, after 0 was and up to 0 was written",
    );
    assert_eq!(BLOCK_HEADER_BYTES, first.encode().len());
}
