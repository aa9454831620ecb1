//! The tracks of a trace. Each track is made when it is first needed.

use super::TraceBuilder;
use crate::trace_writer::{Track, TrackId, TrackKind};
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
    /// The events of a ring that lie in no span.
    Ring(u32),
    Losses(u32),
    Counter {
        process: u32,
        name: String,
    },
}

impl TraceBuilder<'_> {
    pub(super) fn thread_track(&mut self, process: u32, thread: ThreadKey, described: &Thread) -> io::Result<TrackId> {
        self.track(TrackKey::Thread(thread), Some((process, described)))
    }

    /// Returns the track with this key. Makes the track if it does not exist yet. For a track of a thread, `thread` is
    /// the thread's process and its description, which gives the new track its name.
    pub(super) fn track(&mut self, key: TrackKey, thread: Option<(u32, &Thread)>) -> io::Result<TrackId> {
        if let Some(id) = self.tracks.get(&key) {
            return Ok(*id);
        }
        let recording = self.recording;
        let process = match &key {
            TrackKey::Process(process) | TrackKey::Spans { process, .. } | TrackKey::Counter { process, .. } => {
                *process
            }
            TrackKey::Ring(ring) | TrackKey::Losses(ring) => recording.ring(*ring).process,
            TrackKey::Thread(of) | TrackKey::Overlapping(of, _) => {
                thread.map_or_else(|| recording.ring(of.recorder).process, |(process, _)| process)
            }
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
            TrackKey::Spans { .. } => {
                (TrackKind::Plain { parent: self.track(TrackKey::Process(process), None)? }, "spans".into())
            }
            TrackKey::Ring(ring) => {
                let parent = self.track(TrackKey::Process(process), None)?;
                (TrackKind::Plain { parent }, format!("events of {}", recording.ring(*ring).name))
            }
            TrackKey::Losses(ring) => {
                let parent = self.track(TrackKey::Process(process), None)?;
                (TrackKind::Plain { parent }, format!("losses of {}", recording.ring(*ring).name))
            }
            TrackKey::Counter { name, .. } => {
                let process = self.track(TrackKey::Process(process), None)?;
                (TrackKind::Counter { process }, name.clone())
            }
        };
        let id = TrackId(self.tracks.len() as u64 + 1);
        self.tracks.insert(key, id);
        self.writer.track(id, &Track { kind, name: &name, pid })?;
        Ok(id)
    }
}
