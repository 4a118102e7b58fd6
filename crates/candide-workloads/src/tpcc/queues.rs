//! Deliveries that are requested and not yet made.

use std::sync::atomic::{AtomicU64, Ordering};

use super::rows::WarehouseId;

/// The number of requested deliveries of each warehouse. Any worker may request a delivery, and one
/// worker executes all deliveries of a warehouse.
pub(super) struct Queues(Box<[Queue]>);

/// The number of requests of one warehouse, with its own cache lines.
#[repr(align(128))]
struct Queue(AtomicU64);

impl Queues {
    pub(super) fn new(warehouses: WarehouseId) -> Self {
        Queues((0..warehouses).map(|_| Queue(AtomicU64::new(0))).collect())
    }

    fn of(&self, warehouse: WarehouseId) -> &AtomicU64 {
        &self.0[usize::from(warehouse) - 1].0
    }

    pub(super) fn ask(&self, warehouse: WarehouseId) {
        self.of(warehouse).fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_asked(&self, warehouse: WarehouseId) -> bool {
        self.of(warehouse).load(Ordering::Relaxed) > 0
    }

    /// Takes one finished delivery off the queue.
    pub(super) fn done(&self, warehouse: WarehouseId) {
        self.of(warehouse).fetch_sub(1, Ordering::Relaxed);
    }
}
