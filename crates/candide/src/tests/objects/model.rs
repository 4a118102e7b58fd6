//! A comparison of each object with a type of the standard library.
//!
//! The tests run all sequences of up to five operations, in one transaction and in one transaction
//! for each operation, under every protocol. Under the policies of `Occ`, sequences have at most
//! three operations. Unless `CANDIDE_FULL` is set, the limits are three and two. Then they run long
//! random sequences, some of which are undone, as a whole or in parts.

use super::subjects::{Array, Boxed, Counter, Map, OrderedMap, Set, Subject, Told};
use crate::engine::Protocol;
use crate::protocols::Occ;
use crate::sync::Random;
use crate::sync::size::is_short;
use crate::tests::properties;
use crate::{Abort, Database, Session, Tx};

protocol_tests!(all: operations_on_a_box_agree_with_a_value);
fn operations_on_a_box_agree_with_a_value<P: Protocol>() {
    is_its_model::<Boxed<P>, P>();
}

protocol_tests!(all: operations_on_a_counter_agree_with_a_number);
fn operations_on_a_counter_agree_with_a_number<P: Protocol>() {
    is_its_model::<Counter<P>, P>();
}

protocol_tests!(all: operations_on_an_array_agree_with_a_vector);
fn operations_on_an_array_agree_with_a_vector<P: Protocol>() {
    is_its_model::<Array<P>, P>();
}

protocol_tests!(all: operations_on_a_map_agree_with_a_hash_map);
fn operations_on_a_map_agree_with_a_hash_map<P: Protocol>() {
    is_its_model::<Map<P>, P>();
}

protocol_tests!(all: operations_on_a_set_agree_with_a_hash_set);
fn operations_on_a_set_agree_with_a_hash_set<P: Protocol>() {
    is_its_model::<Set<P>, P>();
}

protocol_tests!(all: operations_on_an_ordered_map_agree_with_a_tree);
fn operations_on_an_ordered_map_agree_with_a_tree<P: Protocol>() {
    is_its_model::<OrderedMap<P>, P>();
}

/// An object, beside its model.
struct Bench<S: Subject<P>, P: Protocol> {
    object: S,
    model: S::Model,
    session: Session<P>,
}

/// Returns the length of the longest sequences.
fn longest<P: Protocol>() -> u32 {
    let is_policy = P::NAME == Occ::NAME && properties::<P>().name != Occ::NAME;
    match (is_policy, is_short()) {
        (false, false) => 5,
        (false, true) | (true, false) => 3,
        (true, true) => 2,
    }
}

pub(super) fn is_its_model<S: Subject<P>, P: Protocol>() {
    assert!(S::SEQUENCED <= 8, "all sequences of more operations take too long");
    let db = Database::<P>::builder().build().unwrap();
    let object = S::new(&db);
    let session = db.session().unwrap();
    let mut bench = Bench { object, model: S::Model::default(), session };
    bench.run_all(longest::<P>());
    let mut random = Random::seeded(49);
    for _ in 0..if is_short() { 60 } else { 600 } {
        let length = 1 + random.below(30);
        let script: Vec<u64> = (0..length).map(|_| random.below(S::OPERATIONS)).collect();
        match random.below(6) {
            0 => bench.run_undone(&script),
            1 => bench.run_with_part(&script),
            _ => bench.run(&script),
        }
        bench.check(&script);
    }
}

impl<S: Subject<P>, P: Protocol> Bench<S, P> {
    /// Runs all sequences of up to `longest` operations, from two states.
    fn run_all(&mut self, longest: u32) {
        for length in 1..=longest {
            for number in 0..S::SEQUENCED.pow(length) {
                let mut rest = number;
                let script: Vec<u64> = (0..length)
                    .map(|_| {
                        let operation = rest % S::SEQUENCED;
                        rest /= S::SEQUENCED;
                        operation
                    })
                    .collect();
                self.begin_with(S::Model::default());
                self.run(&script);
                self.check(&script);
                self.begin_with(S::other());
                for operation in &script {
                    self.run(&[*operation]);
                }
                self.check(&script);
            }
        }
    }

    fn begin_with(&mut self, model: S::Model) {
        let Bench { object, session, .. } = self;
        session.run(|tx| object.begin_with(tx, &model)).unwrap();
        self.model = model;
    }

    /// Runs a script as a transaction.
    fn run(&mut self, script: &[u64]) {
        let Bench { object, model, session } = self;
        let mut after = None;
        let ended = session.run(|tx| {
            let mut copy = model.clone();
            let failure = play(object, &mut copy, tx, script)?;
            after = Some((copy, failure));
            Ok(())
        });
        match after {
            Some((copy, None)) => {
                assert_eq!(ended, Ok(()), "{}: {script:?}", P::NAME);
                *model = copy;
            }
            Some((_, Some(abort))) => assert_eq!(ended, Err(abort), "{}: {script:?}", P::NAME),
            // An operation has returned the failure, which `play` has checked.
            None => assert!(ended.is_err(), "{}: {script:?}", P::NAME),
        }
    }

    /// Runs a script as a transaction that has no effect.
    fn run_undone(&mut self, script: &[u64]) {
        let Bench { object, model, session } = self;
        let ended = session.run(|tx| {
            play(object, &mut model.clone(), tx, script)?;
            Err::<(), _>(Abort::Duplicate)
        });
        assert!(ended.is_err(), "{}: {script:?}", P::NAME);
    }

    /// Runs a script as a transaction, the second half of which is undone.
    fn run_with_part(&mut self, script: &[u64]) {
        let Bench { object, model, session } = self;
        let (first, second) = script.split_at(script.len() / 2);
        let mut after = None;
        let ended = session.run(|tx| {
            let mut copy = model.clone();
            let failure = play(object, &mut copy, tx, first)?;
            let part = tx.attempt(|tx| {
                play(object, &mut copy.clone(), tx, second)?;
                Err::<(), _>(Abort::Duplicate)
            });
            assert!(part.is_err());
            after = Some((copy, failure));
            Ok(())
        });
        match after {
            Some((copy, None)) => {
                assert_eq!(ended, Ok(()), "{}: {script:?}", P::NAME);
                *model = copy;
            }
            _ => assert!(ended.is_err(), "{}: {script:?}", P::NAME),
        }
    }

    fn check(&mut self, script: &[u64]) {
        let Bench { object, model, session } = self;
        let contents = session.run(|tx| object.contents(tx));
        assert_eq!(contents, Ok(S::contents_of(model)), "{}: {script:?}", P::NAME);
    }
}

/// Runs operations on an object and on its model, and compares what they return. Returns the
/// failure in which the transaction must end, if one of its updates fails.
fn play<S: Subject<P>, P: Protocol>(
    object: &S,
    model: &mut S::Model,
    tx: &Tx<'_, P>,
    script: &[u64],
) -> Result<Option<Abort>, Abort> {
    let mut failure = None;
    for (place, &operation) in script.iter().enumerate() {
        let shown = object.run(tx, operation);
        if shown.as_ref().is_err_and(|abort| abort.is_conflict()) {
            return Err(shown.unwrap_err());
        }
        let told = match failure {
            None => S::model(model, operation),
            Some(abort) => Told::Fails(abort),
        };
        let what = || format!("{}: operation {place} of {script:?}", P::NAME);
        match told {
            Told::Shown(values) => assert_eq!(shown, Ok(values), "{}", what()),
            Told::Refused(abort) => assert_eq!(shown, Err(abort), "{}", what()),
            Told::Fails(abort) => {
                failure = Some(abort);
                // The failure shows at the next read of the unit, or at the commit.
                if let Err(shown) = shown {
                    if shown == Abort::OutOfBounds {
                        continue;
                    }
                    assert_eq!(shown, abort, "{}", what());
                    return Err(shown);
                }
            }
        }
    }
    Ok(failure)
}
