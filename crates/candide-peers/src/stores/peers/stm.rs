//! Software transactional memory: `fast-stm` and `stm`, with a variable for each row.

use std::cell::Cell;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::Role;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, there,
};

/// Defines a peer in terms of one of the two crates, whose interfaces are alike.
macro_rules! transactional_memory {
    ($module:ident: $memory:ident, $peer:ident, $name:literal) => {
        /// Transactional variables.
        pub(crate) struct $peer;

        impl Peer for $peer {
            const NAME: &'static str = $name;
            const CRATE: Option<&'static str> = Some($name);
            const USE: &'static str = "a TVar for each row, in HashMaps that do not change once they \
                                       are filled; serializable";
            const ROLE: Role = Role::Peer;
            type Store<V: Value> = $module::Variables<V>;
        }

        mod $module {
            use $memory::{StmError, TVar, Transaction, atomically};

            use super::*;

            /// The transactional variables of each table, by key.
            pub(crate) struct Variables<V>(Vec<HashMap<u64, TVar<V>, RandomState>>);

            impl<V: Value> Store<V> for Variables<V> {
                type Session<'s> = &'s Variables<V>;

                fn open(size: Size) -> Result<Self, Failure> {
                    let rows = size.rows as usize;
                    let map = || HashMap::with_capacity_and_hasher(rows, RandomState::default());
                    Ok(Variables((0..size.tables).map(|_| map()).collect()))
                }

                fn load(
                    &mut self,
                    table: usize,
                    rows: impl Iterator<Item = (u64, V)>,
                ) -> Result<(), Failure> {
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
                    // A failure ends the measurement, so it does not matter that it commits.
                    let output = atomically(|tx| {
                        attempts.set(attempts.get() + 1);
                        match body(&mut Running { tx, variables: self }) {
                            Ok(output) => Ok(Ok(output)),
                            Err(Stopped::Conflict) => Err(StmError::Failure),
                            Err(Stopped::Failed(failure)) => Ok(Err(failure)),
                        }
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
        }
    };
}

transactional_memory!(fast: fast_stm, FastStm, "fast-stm");
transactional_memory!(plain: stm, Stm, "stm");
