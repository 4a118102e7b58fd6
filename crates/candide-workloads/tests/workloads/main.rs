//! The workloads, in small: what holds after honest runs under every protocol, and that each check
//! notices what it is there for.

mod bayes;
mod causes;
mod common;
mod driver;
mod genome;
mod hottest;
mod intruder;
mod kmeans;
mod labyrinth;
mod micro;
mod random;
mod rubis;
mod smallbank;
mod think;
mod tpcb;
mod tpcc;
mod two_tables;
mod vacation;
mod wikipedia;
mod ycsb;
mod ycsb_strings;
mod ycsb_variants;
mod zipf;
