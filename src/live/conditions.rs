//! Conditions that are tested on all that happens.

use super::condition::Condition;
use super::occurrence::Occurrence;
use super::options::LiveOptions;
use super::sight::Sight;
use super::state::LiveState;
use std::time::Duration;

/// A set of conditions, and what must be remembered to test them.
#[derive(Debug)]
pub struct ConditionSet {
    conditions: Vec<Condition>,
    /// For each condition, the ages at which open spans may fulfil it.
    ages: Vec<Vec<Duration>>,
    /// For each condition, true if it says something of rates or percentiles.
    has_rates: Vec<bool>,
    /// For each condition, true if it held at the last tick.
    held: Vec<bool>,
    /// The time of the last tick in nanoseconds since the epoch.
    last_tick_nanos: u64,
}

impl ConditionSet {
    /// Makes a set.
    #[must_use]
    pub fn new(conditions: Vec<Condition>) -> Self {
        let ages = conditions.iter().map(Condition::open_ages).collect();
        let has_rates = conditions.iter().map(|condition| !condition.rates().is_empty()).collect();
        let held = vec![false; conditions.len()];
        Self { conditions, ages, has_rates, held, last_tick_nanos: 0 }
    }

    /// Returns the conditions.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Adds to the options of an engine the windows that the conditions need.
    pub fn options(&self, options: LiveOptions) -> LiveOptions {
        let needed = self.conditions.iter().flat_map(Condition::rates).map(|(_, window)| window);
        let mut windows = options.windows.clone();
        needed.for_each(|window| windows.push(window));
        windows.sort_unstable();
        windows.dedup();
        options.windows(windows)
    }

    /// Tests the conditions on what an engine saw. Calls `fulfilled` with each condition that holds, its index, and
    /// what fulfils it.
    ///
    /// An open span is tested when it reaches an age that the condition names, unless its close may have been lost.
    /// Rates and percentiles are tested at each tick; a condition that holds at a tick must not hold at a later one
    /// before it is fulfilled again.
    pub fn see(
        &mut self,
        sight: &Sight<'_>,
        state: LiveState<'_>,
        fulfilled: &mut dyn FnMut(usize, &Condition, &Occurrence<'_>),
    ) {
        let occurrence = Occurrence::of(sight, state);
        if !matches!(sight, Sight::Tick) {
            for (index, condition) in self.conditions.iter().enumerate() {
                if condition.holds(&occurrence) {
                    fulfilled(index, condition, &occurrence);
                }
            }
            return;
        }
        for (index, condition) in self.conditions.iter().enumerate() {
            for age in &self.ages[index] {
                let age_nanos = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
                state.each_grown_older(age_nanos, self.last_tick_nanos, |span| {
                    // After a loss, spans look open that were closed long ago.
                    if span.may_have_closed() {
                        return;
                    }
                    let occurrence = Occurrence::of_open(span, state);
                    if condition.holds(&occurrence) {
                        fulfilled(index, condition, &occurrence);
                    }
                });
            }
            if self.has_rates[index] {
                let holds = condition.holds(&occurrence);
                if holds && !self.held[index] {
                    fulfilled(index, condition, &occurrence);
                }
                self.held[index] = holds;
            }
        }
        self.last_tick_nanos = state.now_epoch_nanos();
    }

    /// Tests the conditions on a signal that the program got.
    pub fn signal(&self, state: LiveState<'_>, fulfilled: &mut dyn FnMut(usize, &Condition, &Occurrence<'_>)) {
        let occurrence = Occurrence::of_signal(state);
        for (index, condition) in self.conditions.iter().enumerate().filter(|(_, it)| it.holds(&occurrence)) {
            fulfilled(index, condition, &occurrence);
        }
    }
}
