use candide::Record;

#[derive(Record, Clone)]
#[index(columns(number, name), bytes = 64)]
#[index(name = by_id_name, columns(id(bytes = 8), name(bytes = 241)))]
#[index(name = by_name_number, columns(name(most = 7), number))]
struct User {
    #[key]
    id: u64,
    #[key]
    number: u32,
    #[index(bytes = 0)]
    name: String,
    #[unique(bytes = 241)]
    email: String,
    #[index(bytes = "64")]
    photo: Vec<u8>,
    #[index(bytes = 64, bytes = 65)]
    nickname: Option<String>,
    #[index(bytes)]
    hash: Option<Vec<u8>>,
}

fn main() {}
