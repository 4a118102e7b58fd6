//! Inputs that are made before the clock starts.

/// Pregenerated inputs, handed out over and over, a fixed number at a time.
///
/// Drawing from a skewed distribution costs as much as a short transaction; a driver that draws while it measures would
/// measure itself.
pub(crate) struct Replay<T> {
    inputs: Vec<T>,
    stride: usize,
    next: usize,
}

impl<T> Replay<T> {
    /// Will hand out `inputs` in slices of `stride`, which must divide their number.
    pub(crate) fn new(inputs: Vec<T>, stride: usize) -> Self {
        assert!(!inputs.is_empty() && inputs.len().is_multiple_of(stride), "whole transactions, at least one");
        Replay { inputs, stride, next: 0 }
    }

    /// The next transaction's inputs.
    pub(crate) fn next(&mut self) -> &[T] {
        let first = self.next;
        let end = first + self.stride;
        self.next = if end == self.inputs.len() { 0 } else { end };
        &self.inputs[first..end]
    }
}
