//! What places promise, and how a place that does not keep its promises is found out.

use candide_reach::sim::{Direction, Faults, SimPlace};
use candide_reach::{Created, Directory, Place, PlaceError, probe};
use std::sync::Barrier;
use std::thread;

fn with(faults: Faults) -> SimPlace {
    let place = SimPlace::new(7);
    place.set_faults(faults);
    place
}

fn is_unknown<T>(answer: Result<T, PlaceError>) -> bool {
    matches!(answer, Err(PlaceError::Unknown(_)))
}

#[test]
fn a_lost_request_does_nothing() {
    let place = with(Faults { lost: 100, ..Faults::NONE });
    assert!(is_unknown(place.create("a", b"1")));
    assert!(is_unknown(place.read("a")));
    assert!(is_unknown(place.list("", "")));
    place.settle();
    assert!(place.names().is_empty());
}

#[test]
fn a_late_request_is_executed_later_or_lost_with_the_power() {
    let place = with(Faults { late: 100, ..Faults::NONE });
    assert!(is_unknown(place.create("a", b"1")));
    assert!(is_unknown(place.create("b", b"1")));
    assert!(place.names().is_empty());
    place.settle();
    assert_eq!(place.names(), ["a", "b"]);
    assert!(is_unknown(place.delete("a")));
    place.lose_power();
    place.settle();
    assert_eq!(place.names(), ["a", "b"], "objects stay, requests are gone");
}

#[test]
fn a_request_that_arrives_twice_creates_an_object_again_that_was_deleted() {
    let place = with(Faults { twice: 100, ..Faults::NONE });
    assert_eq!(place.create("a", b"1"), Ok(Created::New));
    place.set_faults(Faults::NONE);
    place.delete("a").unwrap();
    place.settle();
    assert_eq!(place.read("a"), Ok(Some(b"1".to_vec())));
}

#[test]
fn an_old_list_lacks_new_objects_and_names_deleted_ones() {
    let place = with(Faults { old_list: 100, ..Faults::NONE });
    place.create("a", b"").unwrap();
    assert!(place.list("", "").unwrap().is_empty());
    place.delete("a").unwrap();
    let lists: Vec<_> = (0..50).map(|_| place.list("", "").unwrap()).collect();
    assert!(lists.iter().any(|list| *list == ["a"]));
    assert_eq!(place.read("a"), Ok(None), "a read is not old");
}

#[test]
fn a_missed_or_flipped_read_leaves_the_object_as_it_is() {
    let place = with(Faults { missed: 100, ..Faults::NONE });
    place.create("a", b"bytes").unwrap();
    assert_eq!(place.read("a"), Ok(None));
    place.set_faults(Faults { flipped: 100, ..Faults::NONE });
    let flipped = place.read("a").unwrap().unwrap();
    let wrong: u32 = flipped.iter().zip(b"bytes").map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(wrong, 1);
    place.set_faults(Faults::NONE);
    assert_eq!(place.read("a"), Ok(Some(b"bytes".to_vec())));
}

#[test]
fn a_partition_has_a_direction_and_is_one_handles() {
    let (place, other) = (SimPlace::new(1), SimPlace::new(1).handle(0));
    drop(other);
    let other = place.handle(1);
    place.cut(Direction::Requests, true);
    assert!(is_unknown(place.create("a", b"")));
    assert_eq!(other.create("b", b""), Ok(Created::New));
    place.cut(Direction::Requests, false);
    place.cut(Direction::Answers, true);
    assert!(is_unknown(place.create("c", b"")));
    place.cut(Direction::Answers, false);
    assert_eq!(place.names(), ["b", "c"]);
}

#[test]
fn a_broken_place_forgets_its_last_creations_with_the_power() {
    let place = SimPlace::new(1);
    for name in ["a", "b", "c"] {
        place.create(name, b"").unwrap();
    }
    place.lose_power_and(2);
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn the_same_seed_plays_the_same_faults() {
    let play = |seed| {
        let place = SimPlace::new(seed);
        place.set_faults(Faults { lost: 30, unanswered: 30, late: 30, ..Faults::NONE });
        let answers: Vec<_> =
            (0..60).map(|n| place.create(&format!("a/{}", n % 20), b"").is_ok()).collect();
        (answers, place.names())
    };
    assert_eq!(play(3), play(3));
    assert_ne!(play(3), play(4));
}

#[test]
fn names_that_no_place_allows_are_refused() {
    let place = SimPlace::new(1);
    for name in ["", "../a", "a/../b", "A", &"a".repeat(201)] {
        assert!(matches!(place.create(name, b""), Err(PlaceError::Refused(_))), "{name}");
        assert!(matches!(place.read(name), Err(PlaceError::Refused(_))), "{name}");
        assert!(matches!(place.delete(name), Err(PlaceError::Refused(_))), "{name}");
    }
    assert_eq!(place.calls(), 0);
}

#[test]
fn of_eight_racing_creators_one_wins_each_name_of_a_simulated_place() {
    let place = SimPlace::new(1);
    let barrier = Barrier::new(8);
    let create = |creator: usize| {
        let (place, barrier) = (place.handle(creator), &barrier);
        move || {
            barrier.wait();
            (0..50).filter(|n| place.create(&format!("a/{n}"), b"") == Ok(Created::New)).count()
        }
    };
    let won: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(create(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(won, 50);
}

#[test]
fn a_probe_passes_places_that_keep_their_promise_and_leaves_nothing() {
    let place = SimPlace::new(1);
    probe(&place).unwrap();
    assert!(place.names().is_empty());
    assert!(place.calls() > 0);
    let path = std::env::temp_dir().join(format!("candide-reach-probe-{}", std::process::id()));
    let directory = Directory::new(&path).unwrap();
    probe(&directory).unwrap();
    let left = directory.list("", "").unwrap();
    std::fs::remove_dir_all(path).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_place_that_ignores_the_condition_is_refused_and_the_probe_removed() {
    let place = with(Faults { unconditional: 100, ..Faults::NONE });
    let error = probe(&place).unwrap_err();
    assert!(matches!(error, PlaceError::Unconditional(_)), "{error}");
    assert!(error.to_string().contains("use a place that creates"), "{error}");
    assert!(place.names().is_empty());
}

#[test]
fn a_probe_without_an_answer_says_so() {
    assert!(is_unknown(probe(&with(Faults { lost: 100, ..Faults::NONE }))));
    assert!(is_unknown(probe(&with(Faults { missed: 100, ..Faults::NONE }))));
    let flipped = probe(&with(Faults { flipped: 100, ..Faults::NONE }));
    assert!(matches!(flipped, Err(PlaceError::Broken(_))), "{flipped:?}");
}
