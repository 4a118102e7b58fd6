//! Structs whose values have a text of their own: times, addresses, identifiers and decimal
//! numbers, recognised by their names and parts.

use super::types::{StructSchema, TypeSchema};
use super::value::Value;
use std::net::{Ipv4Addr, Ipv6Addr};

const NANOS: u64 = 1_000_000_000;
const DAY: i128 = 86_400;
/// The largest number of digits of a year.
const YEAR_DIGITS_MAX: usize = 13;

/// The texts of a struct's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Ipv4,
    Ipv6,
    Uuid,
    Date,
    Time,
    /// Seconds since 1970, and nanoseconds; the text has this end.
    Moment(&'static str),
    Duration,
    SignedDuration,
    Decimal,
}

/// Returns whether values of a struct have a text of their own.
pub(crate) fn is_known(of: &StructSchema) -> bool {
    known(&of.name).is_some_and(|known| {
        let parts = of.parts.iter().map(|part| (&part.name[..], &part.ty));
        known.parts().iter().map(|(name, ty)| (*name, ty)).eq(parts)
    })
}

/// Returns the text of a value of a type, if it has one of its own.
#[cfg(feature = "text")]
pub(crate) fn known_text(ty: &TypeSchema, value: &Value) -> Option<String> {
    match (ty, value) {
        (TypeSchema::Struct(of), Value::Parts(name, parts)) if is_known(of) => text_of(name, parts),
        _ => None,
    }
}

fn known(name: &str) -> Option<Known> {
    Some(match name {
        "Ipv4Addr" => Known::Ipv4,
        "Ipv6Addr" => Known::Ipv6,
        "Uuid" => Known::Uuid,
        "Date" | "NaiveDate" => Known::Date,
        "Time" | "NaiveTime" => Known::Time,
        "SystemTime" | "Timestamp" => Known::Moment("Z"),
        "DateTime" | "NaiveDateTime" => Known::Moment(""),
        "Duration" => Known::Duration,
        "SignedDuration" | "TimeDelta" => Known::SignedDuration,
        "Decimal" => Known::Decimal,
        _ => return None,
    })
}

/// Returns the text of a struct's value, if it has one of its own.
pub(super) fn text_of(name: &str, parts: &[(String, Value)]) -> Option<String> {
    let number = |place: usize| match parts.get(place)?.1 {
        Value::Unsigned(number) => i128::try_from(number).ok(),
        Value::Signed(number) => Some(number),
        _ => None,
    };
    match known(name)? {
        Known::Ipv4 => Some(Ipv4Addr::from_bits(number(0)?.try_into().ok()?).to_string()),
        Known::Ipv6 => match (parts, &parts.first()?.1) {
            ([_], Value::Unsigned(bits)) => Some(Ipv6Addr::from_bits(*bits).to_string()),
            _ => None,
        },
        Known::Uuid => match &parts.first()?.1 {
            Value::Bytes(bytes) if bytes.len() == 16 => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
                Some(groups.join("-"))
            }
            _ => None,
        },
        Known::Date => Some(date_text(number(0)?)),
        Known::Time => {
            let nanos = u64::try_from(number(0)?).ok()?;
            let secs = i128::from(nanos / NANOS);
            (secs < DAY).then(|| format!("{}{}", time_text(secs), fraction(nanos % NANOS)))
        }
        Known::Moment(end) => {
            let (secs, nanos) = (number(0)?, nanos_of(number(1)?)?);
            let (date, time) = (date_text(secs.div_euclid(DAY)), time_text(secs.rem_euclid(DAY)));
            Some(format!("{date}T{time}{}{end}", fraction(nanos)))
        }
        Known::Duration | Known::SignedDuration => {
            let nanos = number(0)? * i128::from(NANOS) + i128::from(nanos_of(number(1)?)?);
            let sign = if nanos < 0 { "-" } else { "" };
            let nanos = nanos.unsigned_abs();
            let (secs, nanos) = (nanos / u128::from(NANOS), nanos % u128::from(NANOS));
            Some(format!("{sign}{secs}{}s", fraction(nanos as u64)))
        }
        Known::Decimal => {
            let digits = (number(1)? << 64 | number(0)?).to_string();
            let (scale, negative) = (usize::try_from(number(2)?).ok()?, &parts.get(3)?.1);
            let sign = if *negative == Value::Bool(true) { "-" } else { "" };
            let digits = format!("{digits:0>least$}", least = scale + 1);
            let (whole, behind) = digits.split_at(digits.len() - scale);
            let point = if scale > 0 { "." } else { "" };
            (scale <= 28).then(|| format!("{sign}{whole}{point}{behind}"))
        }
    }
}

fn nanos_of(number: i128) -> Option<u64> {
    u64::try_from(number).ok().filter(|nanos| *nanos < NANOS)
}

/// Returns a number of nanoseconds below a second as digits behind a point, without zeros at the
/// end.
fn fraction(nanos: u64) -> String {
    match nanos {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    }
}

fn time_text(secs: i128) -> String {
    format!("{:02}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60)
}

/// The days of 400 years, from 0000-03-01 to 1970-01-01, and of the years of a century.
const DAYS_OF_400_YEARS: i128 = 146_097;
const DAYS_BEFORE_1970: i128 = 719_468;

/// Returns a number of days since 1970-01-01 as a date of the Gregorian calendar, years as of ISO
/// 8601. Years begin in March here, so that a leap day is the last day of its year.
fn date_text(days: i128) -> String {
    let days = days + DAYS_BEFORE_1970;
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year + i128::from(month <= 2);
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

/// Returns the days since 1970-01-01 of a date.
fn days_of_text(text: &str) -> Option<i128> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (year, rest) = rest.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let is_long = (4..=YEAR_DIGITS_MAX).contains(&year.len());
    let year = sign * digits(year, year.len()).filter(|_| is_long)?;
    let (month, day) = (digits(month, 2)?, digits(day, 2)?);
    let of_year = year - i128::from(month <= 2);
    let (era, in_era) = (of_year.div_euclid(400), of_year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let in_year = (153 * from_march + 2) / 5 + day - 1;
    let in_era = in_era * 365 + in_era / 4 - in_era / 100 + in_year;
    let days = era * DAYS_OF_400_YEARS + in_era - DAYS_BEFORE_1970;
    // A month has no day 31 that is the first of the next one.
    (date_text(days) == text).then_some(days)
}

/// Returns a number that is given by exactly this many digits.
fn digits(text: &str, count: usize) -> Option<i128> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Returns the seconds and nanoseconds of a time of day.
fn time_of_text(text: &str) -> Option<(i128, u64)> {
    let (time, nanos) = split_fraction(text)?;
    let mut parts = time.split(':').map(|part| digits(part, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let is_time = parts.next().is_none() && hour < 24 && minute < 60 && second < 60;
    is_time.then_some((hour * 3600 + minute * 60 + second, nanos))
}

/// Splits the digits behind a point from a text, as nanoseconds.
fn split_fraction(text: &str) -> Option<(&str, u64)> {
    let Some((whole, behind)) = text.split_once('.') else { return Some((text, 0)) };
    let is_short = (1..=9).contains(&behind.len());
    let nanos = digits(&format!("{behind:0<9}"), 9).filter(|_| is_short)?;
    Some((whole, nanos as u64))
}

/// Returns the value of a known struct that a text is.
pub(super) fn parse(of: &StructSchema, text: &str) -> Result<Value, String> {
    let known = known(&of.name).ok_or_else(|| "a value with parts".to_owned())?;
    let found = known.values_of(text).and_then(|values| {
        let parts = of.parts.iter().zip(values).map(|(part, value)| {
            let value = match (&part.ty, value) {
                (TypeSchema::Unsigned(64), Value::Signed(number)) => {
                    Value::Unsigned(u64::try_from(number).ok()?.into())
                }
                (TypeSchema::Signed(32), Value::Signed(number)) => {
                    Value::Signed(i32::try_from(number).ok()?.into())
                }
                (TypeSchema::Signed(64), Value::Signed(number)) => {
                    Value::Signed(i64::try_from(number).ok()?.into())
                }
                (_, value) => value,
            };
            Some((part.name.clone(), value))
        });
        Some(Value::Parts(of.name.clone(), parts.collect::<Option<_>>()?))
    });
    found.ok_or_else(|| known.can_be().to_owned())
}

impl Known {
    /// Returns the names and types of the parts.
    fn parts(self) -> Vec<(&'static str, TypeSchema)> {
        match self {
            Known::Ipv4 => vec![("0", TypeSchema::Unsigned(32))],
            Known::Ipv6 => vec![("0", TypeSchema::Unsigned(128))],
            Known::Uuid => vec![("0", TypeSchema::Bytes(16))],
            Known::Date => vec![("0", TypeSchema::Signed(32))],
            Known::Time => vec![("0", TypeSchema::Unsigned(64))],
            Known::Moment(_) | Known::SignedDuration => {
                vec![("secs", TypeSchema::Signed(64)), ("nanos", TypeSchema::Unsigned(32))]
            }
            Known::Duration => {
                vec![("secs", TypeSchema::Unsigned(64)), ("nanos", TypeSchema::Unsigned(32))]
            }
            Known::Decimal => vec![
                ("low", TypeSchema::Unsigned(64)),
                ("high", TypeSchema::Unsigned(32)),
                ("scale", TypeSchema::Unsigned(8)),
                ("negative", TypeSchema::Bool),
            ],
        }
    }

    /// Returns the values of the parts of a text.
    fn values_of(self, text: &str) -> Option<Vec<Value>> {
        Some(match self {
            Known::Ipv4 => {
                vec![Value::Unsigned(text.parse::<Ipv4Addr>().ok()?.to_bits().into())]
            }
            Known::Ipv6 => vec![Value::Unsigned(text.parse::<Ipv6Addr>().ok()?.to_bits())],
            Known::Uuid => {
                let places = [8, 13, 18, 23];
                let is_uuid = text.len() == 36
                    && text.bytes().enumerate().all(|(place, byte)| {
                        (byte == b'-') == places.contains(&place)
                            && (byte == b'-' || byte.is_ascii_hexdigit())
                    });
                let number = u128::from_str_radix(&text.replace('-', ""), 16).ok();
                vec![Value::Bytes(number.filter(|_| is_uuid)?.to_be_bytes().to_vec())]
            }
            Known::Date => vec![Value::Signed(days_of_text(text)?)],
            Known::Time => {
                let (secs, nanos) = time_of_text(text)?;
                vec![Value::Unsigned(secs as u128 * u128::from(NANOS) + u128::from(nanos))]
            }
            Known::Moment(_) => {
                let (date, time) = text.strip_suffix('Z').unwrap_or(text).split_once('T')?;
                let (secs, nanos) = time_of_text(time)?;
                let secs = days_of_text(date)? * DAY + secs;
                vec![Value::Signed(secs), Value::Unsigned(nanos.into())]
            }
            Known::Duration | Known::SignedDuration => {
                let (sign, number) = match text.strip_suffix('s')?.strip_prefix('-') {
                    Some(number) => (-1, number),
                    None => (1, text.strip_suffix('s')?),
                };
                let (secs, nanos) = split_fraction(number)?;
                let secs = digits(secs, secs.len().clamp(1, 20))?;
                let nanos = sign * (secs * i128::from(NANOS) + i128::from(nanos));
                let (secs, nanos) =
                    (nanos.div_euclid(NANOS.into()), nanos.rem_euclid(NANOS.into()));
                vec![Value::Signed(secs), Value::Unsigned(nanos as u128)]
            }
            Known::Decimal => {
                let number = text.strip_prefix('-');
                let (whole, behind) = match number.unwrap_or(text).split_once('.') {
                    Some((whole, behind)) if !behind.is_empty() => (whole, behind),
                    None => (number.unwrap_or(text), ""),
                    _ => return None,
                };
                let all = format!("{whole}{behind}");
                let is_short = !whole.is_empty() && behind.len() <= 28 && all.len() <= 38;
                let number_of = digits(&all, all.len()).filter(|number| number >> 96 == 0);
                let value = number_of.filter(|_| is_short)? as u128;
                vec![
                    Value::Unsigned(value & u128::from(u64::MAX)),
                    Value::Unsigned(value >> 64),
                    Value::Unsigned(behind.len() as u128),
                    Value::Bool(number.is_some()),
                ]
            }
        })
    }

    /// Returns what a text can be, as the end of a sentence.
    fn can_be(self) -> &'static str {
        match self {
            Known::Ipv4 => "an address, such as 127.0.0.1",
            Known::Ipv6 => "an address, such as ::1",
            Known::Uuid => "32 hexadecimal digits, with `-` behind 8, 12, 16 and 20 of them",
            Known::Date => "a date, such as 1759-01-31",
            Known::Time => "a time of day, such as 23:59:59.5",
            Known::Moment(_) => "a date and a time, such as 1759-01-31T23:59:59.5Z",
            Known::Duration | Known::SignedDuration => "a number of seconds, such as 1.5s",
            Known::Decimal => "a decimal number of at most 96 bits, such as -12.50",
        }
    }
}
