//! The bytes of objects, and what one object says of another.
//!
//! `docs/file-format.md` describes every field.

#![forbid(unsafe_code)]

mod header;

pub use header::{
    CONTENT_BYTES_MAX, FIELDS, Field, FloorNumber, HEADER_BYTES, Header, Kind, Link, Object,
    VERSION,
};
