use candide::Key;

#[derive(Key, Clone, Copy)]
enum Shape {
    Circle(u8),
    Square,
}

#[derive(Key, Clone, Copy)]
enum Never {}

#[derive(Key, Clone, Copy)]
struct Nothing;

#[derive(Key, Clone, Copy)]
union Either {
    a: u8,
    b: i8,
}

#[derive(Key, Clone, Copy)]
#[key(hash)]
struct Options(#[key] u8);

fn main() {}
