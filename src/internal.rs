//! Items for this project's own crates and tests, which pin the exact version. There is no promise of stability for
//! other users.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use crate::control::{
    directives::check_override, find::SharedTimeout, fuzzed::decode_messages, server::ServedFileContent,
};
pub use crate::now::file::{now_path, remove_dead_tables, tables_group};
#[cfg(feature = "tracing")]
pub use crate::now::{
    present::{span_index, whole_thread_ids},
    saved::save_tables,
};
pub use crate::reader::opening::in_memory::{START_BYTES, parts_in_memory};
#[cfg(feature = "snapshot")]
pub use crate::reader::snapshot::counted::CountedWriter;
#[cfg(feature = "macros")]
pub use crate::schema::of_ring::decode_event;
#[cfg(feature = "tracing")]
pub use crate::schema::perf::measured_times::{MeasuredTimes, ThreadTimeState};
pub use crate::schema::{
    dynamic::model::MAX_TEXT_BYTES,
    dynamic::places::{FieldPlace, PayloadPlaces},
    of_ring::{ext_words, published_schema},
    resolution::Resolution,
    schema_text::schema::schema_text_hash,
};
#[cfg(feature = "tracing")]
pub use crate::tracing::record::locks::record_waits;
#[cfg(feature = "tracing")]
pub use crate::tracing::record::perf_recorder::replayed::{ReplayedRecorder, ring_with_tables};

/// The offsets of the bytes of a ring file.
pub mod layout {
    pub use crate::layout::*;
}

/// Names that users type.
#[cfg(feature = "tracing")]
pub mod quoted {
    pub use crate::tracing::filter::quoted::*;
}

/// What they need of the operating system, and what tests do to ring files.
pub mod shm {
    pub use crate::shm::*;
}
