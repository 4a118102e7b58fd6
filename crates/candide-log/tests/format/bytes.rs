use crate::damage::expect;
use candide_log::format::bytes::{byte_words, word_bytes};
use candide_log::format::{Fault, Malformed};
use std::borrow::Cow;

#[test]
fn words_become_little_endian_bytes_and_words_again() {
    let words = [0x0807_0605_0403_0201, u64::MAX, 0];
    let bytes = word_bytes(&words);
    assert_eq!(bytes[..9], [1, 2, 3, 4, 5, 6, 7, 8, 255]);
    assert_eq!(byte_words(&bytes).unwrap()[..], words);
}

#[test]
fn aligned_bytes_become_words_without_a_copy_and_others_with_one() {
    let words = [1, 2, 3_u64];
    let bytes = word_bytes(&words);
    assert_eq!(matches!(bytes, Cow::Borrowed(_)), cfg!(target_endian = "little"));
    let again = byte_words(&bytes).unwrap();
    assert_eq!(matches!(again, Cow::Borrowed(_)), cfg!(target_endian = "little"));
    let mut shifted = [0; 25];
    let start = 1 - shifted.as_ptr().addr() % 2;
    shifted[start..start + 24].copy_from_slice(&bytes);
    let copied = byte_words(&shifted[start..start + 24]).unwrap();
    assert!(matches!(copied, Cow::Owned(_)));
    assert_eq!(copied[..], words);
}

#[test]
fn a_word_that_is_cut_off_is_an_error() {
    expect(byte_words(&[0; 15]), 8, "the last word is cut off");
    assert_eq!(byte_words(&[0; 15]).unwrap_err().fault, Fault::Short);
}

#[test]
fn an_error_of_a_format_names_the_fault_and_its_place() {
    let error = Malformed::new(7, "a byte is wrong").after(4096).with(Fault::Short);
    assert_eq!(error.to_string(), "at byte 4103: a byte is wrong");
    assert_eq!(error.fault, Fault::Short);
    assert_eq!(error.after(u64::MAX).offset, u64::MAX);
}
