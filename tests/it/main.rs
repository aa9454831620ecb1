//! What users of the crate may rely on, by area. `alone` has the tests that need a process of their own.

mod all_events;
mod clock;
mod control;
mod domains;
mod exec;
#[path = "../fixtures.rs"]
mod fixtures;
mod global;
mod lints;
mod mapped;
mod package;
mod read_back;
mod reader;
mod record_again;
mod recorder;
mod schema;
mod served;
mod shm;
mod snapshot;
mod span_stress;
#[path = "../spans.rs"]
mod spans;
mod tracing;

eventring_stress::names_lead_nowhere!();
