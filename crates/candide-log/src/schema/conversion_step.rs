//! Converting the words of one value to those of a value of another type.

use super::difference::has_values_of;
use super::types::{EnumSchema, PartSchema, TypeSchema};

/// The bits of a word.
const WORD: u64 = 64;

/// The way in which a value of one type becomes a value of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The words stay as they are: these bits of a column, or these words of a key.
    Same { bits: u64, key_words: usize },
    /// A whole number becomes one of another size.
    Integer { from: Integer, to: Integer },
    /// A floating-point number of 32 bits becomes one of 64.
    Widened,
    /// A text becomes one of at most this many bytes.
    Text { from: u32, to: u32 },
    /// A variant becomes the one of the same name.
    Variant(Box<Variants>),
    /// An optional value becomes one of another type.
    Option { from: TypeSchema, to: TypeSchema, step: Box<Step> },
    /// A value becomes an optional one, which is there.
    Wrap { to: TypeSchema, step: Box<Step> },
    /// An optional value, which must be there, becomes the value.
    Unwrap { from: TypeSchema, step: Box<Step> },
    /// The elements of an array become those of another one.
    Array { from: u64, to: u64, count: u64, step: Box<Step> },
    /// The parts of a struct become those of the same names.
    Parts(Vec<Part>),
    /// A part that the old type does not have becomes `None`, which has this many words in a key.
    New { key_words: usize },
}

/// A type of whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Integer {
    bits: u8,
    signed: bool,
}

/// The variants of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variants {
    name: String,
    /// The bits of the tags of both types.
    bits: (u8, u8),
    variants: Vec<Variant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variant {
    name: String,
    tag: u64,
    /// The new tag and the parts. `None` if the variant is gone.
    to: Option<(u64, Vec<Part>)>,
}

/// A part of a struct or of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The lowest bit in the old type and in the new one; and, in a key, the first old word.
    bit: (u64, u64),
    word: usize,
    step: Step,
}

impl Integer {
    fn of(ty: &TypeSchema) -> Option<Integer> {
        match ty {
            TypeSchema::Unsigned(bits) => Some(Integer { bits: *bits, signed: false }),
            TypeSchema::Signed(bits) => Some(Integer { bits: *bits, signed: true }),
            _ => None,
        }
    }

    /// Returns the number whose lowest bits are those of `word`, as one of this type, if it fits.
    fn convert(self, word: u128, to: Integer) -> Result<u128, String> {
        let unused = 128 - u32::from(self.bits);
        let number = word << unused;
        // Above all numbers with a sign lie those without one that have 128 bits.
        let is_negative = self.signed && (number as i128) < 0;
        let number = match self.signed {
            true => (number as i128 >> unused) as u128,
            false => number >> unused,
        };
        let fits = match (is_negative, to.signed) {
            (true, false) => false,
            (true, true) => number as i128 >= i128::MIN >> (128 - u32::from(to.bits)),
            (false, signed) => {
                let bits = u32::from(to.bits) - u32::from(signed);
                number <= u128::MAX >> (128 - bits)
            }
        };
        if fits {
            return Ok(number & u128::MAX >> (128 - u32::from(to.bits)));
        }
        let letter = if to.signed { 'i' } else { 'u' };
        Err(match is_negative {
            true => format!("{} does not fit {letter}{}", number as i128, to.bits),
            false => format!("{number} does not fit {letter}{}", to.bits),
        })
    }
}

impl Step {
    /// Returns the step from one type to another.
    ///
    /// # Errors
    /// There is none; the text says why.
    pub(super) fn between(from: &TypeSchema, to: &TypeSchema) -> Result<Step, String> {
        if has_values_of(to, from) && from.bits() == to.bits() {
            let key_words = from.key_words().unwrap_or(0) as usize;
            return Ok(Step::Same { bits: from.bits().unwrap_or(0), key_words });
        }
        if let (Some(from), Some(to)) = (Integer::of(from), Integer::of(to)) {
            return Ok(Step::Integer { from, to });
        }
        let boxed = |from, to| Step::between(from, to).map(Box::new);
        Ok(match (from, to) {
            (TypeSchema::Float(32), TypeSchema::Float(64)) => Step::Widened,
            (TypeSchema::Text(from), TypeSchema::Text(to)) => Step::Text { from: *from, to: *to },
            (TypeSchema::Enum(from), TypeSchema::Enum(to)) => variants(from, to)?,
            (TypeSchema::Option(one), TypeSchema::Option(other)) => {
                Step::Option { from: from.clone(), to: to.clone(), step: boxed(one, other)? }
            }
            (TypeSchema::Array(one, count), TypeSchema::Array(other, same)) if count == same => {
                Step::Array {
                    from: one.bits().unwrap_or(WORD),
                    to: other.bits().unwrap_or(WORD),
                    count: (*count).into(),
                    step: boxed(one, other)?,
                }
            }
            (TypeSchema::Struct(from), TypeSchema::Struct(to)) => {
                Step::Parts(parts(&from.parts, &to.parts)?)
            }
            // A struct of one part lies as its part does.
            (TypeSchema::Struct(from), to) if only_part(&from.parts).is_some() => {
                Step::between(&from.parts[0].ty, to)?
            }
            (from, TypeSchema::Struct(to)) if only_part(&to.parts).is_some() => {
                Step::between(from, &to.parts[0].ty)?
            }
            (from, TypeSchema::Option(inner)) => {
                Step::Wrap { to: to.clone(), step: boxed(from, inner)? }
            }
            (TypeSchema::Option(inner), to) => {
                Step::Unwrap { from: from.clone(), step: boxed(inner, to)? }
            }
            _ => return Err(format!("`{from}` does not become `{to}`")),
        })
    }

    /// Converts a column. `from` and `to` are the words of the rows, with the bits where the
    /// columns begin; the new bits are zeros before.
    pub(super) fn convert(
        &self,
        (words, from): (&[u64], u64),
        (out, to): (&mut [u64], u64),
    ) -> Result<(), String> {
        match self {
            Step::Same { bits, .. } => copy(words, from, (out, to), *bits),
            Step::Integer { from: old, to: new } => {
                let number = old.convert(get_wide(words, from, old.bits), *new)?;
                put(out, to, new.bits.min(64).into(), number as u64);
                if new.bits > 64 {
                    put(out, to + WORD, 64, (number >> 64) as u64);
                }
            }
            Step::Widened => {
                let number = f32::from_bits(get(words, from, 32) as u32);
                put(out, to, 64, f64::from(number).to_bits());
            }
            Step::Text { from: old, to: new } => {
                let length = get(words, from + text_bits(*old), 64);
                check_length(length, *new)?;
                copy(words, from, (&mut *out, to), length.div_ceil(8) * WORD);
                put(out, to + text_bits(*new), 64, length);
            }
            Step::Variant(variants) => {
                let (old, new) = variants.bits;
                let (tag, parts) = variants.find(get(words, from, old.into()))?;
                put(out, to, new.into(), tag);
                convert_parts(parts, (words, from), (out, to))?;
            }
            Step::Option { from: old, to: new, step } => {
                if get(words, from, 1) != 0 {
                    put(out, to, 1, 1);
                    step.convert((words, from + behind(old)), (out, to + behind(new)))?;
                }
            }
            Step::Wrap { to: new, step } => {
                put(out, to, 1, 1);
                step.convert((words, from), (out, to + behind(new)))?;
            }
            Step::Unwrap { from: old, step } => match get(words, from, 1) {
                0 => return Err("None is no value any more".to_owned()),
                _ => step.convert((words, from + behind(old)), (out, to))?,
            },
            Step::Array { from: old, to: new, count, step } => {
                for number in 0..*count {
                    let (from, to) = (from + place(number, *old), to + place(number, *new));
                    step.convert((words, from), (&mut *out, to))?;
                }
            }
            Step::Parts(parts) => convert_parts(parts, (words, from), (out, to))?,
            Step::New { .. } => {}
        }
        Ok(())
    }

    /// Converts a part of a key. `words` begins with its words; those of the new part are appended.
    pub(super) fn convert_key(&self, words: &[u64], out: &mut Vec<u64>) -> Result<(), String> {
        let first = words.first().copied().unwrap_or(0);
        match self {
            Step::Same { key_words, .. } => {
                out.extend_from_slice(words.get(..*key_words).ok_or_else(cut_off)?);
            }
            Step::Integer { from: old, to: new } => {
                let low = if old.bits > 64 { words.get(1).copied().unwrap_or(0) } else { first };
                let high = if old.bits > 64 { first } else { 0 };
                let word = u128::from(high) << 64 | u128::from(low);
                let number = old.convert(word ^ sign(*old), *new)? ^ sign(*new);
                if new.bits > 64 {
                    out.push((number >> 64) as u64);
                }
                out.push(number as u64);
            }
            Step::Text { from: old, to: new } => {
                let length = words.get(text_words(*old)).copied().ok_or_else(cut_off)?;
                check_length(length, *new)?;
                let begin = out.len();
                let text = words.get(..length.div_ceil(8) as usize).ok_or_else(cut_off)?;
                out.extend_from_slice(text);
                out.resize(begin + text_words(*new), 0);
                out.push(length);
            }
            Step::Variant(variants) => out.push(variants.find(first)?.0),
            Step::Option { to: new, step, .. } => {
                out.push(first);
                match first {
                    0 => out.resize(out.len() + key_words(new) - 1, 0),
                    _ => step.convert_key(&words[1..], out)?,
                }
            }
            Step::Wrap { step, .. } => {
                out.push(1);
                step.convert_key(words, out)?;
            }
            Step::Unwrap { step, .. } => match first {
                0 => return Err("None is no value any more".to_owned()),
                _ => step.convert_key(&words[1..], out)?,
            },
            Step::Parts(parts) => {
                for Part { word, step, .. } in parts {
                    step.convert_key(words.get(*word..).ok_or_else(cut_off)?, out)?;
                }
            }
            Step::Widened => {
                let number = f32::from_bits(float_of_key(first, 1 << 31) as u32);
                out.push(key_of_float(f64::from(number).to_bits(), 1 << 63));
            }
            Step::New { key_words } => out.resize(out.len() + key_words, 0),
            Step::Array { .. } => return Err("no key has the type".to_owned()),
        }
        Ok(())
    }
}

impl Variants {
    /// Returns the new tag of a variant, and its parts.
    fn find(&self, tag: u64) -> Result<(u64, &[Part]), String> {
        let found = self.variants.iter().find(|variant| variant.tag == tag);
        let found = found.ok_or_else(|| format!("{} has no variant with tag {tag}", self.name))?;
        match &found.to {
            Some((tag, parts)) => Ok((*tag, parts)),
            None => Err(format!("variant `{}` of {} is gone", found.name, self.name)),
        }
    }
}

fn variants(from: &EnumSchema, to: &EnumSchema) -> Result<Step, String> {
    let mut variants = Vec::new();
    for variant in &from.variants {
        let same = to.variants.iter().find(|other| other.name == variant.name);
        let parts_of = |same| parts(&variant.parts, same);
        let to = match same {
            Some(same) => Some((same.tag, parts_of(&same.parts)?)),
            None => None,
        };
        variants.push(Variant { name: variant.name.clone(), tag: variant.tag, to });
    }
    let bits = (from.tag_bits, to.tag_bits);
    Ok(Step::Variant(Box::new(Variants { name: from.name.clone(), bits, variants })))
}

fn parts(from: &[PartSchema], to: &[PartSchema]) -> Result<Vec<Part>, String> {
    let part = |part: &PartSchema| {
        let PartSchema { name, bit, ty } = part;
        let Some(place) = from.iter().position(|other| other.name == *name) else {
            return match ty {
                TypeSchema::Option(_) => {
                    let step = Step::New { key_words: key_words(ty) };
                    Ok(Part { bit: (0, (*bit).into()), word: 0, step })
                }
                _ => Err(format!("part `{name}: {ty}` is new, and is no option")),
            };
        };
        let old = &from[place];
        let step = Step::between(&old.ty, ty).map_err(|what| format!("part `{name}`: {what}"))?;
        let before = from[..place].iter().map(|part| key_words(&part.ty));
        Ok(Part { bit: (old.bit.into(), (*bit).into()), word: before.sum(), step })
    };
    to.iter().map(part).collect()
}

fn convert_parts(
    parts: &[Part],
    (words, from): (&[u64], u64),
    (out, to): (&mut [u64], u64),
) -> Result<(), String> {
    parts.iter().try_for_each(|Part { bit: (old, new), step, .. }| {
        step.convert((words, from + old), (&mut *out, to + new))
    })
}

/// Returns the part of a struct that has one, which lies as the struct does.
fn only_part(parts: &[PartSchema]) -> Option<&PartSchema> {
    match parts {
        [part] if part.bit == 0 => Some(part),
        _ => None,
    }
}

fn cut_off() -> String {
    "there are not enough words".to_owned()
}

/// Returns the words of a type in a key.
fn key_words(ty: &TypeSchema) -> usize {
    ty.key_words().unwrap_or(0) as usize
}

/// Returns the bit of a number with a sign by which keys are in order.
fn sign(ty: Integer) -> u128 {
    if ty.signed { 1 << (ty.bits - 1) } else { 0 }
}

/// Returns the bits of a floating-point number from those of a key, which are in order. `sign` is
/// the highest of the bits.
fn float_of_key(key: u64, sign: u64) -> u64 {
    if key & sign == 0 { !key & (sign | (sign - 1)) } else { key & !sign }
}

/// Returns the bits of a key from those of a floating-point number.
fn key_of_float(bits: u64, sign: u64) -> u64 {
    if bits & sign == 0 { bits | sign } else { !bits & (sign | (sign - 1)) }
}

fn text_words(bytes: u32) -> usize {
    (bytes as usize).div_ceil(8)
}

/// Returns the bits of a text of this size before its length.
pub(super) fn text_bits(bytes: u32) -> u64 {
    text_words(bytes) as u64 * WORD
}

pub(super) fn check_length(length: u64, most: u32) -> Result<(), String> {
    if length <= most.into() {
        Ok(())
    } else {
        Err(format!("a text of {length} bytes does not fit Text<{most}>"))
    }
}

/// Returns the bits of an optional value before the value.
fn behind(option: &TypeSchema) -> u64 {
    match option.bits() {
        Some(..=WORD) => 1,
        _ => WORD,
    }
}

/// Returns the bit at which an element of so many bits begins in an array.
fn place(element: u64, bits: u64) -> u64 {
    match bits {
        1..WORD => element / (WORD / bits) * WORD + element % (WORD / bits) * bits,
        bits => element * bits.div_ceil(WORD) * WORD,
    }
}

/// Returns `bits` bits, at most 64, from `bit` on; zeros if there are no such words.
pub(super) fn get(words: &[u64], bit: u64, bits: u64) -> u64 {
    let word = words.get((bit / WORD) as usize).copied().unwrap_or(0);
    word >> (bit % WORD) & (u64::MAX >> (WORD - bits))
}

/// Returns a number of `bits` bits, at most 128, whose low word is the first one.
fn get_wide(words: &[u64], bit: u64, bits: u8) -> u128 {
    let high = if bits > 64 { get(words, bit + WORD, 64) } else { 0 };
    u128::from(high) << 64 | u128::from(get(words, bit, u64::from(bits).min(WORD)))
}

/// Stores `bits` bits, at most 64, where there are zeros.
pub(super) fn put(words: &mut [u64], bit: u64, bits: u64, value: u64) {
    if let Some(word) = words.get_mut((bit / WORD) as usize) {
        *word |= (value & u64::MAX >> (WORD - bits)) << (bit % WORD);
    }
}

pub(super) fn copy(words: &[u64], from: u64, (out, to): (&mut [u64], u64), bits: u64) {
    match bits {
        0 => {}
        1..WORD => put(out, to, bits, get(words, from, bits)),
        bits => {
            let (from, to) = ((from / WORD) as usize, (to / WORD) as usize);
            let count = bits.div_ceil(WORD) as usize;
            let from = words.get(from..).unwrap_or_default();
            for (to, word) in out.get_mut(to..).unwrap_or_default().iter_mut().zip(from).take(count)
            {
                *to = *word;
            }
        }
    }
}
