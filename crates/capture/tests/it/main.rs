//! Captures, as programs make and read them.

mod limits;
mod rolling;
mod rolling_memory;

eventring_stress::names_lead_nowhere!();
