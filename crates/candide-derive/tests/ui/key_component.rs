use candide::Key;

#[derive(Key, Clone, Copy)]
struct Place {
    x: f64,
    y: u32,
}

fn main() {}
