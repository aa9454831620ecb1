//! The environment variables that configure a recorder of spans.

/// Environment variable with the name and size of the rings. [`try_init_from_env`](crate::tracing::try_init_from_env)
/// and [`RecorderLayer::try_from_env`](crate::tracing::RecorderLayer::try_from_env) read it.
pub(in crate::tracing) const CONFIG_VARIABLE: &str = "EVENTRING_PERF";
/// Environment variable with the filter. [`init`](crate::tracing::init), [`try_init`](crate::tracing::try_init),
/// [`try_init_from_env`](crate::tracing::try_init_from_env) and
/// [`RecorderLayer::try_from_env`](crate::tracing::RecorderLayer::try_from_env) read it.
pub(in crate::tracing) const FILTER_VARIABLE: &str = "EVENTRING_FILTER";
/// Environment variable with the names of fields whose values must not be recorded, separated by commas. A name with
/// other characters than identifiers is quoted: `password,"user id"`. Every function that reads [`FILTER_VARIABLE`]
/// also reads this variable. See
/// [`PerfRecorderBuilder::redact_fields`](crate::tracing::PerfRecorderBuilder::redact_fields).
pub(in crate::tracing) const REDACT_VARIABLE: &str = "EVENTRING_REDACT";
/// Environment variable with the source of instruction counts: `plugin` (the default), `hardware` or `off`. Every
/// function that reads [`FILTER_VARIABLE`] also reads this variable. See
/// [`InstructionSource`](crate::tracing::InstructionSource).
pub(in crate::tracing) const INSTRUCTIONS_VARIABLE: &str = "EVENTRING_INSTRUCTIONS";
/// Environment variable with the share of a thread's time that measuring its times may cost: `0.2%`, or `off`. Every
/// function that reads [`FILTER_VARIABLE`] also reads this variable. See
/// [`PerfRecorderBuilder::thread_time`](crate::tracing::PerfRecorderBuilder::thread_time).
pub(in crate::tracing) const THREAD_TIME_VARIABLE: &str = "EVENTRING_THREAD_TIME";
