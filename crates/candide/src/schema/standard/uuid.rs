//! The types of the crate `uuid`.

#![forbid(unsafe_code)]

use super::show_value;
use crate::schema::field_type::{FieldType, PartType};
use crate::schema::{AsKey, Bytes, Field, Key};
use std::fmt::{self, Formatter};
use uuid::Uuid;

kept_as! {
    /// Two words: the sixteen bytes. Keys have their order, which for versions 6 and 7 is that of
    /// time.
    Uuid as Bytes<16>, "Uuid", "0",
    |value| Bytes::new(value.into_bytes()), |kept| Uuid::from_bytes(*kept.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::tests::keeps;
    use super::*;

    #[test]
    fn identifiers_are_kept_exactly_and_in_order() {
        let all = [0, 1, u128::from(u64::MAX) + 1, 1 << 127, u128::MAX].map(Uuid::from_u128);
        keeps(&all, Ord::cmp);
    }
}
