//! The ages at which phases of tasks are tested.

use crate::observation::Observation;
use crate::state::task_phase::TaskPhase;
use eventring_tasks::TaskState;

/// The ages at which phases of tasks are tested, each phase once at each age.
///
/// A phase that ends between two ticks is tested at its end at the ages that it has reached since the last tick. The
/// ticks before have tested it at all younger ages.
#[derive(Debug, Default)]
pub(crate) struct PhaseAges {
    /// Each age in nanoseconds, the state, and the conditions that name both.
    ages: Vec<(u64, TaskState, Vec<usize>)>,
}

impl PhaseAges {
    pub(crate) fn add(&mut self, nanos: u64, state: TaskState, condition: usize) {
        match self.ages.iter_mut().find(|(age, of, _)| (*age, *of) == (nanos, state)) {
            Some((_, _, conditions)) => conditions.push(condition),
            None => self.ages.push((nanos, state, vec![condition])),
        }
    }

    /// Returns the states and the ages that are tested.
    pub(crate) fn ages(&self) -> impl Iterator<Item = (TaskState, u64)> {
        self.ages.iter().map(|(nanos, state, _)| (*state, *nanos))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ages.is_empty()
    }

    /// Calls `test` with the conditions for which a phase has just reached an age.
    pub(crate) fn reached(&self, phase: &TaskPhase<'_>, last_tick_nanos: u64, mut test: impl FnMut(&[usize])) {
        for (nanos, state, conditions) in &self.ages {
            if *state == phase.state() && phase.has_reached(*nanos, last_tick_nanos) {
                test(conditions);
            }
        }
    }
}

/// Returns the phase of an observation.
pub(crate) fn phase_of<'o, 'a>(observation: &'o Observation<'a>) -> Option<&'o TaskPhase<'a>> {
    match observation {
        Observation::TaskPhaseEnded(phase) => Some(phase),
        _ => None,
    }
}
