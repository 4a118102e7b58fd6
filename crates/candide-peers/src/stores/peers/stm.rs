//! Software transactional memory: `fast-stm`, with a variable for each row.

use std::cell::Cell;
use std::collections::HashMap;

use fast_stm::{StmError, TVar, Transaction, TransactionError, atomically_with_err};
use foldhash::fast::RandomState;

use crate::Role;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, there,
};

/// Transactional variables.
pub(crate) struct Stm;

impl Peer for Stm {
    const NAME: &'static str = "stm";
    const CRATE: Option<&'static str> = Some("fast-stm");
    const USE: &'static str =
        "a TVar for each row, in HashMaps that do not change once they are filled; serializable";
    const ROLE: Role = Role::Peer;
    type Store<V: Value> = Variables<V>;
}

/// The transactional variables of each table, by key.
pub(crate) struct Variables<V>(Vec<HashMap<u64, TVar<V>, RandomState>>);

impl<V: Value> Store<V> for Variables<V> {
    type Session<'s> = &'s Variables<V>;

    fn open(size: Size) -> Result<Self, Failure> {
        let map = || HashMap::with_capacity_and_hasher(size.rows as usize, RandomState::default());
        Ok(Variables((0..size.tables).map(|_| map()).collect()))
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        self.0[table].extend(rows.map(|(key, value)| (key, TVar::new(value))));
        Ok(())
    }

    fn session(&self) -> Result<&Variables<V>, Failure> {
        Ok(self)
    }
}

impl<V: Value> Variables<V> {
    fn run<T>(
        &self,
        body: impl Fn(&mut Running<'_, V>) -> Result<T, Stopped>,
    ) -> Result<Done<T>, Failure> {
        let attempts = Cell::new(0);
        let output = atomically_with_err(|tx| {
            attempts.set(attempts.get() + 1);
            body(&mut Running { tx, variables: self }).map_err(|stopped| match stopped {
                Stopped::Conflict => TransactionError::Stm(StmError::Failure),
                Stopped::Failed(failure) => TransactionError::Abort(failure),
            })
        })?;
        Ok(Done { output, retries: attempts.get() - 1 })
    }
}

impl<V: Value> Session<V> for &Variables<V> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        self.run(|tx| work.run(tx))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        self.run(|tx| work.run(tx))
    }
}

/// A transaction.
struct Running<'t, V> {
    tx: &'t mut Transaction,
    variables: &'t Variables<V>,
}

impl<'t, V> Running<'t, V> {
    #[inline]
    fn variable(&self, place: Place) -> Result<&'t TVar<V>, Stopped> {
        there(self.variables.0[place.table].get(&place.key), place)
    }
}

impl<V: Value> Read<V> for Running<'_, V> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let variable = self.variable(place)?;
        self.tx.read(variable).map_err(|_| Stopped::Conflict)
    }
}

impl<V: Value> Write<V> for Running<'_, V> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        let variable = self.variable(place)?;
        self.tx.write(variable, value).map_err(|_| Stopped::Conflict)
    }
}
