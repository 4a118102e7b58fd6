//! The check after the runs, which compares every centre with the points that are in its cluster.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use candide::{Protocol, Session};

use super::clustering::NO_CLUSTER;
use super::findings::add;
use super::program::Program;
use super::tables::{CHANGED, CHUNK, Centre, Clusters, Counter, DIMENSIONS_MAX, Found, NEXT};
use crate::read_back::{Rows, Way, audit, rows};
use crate::{Consistency, Failure};

/// Compares the tables with the points that the threads have claimed in the current iteration, and
/// adds what was found at the ends of earlier ones.
pub(super) fn check<P: Protocol>(
    tables: &Clusters<P>,
    session: Session<P>,
    clusters: u32,
    program: &Program,
) -> Result<Consistency, Failure> {
    let session = &RefCell::new(session);
    let (centres, counters) = (rows(&tables.centres, session), rows(&tables.counters, session));
    settle(&centres, &counters, clusters, program)
}

fn settle(
    centres: &Rows<'_, Centre>,
    counters: &Rows<'_, Counter>,
    clusters: u32,
    program: &Program,
) -> Result<Consistency, Failure> {
    let expected = expected(clusters, program);
    let mut consistency = audit(
        |way| read(centres, counters, way, clusters),
        |found, way, consistency| compare(found, &expected, way, consistency),
        Found::eq,
        |found| {
            format!(
                "{} centres, next {}, changed {}",
                found.centres.len(),
                found.next,
                found.changed
            )
        },
    )?;
    let points = program.prepared.points.len();
    let memberships = program.memberships.iter().map(|of| of.load(Ordering::Relaxed));
    let strangers = memberships.filter(|&of| of >= clusters && of != NO_CLUSTER).count();
    consistency
        .expect(strangers == 0, || format!("{strangers} of {points} points are in no cluster"));
    let (_, ended) = program.meeting.account();
    let clusterings = program.clusterings();
    consistency.notes.push(format!("{clusterings} clusterings have ended"));
    consistency.notes.push(format!("{ended} iterations of clusterings have ended"));
    consistency.merge(program.findings());
    Ok(consistency)
}

/// Reads both tables.
fn read(
    centres: &Rows<'_, Centre>,
    counters: &Rows<'_, Counter>,
    way: Way,
    clusters: u32,
) -> Result<Found, Failure> {
    let mut found = Found::default();
    centres.read(way, &mut (0..clusters), &mut |row| found.centres.push(*row))?;
    found.centres.sort_unstable_by_key(|row| row.id);
    counters.read(way, &mut [NEXT, CHANGED].into_iter(), &mut |row| match row.id {
        NEXT => found.next = row.value,
        _ => found.changed = row.value,
    })?;
    Ok(found)
}

/// Returns what the tables must hold: the points that have been claimed in the current iteration,
/// in the clusters to which the threads have assigned them.
fn expected(clusters: u32, program: &Program) -> Found {
    let (iteration, _) = program.meeting.account();
    let next = (iteration.given + iteration.done.claims) * CHUNK as u64;
    let empty = |id| Centre { id, count: 0, sums: [0; DIMENSIONS_MAX] };
    let mut centres: Vec<Centre> = (0..clusters).map(empty).collect();
    let claimed = usize::try_from(next).unwrap_or(usize::MAX).min(program.memberships.len());
    for (index, of) in program.memberships[..claimed].iter().enumerate() {
        // A point in no cluster is missing in the table.
        if let Some(row) = centres.get_mut(of.load(Ordering::Relaxed) as usize) {
            row.count += 1;
            add(&mut row.sums, &program.prepared.points.whole(index).map(i64::from));
        }
    }
    Found { centres, next, changed: iteration.done.changed }
}

/// Compares what one way of reading has found with what the tables must hold.
fn compare(found: &Found, expected: &Found, way: &str, consistency: &mut Consistency) {
    let (rows, all) = (found.centres.len(), expected.centres.len());
    consistency
        .expect(rows == all, || format!("{way}: there are {rows} centres where {all} were loaded"));
    let wrong =
        found.centres.iter().zip(&expected.centres).filter(|(row, expected)| row != expected);
    let (count, first) = (wrong.clone().count(), wrong.map(|(row, _)| row.id).next());
    consistency.expect(count == 0, || {
        format!("{way}: {count} centres do not hold the points of their clusters; the first is {first:?}")
    });
    let sum = |found: &Found| found.centres.iter().map(|row| row.count).sum::<u64>();
    let (added, claimed) = (sum(found), sum(expected));
    consistency.expect(added == claimed, || {
        format!("{way}: the centres hold {added} points where {claimed} were assigned")
    });
    consistency.expect(found.next == expected.next, || {
        format!("{way}: the next point is {} where {} were claimed", found.next, expected.next)
    });
    consistency.expect(found.changed == expected.changed, || {
        format!(
            "{way}: {} changes of clusters are counted where there were {}",
            found.changed, expected.changed
        )
    });
}
