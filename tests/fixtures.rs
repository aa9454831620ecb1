//! What most tests of the library need: rings of this process, children that play a part, and the usual names.
#![allow(unused_imports, reason = "each of the two programs of tests uses some of them")]

pub use crate::spans::{recorder, records, small};
pub use eventring::reader::{
    Cursor, Followed, Follower, Gap, GapCause, Next, PayloadRead, Reader, RingSet, RingState, Seek, SnapshotOptions,
    WaitStrategy,
};
pub use eventring::recorder::{Clock, ContentDescription, Recorder};
pub use eventring::schema::exec::ExecEvent;
pub use eventring::tracing::{
    PERF, PerfContent, PerfReader, PerfRecord, PerfRecorder, RecorderLayer, RecorderSubscriber, SpanTree, TargetFilter,
};
pub use eventring::{record, recordv};
pub use eventring_stress::child::{self, Talk, part, place, play, say, wait_for_parent, wait_while};
pub use eventring_stress::files::{directory, names_in, places};
pub use eventring_stress::random::Random;
pub use eventring_stress::{alone, forked, missing, plays, real_data, reference, test_name, users};
pub use rustix::process::{Pid, Signal, kill_process};
pub use std::cell::Cell;
pub use std::collections::{BTreeMap, BTreeSet, HashMap};
pub use std::fs::{self, File};
pub use std::io::{Read as _, Write as _};
pub use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
pub use std::path::{Path, PathBuf};
pub use std::process::{Child, Command, Stdio};
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub use std::sync::{Arc, Barrier, Mutex, OnceLock};
pub use std::time::{Duration, Instant};
pub use tempfile::TempDir;
pub use tracing::{Dispatch, info, info_span};
