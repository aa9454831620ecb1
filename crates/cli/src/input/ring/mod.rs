//! What is known of a ring.
//!
//! | file | idea |
//! |---|---|
//! | `report` | everything that `list`, `info`, `check` and `clean` show of a ring |
//! | `state` | the state of a ring and its writer, in words |
//! | `survey` | counts of the events in a ring |
//! | `history` | the time that a ring covers |

pub(crate) mod history;
pub(crate) mod report;
pub(crate) mod state;
pub(crate) mod survey;
