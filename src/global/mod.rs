//! Global recorders: each is a process-wide `static` that holds an installed [`Recorder`](crate::recorder::Recorder),
//! or none.

mod active;
mod already_installed;
mod ambient;
mod domains;
mod global_recorder;
mod init;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod leaked;
mod overrides;

pub use active::ActiveRecorder;
pub(crate) use active::identity;
pub use already_installed::AlreadyInstalled;
pub use ambient::{AmbientWords, ExtScope, RecordsTo, current_span_id};
pub(crate) use ambient::{current_span_word, set_current_span_id, span_ext};
pub use global_recorder::GlobalRecorder;
pub(crate) use global_recorder::{Installable, NotInstalled};
pub use init::{InitError, InitErrorKind};
pub use overrides::OverrideGuard;

/// The global recorder of execution events, which are the events of the published EXEC schema. An event that is
/// recorded through it carries the id of the current span, and the extension words that scopes ([`ExtScope`]) have
/// set on the calling thread.
pub static EXEC: GlobalRecorder = GlobalRecorder::new("exec");
