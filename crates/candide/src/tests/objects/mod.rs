//! Tests of transactional objects.

mod misuse;
mod model;
mod ranges;
mod subjects;
mod threads;
