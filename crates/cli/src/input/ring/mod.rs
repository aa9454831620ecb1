//! The facts about a ring that verbs show.
//!
//! | file | idea |
//! |---|---|
//! | `report` | all facts about a ring; verbs show parts of them |
//! | `state` | the state of a ring and its writer, in words |
//! | `survey` | counts of the events in a ring |
//! | `history` | the time that a ring covers |

pub(crate) mod history;
pub(crate) mod report;
pub(crate) mod state;
pub(crate) mod survey;
