//! The programs of a capture, and how they ended.

use eventring::reader::RingEnd;
use eventring_capture::{CaptureFile, CapturedLife};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;

/// A program of a capture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ProgramSummary {
    /// The name of the program; empty if it is not known.
    #[serde(rename = "program")]
    pub name: String,
    /// The process id; 0 if it is not known.
    pub pid: u32,
    /// What is known of its end.
    pub state: ProgramState,
    /// How it ended, and between which times. `None` if it still ran at the end of the capture, or if nothing is known.
    #[serde(flatten, serialize_with = "end_or_nulls")]
    #[schemars(with = "EndOrNulls")]
    pub end: Option<RingEnd>,
}

/// What is known of the end of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramState {
    /// It still ran at the end of the capture.
    Running,
    /// It has ended its recording.
    Ended,
    /// It has left without that.
    Died,
    /// Nothing is known.
    Unknown,
}

impl fmt::Display for ProgramState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// An end in JSON: its members are there without one, too.
#[derive(Serialize, JsonSchema)]
struct EndOrNulls {
    /// The last time at which it is known not to have ended yet.
    ended_after_ns: Option<u64>,
    ended_before_ns: Option<u64>,
}

fn end_or_nulls<S: Serializer>(end: &Option<RingEnd>, to: S) -> Result<S::Ok, S::Error> {
    let (ended_after_ns, ended_before_ns) = end.map(|end| (end.after_epoch_nanos, end.before_epoch_nanos)).unzip();
    EndOrNulls { ended_after_ns, ended_before_ns }.serialize(to)
}

impl ProgramSummary {
    /// Returns the programs in the order of their first rings.
    #[must_use]
    pub fn all(capture: &CaptureFile) -> Vec<Self> {
        let mut processes: Vec<u32> = Vec::new();
        let mut programs = Vec::new();
        for ring in capture.rings() {
            if processes.contains(&ring.process) {
                continue;
            }
            processes.push(ring.process);
            let life = capture.life_of(ring.process);
            let end = match life {
                CapturedLife::Ended { end, is_how_known: true } => Some(end),
                _ => None,
            };
            let state = match end {
                Some(end) if end.has_died => ProgramState::Died,
                Some(_) => ProgramState::Ended,
                None if matches!(life, CapturedLife::Lived(_)) => ProgramState::Running,
                None => ProgramState::Unknown,
            };
            programs.push(Self { name: ring.program_name.clone(), pid: ring.pid, state, end });
        }
        programs
    }
}
