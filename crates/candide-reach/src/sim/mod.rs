//! A place in memory, for tests: with every fault that a place may have, and some that it must not
//! have.
//!
//! What happens is drawn from a seed. If calls come in the same order, the same happens.

#![forbid(unsafe_code)]

mod faults;
mod world;

pub use faults::Faults;

use crate::name::check_name;
use crate::place::{Created, Place, PlaceError};
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::{Request, World};

/// A direction between a handle and the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Requests do not arrive.
    Requests,
    /// Requests are executed, and answers do not arrive.
    Answers,
}

/// What a test is told before each call, outside of all locks, so that it can choose which thread
/// goes on, or end this one.
type Hook = Arc<dyn Fn(usize) + Send + Sync>;

/// A handle of a place in memory.
///
/// ```
/// use candide_reach::sim::{Faults, SimPlace};
/// use candide_reach::{Created, Place, PlaceError};
///
/// let place = SimPlace::new(1);
/// place.set_faults(Faults { unanswered: 100, ..Faults::default() });
/// assert!(matches!(place.create("a", b"bytes"), Err(PlaceError::Unknown(_))));
/// place.set_faults(Faults::default());
/// assert_eq!(place.create("a", b"others"), Ok(Created::Exists));
/// assert_eq!(place.read("a"), Ok(Some(b"bytes".to_vec())));
/// ```
#[derive(Clone)]
pub struct SimPlace {
    world: Arc<Mutex<World>>,
    hook: Option<Hook>,
    handle: usize,
}

impl SimPlace {
    /// Returns an empty place, by its handle 0.
    pub fn new(seed: u64) -> SimPlace {
        SimPlace { world: Arc::new(Mutex::new(World::new(seed))), hook: None, handle: 0 }
    }

    /// Returns a handle of the same place for another process.
    pub fn handle(&self, handle: usize) -> SimPlace {
        SimPlace { handle, ..self.clone() }
    }

    /// Returns the same handle with a function that is called before each call with the number of
    /// the handle.
    pub fn with_hook(&self, hook: impl Fn(usize) + Send + Sync + 'static) -> SimPlace {
        SimPlace { hook: Some(Arc::new(hook)), ..self.clone() }
    }

    /// Sets how often faults occur, for all handles.
    pub fn set_faults(&self, faults: Faults) {
        self.world().faults = faults;
    }

    /// Cuts a direction between this handle and the place, or restores it.
    pub fn cut(&self, direction: Direction, is_cut: bool) {
        let handle = self.handle;
        let mut world = self.world();
        let cuts = match direction {
            Direction::Requests => &mut world.cut_requests,
            Direction::Answers => &mut world.cut_answers,
        };
        if is_cut {
            cuts.insert(handle);
        } else {
            cuts.remove(&handle);
        }
    }

    /// Loses the power of the place: requests on their way are gone, and all objects stay.
    pub fn lose_power(&self) {
        self.world().waiting.clear();
    }

    /// Loses the power of a place that has answered before objects were durable: the last `count`
    /// creations are undone, too. A place must not do that.
    pub fn lose_power_and(&self, count: usize) {
        let mut world = self.world();
        world.waiting.clear();
        world.undo(count);
    }

    /// Executes all requests that are on their way.
    pub fn settle(&self) {
        self.world().settle();
    }

    /// Changes the bytes of an object, as a failing disk does. Without bytes, the object is gone.
    pub fn damage(&self, name: &str, bytes: Option<Vec<u8>>) {
        self.world().set(name, bytes);
    }

    /// Returns the names of all objects.
    pub fn names(&self) -> Vec<String> {
        self.world().names()
    }

    /// Returns the number of calls so far, by all handles.
    pub fn calls(&self) -> u64 {
        self.world().calls
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, which may fare as the faults say.
    fn call<T>(&self, request: Request, answer: impl Fn(Created) -> T) -> Result<T, PlaceError> {
        check_name(request.name()).map_err(PlaceError::Refused)?;
        self.hook();
        let lost = || PlaceError::Unknown(format!("{}: no answer", request.name()));
        self.world().execute(self.handle, &request).map(answer).ok_or_else(lost)
    }

    fn hook(&self) {
        if let Some(hook) = &self.hook {
            hook(self.handle);
        }
    }
}

impl Debug for SimPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimPlace").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Place for SimPlace {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError> {
        self.call(Request::Create(name.to_string(), bytes.into()), |created| created)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        check_name(name).map_err(PlaceError::Refused)?;
        self.hook();
        let mut world = self.world();
        world.begin_call();
        if world.is_cut(self.handle) {
            return Err(PlaceError::Unknown(format!("{name}: no answer")));
        }
        Ok(world.read(name))
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError> {
        if !prefix.is_empty() {
            check_name(prefix.strip_suffix('/').unwrap_or(prefix)).map_err(PlaceError::Refused)?;
        }
        self.hook();
        let mut world = self.world();
        world.begin_call();
        if world.is_cut(self.handle) {
            return Err(PlaceError::Unknown(format!("{prefix}: no answer")));
        }
        Ok(world.list(prefix, after))
    }

    fn delete(&self, name: &str) -> Result<(), PlaceError> {
        self.call(Request::Delete(name.to_string()), |_| ())
    }

    /// Looks once, without a wait: no time passes in memory.
    fn wait(&self, name: &str, _: Duration) -> Result<bool, PlaceError> {
        Ok(self.read(name)?.is_some())
    }

    fn another(&self) -> Result<Arc<dyn Place>, PlaceError> {
        Ok(Arc::new(self.clone()))
    }
}
