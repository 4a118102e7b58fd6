//! Types of the standard library as columns and keys: times and addresses.

#![forbid(unsafe_code)]

use super::field::Field;
use super::field_type::{FieldType, PartType};
use super::key::{AsKey, Key};
use std::fmt::{self, Debug, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of nanoseconds of a second.
const NANOS: u32 = 1_000_000_000;
/// The bits of nanoseconds: below two seconds, since `chrono` keeps leap seconds so.
const NANO_BITS: u32 = 31;

/// A type that is kept as another one, by which keys are ordered as this type is. `$text` is what
/// the name of the type is in descriptions.
macro_rules! kept_as {
    ($(#[$docs:meta])* $ty:ty as $kept:ty, $name:literal, $part:literal, |$value:ident| $to:expr, |$back:ident| $from:expr) => {
        $(#[$docs])*
        impl Field for $ty {
            const BITS: u32 = <$kept as Field>::BITS;
            const TYPE: &'static FieldType = &FieldType::Nested {
                name: $name,
                bits: <$kept as Field>::BITS,
                parts: &[PartType { name: $part, bit: 0, ty: <$kept as Field>::TYPE }],
            };
            type Buffer = <$kept as Field>::Buffer;

            #[inline]
            fn word(&self, index: usize) -> u64 {
                let $value = *self;
                Field::word(&$to, index)
            }

            #[inline]
            fn from_buffer(buffer: &Self::Buffer) -> $ty {
                let $back = <$kept as Field>::from_buffer(buffer);
                $from
            }
        }

        impl Key for $ty {
            type Words = <$kept as Key>::Words;
            const WIDTHS: &'static [u32] = <$kept as Key>::WIDTHS;
            const KEY_TYPE: &'static FieldType = &FieldType::Struct {
                name: $name,
                bits: 0,
                parts: &[($part, <$kept as Key>::KEY_TYPE)],
            };

            #[inline]
            fn words(&self) -> Self::Words {
                let $value = *self;
                Key::words(&$to)
            }

            #[inline]
            fn from_words(words: &[u64]) -> $ty {
                let $back = <$kept as Key>::from_words(words);
                $from
            }

            fn show(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
                show_value::<$ty>(words, f)
            }
        }

        own_key!($ty);
    };
}

macro_rules! own_key {
    ($ty:ty) => {
        #[diagnostic::do_not_recommend]
        impl AsKey<$ty> for $ty {
            type Given = $ty;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn into_key(self) -> Option<$ty> {
                Some(self)
            }
        }
    };
}

/// A type that is kept as a number of seconds and the nanoseconds behind them, fewer than a second.
macro_rules! kept_as_seconds {
    ($(#[$docs:meta])* $ty:ty as $secs:ty, $name:literal, |$value:ident| $to:expr, |$back:ident| $from:expr) => {
        $(#[$docs])*
        impl Field for $ty {
            const BITS: u32 = 128;
            const TYPE: &'static FieldType = &FieldType::Nested {
                name: $name,
                bits: 128,
                parts: &[
                    PartType { name: "secs", bit: 0, ty: <$secs as Field>::TYPE },
                    PartType { name: "nanos", bit: 64, ty: <u32 as Field>::TYPE },
                ],
            };
            type Buffer = [u64; 2];

            #[inline]
            fn word(&self, index: usize) -> u64 {
                let $value = *self;
                let (secs, nanos): ($secs, u32) = $to;
                if index == 0 { secs as u64 } else { nanos.into() }
            }

            #[inline]
            fn from_buffer(buffer: &[u64; 2]) -> $ty {
                let $back = (buffer[0] as $secs, buffer[1] as u32);
                $from
            }
        }

        impl Key for $ty {
            type Words = [u64; 2];
            const WIDTHS: &'static [u32] = &[64, NANO_BITS];
            const KEY_TYPE: &'static FieldType = &FieldType::Struct {
                name: $name,
                bits: 0,
                parts: &[("secs", <$secs as Key>::KEY_TYPE), ("nanos", <u32 as Key>::KEY_TYPE)],
            };

            #[inline]
            fn words(&self) -> [u64; 2] {
                let $value = *self;
                let (secs, nanos): ($secs, u32) = $to;
                [Key::words(&secs)[0], nanos.into()]
            }

            #[inline]
            fn from_words(words: &[u64]) -> $ty {
                let $back = (<$secs as Key>::from_words(words), words[1] as u32);
                $from
            }

            fn show(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
                show_value::<$ty>(words, f)
            }
        }

        own_key!($ty);
    };
}

/// Writes the value of a key as `Debug` does.
pub(super) fn show_value<K: Key + Debug>(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
    if words.len() < K::WORDS {
        f.write_str(super::key_text::MORE)
    } else {
        K::from_words(words).fmt(f)
    }
}

// They use the macros above.
#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;
#[cfg(feature = "uuid")]
mod uuid;

kept_as_seconds! {
    /// Two words: the seconds, and the nanoseconds behind them. All durations are kept exactly.
    Duration as u64, "Duration",
    |value| (value.as_secs(), value.subsec_nanos()),
    |kept| Duration::new(kept.0, kept.1)
}

/// Returns a time as seconds since 1970, rounded down, and the nanoseconds behind them.
fn seconds_of(time: SystemTime) -> (i64, u32) {
    let limit = "a `SystemTime` in a row lies within 2^63 seconds of 1970";
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (i64::try_from(since.as_secs()).expect(limit), since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let (secs, nanos) = (before.as_secs(), before.subsec_nanos());
            let borrowed = u64::from(nanos > 0);
            let down = 0i64.checked_sub_unsigned(secs + borrowed).expect(limit);
            (down, if nanos > 0 { NANOS - nanos } else { 0 })
        }
    }
}

/// Returns the time with these seconds since 1970 and nanoseconds behind them.
fn time_of((secs, nanos): (i64, u32)) -> SystemTime {
    let whole = Duration::from_secs(secs.unsigned_abs());
    let time = if secs < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    let time = time.and_then(|time| time.checked_add(Duration::from_nanos(nanos.into())));
    time.expect("a time that was kept by a system whose times have a wider range")
}

kept_as_seconds! {
    /// Two words: the seconds since 1970-01-01 00:00 UTC, which may be negative, and the
    /// nanoseconds behind them. That is the whole range and precision of the type on Unix (2^63
    /// seconds before and after 1970). Windows has times from 1601 on, in steps of 100 ns: a row
    /// with an earlier one, written elsewhere, panics when it is read there.
    SystemTime as i64, "SystemTime", |value| seconds_of(value), |kept| time_of(kept)
}

kept_as! {
    /// The address as a number; the first of its four bytes is the most significant.
    Ipv4Addr as u32, "Ipv4Addr", "0", |value| value.to_bits(), |kept| Ipv4Addr::from_bits(kept)
}

kept_as! {
    /// The address as a number; the first of its sixteen bytes is the most significant.
    Ipv6Addr as u128, "Ipv6Addr", "0", |value| value.to_bits(), |kept| Ipv6Addr::from_bits(kept)
}

macro_rules! float_keys {
    ($($float:ident as $int:ident;)*) => {$(
        own_key!($float);

        /// The order is that of `total_cmp`: negative zero comes before zero and differs from it,
        /// a NaN without sign comes after all numbers, one with a sign before them. A key is found
        /// by the same bits only.
        impl Key for $float {
            type Words = [u64; 1];
            const WIDTHS: &'static [u32] = &[$int::BITS];
            const KEY_TYPE: &'static FieldType = <$float as Field>::TYPE;

            #[inline]
            fn words(&self) -> [u64; 1] {
                const SIGN: $int = 1 << ($int::BITS - 1);
                let bits = self.to_bits();
                // The larger a negative number is, the smaller are its bits without the sign.
                [u64::from(if bits & SIGN == 0 { bits | SIGN } else { !bits })]
            }

            #[inline]
            fn from_words(words: &[u64]) -> $float {
                const SIGN: $int = 1 << ($int::BITS - 1);
                let bits = words[0] as $int;
                $float::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN })
            }

            fn show(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
                show_value::<$float>(words, f)
            }
        }
    )*};
}

float_keys! {
    f32 as u32;
    f64 as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Buffer, Shown};
    use std::cmp::Ordering;

    /// Checks that words, as columns and as keys, become the values again and keep their order.
    pub(super) fn keeps<T: Field + Key + Debug>(values: &[T], order: impl Fn(&T, &T) -> Ordering) {
        let is_same = |one: &T, other: &T| order(one, other) == Ordering::Equal;
        for one in values {
            let mut buffer = <T as Field>::Buffer::ZERO;
            for index in 0..<T as Field>::WORDS {
                buffer.set(index, one.word(index));
            }
            assert!(is_same(&T::from_buffer(&buffer), one), "{one:?}");
            let words = one.words();
            assert!(is_same(&T::from_words(words.as_ref()), one), "{one:?}");
            assert_eq!(Shown::of::<T>(&words).to_string(), format!("{one:?}"));
            for (word, bits) in words.as_ref().iter().zip(T::WIDTHS) {
                assert_eq!(word & !(u64::MAX >> (64 - bits)), 0, "{one:?}");
            }
            for other in values {
                let by_words = one.words().as_ref().cmp(other.words().as_ref());
                assert_eq!(by_words, order(one, other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn floats_as_keys_have_their_total_order() {
        let negative = [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, -5e-324, -0.0];
        let all: Vec<f64> = negative.iter().flat_map(|&number| [number, -number]).collect();
        let all = [all, vec![f64::NAN, -f64::NAN]].concat();
        keeps(&all, f64::total_cmp);
        let singles: Vec<f32> = all.iter().map(|&number| number as f32).collect();
        keeps(&singles, f32::total_cmp);
    }

    #[test]
    fn times_and_addresses_are_kept_exactly_and_in_order() {
        keeps(&[Duration::ZERO, Duration::new(0, 1), Duration::new(1, 0), Duration::MAX], Ord::cmp);
        let (nano, second) = (Duration::from_nanos(1), Duration::from_secs(1));
        let far = Duration::from_secs(1 << 40);
        keeps(
            &[UNIX_EPOCH - far - nano, UNIX_EPOCH - second, UNIX_EPOCH - nano, UNIX_EPOCH]
                .into_iter()
                .chain([UNIX_EPOCH + nano, UNIX_EPOCH + second, UNIX_EPOCH + far + nano])
                .collect::<Vec<_>>(),
            Ord::cmp,
        );
        keeps(&["0.0.0.1", "127.0.0.1", "255.255.255.255"].map(address::<Ipv4Addr>), Ord::cmp);
        keeps(&["::", "::1", "2001:db8::7", "ffff::"].map(address::<Ipv6Addr>), Ord::cmp);
    }

    fn address<A: std::str::FromStr>(text: &str) -> A {
        text.parse().ok().expect("an address")
    }

    #[test]
    fn earliest_times_are_rounded_down() {
        let nano = Duration::from_nanos(1);
        assert_eq!(seconds_of(UNIX_EPOCH - nano), (-1, NANOS - 1));
        assert_eq!(seconds_of(UNIX_EPOCH - Duration::from_secs(1)), (-1, 0));
        assert_eq!(time_of((-1, NANOS - 1)), UNIX_EPOCH - nano);
    }
}
