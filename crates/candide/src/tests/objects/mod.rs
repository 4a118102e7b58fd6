//! Tests of transactional objects.

mod boxed;
mod deferred;
mod misuse;
mod model;
mod range_histories;
mod ranges;
mod subjects;
mod threads;
