//! Numbers of epochs.

#![forbid(unsafe_code)]

/// An epoch: 38 bits, which last for eight years of milliseconds. In a database with a log, each
/// block ends an epoch, too: at 10,000 blocks a second, the epochs of a process last for 300 days.
pub(crate) type Epoch = u64;

/// The last epoch. The clock stops there, and commits that would need a later one are refused.
pub(crate) const EPOCH_MAX: Epoch = (1 << 38) - 1;
