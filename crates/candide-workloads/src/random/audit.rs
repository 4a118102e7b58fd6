//! The check that rows and indexes agree.

use std::collections::BTreeMap;

use candide::{Abort, Protocol, Session, Whole};

use super::tables::{Item, Tables};
use crate::{Consistency, Failure};

/// Compares the rows of raw iteration with the rows that transactions find by key and by each
/// index.
pub(super) fn check<P: Protocol>(
    tables: &Tables<P>,
    mut session: Session<P>,
) -> Result<Consistency, Failure> {
    let mut rows = BTreeMap::new();
    tables.items.for_each_quiescent(|item| {
        rows.insert(item.id, *item);
    })?;
    let mut consistency = Consistency::default();
    let scanned: Vec<Item> = session.run(|tx| collect(tables.items.scan(tx, .., Whole)))?;
    consistency.expect(rows.values().eq(&scanned), || {
        format!(
            "lookups find {} items, but a scan finds {}, or other items",
            rows.len(),
            scanned.len()
        )
    });
    let (by_kind, by_tag) = (tables.items.index(Item::BY_KIND), tables.items.index(Item::BY_TAG));
    let mut by_kinds: BTreeMap<u8, Vec<Item>> = BTreeMap::new();
    for item in rows.values() {
        by_kinds.entry(item.kind).or_default().push(*item);
        let tagged = session.run(|tx| by_tag.get(tx, &item.tag, Whole))?;
        consistency.expect(tagged == Some(*item), || {
            format!("the index of tags has {tagged:?} for tag {}, not {item:?}", item.tag)
        });
    }
    for (kind, items) in by_kinds {
        let mut of_kind = session.run(|tx| collect(by_kind.rows(tx, &kind, Whole)))?;
        of_kind.sort_unstable_by_key(|item| item.id);
        consistency.expect(of_kind == items, || {
            format!("the index of kinds has {of_kind:?} for kind {kind}, not {items:?}")
        });
    }
    let all = session.run(|tx| collect(by_kind.scan(tx, .., Whole)))?;
    consistency.expect(all.len() == rows.len(), || {
        format!("the index of kinds has {} entries for {} items", all.len(), rows.len())
    });
    Ok(consistency)
}

fn collect(rows: impl Iterator<Item = Result<(u32, Item), Abort>>) -> Result<Vec<Item>, Abort> {
    rows.map(|row| Ok(row?.1)).collect()
}
