//! The live engine over rings of this process.

mod engine;

eventring_stress::names_lead_nowhere!();
