//! A map and a queue of transactional variables, of `fast-stm` and of `stm`.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::work::{Ended, MapSide, OPERATIONS, Operation, QueueSide};
use crate::timed::Failure;

/// Defines both in terms of one of the two crates, whose interfaces are alike.
macro_rules! of_variables {
    ($module:ident: $memory:ident) => {
        pub(crate) mod $module {
            use $memory::{StmError, TVar, Transaction, atomically};

            use super::*;

            /// Runs a transaction.
            fn run(body: impl Fn(&mut Transaction) -> Result<i64, StmError>) -> Ended {
                let attempts = Cell::new(0);
                let output = atomically(|tx| {
                    attempts.set(attempts.get() + 1);
                    body(tx)
                });
                Ended { output, retries: attempts.get() - 1 }
            }

            /// A variable for each key that may be there.
            pub(crate) struct Map(HashMap<u64, TVar<Option<u64>>, RandomState>);

            impl Map {
                /// Makes a map of the even numbers below `keys`.
                pub(crate) fn new(keys: u64) -> Map {
                    let value = |key: u64| key.is_multiple_of(2).then_some(key);
                    Map((0..keys).map(|key| (key, TVar::new(value(key)))).collect())
                }
            }

            impl MapSide for Map {
                type Session<'s> =
                    Box<dyn FnMut(&[Operation; OPERATIONS]) -> Result<Ended, Failure> + 's>;

                fn session(&self) -> Result<Self::Session<'_>, Failure> {
                    Ok(Box::new(|operations| {
                        Ok(run(|tx| {
                            let mut grown = 0;
                            for &operation in operations {
                                match operation {
                                    Operation::Get(key) => {
                                        std::hint::black_box(tx.read(&self.0[&key])?);
                                    }
                                    Operation::Insert(key) => {
                                        let variable = &self.0[&key];
                                        if tx.read(variable)?.is_none() {
                                            tx.write(variable, Some(key))?;
                                            grown += 1;
                                        }
                                    }
                                    Operation::Remove(key) => {
                                        let variable = &self.0[&key];
                                        if tx.read(variable)?.is_some() {
                                            tx.write(variable, None)?;
                                            grown -= 1;
                                        }
                                    }
                                }
                            }
                            Ok(grown)
                        }))
                    }))
                }

                fn len(&self) -> u64 {
                    self.0.values().filter(|variable| variable.read_atomic().is_some()).count()
                        as u64
                }
            }

            /// The place of an element that may have been pushed.
            type Link = TVar<Option<Arc<Element>>>;

            struct Element {
                number: i64,
                next: Link,
            }

            /// The place of the first element, and the place behind the last one.
            pub(crate) struct Queue {
                head: TVar<Link>,
                tail: TVar<Link>,
            }

            impl Queue {
                /// Makes an empty queue.
                pub(crate) fn new() -> Queue {
                    let link: Link = TVar::new(None);
                    Queue { head: TVar::new(link.clone()), tail: TVar::new(link) }
                }
            }

            impl QueueSide for Queue {
                type Session<'s> = Box<dyn FnMut(Option<i64>) -> Result<Ended, Failure> + 's>;

                fn session(&self) -> Result<Self::Session<'_>, Failure> {
                    Ok(Box::new(|push| {
                        Ok(run(|tx| {
                            if let Some(number) = push {
                                let next: Link = TVar::new(None);
                                let link = tx.read(&self.tail)?;
                                tx.write(&self.tail, next.clone())?;
                                tx.write(&link, Some(Arc::new(Element { number, next })))?;
                                return Ok(0);
                            }
                            let link = tx.read(&self.head)?;
                            let Some(element) = tx.read(&link)? else { return Ok(0) };
                            tx.write(&self.head, element.next.clone())?;
                            Ok(element.number)
                        }))
                    }))
                }
            }
        }
    };
}

of_variables!(fast: fast_stm);
of_variables!(plain: stm);
