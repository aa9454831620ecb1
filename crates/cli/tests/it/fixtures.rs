//! What most tests of the program need: runs of it, programs that record, what they have recorded, and the usual names.

pub(crate) use crate::program::{
    self, Expect as _, KEPT, Live, PROGRAM, Run, argument, directory, exec_ring, exported, finish, in_recorder,
    names_in, number, place, places, program, run, signal,
};
pub(crate) use eventring::reader::Reader;
pub(crate) use eventring::recorder::{ContentDescription, Recorder};
pub(crate) use eventring::schema::exec::ExecEvent;
pub(crate) use eventring::schema::perf::PerfEvent;
pub(crate) use eventring::schema::{EventType as _, Utf8};
pub(crate) use eventring::tracing::{PerfRecorder, RecorderSubscriber};
pub(crate) use eventring::{EventPayload, EventType, record};
pub(crate) use eventring_capture::CaptureFile;
pub(crate) use eventring_stress::child::{self, Talk, kill, part, play, say, wait_for_parent, wait_while};
pub(crate) use eventring_stress::rings::{spans_in, typed_in};
pub(crate) use eventring_stress::{alone, plays, real_data, test_name};
pub(crate) use rustix::process::{Pid, Signal, kill_process};
pub(crate) use serde_json::{Value, json};
pub(crate) use std::collections::{BTreeMap, BTreeSet, HashMap};
pub(crate) use std::fs::{self, File};
pub(crate) use std::io::{BufRead as _, BufReader, Read as _, Write as _};
pub(crate) use std::net::TcpStream;
pub(crate) use std::os::unix::fs::FileExt as _;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::process::{Child, Command, Stdio};
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::thread;
pub(crate) use std::time::{Duration, Instant};
pub(crate) use tempfile::TempDir;
pub(crate) use tracing::{Dispatch, Instrument as _, dispatcher, error, info, info_span, subscriber, warn};
