//! Tests of keys: the forms in which lookups take them, and their order.

mod lookups;
mod shapes;
