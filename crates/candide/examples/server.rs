//! A server of accounts on tokio: short transactions run right in the handlers, durability is
//! awaited, and a long report runs on a thread for blocking work.
//!
//! ```sh
//! cargo run --release -p candide --example server
//! ```
//!
//! A client sends lines, and gets a line for each: `open 1 500`, `pay 1 2 30`, `balance 1`,
//! `total`.

use candide::{Abort, Database, Error, Pending, Record, Table};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const CLIENTS: u64 = 20;
const PAYMENTS: u64 = 100;

#[derive(Record, Clone, Copy, Debug)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
}

struct Bank {
    db: Database,
    accounts: Table<Account>,
}

impl Bank {
    fn new(db: Database) -> Result<Bank, Error> {
        Ok(Bank { accounts: db.table("accounts")?, db })
    }

    /// Returns at once, in microseconds: the transaction has run, and is not durable yet.
    fn open(&self, id: u64, cents: i64) -> Pending<()> {
        self.db.run_logged(|tx| self.accounts.insert(tx, Account { id, cents }))
    }

    fn pay(&self, from: u64, to: u64, cents: i64) -> Pending<()> {
        self.db.run_logged(|tx| {
            self.accounts.update(tx, from, Account::CENTS.sub(cents).at_least(0))?;
            self.accounts.update(tx, to, Account::CENTS.add(cents))
        })
    }

    fn balance(&self, id: u64) -> Pending<i64> {
        self.db.run_logged(|tx| self.accounts.read(tx, id, Account::CENTS))
    }

    fn total(&self) -> Result<i64, Abort> {
        self.db.read_view(|tx| self.accounts.sum(tx, Account::CENTS))
    }
}

/// Answers a line. A future of `Pending` sleeps until a sync of the disk has ended, which many
/// transactions share; no thread waits. The transaction itself has ended before the first `.await`:
/// a `Tx` cannot be held across one.
async fn answer(bank: &Arc<Bank>, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{word:?}: {error}"));
    let answered = async {
        let done = match *words.as_slice() {
            ["open", id, cents] => bank.open(number(id)?, number(cents)? as i64).await,
            ["pay", from, to, cents] => {
                bank.pay(number(from)?, number(to)?, number(cents)? as i64).await
            }
            ["balance", id] => {
                let cents = bank.balance(number(id)?).await;
                return cents.map(|cents| cents.to_string()).map_err(|abort| abort.to_string());
            }
            ["total"] => {
                // It reads every row, so it would keep a worker thread from other clients.
                let bank = bank.clone();
                let total = tokio::task::spawn_blocking(move || bank.total()).await;
                let total = total.expect("it does not panic");
                return total.map(|cents| cents.to_string()).map_err(|abort| abort.to_string());
            }
            _ => return Err("open ID CENTS, pay FROM TO CENTS, balance ID, or total".to_string()),
        };
        done.map(|()| "done".to_string()).map_err(|abort| abort.to_string())
    };
    answered.await.unwrap_or_else(|error| format!("error: {error}"))
}

async fn serve(bank: Arc<Bank>, stream: TcpStream) -> std::io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = answer(&bank, &line).await;
        to.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Ok(())
}

/// Sends lines, and returns the answers.
async fn ask(address: std::net::SocketAddr, lines: &[String]) -> std::io::Result<Vec<String>> {
    let (from, mut to) = TcpStream::connect(address).await?.into_split();
    let mut answers = BufReader::new(from).lines();
    let mut answered = Vec::new();
    for line in lines {
        to.write_all(format!("{line}\n").as_bytes()).await?;
        answered.extend(answers.next_line().await?);
    }
    Ok(answered)
}

async fn run(bank: Arc<Bank>) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(bank.clone(), stream));
        }
    });
    let opened: Vec<String> = (0..CLIENTS).map(|id| format!("open {id} 1000")).collect();
    assert!(ask(address, &opened).await?.iter().all(|answer| answer == "done"));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let pay = move |number: u64| format!("pay {client} {} 7", (client + number) % CLIENTS);
            let lines: Vec<String> = (1..=PAYMENTS).map(pay).collect();
            tokio::spawn(async move { ask(address, &lines).await })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    let lines = ["total", "balance 3", "balance 99", "pay 1 2", "open x 5"].map(str::to_string);
    let answers = ask(address, &lines).await?;
    println!("{answers:#?}");
    assert_eq!(answers[0], (CLIENTS * 1000).to_string());
    server.abort();
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("candide-server-{}", std::process::id()));
    let bank = Arc::new(Bank::new(Database::open(&directory)?)?);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build()?;
    let done = runtime.block_on(run(bank.clone()));
    drop((runtime, bank));
    std::fs::remove_dir_all(directory)?;
    done
}
