//! The catalog of an object in a place: what has changed among the tables, or all of them.

#![forbid(unsafe_code)]

use super::Malformed;
use super::bytes::{Field, Reader};
use super::manifest::{self, table_bytes, table_of_bytes};
use crate::schema::TableSchema;

const TABLE_FORMAT: Field = Field::new("table format", 0, 4);
const KIND: Field = Field::new("kind", 4, 4);
const OWN: Field = Field::new("own generation", 8, 8);
const GENERATION: Field = Field::new("behind: generation", 16, 8);
const CUT: Field = Field::new("behind: cut", 24, 8);
const TABLES: Field = Field::new("tables", 32, 4);

/// The fields with which a catalog begins.
pub const FIELDS: &[Field] = &[TABLE_FORMAT, KIND, OWN, GENERATION, CUT, TABLES];

/// The number of bytes of these fields.
const HEADER_BYTES: usize = 36;
const CHANGES: u64 = 1;
const WHOLE: u64 = 2;
const ANEW: u64 = 3;

/// What an object says of the tables. An object without changes has no bytes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// What the tables are.
    pub kind: CatalogKind,
    /// The tables, as they are from this object on. One that is dropped is in the list, too.
    pub tables: Vec<TableSchema>,
}

/// What the tables of a [`Catalog`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogKind {
    /// Those that have changed since the object before, in the order of the changes. A table with a
    /// number that no table has, or that of a dropped table, is a new one.
    Changes,
    /// All tables: others are gone. The first block of a leader has it, and the first part of each
    /// snapshot.
    Whole {
        /// The generation of the leader's local log. Stamps of its transactions belong to it.
        own: u64,
        /// The generation of a local log and the cut up to which the state has to be there before
        /// the records of this block. (0, 0) for the empty state.
        behind: (u64, u64),
        /// Whether records of earlier blocks that are above that cut are dropped, as at the end of
        /// a generation of a local log.
        is_anew: bool,
    },
}

impl Catalog {
    /// Returns the catalog as bytes.
    ///
    /// # Errors
    /// A table breaks a limit.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        let mut to = vec![0; HEADER_BYTES];
        TABLE_FORMAT.put(&mut to, manifest::VERSION.into());
        let (kind, own, behind) = match self.kind {
            CatalogKind::Changes => (CHANGES, 0, (0, 0)),
            CatalogKind::Whole { own, behind, is_anew } => {
                (if is_anew { ANEW } else { WHOLE }, own, behind)
            }
        };
        KIND.put(&mut to, kind);
        OWN.put(&mut to, own);
        GENERATION.put(&mut to, behind.0);
        CUT.put(&mut to, behind.1);
        TABLES.put(&mut to, self.tables.len() as u64);
        for table in &self.tables {
            let bytes = table_bytes(table)?;
            to.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            to.extend_from_slice(&bytes);
        }
        Ok(to)
    }

    /// Reads a catalog; `None` if there are no bytes.
    ///
    /// # Errors
    /// The bytes are no catalog.
    pub fn decode(bytes: &[u8]) -> Result<Option<Catalog>, Malformed> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut from = Reader::new(bytes, 0);
        let header = from.take(HEADER_BYTES, "a catalog")?;
        let format = TABLE_FORMAT.get_u32(header);
        if format != manifest::VERSION {
            return Err(super::bytes::unknown("a catalog", format, manifest::VERSION));
        }
        let (own, behind) = (OWN.get(header), (GENERATION.get(header), CUT.get(header)));
        let kind = match KIND.get(header) {
            CHANGES if own == 0 && behind == (0, 0) => CatalogKind::Changes,
            kind @ (WHOLE | ANEW) => CatalogKind::Whole { own, behind, is_anew: kind == ANEW },
            kind => return Err(KIND.wrong(format!("a catalog has the kind {kind}"))),
        };
        let mut tables = Vec::new();
        for _ in 0..TABLES.get(header) {
            let count = from.number(4, "the bytes of a table")? as usize;
            let at = from.offset();
            let table = from.take(count, "a table")?;
            tables.push(table_of_bytes(table).map_err(|error| error.after(at))?);
        }
        match from.left() {
            0 => Ok(Some(Catalog { kind, tables })),
            left => {
                let what = format!("there are {left} bytes behind the last table");
                Err(Malformed::new(from.offset(), what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TableState;

    fn table(number: u32) -> TableSchema {
        TableSchema {
            number,
            name: format!("table {number}"),
            row_type: "Row".to_string(),
            schema: 1,
            key_words: 1,
            key_widths: vec![64],
            groups: vec![("all".to_string(), 2)],
            ordered: false,
            splitting: None,
            policy: None,
            indexes: Vec::new(),
            fields: Vec::new(),
            state: TableState::InUse,
        }
    }

    #[test]
    fn catalogs_are_read_back_and_damaged_ones_are_refused() {
        let whole = |is_anew| CatalogKind::Whole { own: 7, behind: (6, 99), is_anew };
        for kind in [CatalogKind::Changes, whole(false), whole(true)] {
            for tables in [Vec::new(), vec![table(3), table(1).dropped(), table(1)]] {
                let catalog = Catalog { kind, tables };
                let bytes = catalog.encode().unwrap();
                assert_eq!(Catalog::decode(&bytes), Ok(Some(catalog)));
                for end in 1..bytes.len() {
                    assert!(Catalog::decode(&bytes[..end]).is_err(), "{end}");
                }
                let longer = [&bytes[..], &[0]].concat();
                assert!(Catalog::decode(&longer).is_err());
                let mut other = bytes.clone();
                other[KIND.offset] = 9;
                assert!(Catalog::decode(&other).unwrap_err().what.contains("kind 9"));
            }
        }
        assert_eq!(Catalog::decode(&[]), Ok(None));
    }
}
