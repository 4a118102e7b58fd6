//! Registers: rows of one value.

use candide::{Abort, Database, Error, Protocol, Record, Table, Tx};
use candide_check::black::RegisterOp;

use super::Object;

/// Registers, one for each key.
pub struct Registers;

/// A register that has been written.
#[derive(Record, Clone, Copy, Debug)]
pub struct Register {
    /// The key.
    #[key]
    pub id: u64,
    /// The value.
    pub value: u64,
}

impl Object for Registers {
    type Op = RegisterOp;
    type Tables<P: Protocol> = Table<Register, P>;

    const TABLE: &'static str = "registers";

    fn create<P: Protocol>(db: &Database<P>) -> Result<Table<Register, P>, Error> {
        db.table(Self::TABLE)
    }

    fn read<P: Protocol>(
        registers: &Table<Register, P>,
        tx: &Tx<'_, P>,
        key: u64,
    ) -> Result<RegisterOp, Abort> {
        Ok(RegisterOp::Read { key, value: registers.get(tx, &key, Register::VALUE)? })
    }

    fn write<P: Protocol>(
        registers: &Table<Register, P>,
        tx: &Tx<'_, P>,
        key: u64,
        value: u64,
        way: u8,
    ) -> Result<RegisterOp, Abort> {
        let row = Register { id: key, value };
        match way % 4 {
            0 => registers.put(tx, row)?,
            1 => registers.upsert(tx, row, Register::VALUE.set(value)).map(drop)?,
            2 => {
                let modified =
                    registers.modify_if_present(tx, &key, Register::VALUE, |held| *held = value)?;
                if modified.is_none() {
                    registers.insert(tx, row)?;
                }
            }
            _ => {
                registers.delete_if_present(tx, &key)?;
                registers.insert(tx, row)?;
            }
        }
        Ok(RegisterOp::Write { key, value })
    }
}
