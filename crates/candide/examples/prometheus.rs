//! Metrics of a database, for Prometheus: a page of counts, gauges and latencies. One thread serves
//! it, beside those that run transactions.
//!
//! ```sh
//! cargo run --release -p candide --features metrics,histograms --example prometheus
//! curl http://127.0.0.1:9187/metrics
//! ```
//!
//! With the argument `once`, the program asks itself for the page, prints it, and ends. A program
//! that has an async runtime can use the exporter's own server instead, and call
//! `publish_metrics` every few seconds.

use candide::{Abort, Database, Error, Record, RunOptions, Table};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const ADDRESS: &str = "127.0.0.1:9187";
const ACCOUNTS: u64 = 8;
const CENTS: i64 = 1_000;

const PAY: RunOptions<'static> = RunOptions::new().named("pay");
const AUDIT: RunOptions<'static> = RunOptions::new().named("audit");

#[derive(Record, Clone, Copy, Debug)]
pub(crate) struct Account {
    #[key]
    id: u64,
    cents: i64,
}

pub(crate) fn pay(
    db: &Database,
    accounts: &Table<Account>,
    from: u64,
    to: u64,
) -> Result<(), Abort> {
    db.with(PAY).run(|tx| {
        // A read before the write: two payments from one account conflict.
        let cents = accounts.read(tx, from, Account::CENTS)?;
        accounts.update(tx, from, Account::CENTS.sub(1 + cents / 100).at_least(0))?;
        accounts.update(tx, to, Account::CENTS.add(1 + cents / 100))
    })
}

pub(crate) fn audit(db: &Database, accounts: &Table<Account>) -> Result<i64, Abort> {
    db.with(AUDIT).run(|tx| accounts.sum(tx, Account::CENTS))
}

/// Makes the database.
pub(crate) fn bank() -> Result<(Database, Table<Account>), Error> {
    let db = Database::new();
    let accounts = db.table::<Account>("accounts")?;
    accounts
        .load((0..ACCOUNTS).map(|id| Account { id, cents: CENTS }), candide::LoadOptions::new())?;
    Ok((db, accounts))
}

/// Answers one request. The counts are as of now: the recorder gets them before it renders.
pub(crate) fn answer(
    stream: TcpStream,
    db: &Database,
    exporter: &PrometheusHandle,
) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut request = BufReader::new(stream.try_clone()?.take(8 << 10));
    let mut first = String::new();
    request.read_line(&mut first)?;
    let mut line = first.clone();
    while line.trim_end() != "" {
        line.clear();
        request.read_line(&mut line)?;
    }
    let (status, page) = match first.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics"] => {
            db.publish_metrics("bank");
            ("200 OK", exporter.render())
        }
        _ => ("404 Not Found", "the page is /metrics\n".to_string()),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{page}",
        page.len()
    )
}

/// Asks for a page, as Prometheus does, and returns the answer.
pub(crate) fn ask(address: std::net::SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only_once = std::env::args().nth(1).as_deref() == Some("once");
    let exporter = PrometheusBuilder::new().install_recorder()?;
    let (db, accounts) = bank()?;
    // Any free port, so that the program can run beside another one.
    let listener = TcpListener::bind(if only_once { "127.0.0.1:0" } else { ADDRESS })?;
    let address = listener.local_addr()?;
    println!("http://{address}/metrics");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (db, accounts, is_over) = (&db, &accounts, &is_over);
            scope.spawn(move || {
                for number in (thread..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    let (from, to) = (number % ACCOUNTS, number / ACCOUNTS % ACCOUNTS);
                    // A payment that an account has no cents for is counted.
                    let _ = pay(db, accounts, from, to);
                    if number % 100 == thread {
                        assert_eq!(audit(db, accounts), Ok(ACCOUNTS as i64 * CENTS));
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
        if only_once {
            let asked = scope.spawn(move || ask(address, "/metrics"));
            let answered = listener.accept().and_then(|(stream, _)| answer(stream, &db, &exporter));
            is_over.store(true, Ordering::Relaxed);
            answered?;
            println!("{}", asked.join().expect("the client has not panicked")?);
            return Ok(());
        }
        for stream in listener.incoming() {
            // A client that goes away is no reason to stop.
            if let Err(error) = stream.and_then(|stream| answer(stream, &db, &exporter)) {
                eprintln!("{error}");
            }
        }
        Ok(())
    })
}
