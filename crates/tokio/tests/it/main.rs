//! What tasks record, and that no wake is lost.

mod ping_pong;
mod recorded;
mod ring;
mod tasks;
mod wakers;

eventring_stress::names_lead_nowhere!();
