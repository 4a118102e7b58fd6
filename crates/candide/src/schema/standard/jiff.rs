//! The types of the crate `jiff`.

#![forbid(unsafe_code)]

use super::{NANO_BITS, NANOS, show_value};
use crate::schema::field_type::{FieldType, PartType};
use crate::schema::{AsKey, Field, Key};
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, ToSpan};
use std::fmt::{self, Formatter};

/// The seconds of a day.
const DAY: i64 = 86_400;
const EPOCH: Date = Date::constant(1970, 1, 1);
const READ_BACK: &str = "made of a value of the type, read back whole";

/// Returns seconds, and nanoseconds of the same sign, with nanoseconds that are not negative.
fn rounded_down(secs: i64, nanos: i32) -> (i64, u32) {
    if nanos < 0 { (secs - 1, (nanos + NANOS as i32) as u32) } else { (secs, nanos as u32) }
}

fn days_of(date: Date) -> i32 {
    (date - EPOCH).get_days()
}

fn date_of(days: i32) -> Date {
    EPOCH.checked_add(days.days()).expect(READ_BACK)
}

fn nanos_of(time: Time) -> u64 {
    let [hour, minute, second] =
        [time.hour(), time.minute(), time.second()].map(|part| part as u64);
    (hour * 3600 + minute * 60 + second) * u64::from(NANOS) + time.subsec_nanosecond() as u64
}

fn time_of(nanos: u64) -> Time {
    let (secs, nanos) = (nanos / u64::from(NANOS), nanos % u64::from(NANOS));
    let [hour, minute, second] = [secs / 3600, secs / 60 % 60, secs % 60].map(|part| part as i8);
    Time::new(hour, minute, second, nanos as i32).expect(READ_BACK)
}

kept_as_seconds! {
    /// Two words: the seconds since 1970-01-01 00:00 UTC, rounded down, and the nanoseconds behind
    /// them.
    Timestamp as i64, "Timestamp",
    |value| rounded_down(value.as_second(), value.subsec_nanosecond()),
    |kept| Timestamp::new(kept.0, kept.1 as i32).expect(READ_BACK)
}

kept_as_seconds! {
    /// Two words: the seconds, rounded down, and the nanoseconds behind them. The least duration of
    /// all, -2^63 s, has no nanoseconds behind it in a row.
    SignedDuration as i64, "SignedDuration",
    |value| {
        let (secs, nanos) = (value.as_secs(), value.subsec_nanos());
        if secs == i64::MIN { (secs, 0) } else { rounded_down(secs, nanos) }
    },
    |kept| SignedDuration::new(kept.0, 0) + SignedDuration::from_nanos(kept.1.into())
}

kept_as! {
    /// 32 bits: the days since 1970-01-01.
    Date as i32, "Date", "0", |value| days_of(value), |kept| date_of(kept)
}

kept_as! {
    /// A word: the nanoseconds since midnight.
    Time as u64, "Time", "0", |value| nanos_of(value), |kept| time_of(kept)
}

kept_as_seconds! {
    /// Two words: the seconds from 1970-01-01 00:00 to this date and time by a clock without
    /// changes, rounded down, and the nanoseconds behind them.
    DateTime as i64, "DateTime",
    |value| {
        let nanos = nanos_of(value.time());
        let secs = (nanos / u64::from(NANOS)) as i64;
        (i64::from(days_of(value.date())) * DAY + secs, (nanos % u64::from(NANOS)) as u32)
    },
    |kept| {
        let nanos = kept.0.rem_euclid(DAY) as u64 * u64::from(NANOS) + u64::from(kept.1);
        date_of(kept.0.div_euclid(DAY) as i32).to_datetime(time_of(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::keeps;
    use super::*;

    #[test]
    fn times_are_kept_exactly_and_in_order() {
        let nanos = [i64::MIN, -1_000_000_001, -1, 0, 1, 999_999_999, i64::MAX];
        let timestamps = nanos.map(|nanos| Timestamp::from_nanosecond(nanos.into()).unwrap());
        keeps(&[&timestamps[..], &[Timestamp::MIN, Timestamp::MAX]].concat(), Ord::cmp);
        keeps(&nanos.map(SignedDuration::from_nanos), Ord::cmp);
        keeps(&[SignedDuration::MAX, SignedDuration::new(i64::MIN, 0)], Ord::cmp);
        let dates = [Date::MIN, Date::constant(1969, 12, 31), EPOCH, Date::MAX];
        keeps(&dates, Ord::cmp);
        let times = [Time::MIN, Time::constant(12, 30, 5, 7), Time::MAX];
        keeps(&times, Ord::cmp);
        let both = dates.iter().flat_map(|date| times.map(|time| date.to_datetime(time)));
        keeps(&both.collect::<Vec<_>>(), Ord::cmp);
    }
}
