//! Tasks, and how they are drawn.

use fastrand::Rng;

use super::knobs::{QUERIES_MAX, Vacation};
use crate::rng;

/// The number of kinds of what can be reserved: cars, flights and rooms.
pub const RESOURCE_KINDS: usize = 3;
/// The kind of flights.
pub const FLIGHT: usize = 1;

/// The number of things by which a task changes what there is of an id.
pub const ADDED: i64 = 100;

/// What a task asks about, or changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Query {
    /// 0 for cars, 1 for flights, 2 for rooms.
    pub kind: u8,
    /// The number.
    pub id: u32,
    /// The price at which a task adds some; `None` if it removes some.
    pub price: Option<u16>,
}

/// Some queries.
#[derive(Debug, Clone, Copy, Default)]
pub struct Queries {
    all: [Query; QUERIES_MAX],
    count: usize,
}

impl Queries {
    /// Returns them in order.
    pub fn iter(&self) -> impl Iterator<Item = Query> + '_ {
        self.all[..self.count].iter().copied()
    }
}

/// The inputs of a transaction.
#[derive(Debug, Clone, Copy)]
pub enum Task {
    /// Reserves, for a customer, the most expensive of each kind among the queries.
    Reserve(u32, Queries),
    /// Deletes a customer and cancels the customer's reservations.
    Delete(u32),
    /// Adds to what can be reserved, or removes from it.
    Update(Queries),
}

impl Task {
    /// Returns the index into the workload's transaction types.
    pub(super) fn kind(&self) -> usize {
        match self {
            Task::Reserve(..) => 0,
            Task::Delete(_) => 1,
            Task::Update(_) => 2,
        }
    }
}

/// The tasks of one client, which begin anew when it has done its share.
#[derive(Debug)]
pub struct Tasks {
    seed: (u64, u64),
    rng: Rng,
    share: u64,
    left: u64,
    queries: usize,
    query_range: u32,
    user_pct: u32,
}

impl Tasks {
    /// Returns the tasks of client number `client` of `clients`.
    pub fn of_client(knobs: &Vacation, seed: u64, client: usize, clients: usize) -> Tasks {
        let &Vacation { queries, user_pct, tasks, .. } = knobs;
        let clients = clients.max(1) as u64;
        let share = ((tasks + clients / 2) / clients).max(1);
        let seed = (seed, client as u64);
        let rng = rng::stream(seed.0, seed.1);
        let query_range = knobs.query_range();
        Tasks { seed, rng, share, left: share, queries, query_range, user_pct }
    }

    /// Draws the next task.
    pub fn draw(&mut self) -> Task {
        if self.left == 0 {
            self.rng = rng::stream(self.seed.0, self.seed.1);
            self.left = self.share;
        }
        self.left -= 1;
        let chance = self.rng.u32(..100);
        if chance < self.user_pct {
            let count = self.rng.usize(1..=self.queries);
            let customer = self.rng.u32(1..=self.query_range);
            return Task::Reserve(customer, self.queries(count, false));
        }
        if chance % 2 == 1 {
            return Task::Delete(self.rng.u32(1..=self.query_range));
        }
        let count = self.rng.usize(1..=self.queries);
        Task::Update(self.queries(count, true))
    }

    fn queries(&mut self, count: usize, are_changes: bool) -> Queries {
        let mut queries = Queries { count, ..Queries::default() };
        for query in &mut queries.all[..count] {
            query.kind = self.rng.u8(..RESOURCE_KINDS as u8);
            query.id = self.rng.u32(1..=self.query_range);
            query.price = (are_changes && self.rng.bool()).then(|| draw_price(&mut self.rng));
        }
        queries
    }
}

/// Draws a price.
pub(super) fn draw_price(rng: &mut Rng) -> u16 {
    50 + 10 * rng.u16(..5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::{Form, Mode};

    #[test]
    fn tasks_are_drawn_in_the_published_shares_and_begin_anew() {
        let published = Vacation::published(Mode::HighSim, Form::Eager);
        let knobs = Vacation { relations: 10, tasks: 20_000, ..published };
        let mut tasks = Tasks::of_client(&knobs, 5, 0, 2);
        let (mut kinds, mut prices, mut removals) = ([0; 3], 0, 0);
        let drawn: Vec<Task> = (0..10_000).map(|_| tasks.draw()).collect();
        for task in &drawn {
            kinds[task.kind()] += 1;
            let (Task::Reserve(_, queries) | Task::Update(queries)) = task else { continue };
            assert!((1..=4).contains(&queries.count));
            for Query { kind, id, price } in queries.iter() {
                assert!(kind < 3 && (1..=6).contains(&id), "60 % of ten");
                let is_price = |price: u16| (50..=90).contains(&price) && price.is_multiple_of(10);
                assert!(price.is_none_or(is_price));
                prices += usize::from(price.is_some());
                removals += usize::from(price.is_none() && task.kind() == 2);
            }
        }
        assert!((8_800..9_200).contains(&kinds[0]), "{kinds:?}");
        assert!(kinds[1] > 400 && kinds[2] > 400 && prices > 400 && removals > 400);
        let again: Vec<Task> = (0..10_000).map(|_| tasks.draw()).collect();
        assert_eq!(format!("{again:?}"), format!("{drawn:?}"));
        let other = Tasks::of_client(&knobs, 5, 1, 2).draw();
        assert_ne!(format!("{other:?}"), format!("{:?}", drawn[0]));
    }
}
