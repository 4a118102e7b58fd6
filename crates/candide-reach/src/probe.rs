//! Whether a place keeps its first promise.

#![forbid(unsafe_code)]

use crate::place::{Created, Place, PlaceError};
use crate::random;

/// Creates one name twice, from two handles, and checks that the second creation is refused and
/// that both handles read the bytes of the first one. The object is removed.
///
/// A place of which this holds now may be served by other software at the next opening, so it is
/// probed at each opening and each claim.
///
/// # Errors
/// * [`PlaceError::Unconditional`]: the second creation succeeded, or has replaced the object.
/// * [`PlaceError::Broken`]: the object has other bytes, or exists although its name, a random
///   number, has not been used.
/// * [`PlaceError::Unknown`]: a call has no answer, or the object cannot be read yet. Another probe
///   may find out more.
/// * Any other error of the calls.
pub fn probe(place: &dyn Place) -> Result<(), PlaceError> {
    let other = place.another()?;
    let number = random::number();
    let name = format!("probe/{number:016x}");
    let found = probe_as(place, &*other, &name, number);
    // What is left after an error is only a probe, whose name is not used again.
    let removed = place.delete(&name);
    found?;
    removed
}

fn probe_as(
    place: &dyn Place,
    other: &dyn Place,
    name: &str,
    number: u64,
) -> Result<(), PlaceError> {
    let [first, second] = [number, !number].map(u64::to_le_bytes);
    if place.create(name, &first)? == Created::Exists {
        // What exists may be from a request of this call that was repeated below it.
        match place.read(name)? {
            Some(bytes) if bytes == first => {}
            Some(_) => {
                let what = format!("{name} exists, which was never created");
                return Err(PlaceError::Broken(what));
            }
            None => return Err(PlaceError::Unknown(format!("{name} cannot be read yet"))),
        }
    }
    if other.create(name, &second)? == Created::New {
        return Err(PlaceError::Unconditional(format!("{name} was created twice")));
    }
    for handle in [place, other] {
        match handle.read(name)? {
            Some(bytes) if bytes == first => {}
            Some(bytes) if bytes == second => {
                let what = format!("{name} was created once and has the bytes of the other call");
                return Err(PlaceError::Unconditional(what));
            }
            Some(_) => {
                return Err(PlaceError::Broken(format!("{name} has other bytes than created")));
            }
            None => return Err(PlaceError::Unknown(format!("{name} cannot be read yet"))),
        }
    }
    Ok(())
}
