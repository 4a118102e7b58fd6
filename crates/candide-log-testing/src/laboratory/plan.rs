//! The choice of the scripts' steps and of the states that are judged.

use crate::disk::CrashOptions;
use candide_log::TableSchema;

/// The choice of the scripts' steps, of the states that are judged, and of the way in which they
/// are.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The schema of all tables, apart from the number and the name. The key has one word, and a
    /// row at least one.
    pub schema: TableSchema,
    /// The number of steps of a script.
    pub steps: u64,
    /// The share of the scripts, in percent, in which the disk has faults.
    pub faults_percent: u64,
    /// The choice of the states that are judged.
    pub crashes: CrashOptions,
    /// The share of the states, from 0 to 1, in which crashes of recovery are judged, and the share
    /// in which the database continues and crashes again.
    pub recovery_share: f64,
    /// The share of the states, from 0 to 1, that the whole engine opens, too.
    pub engine_share: f64,
}

impl Plan {
    /// Returns the usual plan, with tables of this schema, and without a whole engine.
    ///
    /// # Panics
    /// If the schema's key has not one word, or its row has none.
    pub fn new(schema: TableSchema) -> Plan {
        assert_eq!(schema.key_words, 1, "keys have one word");
        assert!(schema.row_words() > 0, "rows have words");
        let crashes =
            CrashOptions { exhaustive: 6, pieces: 16, samples: 6, ..CrashOptions::default() };
        let (recovery_share, engine_share) = (0.001, 0.0);
        Plan { schema, steps: 16, faults_percent: 40, crashes, recovery_share, engine_share }
    }

    /// Returns the schema of the table with this index, from 0. The table's number is one more.
    pub(super) fn table(&self, index: usize) -> TableSchema {
        let number = index as u32 + 1;
        TableSchema { number, name: Plan::table_name(number), ..self.schema.clone() }
    }

    /// Returns the name of the table with a number.
    pub fn table_name(number: u32) -> String {
        format!("table {number}")
    }
}
