//! The recording of events, and what each of them changes in the tables of the present.

pub(in crate::tracing) mod present;
pub(in crate::tracing) mod record;
