//! The accesses to registers that a search for a serial order has to explain.

use super::inference::Place;
use std::ops::Range;

/// A value that a transaction left in a register.
pub(super) struct Written {
    /// The register.
    pub(super) key: u64,
    /// The register, as an index of [`Accesses::registers`].
    pub(super) register: usize,
    pub(super) value: u64,
    pub(super) writer: Place,
    /// The other transactions that read the value.
    pub(super) readers: Vec<Place>,
}

/// The values of all registers, with the transactions that read and wrote them.
#[derive(Default)]
pub(super) struct Accesses {
    /// The values. The values of one register are next to one another.
    pub(super) values: Vec<Written>,
    /// For each register, its range of `values`.
    pub(super) registers: Vec<Range<usize>>,
    /// For each node, the values that it left, as indexes of `values`.
    pub(super) writes: Vec<Vec<usize>>,
    /// For each node, the values that it read, as indexes of `values`.
    pub(super) reads: Vec<Vec<usize>>,
}

impl Accesses {
    /// Creates accesses of `nodes` nodes to no register.
    pub(super) fn new(nodes: u32) -> Accesses {
        let none = vec![Vec::new(); nodes as usize];
        Accesses { writes: none.clone(), reads: none, ..Accesses::default() }
    }

    /// Adds a register: the values that were left in it, each with its writer and its readers.
    pub(super) fn add(
        &mut self,
        key: u64,
        values: impl IntoIterator<Item = (Place, u64, Vec<Place>)>,
    ) {
        let (first, register) = (self.values.len(), self.registers.len());
        for (writer, value, readers) in values {
            let index = self.values.len();
            self.writes[writer as usize].push(index);
            readers.iter().for_each(|reader| self.reads[*reader as usize].push(index));
            self.values.push(Written { key, register, value, writer, readers });
        }
        self.registers.push(first..self.values.len());
    }
}
