use candide::{Record, Text};

#[derive(Record, Clone, Copy)]
#[index(name = by_branch_name, columns(branch, name, address))]
struct Account {
    #[key]
    id: u64,
    branch: u32,
    name: Text<20>,
    address: Text<220>,
}

fn main() {}
