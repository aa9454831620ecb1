//! Where the time of spans went, of captures that are made up.

mod why;

eventring_stress::names_lead_nowhere!();
