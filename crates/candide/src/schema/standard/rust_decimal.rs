//! The types of the crate `rust_decimal`.

#![forbid(unsafe_code)]

use super::show_value;
use crate::schema::field_type::{FieldType, PartType};
use crate::schema::{AsKey, Field, Key};
use rust_decimal::Decimal;
use std::fmt::{self, Formatter};

/// The largest number of digits behind the point.
const SCALE_MAX: u32 = 28;
/// A number of 192 bits, the highest word first.
type Wide = [u64; 3];
/// The words of zero as a key: negative numbers are less.
const ZERO: Wide = [1 << 63, 0, 0];

/// Two words: the digits as a number of 96 bits, the number of digits behind the point, and the
/// sign. A column keeps the digits as they are: `1.50` stays `1.50`.
impl Field for Decimal {
    const BITS: u32 = 128;
    const TYPE: &'static FieldType = &FieldType::Nested {
        name: "Decimal",
        bits: 128,
        parts: &[
            PartType { name: "low", bit: 0, ty: <u64 as Field>::TYPE },
            PartType { name: "high", bit: 64, ty: <u32 as Field>::TYPE },
            PartType { name: "scale", bit: 96, ty: <u8 as Field>::TYPE },
            PartType { name: "negative", bit: 104, ty: <bool as Field>::TYPE },
        ],
    };
    type Buffer = [u64; 2];

    fn word(&self, index: usize) -> u64 {
        let digits = self.mantissa().unsigned_abs();
        if index == 0 {
            return digits as u64;
        }
        let (scale, negative) = (u64::from(self.scale()), u64::from(self.is_sign_negative()));
        (digits >> 64) as u64 | scale << 32 | negative << 40
    }

    fn from_buffer(&[low, rest]: &[u64; 2]) -> Decimal {
        let (middle, high) = ((low >> 32) as u32, rest as u32);
        let (scale, negative) = ((rest >> 32) as u32 & 0xff, rest >> 40 & 1 != 0);
        Decimal::from_parts(low as u32, middle, high, negative, scale)
    }
}

own_key!(Decimal);

/// Three words: the number of 10^-28ths. So keys have the order of the numbers, and one key is one
/// number: `1.5` and `1.50` are the same key, which is read as `1.5`, without zeros at the end.
/// Zero has no sign.
impl Key for Decimal {
    type Words = [u64; 3];
    const WIDTHS: &'static [u32] = &[64, 64, 64];

    fn words(&self) -> [u64; 3] {
        let digits = self.mantissa().unsigned_abs();
        let mut wide = [0, (digits >> 64) as u64, digits as u64];
        (self.scale()..SCALE_MAX).for_each(|_| times_ten(&mut wide));
        if self.is_sign_negative() { minus(ZERO, wide) } else { plus(ZERO, wide) }
    }

    fn from_words(words: &[u64]) -> Decimal {
        let words = [words[0], words[1], words[2]];
        let negative = words < ZERO;
        let mut wide = if negative { minus(ZERO, words) } else { minus(words, ZERO) };
        let mut scale = SCALE_MAX;
        while scale > 0 {
            let (tenth, rest) = tenth(wide);
            if rest > 0 {
                break;
            }
            (wide, scale) = (tenth, scale - 1);
        }
        let [high, middle, low] = wide;
        let parts = [low as u32, (low >> 32) as u32, middle as u32];
        assert!(high == 0 && middle >> 32 == 0, "made of a number of 96 bits, read back whole");
        Decimal::from_parts(parts[0], parts[1], parts[2], negative, scale)
    }

    fn show(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
        show_value::<Decimal>(words, f)
    }
}

/// Multiplies a number by ten. It is less than 2^192 afterwards, as all decimals are.
fn times_ten(wide: &mut Wide) {
    let mut carry = 0;
    for word in wide.iter_mut().rev() {
        let product = u128::from(*word) * 10 + carry;
        (*word, carry) = (product as u64, product >> 64);
    }
}

/// Returns the number divided by ten, and the rest.
fn tenth(wide: Wide) -> (Wide, u64) {
    let mut rest = 0;
    let tenth = wide.map(|word| {
        let part = u128::from(rest) << 64 | u128::from(word);
        rest = (part % 10) as u64;
        (part / 10) as u64
    });
    (tenth, rest)
}

fn plus(mut one: Wide, other: Wide) -> Wide {
    let mut carry = false;
    for index in (0..3).rev() {
        let (sum, over) = one[index].overflowing_add(other[index]);
        let (sum, again) = sum.overflowing_add(carry.into());
        (one[index], carry) = (sum, over || again);
    }
    one
}

fn minus(mut one: Wide, other: Wide) -> Wide {
    let mut borrow = false;
    for index in (0..3).rev() {
        let (difference, under) = one[index].overflowing_sub(other[index]);
        let (difference, again) = difference.overflowing_sub(borrow.into());
        (one[index], borrow) = (difference, under || again);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::super::tests::keeps;
    use super::*;

    #[test]
    fn decimals_are_kept_exactly_and_keys_in_normal_form() {
        let texts = ["0", "1", "1.5", "0.1", "10", "1.0000000000000000000000000001", "123456.789"];
        let mut all = vec![Decimal::MIN, Decimal::MAX];
        for text in texts {
            let number = text.parse::<Decimal>().unwrap();
            all.extend([number, Decimal::ZERO - number]);
        }
        let least = Decimal::from_i128_with_scale(1, SCALE_MAX);
        all.extend([least, -least, Decimal::from_i128_with_scale((1 << 96) - 1, SCALE_MAX)]);
        keeps(&all, Ord::cmp);
        let [one, other] = ["1.5", "1.50"].map(|text| text.parse::<Decimal>().unwrap());
        assert_eq!(Key::words(&one), Key::words(&other));
        assert_eq!(Decimal::from_words(&Key::words(&other)).to_string(), "1.5");
        assert_eq!(Decimal::from_buffer(&[other.word(0), other.word(1)]).to_string(), "1.50");
        let zero = -Decimal::ZERO;
        assert_eq!(Key::words(&zero), ZERO);
    }
}
