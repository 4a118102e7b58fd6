//! Tests of transactional objects.

mod boxed;
mod deferred;
mod emptied;
mod ended;
mod fronts;
mod lists;
mod misuse;
mod model;
mod queues;
mod range_histories;
mod ranges;
mod subjects;
mod threads;
