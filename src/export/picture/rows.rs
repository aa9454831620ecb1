//! The rows of a picture, and the tracks that are made for them.

use super::super::sink::{Track, TrackId, TrackKind};
use super::super::timeline::ThreadKey;
use super::Picture;
use crate::tracing::Thread;
use std::io;

/// What a track is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Row {
    Process(u32),
    Thread(ThreadKey),
    /// Slices of a thread that do not nest in the others.
    ThreadApart(ThreadKey, u32),
    Spans {
        process: u32,
        lane: u32,
    },
    /// Events of a ring outside of spans.
    Ring(u32),
    Losses(u32),
    Counter {
        process: u32,
        name: String,
    },
}

impl Picture<'_> {
    pub(super) fn thread_row(&mut self, process: u32, thread: ThreadKey, described: &Thread) -> io::Result<TrackId> {
        self.row(Row::Thread(thread), Some((process, described)))
    }

    /// The track of a row, made when it is first asked for.
    pub(super) fn row(&mut self, row: Row, thread: Option<(u32, &Thread)>) -> io::Result<TrackId> {
        if let Some(id) = self.tracks.get(&row) {
            return Ok(*id);
        }
        let recording = self.recording;
        let process = match &row {
            Row::Process(process) | Row::Spans { process, .. } | Row::Counter { process, .. } => *process,
            Row::Ring(ring) | Row::Losses(ring) => recording.ring(*ring).process,
            Row::Thread(key) | Row::ThreadApart(key, _) => thread.map_or(recording.ring(key.0).process, |(p, _)| p),
        };
        let ring = recording.capture.rings().iter().find(|ring| ring.process == process);
        let pid = ring.map_or(0, |ring| ring.pid);
        let thread_name = |thread: Option<(u32, &Thread)>| match thread {
            Some((_, Thread { name: Some(name), .. })) => name.clone(),
            Some((_, thread)) => format!("thread {}", thread.os_thread_id.unwrap_or(thread.id)),
            None => "thread".into(),
        };
        let (kind, name) = match &row {
            Row::Process(_) => {
                let program = ring.map(|ring| ring.program_name.as_str()).filter(|name| !name.is_empty());
                let name = program.or(ring.map(|ring| ring.name.as_str())).unwrap_or("process");
                (TrackKind::Process, name.to_owned())
            }
            Row::Thread(key) => {
                let process = self.row(Row::Process(process), None)?;
                let os_thread_id = thread.and_then(|(_, thread)| thread.os_thread_id).unwrap_or(key.1);
                (TrackKind::Thread { process, os_thread_id }, thread_name(thread))
            }
            Row::ThreadApart(key, _) => {
                let parent = self.row(Row::Thread(*key), thread)?;
                (TrackKind::Plain { parent }, format!("{} (overlapping)", thread_name(thread)))
            }
            Row::Spans { .. } => (TrackKind::Plain { parent: self.row(Row::Process(process), None)? }, "spans".into()),
            Row::Ring(ring) => {
                let parent = self.row(Row::Process(process), None)?;
                (TrackKind::Plain { parent }, format!("events of {}", recording.ring(*ring).name))
            }
            Row::Losses(ring) => {
                let parent = self.row(Row::Process(process), None)?;
                (TrackKind::Plain { parent }, format!("losses of {}", recording.ring(*ring).name))
            }
            Row::Counter { name, .. } => {
                let process = self.row(Row::Process(process), None)?;
                (TrackKind::Counter { process }, name.clone())
            }
        };
        let id = TrackId(self.tracks.len() as u64 + 1);
        self.tracks.insert(row, id);
        self.sink.track(id, &Track { kind, name: &name, pid })?;
        Ok(id)
    }
}
