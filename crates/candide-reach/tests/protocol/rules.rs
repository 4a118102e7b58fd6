//! Each rule of the protocol by itself, without faults or with one.

use crate::history::Writes;
use candide_reach::object::{Header, Kind, Link, Object};
use candide_reach::sim::{Direction, Faults, SimPlace};
use candide_reach::tools::{status, verify};
use candide_reach::{
    Block, Claim, Created, Follower, Leader, Name, Patience, Place, PlaceError, Position, Progress,
    ReachError,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const DATABASE: [u8; 16] = *b"reach rules.....";
pub const PATIENCE: Patience =
    Patience { calls: 3, pause: Duration::ZERO, pause_max: Duration::ZERO };

pub fn arc(place: &SimPlace) -> Arc<dyn Place> {
    Arc::new(place.clone())
}

pub fn request(number: u64, earlier: &[u64]) -> Claim<'_> {
    Claim {
        database: DATABASE,
        number,
        earlier,
        against_others: false,
        position: None,
        patience: PATIENCE,
    }
}

pub fn promotion(number: u64) -> Claim<'static> {
    Claim { against_others: true, ..request(number, &[]) }
}

/// Claims, and returns the leader with what it has read.
pub fn claim(place: &SimPlace, request: &Claim<'_>) -> Result<(Leader, Writes), ReachError> {
    let mut writes = Writes::default();
    let leader = Leader::claim(arc(place), request, &mut writes)?;
    Ok((leader, writes))
}

/// Writes numbers behind those that are there.
pub fn write(leader: &Leader, writes: &mut Writes, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let payload = Writes::payload(writes.last(), number);
        let block = Block { payload: &payload, ..Block::default() };
        let offer = leader.offer(&block).unwrap();
        assert_eq!(leader.send(&offer).unwrap(), offer.place());
        writes.0.push(number);
    }
}

/// Makes a snapshot of everything, and deletes what it covers.
pub fn cover(leader: &Leader, writes: &Writes) {
    let mut snapshot = leader.snapshot(leader.acknowledged()).unwrap();
    let bytes: Vec<u8> = writes.0.iter().flat_map(|number| number.to_le_bytes()).collect();
    snapshot.part(b"the catalog", &bytes).unwrap();
    snapshot.finish(b"").unwrap();
    assert!(leader.clean(Duration::ZERO).unwrap() > 0);
}

fn follower(place: &SimPlace, position: Position) -> Follower {
    Follower::new(arc(place), DATABASE, position, PATIENCE)
}

/// Follows until nothing more comes.
fn follow(follower: &mut Follower, writes: &mut Writes) -> Result<(), ReachError> {
    while follower.step(writes)? != Progress::Nothing {}
    Ok(())
}

#[test]
fn a_promoted_process_has_all_that_was_acknowledged_and_fences_the_leader_before() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..4);
    let late = first.offer(&Block { payload: b"late", ..Block::default() }).unwrap();
    let (second, read) = claim(&place, &promotion(2)).unwrap();
    assert_eq!((second.generation(), &read), (2, &writes));
    let error = first.send(&late).unwrap_err();
    assert!(matches!(error, ReachError::Superseded { generation: 1, by: 2 }), "{error}");
    assert_eq!(first.acknowledged(), 3);
    // The leader knows from then on, without another call of the place.
    let calls = place.calls();
    assert!(first.offer(&Block::default()).is_err());
    assert!(first.send(&late).is_err());
    assert!(first.snapshot(3).is_err());
    assert_eq!(place.calls(), calls);
}

#[test]
fn blocks_are_acknowledged_without_gaps_in_whatever_order_they_arrive() {
    let place = SimPlace::new(1);
    let (leader, _) = claim(&place, &request(1, &[])).unwrap();
    let offers: Vec<_> = (0..4).map(|_| leader.offer(&Block::default()).unwrap()).collect();
    let acknowledged: Vec<u64> =
        [2, 0, 3, 1].into_iter().map(|at: usize| leader.send(&offers[at]).unwrap()).collect();
    assert_eq!(acknowledged, [0, 1, 1, 4]);
}

#[test]
fn a_block_without_an_answer_is_sent_again_with_the_same_bytes() {
    let unanswered = Faults { unanswered: 100, ..Faults::default() };
    for faults in [unanswered, Faults { lost: 100, ..Faults::default() }] {
        let place = SimPlace::new(1);
        let (leader, _) = claim(&place, &request(1, &[])).unwrap();
        let offer = leader.offer(&Block { payload: b"once", ..Block::default() }).unwrap();
        place.set_faults(faults);
        let error = leader.send(&offer).unwrap_err();
        assert!(matches!(error, ReachError::Place(PlaceError::Unknown(_))), "{error}");
        assert_eq!(leader.acknowledged(), 0, "silence is no success");
        place.set_faults(Faults::default());
        place.settle();
        assert_eq!(leader.send(&offer).unwrap(), 1);
        let names = place.names();
        assert_eq!(names.iter().filter(|name| name.starts_with("log/")).count(), 1, "{names:?}");
    }
}

#[test]
fn a_directory_leads_again_only_if_no_other_process_has_claimed() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    let (again, read) = claim(&place, &request(2, &[1])).unwrap();
    assert_eq!((again.generation(), read), (2, writes));
    claim(&place, &promotion(7)).unwrap();
    let before = place.names();
    let error = claim(&place, &request(3, &[2])).unwrap_err();
    assert!(matches!(error, ReachError::Led { generation: 3, last: None, .. }), "{error}");
    assert_eq!(place.names(), before, "nothing is changed");
    assert!(error.to_string().contains("take over"), "{error}");
}

#[test]
fn a_claim_whose_answer_was_lost_is_the_directorys_own() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    // The second opening's claim arrives, and the process does not hear of it.
    let handle = place.handle(1).with_hook({
        let place = place.handle(1);
        move |_| place.cut(Direction::Answers, place.names().iter().any(|n| n == &claim_name(2)))
    });
    place.set_faults(Faults::default());
    assert!(claim(&handle, &request(2, &[1])).is_err());
    place.handle(1).cut(Direction::Answers, false);
    assert!(place.names().contains(&claim_name(2)), "{:?}", place.names());
    let (third, read) = claim(&place, &request(3, &[1, 2])).unwrap();
    assert_eq!((third.generation(), read), (3, writes));
    // A directory that has forgotten its number is not taken for the claimant.
    assert!(matches!(claim(&place, &request(4, &[2])), Err(ReachError::Led { .. })));
}

/// When a directory leads, it forgets its earlier numbers, and a read may miss a claim that exists.
#[test]
fn an_older_claim_than_the_directory_knows_is_not_taken_for_the_newest() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    let (second, _) = claim(&place, &request(2, &[1])).unwrap();
    let again = Claim { position: Some(second.position()), ..request(3, &[2]) };
    let bytes = place.read(&claim_name(2)).unwrap();
    place.damage(&claim_name(2), None);
    let names = place.names();
    let unknown = claim(&place, &again).map(drop).unwrap_err();
    assert!(matches!(unknown, ReachError::Place(PlaceError::Unknown(_))), "{unknown}");
    assert!(unknown.to_string().contains("claim/000000000002 cannot be read yet"), "{unknown}");
    assert_eq!(place.names(), names);
    place.damage(&claim_name(2), bytes);
    assert_eq!(claim(&place, &again).unwrap().0.generation(), 3);
}

fn claim_name(generation: u64) -> String {
    Name::Claim(generation).to_string()
}

#[test]
fn a_follower_begins_anew_with_the_newest_snapshot_when_its_log_is_gone() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    let (mut behind, mut copy) = (follower(&place, Position::default()), Writes::default());
    write(&leader, &mut writes, 1..3);
    follow(&mut behind, &mut copy).unwrap();
    assert_eq!(copy, writes);
    write(&leader, &mut writes, 3..6);
    cover(&leader, &writes);
    write(&leader, &mut writes, 6..8);
    assert_eq!(behind.step(&mut copy).unwrap(), Progress::Snapshot);
    follow(&mut behind, &mut copy).unwrap();
    assert_eq!(copy, writes);
    let mut new = Writes::default();
    follow(&mut follower(&place, Position::default()), &mut new).unwrap();
    assert_eq!(new, writes);
}

#[test]
fn a_promoted_follower_goes_on_from_its_position_or_from_a_newer_floor() {
    for is_covered in [false, true] {
        let place = SimPlace::new(1);
        let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
        write(&leader, &mut writes, 1..3);
        let (mut standby, mut copy) = (follower(&place, Position::default()), Writes::default());
        follow(&mut standby, &mut copy).unwrap();
        write(&leader, &mut writes, 3..6);
        if is_covered {
            cover(&leader, &writes);
        }
        let position = Some(standby.position());
        let request = Claim { position, ..promotion(2) };
        Leader::claim(arc(&place), &request, &mut copy).unwrap();
        assert_eq!(copy, writes, "covered: {is_covered}");
    }
}

/// A superseded process ends generation 1 at a place whose block a later leader has deleted.
/// Returns a follower that has read that end, what it has, and all that was written.
fn behind_a_false_end(place: &SimPlace) -> (Follower, Writes, Writes) {
    let (first, mut writes) = claim(place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..2);
    let (mut standby, mut copy) = (follower(place, Position::default()), Writes::default());
    follow(&mut standby, &mut copy).unwrap();
    write(&first, &mut writes, 2..4);
    let (second, mut read) = claim(place, &promotion(2)).unwrap();
    write(&second, &mut read, 4..6);
    let first_of_second = Name::Log(2, 1).to_string();
    let bytes = place.read(&first_of_second).unwrap();
    cover(&second, &read);
    // A request that arrives twice creates the deleted block again.
    place.damage(&first_of_second, bytes);
    let last = standby.position().last;
    let end = Header { before: last, number: 3, ..Header::new(Kind::End, DATABASE, 1, 2) };
    let bytes = end.encode(&[], &[]);
    assert_eq!(place.create(&Name::Log(1, 2).to_string(), &bytes), Ok(Created::New));
    write(&second, &mut read, 6..7);
    assert_eq!(standby.step(&mut copy).unwrap(), Progress::End);
    (standby, copy, read)
}

/// A follower that goes past that end must not go on in generation 2.
#[test]
fn an_end_that_the_next_generation_does_not_name_is_not_followed() {
    let place = SimPlace::new(1);
    let (mut standby, mut copy, read) = behind_a_false_end(&place);
    follow(&mut standby, &mut copy).unwrap();
    assert_eq!(copy, read);
}

#[test]
fn a_follower_for_which_only_a_snapshot_is_of_use_pauses() {
    let place = SimPlace::new(1);
    let (mut standby, mut copy, read) = behind_a_false_end(&place);
    let wait = Duration::from_millis(10);
    // The place does not show the floor, or the part of the snapshot, for a while.
    for name in [Name::Floor(2, 1), Name::Snapshot(2, 2, 0)].map(|name| name.to_string()) {
        let bytes = place.read(&name).unwrap();
        place.damage(&name, None);
        let (calls, begin) = (place.calls(), Instant::now());
        while begin.elapsed() < 20 * wait {
            let _ = standby.step(&mut copy);
            assert!(!standby.wait(wait).unwrap());
        }
        let calls = place.calls() - calls;
        assert!((1..400).contains(&calls), "{name}: {calls} calls");
        place.damage(&name, bytes);
    }
    follow(&mut standby, &mut copy).unwrap();
    assert_eq!(copy, read);
}

#[test]
fn gaps_rewinds_and_flipped_bits_are_noticed_by_name() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..6);
    let name = |place| Name::Log(1, place).to_string();
    let read = |at| place.read(&name(at)).unwrap().unwrap();
    let [second, third] = [2, 3].map(read);
    let judge = || follow(&mut follower(&place, Position::default()), &mut Writes::default());
    judge().unwrap();

    // Another block in the place of one.
    place.damage(&name(2), Some(third.clone()));
    let error = judge().unwrap_err().to_string();
    assert!(error.contains("it is Block 3 (part 0) of generation 1"), "{error}");
    assert!(error.starts_with(&name(2)), "{error}");

    // Another block than the one that the block behind it names.
    let other = Writes::payload(1, 99);
    let other = Object::decode(second.clone()).unwrap().header.encode(b"", &other);
    place.damage(&name(2), Some(other));
    let error = judge().unwrap_err();
    assert!(matches!(&error, ReachError::Damaged { name: n, .. } if *n == name(3)), "{error}");

    for bit in [0, 700, 8 * second.len() - 1] {
        let mut flipped = second.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        place.damage(&name(2), Some(flipped));
        let error = judge().unwrap_err();
        assert!(matches!(&error, ReachError::Damaged { name: n, .. } if *n == name(2)), "{error}");
    }

    // A missing block, behind which there are others.
    place.damage(&name(2), None);
    let mut copy = Writes::default();
    follow(&mut follower(&place, Position::default()), &mut copy).unwrap();
    assert_eq!(copy.0, [1], "a follower does not go past a gap");

    // A place that was set back and written anew, as a follower that was further sees it.
    place.damage(&name(2), Some(second));
    let (mut standby, mut copy) = (follower(&place, Position::default()), Writes::default());
    for _ in 0..4 {
        assert_eq!(standby.step(&mut copy).unwrap(), Progress::Block);
    }
    let mut header = Object::decode(place.read(&name(5)).unwrap().unwrap()).unwrap().header;
    header.before.crc ^= 1;
    place.damage(&name(5), Some(header.encode(b"", &Writes::payload(98, 99))));
    let error = standby.step(&mut copy).unwrap_err();
    assert!(matches!(&error, ReachError::Damaged { name: n, .. } if *n == name(5)), "{error}");
    assert_eq!(copy.0, [1, 2, 3, 4]);
}

#[test]
fn objects_of_another_database_or_format_are_refused_and_named() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..3);
    let other = Claim { database: [9; 16], ..promotion(2) };
    let before = place.names();
    let error = claim(&place, &other).unwrap_err();
    assert!(matches!(&error, ReachError::OtherDatabase { found, .. } if *found == DATABASE));
    assert_eq!(place.names(), before, "nothing is changed");

    let name = Name::Log(1, 2).to_string();
    let mut bytes = place.read(&name).unwrap().unwrap();
    bytes[8] = 2;
    let end = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..end]).to_le_bytes();
    bytes[end..].copy_from_slice(&crc);
    place.damage(&name, Some(bytes));
    let error = follow(&mut follower(&place, Position::default()), &mut Writes::default());
    let error = error.unwrap_err();
    assert!(matches!(error, ReachError::Format { found: 2, known: 1, .. }), "{error}");
}

#[test]
fn a_snapshot_without_one_of_its_parts_is_damaged() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..3);
    cover(&leader, &writes);
    place.damage(&Name::Snapshot(1, 2, 0).to_string(), None);
    let error = claim(&place, &promotion(2)).unwrap_err();
    assert!(matches!(&error, ReachError::Damaged { what, .. } if what.contains("missing")));
    // A newer snapshot helps those that come later.
    write(&leader, &mut writes, 3..4);
    let error = leader.snapshot(3);
    assert!(error.is_ok(), "the claimant has not ended the generation");
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    let place = SimPlace::new(1);
    let error = claim(&place, &request(0, &[])).unwrap_err().to_string();
    assert_eq!(error, "the number of a claim is 0; draw a random one");
    assert!(place.names().is_empty());
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..3);
    let refused = |what: Result<(), ReachError>, text: &str| {
        let error = what.unwrap_err();
        assert!(matches!(error, ReachError::Misuse(_)), "{error}");
        assert_eq!(error.to_string(), text);
    };
    refused(leader.snapshot(3).map(drop), "block 3 is not acknowledged yet; 2 is");
    refused(leader.snapshot(0).map(drop), "block 0 is not behind the one of the snapshot before");
    let mut snapshot = leader.snapshot(1).unwrap();
    refused(leader.snapshot(2).map(drop), "a snapshot is being written; finish it first");
    snapshot.part(b"", b"").unwrap();
    snapshot.finish(b"").unwrap();
    refused(leader.snapshot(1).map(drop), "block 1 is not behind the one of the snapshot before");
    refused(leader.snapshot(2).unwrap().finish(b""), "a snapshot needs a part, which may be empty");
    let late = Block { cut: 5, stamp_generation: 2, ..Block::default() };
    let offer = leader.offer(&late).unwrap();
    assert_eq!(leader.send(&offer).unwrap(), 3);
    refused(
        leader.offer(&Block { cut: 4, ..late }).map(drop),
        "cut 4 of stamp generation 2 comes behind cut 5 of 2",
    );
    assert_eq!(leader.offered(), 3);
}

#[test]
fn floors_cover_what_is_deleted_and_ends_seals_and_claims_stay() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    assert_eq!(first.clean(Duration::ZERO).unwrap(), 0, "there is no floor");
    let (second, mut read) = claim(&place, &promotion(2)).unwrap();
    write(&second, &mut read, 3..5);
    let mut snapshot = second.snapshot(1).unwrap();
    snapshot.part(b"", b"").unwrap();
    snapshot.finish(b"").unwrap();
    assert_eq!(second.clean(Duration::from_secs(3600)).unwrap(), 0, "followers have an hour");
    cover(&second, &read);
    let names: Vec<Name> = place.names().iter().filter_map(|name| Name::parse(name)).collect();
    let left = [
        Name::Claim(1),
        Name::Claim(2),
        Name::Floor(1, 1),
        Name::Floor(2, 1),
        Name::Floor(2, 2),
        Name::Log(1, 3),
        Name::Snapshot(2, 2, 0),
    ];
    assert_eq!(names, left);
    // A leader whose floors are sealed makes no further one, and knows why.
    write(&second, &mut read, 5..6);
    let mut snapshot = second.snapshot(3).unwrap();
    snapshot.part(b"", b"").unwrap();
    claim(&place, &promotion(3)).unwrap();
    let error = snapshot.finish(b"").unwrap_err();
    assert!(matches!(error, ReachError::Superseded { generation: 2, by: 3 }), "{error}");
}

#[test]
fn a_floor_of_an_earlier_generation_is_found_through_the_blocks_behind_it() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    cover(&first, &writes);
    for number in 2..6 {
        let (leader, mut read) = claim(&place, &promotion(number)).unwrap();
        assert_eq!(read, writes, "generation {number}");
        write(&leader, &mut read, [10 * number]);
        writes = read;
    }
}

#[test]
fn a_process_that_meets_the_end_or_seal_of_a_later_claimant_stops() {
    for is_seal in [false, true] {
        let place = SimPlace::new(1);
        let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
        write(&first, &mut writes, 1..3);
        let (kind, at, name) = match is_seal {
            true => (Kind::Seal, 1, Name::Floor(1, 1)),
            false => (Kind::End, 3, Name::Log(1, 3)),
        };
        let mut header = Header { number: 9, ..Header::new(kind, DATABASE, 1, at) };
        if !is_seal {
            let bytes = place.read(&Name::Log(1, 2).to_string()).unwrap().unwrap();
            header.before = Object::decode(bytes).unwrap().link();
        }
        place.create(&name.to_string(), &header.encode(b"", b"")).unwrap();
        let error = claim(&place, &promotion(2)).unwrap_err();
        assert!(matches!(error, ReachError::Superseded { generation: 2, by: 9 }), "{error}");
    }
}

#[test]
fn a_place_that_ignores_the_condition_is_refused_at_each_claim() {
    let place = SimPlace::new(1);
    let (_, writes) = claim(&place, &request(1, &[])).unwrap();
    assert!(writes.0.is_empty());
    place.set_faults(Faults { unconditional: 100, ..Faults::default() });
    let before = place.names();
    let error = claim(&place, &promotion(2)).unwrap_err();
    assert!(matches!(error, ReachError::Place(PlaceError::Unconditional(_))), "{error}");
    assert_eq!(place.names(), before);
}

#[test]
fn a_follower_that_fails_within_a_snapshot_begins_with_a_snapshot_again() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..3);
    let (mut behind, mut copy) = (follower(&place, Position::default()), Writes::default());
    follow(&mut behind, &mut copy).unwrap();
    write(&leader, &mut writes, 3..5);
    let block = Name::Log(1, 3).to_string();
    let bytes = place.read(&block).unwrap();
    cover(&leader, &writes);
    let part = Name::Snapshot(1, 4, 0).to_string();
    let whole = place.read(&part).unwrap();
    place.damage(&part, None);
    assert!(behind.step(&mut copy).is_err());
    assert!(copy.0.is_empty(), "the receiver has begun anew");
    // A request that arrives late creates the block that the follower has needed before.
    place.damage(&block, bytes);
    assert!(behind.step(&mut copy).is_err());
    place.damage(&part, whole);
    follow(&mut behind, &mut copy).unwrap();
    assert_eq!(copy, writes);
}

/// All lists are old ones, which show less than there is.
#[test]
fn what_a_list_lacks_is_found_by_reads() {
    let place = SimPlace::new(1);
    place.set_faults(Faults { old_list: 100, ..Faults::default() });
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..4);
    let (second, mut writes) = claim(&place, &promotion(2)).unwrap();
    write(&second, &mut writes, 4..9);
    for _ in 0..50 {
        let status = status(arc(&place), 2, PATIENCE).unwrap().unwrap();
        let ends: Vec<_> = status.generations.iter().map(|one| (one.number, one.last)).collect();
        let [(2, Some((5, false, _))), (1, Some((4, true, _)))] = ends[..] else {
            panic!("{ends:?}")
        };
    }
    let led = claim(&place, &request(1, &[])).unwrap_err();
    assert!(matches!(led, ReachError::Led { generation: 2, .. }), "{led}");
}

#[test]
fn the_newest_of_ten_thousand_generations_is_found_by_few_requests() {
    for count in [999, 1000, 1001, 1002, 2500, 10_000] {
        let place = SimPlace::new(1);
        for generation in 1..count {
            let header = Header { number: 1, ..Header::new(Kind::Claim, DATABASE, generation, 0) };
            place.create(&claim_name(generation), &header.encode(b"", b"")).unwrap();
        }
        // Of the others, only the last one was led.
        let seal = Header { number: count, ..Header::new(Kind::Seal, DATABASE, count - 1, 1) };
        let block = Header::new(Kind::Block, DATABASE, count - 1, 1).encode(b"", b"");
        let link = Object::decode(block.clone()).unwrap().link();
        let end = Header { number: count, ..Header::new(Kind::End, DATABASE, count - 1, 2) };
        let end = Header { before: link, ..end }.encode(b"", b"");
        place.create(&Name::Floor(count - 1, 1).to_string(), &seal.encode(b"", b"")).unwrap();
        place.create(&Name::Log(count - 1, 1).to_string(), &block).unwrap();
        place.create(&Name::Log(count - 1, 2).to_string(), &end).unwrap();
        let position = Some(Position { last: link, is_end: false });
        let before = place.calls();
        let (leader, _) = claim(&place, &Claim { position, ..promotion(2) }).unwrap();
        assert_eq!(leader.generation(), count);
        let calls = place.calls() - before;
        assert!(calls <= 20, "{count} generations: {calls} calls");
    }
}

#[test]
fn many_generations_without_a_block_are_passed_and_few_requests_find_the_newest() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    for number in 2..40 {
        let (_, read) = claim(&place, &promotion(number)).unwrap();
        assert_eq!(read, writes);
    }
    let (last, mut read) = claim(&place, &promotion(40)).unwrap();
    assert_eq!(last.generation(), 40);
    write(&last, &mut read, 3..4);
    cover(&last, &read);
    for generation in 2..40 {
        let end = Name::Log(generation, 1).to_string();
        assert!(place.names().contains(&end), "generation {generation} has no end");
    }
    let before = place.calls();
    let (_, again) = claim(&place, &promotion(41)).unwrap();
    assert_eq!(again, read);
    let calls = place.calls() - before;
    assert!(calls <= 20, "{calls} calls");
    let mut copy = Writes::default();
    let mut late = follower(&place, Position { last: Link::NONE, is_end: false });
    follow(&mut late, &mut copy).unwrap();
    assert_eq!(copy, read);
}

/// Makes a restart with everything, which need not be in blocks.
fn restart(leader: &Leader, writes: &Writes) {
    let mut restart = leader.restart(0, 0).unwrap();
    let bytes: Vec<u8> = writes.0.iter().flat_map(|number| number.to_le_bytes()).collect();
    let (first, second) = bytes.split_at(bytes.len() / 16 * 8);
    restart.part(b"the catalog", first).unwrap();
    restart.part(b"", second).unwrap();
    restart.create().unwrap();
    restart.finish().unwrap();
}

#[test]
fn a_restart_stands_for_a_stretch_of_the_log_that_is_not_there() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..3);
    let (mut behind, mut copy) = (follower(&place, Position::default()), Writes::default());
    follow(&mut behind, &mut copy).unwrap();
    let old = behind.position();
    writes.0.extend(3..6);
    restart(&leader, &writes);
    write(&leader, &mut writes, 6..8);
    // A follower, one from the beginning, one from the floor, and claimants from either position.
    follow(&mut behind, &mut copy).unwrap();
    assert_eq!(copy, writes);
    let mut copy = Writes::default();
    follow(&mut follower(&place, Position::default()), &mut copy).unwrap();
    assert_eq!(copy, writes);
    let mut read = Writes(vec![1, 2]);
    let claimed = Claim { position: Some(old), ..promotion(2) };
    Leader::claim(arc(&place), &claimed, &mut read).unwrap();
    assert_eq!(read, writes);
    assert_eq!(claim(&place, &promotion(3)).unwrap().1, writes);
    // The next leader deletes it with the log.
    let (last, mut read) = claim(&place, &promotion(4)).unwrap();
    write(&last, &mut read, 8..9);
    cover(&last, &read);
    let left = place.names().into_iter().filter(|name| name.starts_with("log/000000000001/"));
    assert_eq!(left.collect::<Vec<_>>(), [Name::Log(1, 6).to_string()], "only the end stays");
    let mut copy = Writes::default();
    follow(&mut follower(&place, Position::default()), &mut copy).unwrap();
    assert_eq!(copy, read);
}

#[test]
fn a_restart_may_be_the_first_object_of_a_place_and_is_nothing_before_it_is_whole() {
    let place = SimPlace::new(1);
    let (leader, _) = claim(&place, &request(1, &[])).unwrap();
    let mut begun = leader.restart(0, 0).unwrap();
    begun.part(b"the catalog", &Writes::payload(1, 2)).unwrap();
    let refused = leader.offer(&Block::default()).unwrap_err().to_string();
    assert!(refused.contains("a restart is being written"), "{refused}");
    let mut copy = Writes::default();
    let mut early = follower(&place, Position::default());
    assert_eq!(early.step(&mut copy).unwrap(), Progress::Nothing);
    place.set_faults(Faults { lost: 100, ..Faults::default() });
    assert!(begun.create().is_err());
    place.set_faults(Faults::default());
    assert_eq!(begun.create().unwrap(), 1);
    begun.finish().unwrap();
    assert_eq!(early.step(&mut copy).unwrap(), Progress::Snapshot);
    let mut writes = Writes(vec![1, 2]);
    assert_eq!(copy, writes);
    write(&leader, &mut writes, 3..4);
    assert_eq!(claim(&place, &promotion(2)).unwrap().1, writes);
}

#[test]
fn a_restart_behind_an_end_belongs_to_no_log() {
    let place = SimPlace::new(1);
    let (first, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&first, &mut writes, 1..3);
    let mut late = first.restart(0, 0).unwrap();
    late.part(b"", &Writes::payload(8, 9)).unwrap();
    let (second, _) = claim(&place, &promotion(2)).unwrap();
    assert!(matches!(late.create(), Err(ReachError::Superseded { by: 2, .. })));
    write(&second, &mut writes, 3..4);
    let mut copy = Writes::default();
    follow(&mut follower(&place, Position::default()), &mut copy).unwrap();
    assert_eq!(copy, writes);
}

#[test]
fn a_follower_that_fails_within_a_restart_reads_it_again() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..3);
    let (mut behind, mut copy) = (follower(&place, Position::default()), Writes::default());
    follow(&mut behind, &mut copy).unwrap();
    writes.0.extend(3..6);
    restart(&leader, &writes);
    let part = Name::Snapshot(1, 3, 1).to_string();
    let whole = place.read(&part).unwrap();
    place.damage(&part, None);
    assert!(matches!(behind.step(&mut copy), Err(ReachError::Damaged { .. })));
    place.damage(&part, whole);
    write(&leader, &mut writes, 6..7);
    follow(&mut behind, &mut copy).unwrap();
    assert_eq!(copy, writes);
}

/// Requests that arrive late create a block and a restart again that a floor covers.
#[test]
fn a_restart_whose_parts_are_covered_and_gone_is_passed_by_a_newer_snapshot() {
    let place = SimPlace::new(1);
    let (leader, mut writes) = claim(&place, &request(1, &[])).unwrap();
    write(&leader, &mut writes, 1..2);
    writes.0.extend(2..4);
    restart(&leader, &writes);
    let names = [1, 2].map(|at| Name::Log(1, at).to_string());
    let bytes = names.each_ref().map(|name| place.read(name).unwrap());
    write(&leader, &mut writes, 4..6);
    cover(&leader, &writes);
    for (name, bytes) in names.iter().zip(bytes) {
        place.damage(name, bytes);
    }
    write(&leader, &mut writes, 6..7);
    let mut copy = Writes::default();
    follow(&mut follower(&place, Position::default()), &mut copy).unwrap();
    assert_eq!(copy, writes);
    assert_eq!(verify(arc(&place), PATIENCE).unwrap().faults, []);
}
