//! Work that is divided among all cores.

use crate::progress::Progress;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `work` for each item, on all cores, and shows the progress. The second argument of `work`
/// is the number of the thread, from zero, by which the calls at the same time can name their
/// files. Returns the results in the order of the items. After an error, no thread begins a further
/// item.
pub(crate) fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T, usize) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    on_threads(1, items, work)
}

/// Does the work of [`on_all_cores`] with `by_core` threads for each core, for work that sleeps.
pub(crate) fn on_threads<T: Sync, R: Send>(
    by_core: usize,
    items: &[T],
    work: impl Fn(&T, usize) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    let progress = Mutex::new(Progress::new(items.len() as u64));
    let worker = |number: usize| -> Result<Vec<(usize, R)>, String> {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(done) };
            // After an error, the other threads find no further item.
            let result =
                work(item, number).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
            done.push((index, result));
            progress.lock().expect("no worker panics").step();
        }
    };
    let mut done = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let worker = &worker;
        let workers: Vec<_> =
            (0..by_core * cores).map(|number| scope.spawn(move || worker(number))).collect();
        let mut done = Vec::new();
        for worker in workers {
            done.extend(worker.join().expect("no worker panics")?);
        }
        Ok::<_, String>(done)
    })?;
    done.sort_unstable_by_key(|&(index, _)| index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_results_have_the_order_of_their_items() {
        let items: Vec<u64> = (0..1000).collect();
        assert_eq!(
            on_all_cores(&items, |&item, _| Ok(2 * item)).as_deref(),
            Ok(&doubled(1000)[..])
        );
        assert_eq!(on_all_cores(&[0; 0], |_, _| Ok(())), Ok(Vec::new()));
    }

    fn doubled(end: u64) -> Vec<u64> {
        (0..end).map(|item| 2 * item).collect()
    }

    #[test]
    fn an_error_ends_the_parallel_work_and_is_returned() {
        let items: Vec<u64> = (0..1_000_000).collect();
        let begun = AtomicUsize::new(0);
        let result = on_all_cores(&items, |_, _| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>("bad".to_string())
        });
        assert_eq!(result, Err("bad".to_string()));
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        assert!(begun.into_inner() <= cores, "each core begins at most one");
    }
}
