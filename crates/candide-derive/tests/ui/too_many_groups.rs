use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    #[group(g0)]
    f0: u64,
    #[group(g1)]
    f1: u64,
    #[group(g2)]
    f2: u64,
    #[group(g3)]
    f3: u64,
    #[group(g4)]
    f4: u64,
    #[group(g5)]
    f5: u64,
    #[group(g6)]
    f6: u64,
    #[group(g7)]
    f7: u64,
    #[group(g8)]
    f8: u64,
    #[group(g9)]
    f9: u64,
    #[group(g10)]
    f10: u64,
    #[group(g11)]
    f11: u64,
    #[group(g12)]
    f12: u64,
    #[group(g13)]
    f13: u64,
    #[group(g14)]
    f14: u64,
    #[group(g15)]
    f15: u64,
    #[group(g16)]
    f16: u64,
    #[group(g17)]
    f17: u64,
    #[group(g18)]
    f18: u64,
    #[group(g19)]
    f19: u64,
    #[group(g20)]
    f20: u64,
    #[group(g21)]
    f21: u64,
    #[group(g22)]
    f22: u64,
    #[group(g23)]
    f23: u64,
    #[group(g24)]
    f24: u64,
    #[group(g25)]
    f25: u64,
    #[group(g26)]
    f26: u64,
    #[group(g27)]
    f27: u64,
    #[group(g28)]
    f28: u64,
    #[group(g29)]
    f29: u64,
    #[group(g30)]
    f30: u64,
    #[group(g31)]
    f31: u64,
    #[group(g32)]
    f32: u64,
    #[group(g33)]
    f33: u64,
    #[group(g34)]
    f34: u64,
    #[group(g35)]
    f35: u64,
    #[group(g36)]
    f36: u64,
    #[group(g37)]
    f37: u64,
    #[group(g38)]
    f38: u64,
    #[group(g39)]
    f39: u64,
    #[group(g40)]
    f40: u64,
    #[group(g41)]
    f41: u64,
    #[group(g42)]
    f42: u64,
    #[group(g43)]
    f43: u64,
    #[group(g44)]
    f44: u64,
    #[group(g45)]
    f45: u64,
    #[group(g46)]
    f46: u64,
    #[group(g47)]
    f47: u64,
    #[group(g48)]
    f48: u64,
    #[group(g49)]
    f49: u64,
    #[group(g50)]
    f50: u64,
    #[group(g51)]
    f51: u64,
    #[group(g52)]
    f52: u64,
    #[group(g53)]
    f53: u64,
    #[group(g54)]
    f54: u64,
    #[group(g55)]
    f55: u64,
    #[group(g56)]
    f56: u64,
    #[group(g57)]
    f57: u64,
    #[group(g58)]
    f58: u64,
    #[group(g59)]
    f59: u64,
    #[group(g60)]
    f60: u64,
    #[group(g61)]
    f61: u64,
    #[group(g62)]
    f62: u64,
    #[group(g63)]
    f63: u64,
    #[group(g64)]
    f64: u64,
}

fn main() {}
