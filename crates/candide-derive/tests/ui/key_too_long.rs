use candide::{Key, Text};

#[derive(Key, Clone, Copy)]
struct Names(Text<200>, Text<200>);

fn main() {}
