//! The network, and changes of it.

use candide::Abort;

use super::ad_tree::Bits;

/// A network in some store.
pub(super) trait Network {
    /// Returns the parents of a variable.
    fn parents(&self, variable: u32) -> Result<Bits, Abort>;

    /// Returns the variables of which a variable is a parent.
    fn children(&self, variable: u32) -> Result<Bits, Abort>;

    /// Returns the score of a variable.
    fn score(&self, variable: u32) -> Result<i64, Abort>;
}

/// What is done with an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is inserted.
    Insert,
    /// It is removed.
    Remove,
    /// It is turned around.
    Reverse,
}

/// The change of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// How much more the score is afterwards.
    pub gain: i64,
    /// What is done with the edge.
    pub change: Change,
    /// The variable where the edge begins.
    pub from: u32,
    /// The variable where it ends.
    pub to: u32,
}

/// A task as an element of the list: the best ones come first.
pub type Element = (i64, u32, u32, u32);

impl From<Task> for Element {
    fn from(Task { gain, change, from, to }: Task) -> Element {
        (-gain, to, change as u32, from)
    }
}

impl From<Element> for Task {
    fn from((gain, to, change, from): Element) -> Task {
        let change = [Change::Insert, Change::Remove, Change::Reverse][change as usize % 3];
        Task { gain: -gain, change, from, to }
    }
}

/// What a variable is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) number: u32,
    pub(super) parents: Bits,
    pub(super) children: Bits,
    pub(super) score: i64,
}

/// A network without transactions, for one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) parents: Vec<Bits>,
    pub(super) children: Vec<Bits>,
    pub(super) scores: Vec<i64>,
}

impl Plain {
    /// Returns a network without edges, with the variables' scores.
    pub(super) fn empty(scores: Vec<i64>) -> Plain {
        let none = vec![0; scores.len()];
        Plain { parents: none.clone(), children: none, scores }
    }

    /// Changes a variable.
    pub(super) fn set(&mut self, variable: Variable) {
        let Variable { number, parents, children, score } = variable;
        let number = number as usize;
        (self.parents[number], self.children[number]) = (parents, children);
        self.scores[number] = score;
    }

    /// Returns whether each set of children is what the parents say.
    pub(super) fn is_consistent(&self) -> bool {
        let all = self.parents.len();
        let has = |set: &[Bits], of: usize, other: usize| set[of] >> other & 1;
        (0..all * all).all(|pair| {
            let (one, other) = (pair / all, pair % all);
            has(&self.parents, one, other) == has(&self.children, other, one)
        })
    }

    /// Returns whether no variable is an ancestor of itself.
    pub(super) fn is_acyclic(&self) -> bool {
        let all = self.parents.len();
        let mut placed: Bits = 0;
        // In each round at least one variable is placed whose parents are all placed.
        for _ in 0..all {
            let ready = (0..all).filter(|&number| self.parents[number] & !placed == 0);
            placed = ready.fold(placed, |placed, number| placed | 1 << number);
        }
        placed.count_ones() as usize == all
    }
}

impl Network for Plain {
    fn parents(&self, variable: u32) -> Result<Bits, Abort> {
        Ok(self.parents[variable as usize])
    }

    fn children(&self, variable: u32) -> Result<Bits, Abort> {
        Ok(self.children[variable as usize])
    }

    fn score(&self, variable: u32) -> Result<i64, Abort> {
        Ok(self.scores[variable as usize])
    }
}

/// Returns the variables that can be reached from those in `reached`.
pub(super) fn descendants(network: &dyn Network, reached: Bits) -> Result<Bits, Abort> {
    let (mut all, mut open) = (reached, reached);
    while open != 0 {
        let next = network.children(open.trailing_zeros())?;
        open = open & (open - 1) | next & !all;
        all |= next;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_and_descendants_are_found() {
        let mut network = Plain::empty(vec![0; 4]);
        (network.parents, network.children) = (vec![0, 1, 2, 0], vec![2, 4, 0, 0]);
        assert!(network.is_acyclic() && network.is_consistent());
        assert_eq!(descendants(&network, 1), Ok(0b111));
        assert_eq!(descendants(&network, 0b1010), Ok(0b1110));
        network.parents[0] = 0b100;
        assert!(!network.is_acyclic() && !network.is_consistent());
    }

    #[test]
    fn better_tasks_come_first_in_the_list() {
        let task = |gain| Task { gain, change: Change::Reverse, from: 3, to: 7 };
        assert_eq!(Task::from(Element::from(task(5))), task(5));
        assert!(Element::from(task(6)) < Element::from(task(5)));
    }
}
