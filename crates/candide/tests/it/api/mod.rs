//! Tests of how a program runs transactions, names them, and handles errors.

mod any;
mod errors;
mod names;
mod runners;
mod shown;
mod table_options;
