//! Looking at places, whole and damaged.

use crate::history::Writes;
use crate::rules::{DATABASE, PATIENCE, arc, claim, cover, promotion, request, write};
use candide_reach::sim::{Faults, SimPlace};
use candide_reach::tools::{Status, status, verify};
use candide_reach::{Block, Follower, Name, Place, Position, Progress, ReachError};

/// Returns a place with two generations, of which the second has a snapshot.
fn place() -> (SimPlace, Writes) {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    let (second, mut writes) = claim(&place, &promotion(2)).unwrap();
    write(&second, &mut writes, 3..5);
    cover(&second, &writes);
    write(&second, &mut writes, 5..8);
    (place, writes)
}

#[test]
fn the_status_of_a_place_names_its_generations() {
    let (place, _) = place();
    let Status { database, generations } = status(arc(&place), 10, PATIENCE).unwrap().unwrap();
    assert_eq!(database, DATABASE);
    let [second, first] = generations[..] else { panic!("{generations:?}") };
    assert_eq!((second.number, second.floor), (2, Some((1, 2))));
    assert_eq!(first.number, 1);
    assert_eq!(second.last.map(|(at, is_end, _)| (at, is_end)), Some((5, false)));
    assert_eq!(first.last.map(|(at, is_end, _)| (at, is_end)), Some((3, true)));
    assert_eq!(status(arc(&place), 1, PATIENCE).unwrap().unwrap().generations, [second]);
    assert_eq!(status(arc(&SimPlace::new(1)), 10, PATIENCE).unwrap(), None);
}

#[test]
fn a_whole_place_has_no_faults_while_a_leader_goes_on() {
    let (place, _) = place();
    let verified = verify(arc(&place), PATIENCE).unwrap();
    assert_eq!(verified.faults, []);
    assert_eq!(verified.objects as usize, place.names().len());
    assert_eq!((verified.last.generation, verified.last.place), (2, 5));
    let (third, _) = claim(&place, &promotion(3)).unwrap();
    let last = |place: &SimPlace| {
        let generations = status(arc(place), 1, PATIENCE).unwrap().unwrap().generations;
        generations[0].last.map(|(at, ..)| at)
    };
    for before in [0, 2] {
        let [under_way, behind] = [(), ()].map(|()| third.offer(&Block::default()).unwrap());
        assert_eq!(third.send(&behind).unwrap(), before);
        assert_eq!(verify(arc(&place), PATIENCE).unwrap().faults, []);
        assert_eq!(last(&place).unwrap_or(0), before, "the log goes on behind a gap");
        third.send(&under_way).unwrap();
        assert_eq!(verify(arc(&place), PATIENCE).unwrap().faults, []);
        assert_eq!(last(&place), Some(before + 2));
    }
    // What was not under way when the block behind was made is missing.
    for (missing, found) in [(1, vec![3, 4]), (3, vec![])] {
        let name = Name::Log(3, missing).to_string();
        let bytes = place.read(&name).unwrap();
        place.damage(&name, None);
        let faults = verify(arc(&place), PATIENCE).unwrap().faults;
        let names: Vec<_> = faults.iter().map(|(name, _)| name.clone()).collect();
        let expected: Vec<_> = found.iter().map(|at| Name::Log(3, *at).to_string()).collect();
        assert_eq!(names, expected, "{faults:?}");
        place.damage(&name, bytes);
    }
    assert_eq!(verify(arc(&SimPlace::new(1)), PATIENCE).unwrap().objects, 0);
}

#[test]
fn what_a_superseded_leader_has_left_behind_the_end_is_no_fault() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    let behind = Follower::new(arc(&place), DATABASE, first.position(), PATIENCE);
    let copy = writes.clone();
    let [_, second] = [(), ()].map(|()| first.offer(&Block::default()).unwrap());
    let (next, _) = claim(&place, &promotion(2)).unwrap();
    assert!(first.send(&second).is_ok_and(|acknowledged| acknowledged == 2));
    let left = Name::Log(1, 4).to_string();
    assert!(place.names().contains(&left));
    assert_eq!(verify(arc(&place), PATIENCE).unwrap().faults, []);
    let Status { generations, .. } = status(arc(&place), 2, PATIENCE).unwrap().unwrap();
    let last = generations[1].last.map(|(at, is_end, _)| (at, is_end));
    assert_eq!(last, Some((3, true)), "{generations:?}");
    // Followers go on behind the end, wherever they were.
    write(&next, &mut writes, 3..5);
    let anew = Follower::new(arc(&place), DATABASE, Position::default(), PATIENCE);
    for (mut follower, mut copy) in [(behind, copy), (anew, Writes::default())] {
        while follower.step(&mut copy).unwrap() != Progress::Nothing {}
        assert_eq!(copy, writes);
    }
    // A floor of the next leader covers it.
    cover(&next, &writes);
    assert!(!place.names().contains(&left), "{:?}", place.names());
    assert_eq!(verify(arc(&place), PATIENCE).unwrap().faults, []);
}

#[test]
fn every_object_that_is_damaged_or_missing_is_named() {
    let (whole, _) = place();
    let named = |place: &SimPlace| {
        let faults = verify(arc(place), PATIENCE).unwrap().faults;
        faults.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    for name in whole.names() {
        let (place, _) = place();
        let mut bytes = place.read(&name).unwrap().unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        place.damage(&name, Some(bytes));
        assert!(named(&place).contains(&name), "{name} is damaged");
    }
    // Of what is missing, what names it is told.
    for (missing, found) in
        [(Name::Log(2, 4), Name::Log(2, 5)), (Name::Snapshot(2, 2, 0), Name::Snapshot(2, 2, 0))]
    {
        let (place, _) = place();
        place.damage(&missing.to_string(), None);
        assert!(named(&place).contains(&found.to_string()), "{missing} is missing");
    }
}

#[test]
fn a_place_that_does_not_answer_is_no_damage() {
    let (place, _) = place();
    place.set_faults(Faults { lost: 100, ..Faults::default() });
    assert!(matches!(verify(arc(&place), PATIENCE), Err(ReachError::Place(_))));
    assert!(matches!(status(arc(&place), 1, PATIENCE), Err(ReachError::Place(_))));
}
