//! The tracks of a trace. Each track is made when it is first needed.

use super::TraceBuilder;
use crate::formats::trace_writer::{Track, TrackId, TrackKind};
use eventring::tracing::{Thread, ThreadKey};
use std::io;

/// The key of a track.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum TrackKey {
    Process(u32),
    Thread(ThreadKey),
    /// One row of slices that overlap other slices of the same thread without nesting.
    Overlapping(ThreadKey, u32),
    /// One row of the spans of a process, in span view.
    Spans {
        process: u32,
        row: u32,
    },
    /// A task of a process, and later tasks of the same name.
    Task {
        process: u32,
        number: u32,
        name: String,
    },
    /// When a worker is parked.
    Parked(u32, ThreadKey),
    /// What a thread did, as it has measured it itself.
    ThreadState(u32, ThreadKey),
    /// The events of a ring that lie in no span.
    Ring(u32),
    Losses(u32),
    /// One row of the blocks of a ring. Only damaged recordings need several.
    Blocks {
        ring: u32,
        row: u32,
    },
    /// One row of transactions: those that were executed side by side have rows of their own.
    Transactions {
        ring: u32,
        row: u32,
    },
    /// What consensus has said of the blocks of a ring.
    Consensus(u32),
    Counter {
        process: u32,
        name: String,
    },
    /// A process that has recorded nothing, as the system numbers it.
    OtherProcess(u32),
    /// A thread that has recorded nothing, as the system numbers it, in which turn.
    OtherThread(u32, usize),
    /// What a thread did, as the system numbers it, in which turn.
    States(u32, usize),
}

impl TraceBuilder<'_> {
    pub(super) fn thread_track(&mut self, process: u32, thread: ThreadKey, described: &Thread) -> io::Result<TrackId> {
        self.track(TrackKey::Thread(thread), Some((process, described)))
    }

    /// Returns the track of a process that has recorded nothing.
    pub(super) fn other_process_track(&mut self, process_id: u32, name: &str) -> io::Result<TrackId> {
        let key = TrackKey::OtherProcess(process_id);
        match self.tracks.get(&key) {
            Some(track) => Ok(*track),
            None => self.new_track(key, TrackKind::Process, name, process_id),
        }
    }

    /// Returns the track of a thread that has recorded nothing.
    pub(super) fn other_thread_track(
        &mut self,
        process: TrackId,
        (thread_id, turn): (u32, usize),
        name: &str,
    ) -> io::Result<TrackId> {
        let kind = TrackKind::Thread { process, os_thread_id: thread_id };
        self.new_track(TrackKey::OtherThread(thread_id, turn), kind, name, 0)
    }

    /// Makes a track with slices in another one.
    pub(super) fn plain_track(&mut self, key: TrackKey, parent: TrackId, name: &str) -> io::Result<TrackId> {
        self.new_track(key, TrackKind::Plain { parent }, name, 0)
    }

    fn new_track(&mut self, key: TrackKey, kind: TrackKind, name: &str, pid: u32) -> io::Result<TrackId> {
        let id = TrackId(self.tracks.len() as u64 + 1);
        self.tracks.insert(key, id);
        self.writer.track(id, &Track { kind, name, pid })?;
        Ok(id)
    }

    /// Returns the track with this key. Makes the track if it does not exist yet. For a track of a thread, `thread` is
    /// the thread's process and its description, which gives the new track its name.
    pub(super) fn track(&mut self, key: TrackKey, thread: Option<(u32, &Thread)>) -> io::Result<TrackId> {
        if let Some(id) = self.tracks.get(&key) {
            return Ok(*id);
        }
        let recording = self.recording;
        let process = match &key {
            TrackKey::Process(process)
            | TrackKey::Spans { process, .. }
            | TrackKey::Task { process, .. }
            | TrackKey::Parked(process, _)
            | TrackKey::ThreadState(process, _)
            | TrackKey::Counter { process, .. } => *process,
            TrackKey::Ring(ring)
            | TrackKey::Losses(ring)
            | TrackKey::Blocks { ring, .. }
            | TrackKey::Transactions { ring, .. }
            | TrackKey::Consensus(ring) => recording.ring(*ring).process,
            TrackKey::Thread(of) | TrackKey::Overlapping(of, _) => {
                thread.map_or_else(|| recording.ring(of.recorder).process, |(process, _)| process)
            }
            TrackKey::OtherProcess(_) | TrackKey::OtherThread(..) | TrackKey::States(..) => 0,
        };
        let ring = recording.capture.rings().iter().find(|ring| ring.process == process);
        let pid = ring.map_or(0, |ring| ring.pid);
        let thread_name = |thread: Option<(u32, &Thread)>| match thread {
            Some((_, Thread { name: Some(name), .. })) => name.clone(),
            Some((_, thread)) => format!("thread {}", thread.os_thread_id.unwrap_or(thread.id)),
            None => "thread".into(),
        };
        let (kind, name) = match &key {
            TrackKey::Process(_) => {
                let program = ring.map(|ring| ring.program_name.as_str()).filter(|name| !name.is_empty());
                let name = program.or(ring.map(|ring| ring.name.as_str())).unwrap_or("process");
                (TrackKind::Process, name.to_owned())
            }
            TrackKey::Thread(of) => {
                let process = self.track(TrackKey::Process(process), None)?;
                let os_thread_id = thread.and_then(|(_, thread)| thread.os_thread_id).unwrap_or(of.thread_id);
                (TrackKind::Thread { process, os_thread_id }, thread_name(thread))
            }
            TrackKey::Overlapping(of, _) => {
                let parent = self.track(TrackKey::Thread(*of), thread)?;
                (TrackKind::Plain { parent }, format!("{} (overlapping)", thread_name(thread)))
            }
            TrackKey::Spans { .. } => (self.in_process(process)?, "spans".into()),
            TrackKey::Task { name, .. } => (self.in_process(process)?, format!("task {name}")),
            TrackKey::Parked(_, of) | TrackKey::ThreadState(_, of) => {
                let name = if matches!(key, TrackKey::Parked(..)) { "parked" } else { "state" };
                let key = TrackKey::Thread(*of);
                let key = if self.tracks.contains_key(&key) { key } else { TrackKey::Process(process) };
                (TrackKind::Plain { parent: self.track(key, None)? }, name.to_owned())
            }
            TrackKey::Ring(ring) => (self.in_process(process)?, format!("events of {}", recording.ring(*ring).name)),
            TrackKey::Losses(ring) => (self.in_process(process)?, format!("losses of {}", recording.ring(*ring).name)),
            TrackKey::Blocks { ring, .. } => (self.in_process(process)?, self.chain_name(*ring, "blocks")),
            TrackKey::Transactions { ring, .. } => (self.in_process(process)?, self.chain_name(*ring, "transactions")),
            TrackKey::Consensus(ring) => (self.in_process(process)?, self.chain_name(*ring, "consensus")),
            TrackKey::Counter { name, .. } => {
                let process = self.track(TrackKey::Process(process), None)?;
                (TrackKind::Counter { process }, name.clone())
            }
            TrackKey::OtherProcess(_) | TrackKey::OtherThread(..) | TrackKey::States(..) => {
                unreachable!("they are made where they are drawn")
            }
        };
        self.new_track(key, kind, &name, pid)
    }

    /// Returns the kind of a track with slices in that of a process.
    fn in_process(&mut self, process: u32) -> io::Result<TrackKind> {
        Ok(TrackKind::Plain { parent: self.track(TrackKey::Process(process), None)? })
    }

    /// Returns the name of a track of blocks. Several rings of a recording may have blocks.
    fn chain_name(&self, ring: u32, what: &str) -> String {
        let is_only = self.chains.count() == 1;
        if is_only { what.to_owned() } else { format!("{what} of {}", self.recording.ring(ring).name) }
    }
}
