//! Tests of transactional objects.

mod boxed;
mod deferred;
mod ended;
mod misuse;
mod model;
mod range_histories;
mod ranges;
mod subjects;
mod threads;
