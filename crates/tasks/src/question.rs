//! The question: which tasks the answer has, and in which order.

/// The order of the tasks: the first have most of this.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The length of the longest poll.
    #[default]
    LongestPoll,
    /// The time of all polls.
    Busy,
    /// The time from wake to poll.
    Scheduled,
    /// The number of polls.
    Polls,
    /// The number of wakes.
    Wakes,
}

/// Which tasks are asked about.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The order of the tasks.
    pub order: Order,
    /// How many tasks that have ended are listed: the first ones in that order. All are counted.
    pub finished_max: usize,
}

impl Default for Question {
    fn default() -> Self {
        Self { order: Order::default(), finished_max: 10_000 }
    }
}
