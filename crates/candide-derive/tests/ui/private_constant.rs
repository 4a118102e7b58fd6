mod bank {
    #[derive(candide::Record, Clone, Copy)]
    #[index(columns(cents, secret))]
    pub struct Account {
        #[key]
        pub id: u64,
        pub cents: i64,
        #[index]
        secret: u32,
    }

    pub mod vault {
        #[derive(candide::Record, Clone, Copy)]
        #[index(columns(a, b))]
        #[index(columns(c, b))]
        #[index(columns(a, d))]
        #[index(columns(e, c))]
        pub struct Safe {
            #[key]
            pub id: u64,
            pub(crate) a: u8,
            pub(super) b: u8,
            pub(in crate::bank) c: u8,
            pub(self) d: u8,
            pub e: u8,
        }
    }

    pub fn shown() {
        let _ = (vault::Safe::BY_A_B, vault::Safe::BY_C_B, vault::Safe::BY_E_C);
    }
}

fn main() {
    let _ = (bank::Account::ID, bank::Account::CENTS);
    let _ = bank::Account::SECRET;
    let _ = bank::Account::BY_SECRET;
    let _ = bank::Account::BY_CENTS_SECRET;
    let _ = bank::vault::Safe::A;
    let _ = bank::vault::Safe::BY_A_B;
    let _ = bank::vault::Safe::BY_C_B;
    let _ = bank::vault::Safe::BY_A_D;
    let _ = bank::vault::Safe::BY_E_C;
}
