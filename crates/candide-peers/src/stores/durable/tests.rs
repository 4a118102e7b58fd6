//! Tests that every store keeps its acknowledged commits, and that the check finds stores that do
//! not.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;

use super::driver::{Contender, Job, Shape, of};
use super::suite;
use super::{Options, contenders};
use crate::Role;
use crate::stores::driver::{Lots, Turn};
use crate::stores::tests::broken::Each;
use crate::stores::{Durable, Failure, Size, Store, Waiting};

/// The number of rows. The number is so small that transactions conflict.
const ROWS: u64 = 100;

const SHAPES: [Shape; 2] = [Shape::Counter, Shape::Transfer];

fn measure(store: &dyn Contender, shape: Shape, threads: usize) -> Result<u64, Failure> {
    let job = Job::draw(shape, ROWS, Lots { threads, each: 1000, seed: 1 });
    let turn = Turn { threads, duration: Duration::from_millis(15), run: 0 };
    store.measure(&job, turn, &std::env::temp_dir()).map(|sample| sample.committed)
}

#[test]
fn every_store_has_its_acknowledged_commits_when_it_is_opened_again() {
    for store in contenders::all() {
        for shape in SHAPES {
            for threads in [1, 3] {
                let committed = measure(store.as_ref(), shape, threads);
                let name = store.about().name;
                assert!(
                    committed.as_ref().is_ok_and(|&count| count > 0),
                    "{name}, {shape:?}, {threads} threads: {committed:?}"
                );
            }
        }
    }
}

/// A store that keeps the rows that are loaded, and no commits.
struct Forgetful;

impl Durable for Forgetful {
    const NAME: &'static str = "forgetful";
    const CRATE: Option<&'static str> = None;
    const USE: &'static str = "forgets commits";
    const ROLE: Role = Role::Yardstick;
    type Store = Loaded;
    type Committer<'s> = Waiting<&'s Each<i64>>;

    fn open(directory: &Path, size: Size) -> Result<Loaded, Failure> {
        let file = directory.join("loaded");
        let mut rows = Each::open(size)?;
        if let Ok(text) = fs::read_to_string(&file) {
            let values: Vec<i64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
            rows.load(0, (0..).zip(values))?;
        }
        Ok(Loaded { rows, file })
    }

    fn committer(store: &Loaded) -> Result<Waiting<&Each<i64>>, Failure> {
        Ok(Waiting(store.session()?))
    }
}

/// The rows in memory, and the file with the rows that were loaded.
struct Loaded {
    rows: Each<i64>,
    file: PathBuf,
}

impl Store<i64> for Loaded {
    type Session<'s> = &'s Each<i64>;

    fn open(_: Size) -> Result<Self, Failure> {
        Err("it needs a directory".into())
    }

    fn load(
        &mut self,
        table: usize,
        rows: impl Iterator<Item = (u64, i64)> + Send,
    ) -> Result<(), Failure> {
        let rows: Vec<_> = rows.collect();
        let lines: Vec<_> = rows.iter().map(|(_, value)| value.to_string()).collect();
        fs::write(&self.file, lines.join("\n"))?;
        self.rows.load(table, rows.into_iter())
    }

    fn session(&self) -> Result<&Each<i64>, Failure> {
        Ok(&self.rows)
    }
}

#[test]
fn commits_that_are_lost_when_the_store_is_opened_again_are_found() {
    let error = |shape| measure(of::<Forgetful>().as_ref(), shape, 1).unwrap_err().to_string();
    let counter = error(Shape::Counter);
    assert!(counter.starts_with("opened again: the rows add up to 0, but"), "{counter}");
    // Transfers leave the sum as it was.
    let transfer = error(Shape::Transfer);
    assert!(transfer.ends_with("rows have changed"), "{transfer}");
}

#[test]
fn a_store_that_loses_commits_fails_and_the_others_are_compared() {
    let directory = std::env::temp_dir();
    let arguments = ["durable", directory.to_str().unwrap(), "--rows", "100", "--threads", "1"];
    let small = ["--seconds", "0.01", "--rounds", "2", "--shapes", "counter"];
    let options = Options::parse_from(arguments.iter().chain(&small));
    let mut stores = contenders::all();
    stores.retain(|store| store.about().name == "candide-occ");
    stores.push(of::<Forgetful>());
    let report = suite::measure(&options, &stores, |_| Ok(())).unwrap();
    let [floor, candide, forgetful] = &report.results[..] else { panic!("{:?}", report.results) };
    assert_eq!((floor.rounds.len(), candide.rounds.len(), forgetful.rounds.len()), (2, 2, 0));
    assert_eq!((floor.of_candide, forgetful.of_candide), (None, None));
    let verdict = suite::examined(&report.results).unwrap_err().to_string();
    assert!(verdict.starts_with("forgetful, counter, 1 threads: opened again: "), "{verdict}");
    assert!(suite::examined(&report.results[..2]).is_ok());
}

#[test]
fn bad_arguments_of_the_durable_comparison_are_refused_with_valid_values() {
    let here = std::env::temp_dir();
    let here = here.to_str().unwrap();
    let error = |arguments: &[&str]| {
        let error = Options::try_parse_from(["durable"].iter().chain(arguments)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert!(error(&[]).contains("<DIR>"));
    assert!(error(&["/no/such/place"]).contains("give an existing directory"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert!(error(&[file]).contains("it is not a directory"));
    assert!(
        error(&[here, "--stores", "lmdb"]).contains("use all, or some of candide-occ,candide-64")
    );
    assert!(error(&[here, "--shapes", "ycsb"]).contains("counter, transfer"));
    assert!(error(&[here, "--threads", "1,0"]).contains("use numbers from 1 to"));
    for seconds in ["0", "-1", "NaN", "1e9", "2s"] {
        let argument = format!("--seconds={seconds}");
        assert!(error(&[here, &argument]).contains("use a number from 0.001"), "{seconds}");
    }
    assert!(error(&[here, "--rounds", "0"]).contains("1.."));
    assert!(error(&[here, "--rows", "1"]).contains("100.."));
    for store in ["fjall", "redb", "sqlite", "surrealmx"] {
        if !contenders::all().iter().any(|built| built.about().name == store) {
            assert!(error(&[here, "--stores", store]).contains(&format!("--features {store}")));
        }
    }
    let options = ["durable", here, "--json", "/no/such/place/results.json"];
    let error = super::run(&Options::parse_from(options)).unwrap_err().to_string();
    assert!(error.starts_with("/no/such/place/results.json: "), "{error}");
}
