//! Threads for tests that are generic over protocols.

use std::thread::{Scope, ScopedJoinHandle};

/// Starts a thread in a scope. The closure is boxed: otherwise the functions of the standard
/// library that start threads would be compiled for each closure under each protocol.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let body: Box<dyn FnOnce() -> T + Send + 'scope> = Box::new(body);
    scope.spawn(body)
}
