//! A process that is killed while one of its threads is held in a pipeline, and the directory of
//! its database.

use super::*;
use crate::LogOptions;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, fs, process};

/// The points at which a thread is held.
const POINTS: [Point; 7] = [
    Point::Locked,
    Point::Relaxed,
    Point::Evaluated,
    Point::Executed,
    Point::InOrder,
    // In the turn to log, so nothing becomes durable.
    Point::Closing,
    Point::Recording,
];
/// The number of points outside of the turn to log.
const OUTSIDE: usize = 5;

/// The environment variable that has the directory, in the process that is to be killed.
const DIRECTORY: &str = "CANDIDE_TEST_KILLED";
/// The one that has the number of the point.
const POINT: &str = "CANDIDE_TEST_KILLED_AT";
const TEST: &str = concat!(
    "tests::policies::pipelined::killed::",
    "a_process_killed_with_a_held_pipeline_leaves_what_it_has_acknowledged"
);

/// A directory among the temporary files.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed at the latest when the test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn open(directory: &Path) -> Scene {
    let builder = Database::<Occ>::builder().policy(Policy::Pipelined).timestamp_splitting(false);
    let db = builder.open(directory, LogOptions::new()).unwrap();
    let table = db.table::<Item>("rows").unwrap();
    Scene { db, table }
}

/// Adds to rows 0 and 1.
fn both(table: &Table<Item, Occ>, tx: &Tx<'_, Occ>) -> Result<(), Abort> {
    table.update(tx, 0, Item::COUNT.add(1))?;
    table.update(tx, 1, Item::COUNT.add(1))
}

/// Runs transactions until the process is killed. Prints a line for each durable commit to row 2.
fn run_until_killed(directory: &Path, number: usize) {
    let scene = open(directory);
    scene.db.run(|tx| (0..3).try_for_each(|id| scene.table.insert(tx, Item::new(id, 0)))).unwrap();
    let commit = || {
        let count = |tx: &Tx<'_, Occ>| {
            scene.table.update(tx, 2, Item::COUNT.add(1))?;
            scene.table.read(tx, 2, Item::COUNT)
        };
        println!("\nacknowledged: {}", scene.db.run(count).unwrap());
    };
    commit();
    std::thread::scope(|scope| {
        let _held = spawn(scope, &scene, POINTS[number], both).reached();
        let _successor = spawn_free(scope, &scene, |table, tx| {
            table.update(tx, 0, Item::COUNT.add(10))?;
            table.update(tx, 1, Item::COUNT.add(10))
        });
        if number < OUTSIDE {
            eventually("the successor waits", || scene.asleep_beside(&[]) == 1);
            (0..3).for_each(|_| commit());
        }
        println!("\nheld");
        // Until the process is killed, or the test has ended.
        let _ = std::io::stdin().read_line(&mut String::new());
        process::exit(1);
    });
}

/// Starts this test in another process.
fn start(directory: &Path, number: usize) -> (Killed, BufReader<ChildStdout>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(POINT, number.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (Killed(child), output)
}

#[test]
fn a_process_killed_with_a_held_pipeline_leaves_what_it_has_acknowledged() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return run_until_killed(directory.as_ref(), env::var(POINT).unwrap().parse().unwrap());
    }
    for (number, point) in POINTS.into_iter().enumerate() {
        let name = format!("candide-killed-{}-{number}", process::id());
        let scratch = Scratch(env::temp_dir().join(name));
        let (mut killed, output) = start(&scratch.0, number);
        let mut acknowledged = None;
        let is_held = output.lines().map_while(Result::ok).any(|line| {
            if let Some(count) = line.strip_prefix("acknowledged: ") {
                acknowledged = Some(count.parse::<i64>().unwrap());
            }
            line == "held"
        });
        assert!(is_held, "{point:?}: the process has ended by itself");
        killed.0.kill().unwrap();
        assert!(!killed.0.wait().unwrap().success(), "{point:?}");
        assert_eq!(acknowledged, Some(if number < OUTSIDE { 4 } else { 1 }), "{point:?}");
        let scene = open(&scratch.0);
        // The held transaction is not in the log, and its successor has built on it.
        let counts = [0, 1, 2].map(|key| count(&scene, key));
        assert_eq!(counts, [Some(0), Some(0), acknowledged], "{point:?}");
        scene.db.run(|tx| both(&scene.table, tx)).unwrap();
        drop(scene);
        let again = open(&scratch.0);
        let counts = [0, 1, 2].map(|key| count(&again, key));
        assert_eq!(counts, [Some(1), Some(1), acknowledged], "{point:?}");
    }
}
