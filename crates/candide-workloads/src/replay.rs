//! Inputs that are drawn before the measurement begins.

/// A callback that returns whether to stop drawing inputs.
pub type Stopped<'a> = &'a dyn Fn() -> bool;

/// The number of transactions whose inputs are drawn between two calls of a [`Stopped`].
const ASK_EVERY: usize = 1 << 12;

/// Returns the numbers below `count`, but ends at the first call of `stopped` that returns `true`.
/// At least one number comes before that call.
pub(crate) fn until(count: usize, stopped: Stopped<'_>) -> impl Iterator<Item = usize> {
    (0..count)
        .take_while(move |&drawn| drawn == 0 || !drawn.is_multiple_of(ASK_EVERY) || !stopped())
}

/// Draws an input for each of `count` transactions, or for fewer if `stopped` returns `true`.
pub(crate) fn draw_all<T>(
    count: usize,
    stopped: Stopped<'_>,
    mut draw: impl FnMut() -> T,
) -> Vec<T> {
    let mut inputs = Vec::with_capacity(count);
    inputs.extend(until(count, stopped).map(|_| draw()));
    inputs
}

/// Pregenerated inputs, handed out in a cycle, a fixed number at a time.
///
/// Drawing from a skewed distribution costs as much as a short transaction. If inputs were drawn
/// during the measurement, the measurement would include that cost.
pub(crate) struct Replay<T> {
    inputs: Vec<T>,
    stride: usize,
    next: usize,
}

impl<T> Replay<T> {
    /// Makes a cycle that hands out `inputs` in slices of `stride`, which must divide the number of
    /// inputs.
    pub(crate) fn new(inputs: Vec<T>, stride: usize) -> Self {
        assert!(
            !inputs.is_empty() && inputs.len().is_multiple_of(stride),
            "whole transactions, at least one"
        );
        Replay { inputs, stride, next: 0 }
    }

    /// Returns the next transaction's inputs.
    pub(crate) fn next(&mut self) -> &[T] {
        let first = self.next;
        let end = first + self.stride;
        self.next = if end == self.inputs.len() { 0 } else { end };
        &self.inputs[first..end]
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_interrupt_ends_drawing_after_some_inputs() {
        let all = 3 * ASK_EVERY + 5;
        assert_eq!(draw_all(all, &|| false, || 1).len(), all);
        assert_eq!(draw_all(all, &|| true, || 1).len(), ASK_EVERY);
        assert_eq!(draw_all(1, &|| true, || 1).len(), 1);
        let asked = Cell::new(0);
        let the_second_time = || asked.replace(asked.get() + 1) == 1;
        assert_eq!(draw_all(all, &the_second_time, || 1).len(), 2 * ASK_EVERY);
    }
}
