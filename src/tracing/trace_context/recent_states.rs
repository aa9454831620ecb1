//! The `tracestate`s of recently received traces. This program passes them on without interpreting them.

use crate::span_slab::TraceId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The number of traces whose `tracestate` is kept. Later ones replace the oldest.
const TRACES_MAX: usize = 4096;

#[derive(Default)]
struct RecentStates {
    states: HashMap<TraceId, Box<str>>,
    oldest: VecDeque<TraceId>,
}

static STATES: Mutex<Option<RecentStates>> = Mutex::new(None);

/// Keeps the state of a trace.
pub(in crate::tracing) fn keep(trace_id: TraceId, state: &str) {
    let mut states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = states.get_or_insert_default();
    if kept.states.insert(trace_id, state.into()).is_none() {
        kept.oldest.push_back(trace_id);
    }
    if kept.oldest.len() > TRACES_MAX
        && let Some(oldest) = kept.oldest.pop_front()
    {
        kept.states.remove(&oldest);
    }
}

/// Returns the state of a trace, if it has one that is kept.
pub(in crate::tracing) fn of(trace_id: TraceId) -> Option<Box<str>> {
    let states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
    states.as_ref()?.states.get(&trace_id).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_of_the_last_traces_are_kept() {
        let id = |number: usize| TraceId::new((7 << 64) + number as u128).unwrap();
        (1..=TRACES_MAX + 10).for_each(|number| keep(id(number), &format!("n={number}")));
        assert_eq!((of(id(10)), of(id(11)).as_deref()), (None, Some("n=11")));
        keep(id(11), "n=again");
        assert_eq!(of(id(11)).as_deref(), Some("n=again"));
    }
}
