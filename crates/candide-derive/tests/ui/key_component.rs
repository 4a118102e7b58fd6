use candide::Key;
use std::time::Instant;

#[derive(Key, Clone, Copy)]
struct Place {
    x: Instant,
    y: u32,
}

fn main() {}
