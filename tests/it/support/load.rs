//! Callers that go on beside the test, each in a thread of its own, and how far they have come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::support::wait_for;

/// Should the test fail, its servers end, and with them the callers.
pub struct Load<T> {
    enough: Arc<AtomicBool>,
    callers: Vec<(Arc<AtomicUsize>, JoinHandle<T>)>,
}

/// What a caller and the test exchange.
pub struct Course {
    calls: Arc<AtomicUsize>,
    enough: Arc<AtomicBool>,
}

impl Course {
    /// To be said of each call that is done.
    pub fn goes_on(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> Load<T> {
    pub fn start<C: FnOnce(&Course) -> T + Send + 'static>(callers: impl Iterator<Item = C>) -> Load<T> {
        let enough = Arc::new(AtomicBool::new(false));
        let callers = callers.map(|caller| {
            let calls = Arc::new(AtomicUsize::new(0));
            let course = Course { calls: calls.clone(), enough: enough.clone() };
            (calls, thread::spawn(move || caller(&course)))
        });
        Load { callers: callers.collect(), enough }
    }

    /// Waits for so many more calls, no matter whose.
    pub fn goes_on(&self, calls: usize) {
        let goal = self.calls().sum::<usize>() + calls;
        wait_for("calls", || self.calls().sum::<usize>() >= goal);
    }

    /// Waits for so many more calls of each.
    pub fn all_go_on(&self, calls: usize) {
        let before: Vec<usize> = self.calls().collect();
        wait_for("calls of all", || self.calls().zip(&before).all(|(now, before)| now >= before + calls));
    }

    fn calls(&self) -> impl Iterator<Item = usize> {
        self.callers.iter().map(|(calls, caller)| {
            assert!(!caller.is_finished(), "a caller gave up");
            calls.load(Ordering::Relaxed)
        })
    }

    /// What became of each.
    pub fn finish(self) -> Vec<T> {
        self.enough.store(true, Ordering::Relaxed);
        self.callers.into_iter().map(|(_, caller)| caller.join().unwrap()).collect()
    }
}
