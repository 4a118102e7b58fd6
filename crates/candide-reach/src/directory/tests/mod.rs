//! What a directory promises, with the power lost at every call, and on a real file system.

mod sim_files;

use super::*;
use sim_files::SimFiles;
use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

fn open(files: &SimFiles) -> Result<Directory, PlaceError> {
    Directory::of(Arc::new(files.clone()))
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("candide-reach-{name}-{}-{:x}", std::process::id(), random::number());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a call has promised: this object exists from now on.
type Promise = (&'static str, &'static [u8]);

/// Two processes create and read objects until the power is lost. Returns what was promised.
fn use_it(files: &SimFiles) -> Vec<Promise> {
    let mut promises: Vec<Promise> = Vec::new();
    let contents: [Promise; 3] = [("log/1/1", b"one"), ("log/1/2", b"two"), ("claim/1", b"three")];
    let (Ok(first), Ok(second)) = (open(files), open(files)) else { return promises };
    for (name, bytes) in contents {
        if first.create(name, bytes) == Ok(Created::New) {
            promises.push((name, bytes));
        }
        // The other one must not believe what the first has not made durable.
        if second.create(name, b"other") == Ok(Created::Exists) {
            promises.push((name, bytes));
        }
        if let Ok(Some(found)) = second.read(name) {
            assert_eq!(found, bytes);
            promises.push((name, bytes));
        }
    }
    promises
}

#[test]
fn what_was_answered_survives_a_loss_of_power_at_every_call() {
    let whole = SimFiles::default();
    assert_eq!(use_it(&whole).len(), 9);
    let mut states = 0;
    for call in 0..=whole.calls() {
        let files = SimFiles::ending_at(call);
        let promises = use_it(&files);
        for after in files.after_loss_of_power() {
            let place = open(&after).unwrap();
            for (name, bytes) in &promises {
                let found = place.read(name).unwrap();
                assert_eq!(found.as_deref(), Some(*bytes), "{name} after call {call}");
            }
            // What has a name has all its bytes, promised or not.
            for name in place.list("", "").unwrap() {
                let found = place.read(&name).unwrap().unwrap();
                assert!([&b"one"[..], b"two", b"three"].contains(&&found[..]), "{name}: {found:?}");
            }
            states += 1;
        }
    }
    assert!(states > 100, "{states}");
}

/// The first process is stopped behind its `link` for ever; what the second one finds must be
/// durable when it is told so.
#[test]
fn a_name_that_another_process_has_not_synced_is_synced_before_it_is_believed() {
    let count = |run: &dyn Fn(&Directory)| {
        let files = SimFiles::default();
        let place = open(&files).unwrap();
        let before = files.calls();
        run(&place);
        before..files.calls()
    };
    let creation = count(&|place| drop(place.create("log/1/1", b"one")));
    for call in creation {
        let files = SimFiles::ending_at(call);
        let place = open(&files).unwrap();
        let _ = place.create("log/1/1", b"one");
        // The process is gone, and the file system goes on.
        for read in [true, false] {
            let files = files.continued();
            let other = open(&files).unwrap();
            let is_there = match read {
                true => other.read("log/1/1").unwrap().is_some(),
                false => other.create("log/1/1", b"other").unwrap() == Created::Exists,
            };
            if is_there {
                for after in files.after_loss_of_power() {
                    let found = open(&after).unwrap().read("log/1/1").unwrap();
                    assert_eq!(found.as_deref(), Some(&b"one"[..]), "call {call}, read {read}");
                }
            }
        }
    }
}

#[test]
fn temporary_files_of_the_dead_are_removed_by_age() {
    let files = SimFiles::default();
    open(&files).unwrap();
    for name in ["old-1", "new-2"] {
        files.make_file(&format!("{TEMPORARY}/{name}")).unwrap();
    }
    let place = open(&files).unwrap();
    let left: Vec<String> =
        place.files.entries(TEMPORARY).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(left, ["new-2"]);
    assert!(place.list("", "").unwrap().is_empty(), "temporary files are no objects");
}

#[test]
fn of_eight_racing_creators_one_wins_each_name() {
    const CREATORS: usize = 8;
    const NAMES: usize = 40;
    let folder = Folder::new("race");
    let barrier = Barrier::new(CREATORS);
    let wins: Vec<Vec<usize>> = thread::scope(|scope| {
        let creator = |creator: usize| {
            let (folder, barrier) = (&folder, &barrier);
            move || {
                let place = Directory::new(&folder.0).unwrap();
                let mut won = Vec::new();
                for name in 0..NAMES {
                    barrier.wait();
                    let made = place.create(&format!("log/1/{name}"), &[creator as u8; 5000]);
                    if made.unwrap() == Created::New {
                        won.push(name);
                    }
                }
                won
            }
        };
        let threads: Vec<_> = (0..CREATORS).map(|number| scope.spawn(creator(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let place = Directory::new(&folder.0).unwrap();
    for name in 0..NAMES {
        let winners: Vec<usize> = (0..CREATORS).filter(|c| wins[*c].contains(&name)).collect();
        assert_eq!(winners.len(), 1, "name {name}");
        let bytes = place.read(&format!("log/1/{name}")).unwrap().unwrap();
        assert_eq!(bytes, [winners[0] as u8; 5000]);
    }
    assert!(place.files.entries(TEMPORARY).unwrap().is_empty());
}

#[test]
fn lists_are_in_the_order_of_names_and_go_on_behind_a_name() {
    let folder = Folder::new("list");
    let place = Directory::new(&folder.0).unwrap();
    let mut names = ["a", "b/2", "b/10", "b-1", "b.c", "b/2-x/y", "claim/1", "log/2/1", "log/10/3"];
    for name in names {
        place.create(name, b"").unwrap();
    }
    names.sort_unstable();
    assert_eq!(place.list("", "").unwrap(), names);
    for (at, name) in names.iter().enumerate() {
        assert_eq!(place.list("", name).unwrap(), names[at + 1..], "{name}");
    }
    assert_eq!(place.list("log/", "").unwrap(), ["log/10/3", "log/2/1"]);
    assert_eq!(place.list("log/2", "").unwrap(), ["log/2/1"]);
    assert_eq!(place.list("b", "b/10").unwrap(), ["b/2", "b/2-x/y"]);
    assert!(place.list("nothing/", "").unwrap().is_empty());
    for number in 0..LIST_MAX + 5 {
        place.files.make_folder("many").ok();
        place.files.make_file(&format!("many/{number:06}")).unwrap();
    }
    let first = place.list("many/", "").unwrap();
    assert_eq!(first.len(), LIST_MAX);
    assert_eq!(place.list("many/", first.last().unwrap()).unwrap().len(), 5);
}

#[test]
fn deleted_objects_are_gone_and_their_names_are_free() {
    let folder = Folder::new("delete");
    let place = Directory::new(&folder.0).unwrap();
    assert_eq!(place.create("a/b", b"1").unwrap(), Created::New);
    place.delete("a/b").unwrap();
    place.delete("a/b").unwrap();
    assert_eq!(place.read("a/b").unwrap(), None);
    assert_eq!(place.create("a/b", b"2").unwrap(), Created::New);
    assert_eq!(place.another().unwrap().read("a/b").unwrap(), Some(b"2".to_vec()));
}

#[test]
fn bad_input_is_refused_with_what_is_wrong_and_changes_nothing() {
    let folder = Folder::new("bad");
    let place = Directory::new(&folder.0).unwrap();
    for name in ["", "../outside", "a/../../outside", "/etc/passwd", ".tmp/x", &"n".repeat(300)] {
        assert!(matches!(place.create(name, b"x"), Err(PlaceError::Refused(_))), "{name}");
        assert!(matches!(place.read(name), Err(PlaceError::Refused(_))), "{name}");
        assert!(matches!(place.delete(name), Err(PlaceError::Refused(_))), "{name}");
    }
    assert!(matches!(place.list("../", ""), Err(PlaceError::Refused(_))));
    assert!(!folder.0.parent().unwrap().join("outside").exists());
    assert!(place.list("", "").unwrap().is_empty());

    place.create("a/b", b"x").unwrap();
    let error = place.read("a").unwrap_err();
    assert!(matches!(error, PlaceError::Broken(_)), "{error}");

    let missing = folder.0.join("not/there");
    let error = Directory::new(&missing).unwrap_err().to_string();
    assert!(error.contains("there is no folder in which it could be made"), "{error}");
    let error = Directory::new(folder.0.join("a/b")).unwrap_err().to_string();
    assert!(error.ends_with("this is not a folder"), "{error}");
}
