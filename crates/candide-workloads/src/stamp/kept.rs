//! What the databases of one workload share.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::workload::lock;

/// What has been prepared for the databases that a workload fills, such as the results of its
/// sequential program, so that each need not prepare it again. Clones share it.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Option<(String, Prepared)>>>);

/// What was prepared, of any type.
type Prepared = Arc<dyn Any + Send + Sync>;

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// Returns what was prepared for `inputs` before, or else what `prepare` returns. Only the
    /// latest is kept.
    pub(super) fn get_or<T: Send + Sync + 'static, E>(
        &self,
        inputs: &impl fmt::Debug,
        prepare: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let inputs = format!("{inputs:?}");
        let mut kept = lock(&self.0);
        if let Some((of, prepared)) = &*kept
            && *of == inputs
            && let Ok(prepared) = Arc::downcast(prepared.clone())
        {
            return Ok(prepared);
        }
        let prepared = Arc::new(prepare()?);
        *kept = Some((inputs, prepared.clone()));
        Ok(prepared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_prepared_is_kept_for_the_same_inputs() {
        let kept = Kept::default();
        let get = |kept: &Kept, inputs: u32, value: u32| {
            *kept.get_or(&inputs, || Ok::<u32, ()>(value)).expect("prepared")
        };
        assert_eq!([get(&kept, 1, 10), get(&kept.clone(), 1, 11), get(&kept, 2, 12)], [10, 10, 12]);
        assert_eq!(kept.get_or(&3, || Err::<u32, _>("refused")), Err("refused"));
        assert_eq!(get(&kept, 2, 13), 12);
    }
}
