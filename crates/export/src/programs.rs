//! The programs of a capture, and how they ended.

use eventring::reader::RingEnd;
use eventring_capture::{CaptureFile, CapturedLife};
use serde_json::{Value, json};

/// A program of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ProgramSummary {
    /// The name of the program; empty if it is not known.
    pub name: String,
    /// The process id; 0 if it is not known.
    pub pid: u32,
    /// How it ended, and between which times. `None` if it still ran at the end of the capture, or if nothing is known.
    pub end: Option<RingEnd>,
    /// True if the program still ran at the end of the capture.
    pub is_running: bool,
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
            let is_running = matches!(life, CapturedLife::Lived(_));
            programs.push(Self { name: ring.program_name.clone(), pid: ring.pid, end, is_running });
        }
        programs
    }

    /// Returns `running`, `ended`, `died` or `unknown`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.end {
            Some(end) if end.has_died => "died",
            Some(_) => "ended",
            None if self.is_running => "running",
            None => "unknown",
        }
    }

    /// Returns the program as JSON: `program`, `pid`, `state`, `ended_after_ns`, `ended_before_ns`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "program": self.name, "pid": self.pid, "state": self.state(),
            "ended_after_ns": self.end.map(|end| end.after_epoch_nanos),
            "ended_before_ns": self.end.map(|end| end.before_epoch_nanos),
        })
    }
}
