//! The types of the crate `chrono`.

#![forbid(unsafe_code)]

use super::{NANO_BITS, show_value};
use crate::schema::field_type::{FieldType, PartType};
use crate::schema::{AsKey, Field, Key};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use std::fmt::{self, Formatter};

/// The number that `chrono` counts 1970-01-01 by.
const EPOCH: i32 = 719_163;
const READ_BACK: &str = "made of a value of the type, read back whole";

fn seconds_of(time: DateTime<Utc>) -> (i64, u32) {
    (time.timestamp(), time.timestamp_subsec_nanos())
}

fn time_of((secs, nanos): (i64, u32)) -> DateTime<Utc> {
    DateTime::from_timestamp(secs, nanos).expect(READ_BACK)
}

kept_as_seconds! {
    /// Two words: the seconds since 1970-01-01 00:00 UTC, rounded down, and the nanoseconds behind
    /// them; a leap second has more than 10^9.
    DateTime<Utc> as i64, "DateTime", |value| seconds_of(value), |kept| time_of(kept)
}

kept_as_seconds! {
    /// Two words: as [`DateTime<Utc>`](DateTime) with this date and time.
    NaiveDateTime as i64, "NaiveDateTime",
    |value| seconds_of(value.and_utc()), |kept| time_of(kept).naive_utc()
}

kept_as! {
    /// 32 bits: the days since 1970-01-01.
    NaiveDate as i32, "NaiveDate", "0",
    |value| value.num_days_from_ce() - EPOCH,
    |kept| NaiveDate::from_num_days_from_ce_opt(kept + EPOCH).expect(READ_BACK)
}

kept_as_seconds! {
    /// Two words: the seconds since midnight, and the nanoseconds behind them; a leap second has
    /// more than 10^9.
    NaiveTime as u64, "NaiveTime",
    |value| (value.num_seconds_from_midnight().into(), value.nanosecond()),
    |kept| NaiveTime::from_num_seconds_from_midnight_opt(kept.0 as u32, kept.1).expect(READ_BACK)
}

kept_as_seconds! {
    /// Two words: the seconds, rounded down, and the nanoseconds behind them.
    TimeDelta as i64, "TimeDelta",
    |value| {
        let (secs, nanos) = (value.num_seconds(), value.subsec_nanos());
        if nanos < 0 { (secs - 1, (nanos + super::NANOS as i32) as u32) } else { (secs, nanos as u32) }
    },
    |kept| TimeDelta::new(kept.0, kept.1).expect(READ_BACK)
}

#[cfg(test)]
mod tests {
    use super::super::tests::keeps;
    use super::*;

    #[test]
    fn times_are_kept_exactly_and_in_order() {
        let leap = DateTime::from_timestamp(59, 1_500_000_000).unwrap();
        let nanos = [i64::MIN, -1_000_000_001, -1, 0, 1, 999_999_999, i64::MAX];
        let times = nanos.map(DateTime::from_timestamp_nanos);
        let ends = [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC, leap];
        let all = [&times[..], &ends].concat();
        keeps(&all, Ord::cmp);
        keeps(&all.iter().map(|time| time.naive_utc()).collect::<Vec<_>>(), Ord::cmp);
        keeps(&all.iter().map(|time| time.date_naive()).collect::<Vec<_>>(), Ord::cmp);
        keeps(&all.iter().map(|time| time.time()).collect::<Vec<_>>(), Ord::cmp);
        keeps(&nanos.map(TimeDelta::nanoseconds), Ord::cmp);
        keeps(&[TimeDelta::MIN, TimeDelta::MAX], Ord::cmp);
    }
}
