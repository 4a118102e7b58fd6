//! The formats of all files: what is encoded is decoded again, and what is damaged is refused.

#![forbid(unsafe_code)]

mod block;
mod bytes;
mod checkpoint;
mod commit;
mod conversions;
mod damage;
mod document;
mod draws;
mod fields;
mod golden;
mod keys;
mod manifest;
mod samples;
mod segment;
mod text;
