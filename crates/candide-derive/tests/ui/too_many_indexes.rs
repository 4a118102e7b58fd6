use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    #[index]
    f0: u8,
    #[index]
    f1: u8,
    #[index]
    f2: u8,
    #[index]
    f3: u8,
    #[index]
    f4: u8,
    #[index]
    f5: u8,
    #[index]
    f6: u8,
    #[index]
    f7: u8,
    #[index]
    f8: u8,
    #[index]
    f9: u8,
    #[index]
    f10: u8,
    #[index]
    f11: u8,
    #[index]
    f12: u8,
    #[index]
    f13: u8,
    #[index]
    f14: u8,
    #[index]
    f15: u8,
    #[index]
    f16: u8,
    #[index]
    f17: u8,
    #[index]
    f18: u8,
    #[index]
    f19: u8,
    #[index]
    f20: u8,
    #[index]
    f21: u8,
    #[index]
    f22: u8,
    #[index]
    f23: u8,
    #[index]
    f24: u8,
    #[index]
    f25: u8,
    #[index]
    f26: u8,
    #[index]
    f27: u8,
    #[index]
    f28: u8,
    #[index]
    f29: u8,
    #[index]
    f30: u8,
    #[index]
    f31: u8,
    #[index]
    f32: u8,
}

fn main() {}
