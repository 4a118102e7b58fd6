use candide::Key;

#[derive(Key, Clone, Copy)]
enum Level {
    Low = 1,
    High = 3,
    Middle = 2,
}

fn main() {}
