//! Keys and indexes with texts in tuples and options, beside a model.

use candide::any::AnyDatabase;
use candide::{Abort, Equals, Prefix, Record, TableOptions, Text, Whole};
use std::collections::BTreeMap;
use std::ops::Bound;

/// A row of a table with two components in its key, one of them a text.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
#[index(columns(kind, label, number))]
#[unique(name = by_mark, columns(mark, number), ordered)]
struct Part {
    #[key]
    store: u8,
    #[key]
    name: Text<11>,
    kind: i8,
    label: Text<20>,
    mark: Option<Text<4>>,
    number: u32,
}

const NAMES: [&str; 6] = ["", "a", "a\0", "ab", "hammer drill", "hammerdrill"];
const LABELS: [&str; 4] = ["", "long label of 20 byt", "x", "x\0"];
const MARKS: [Option<&str>; 4] = [None, Some(""), Some("m"), Some("mark")];

fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(&text[..text.len().min(N)]).expect("it was cut")
}

fn part(number: u32) -> Part {
    let choose = |divisor: u32, count: usize| (number / divisor) as usize % count;
    Part {
        store: choose(1, 3) as u8,
        name: text(NAMES[choose(3, 6)]),
        kind: choose(2, 3) as i8 - 1,
        label: text(LABELS[choose(5, 4)]),
        mark: MARKS[choose(7, 4)].map(text),
        number,
    }
}

#[test]
fn rows_are_found_by_texts_in_tuples_and_options() {
    for protocol in ["occ", "tictoc", "mvcc", "mvto", "serial", "2pl-no-wait"] {
        for apart in [true, false] {
            let db = AnyDatabase::choose(protocol).unwrap();
            let options = TableOptions::default().contention_aware_keys(apart);
            let parts = db.table_with::<Part>("parts", options).unwrap();
            let by_label = parts.index(Part::BY_KIND_LABEL_NUMBER);
            let by_mark = parts.index(Part::BY_MARK);
            let mut model = BTreeMap::new();
            db.run(|tx| {
                model.clear();
                for number in (0..60).map(|number| number * 37 % 101) {
                    let part = part(number);
                    parts.put(tx, part)?;
                    model.insert((part.store, part.name), part);
                }
                Ok(())
            })
            .unwrap();
            let checked = db.read_view(|tx| {
                let all = parts.scan(tx, .., Whole).collect::<Result<Vec<_>, _>>()?;
                assert!(all.iter().map(|(key, part)| (key, part)).eq(&model), "{protocol}");
                for (&key @ (store, name), &part) in &model {
                    assert_eq!(parts.get(tx, (store, name.as_str()), Whole)?, Some(part));
                    let mark = by_mark.get(tx, (part.mark, part.number), Whole)?;
                    assert_eq!(mark, Some(part), "{protocol} {key:?}");
                    let label = Prefix((part.kind, part.label));
                    let mut wanted: Vec<_> = model.values().copied().collect();
                    wanted.retain(|other| (other.kind, other.label) == (part.kind, part.label));
                    wanted.sort_by_key(|part| part.number);
                    let found = by_label.scan(tx, label, Whole).map(|row| Ok(row?.1));
                    assert_eq!(found.collect::<Result<Vec<_>, Abort>>()?, wanted, "{protocol}");
                    let behind = parts.count(tx, (Bound::Excluded(key), Bound::Unbounded))?;
                    assert_eq!(behind, model.keys().filter(|&&other| other > key).count());
                }
                let unmarked = by_mark.scan(tx, Prefix((None::<Text<4>>,)), ()).count()?;
                assert_eq!(unmarked, model.values().filter(|part| part.mark.is_none()).count());
                assert!(!parts.contains(tx, (0, "a name of more than 11 bytes"))?);
                Ok(())
            });
            checked.unwrap();
            // Every row moves to another label, and the index follows.
            db.run(|tx| {
                for &(store, name) in model.keys() {
                    parts.modify(tx, (store, name), Part::LABEL, |label| *label = text("moved"))?;
                }
                let moved = |kind: i8| by_label.count(tx, Prefix((kind, Equals("moved"))));
                assert_eq!(moved(-1)? + moved(0)? + moved(1)?, model.len(), "{protocol}");
                Ok(())
            })
            .unwrap();
        }
    }
}
