//! Copies of the *tables of the present* (which list what is open now) that a capture stores while it runs. A copy is
//! called a *look*. The look shows which spans were open, even if their first events were lost.

use super::consumer::ReplayConsumer;
use super::parts::ReplayParts;
use super::tables::RecordingTables;
use crate::format::block;
use crate::format::header::{BlockKind, BlockRef};
use crate::read::file::CaptureFile;
use eventring::now::{Presence, Present};
use eventring::tracing::{SpanId, SpanReplay, ThreadKey};
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::sync::Arc;

/// The looks that the stream has not reached, in the order of time.
#[derive(Default)]
pub(super) struct Looks {
    next: VecDeque<Look>,
    /// The time of the first of them, in nanoseconds since the epoch.
    pub(super) next_nanos: Option<u64>,
}

pub(super) struct Look {
    /// The index of the recorder's shard 0, that of the recorder, and that of its process.
    pub(super) recorder: u32,
    pub(super) index: usize,
    pub(super) process: usize,
    file: Arc<File>,
    pub(super) block: BlockRef,
}

impl Looks {
    pub(super) fn new(next: VecDeque<Look>) -> Self {
        Self { next_nanos: next.front().map(Look::nanos), next }
    }

    /// Takes the looks that the stream has reached: what they have shown was open then, whatever was lost before.
    #[cold]
    pub(super) fn take(
        &mut self,
        until_nanos: u64,
        replays: &mut [SpanReplay],
        parts: &mut ReplayParts,
        to: &mut impl ReplayConsumer,
    ) {
        while self.next.front().is_some_and(|look| look.nanos() <= until_nanos)
            && let Some(look) = self.next.pop_front()
        {
            look.see_open(look.nanos(), replays, parts, to);
        }
        self.next_nanos = self.next.front().map(Look::nanos);
    }

    /// Takes the next look at each recorder: what was open then, and had begun when the stream ended, was open at its
    /// end.
    pub(super) fn end(
        self,
        now_nanos: u64,
        replays: &mut [SpanReplay],
        parts: &mut ReplayParts,
        to: &mut impl ReplayConsumer,
    ) {
        let mut known = HashSet::new();
        for look in self.next {
            if known.insert(look.recorder) {
                look.see_open(now_nanos.min(look.nanos()), replays, parts, to);
            }
        }
    }
}

impl Look {
    fn nanos(&self) -> u64 {
        self.block.header.first_nanos
    }

    /// Returns what it has shown; nothing if it is damaged.
    pub(super) fn present(&self) -> Present {
        let image = block::content(&self.file, &self.block).unwrap_or_default();
        Present::of_image(&image).unwrap_or_default()
    }

    fn see_open(&self, nanos: u64, replays: &mut [SpanReplay], parts: &mut ReplayParts, to: &mut impl ReplayConsumer) {
        let Some(replay) = replays.get_mut(self.process) else { return };
        let present = self.present();
        for span in &present.spans {
            let inside = match span.presence {
                Presence::Inside(thread_id, since) if since <= nanos => Some(thread_id),
                _ => None,
            };
            let inside = inside.map(|thread_id| ThreadKey { recorder: self.recorder, thread_id });
            SpanId::new(span.id).into_iter().for_each(|id| replay.see_open(id, inside, nanos));
        }
        parts.each(|part| part.looked(self.process, &present, nanos));
        to.looked(self.process, &present, nanos);
    }
}

impl CaptureFile {
    /// Returns the looks at tables of all files, in the order of time. There are none if a part is selected.
    pub(super) fn looks(&self, tables: &RecordingTables) -> VecDeque<Look> {
        let files = self.all_files().filter(|_| self.choice.is_none());
        let looks = files.flat_map(|file| {
            let blocks = file.blocks.iter().filter(|block| block.header.kind == BlockKind::Present);
            blocks.filter(|block| block.header.ring < file.place.rings).filter_map(|block| {
                let recorder = file.place.first + block.header.ring;
                let origin = tables.rings.origin(recorder);
                let shard = origin.shard.filter(|shard| shard.recorder == recorder)?;
                let (index, process) = (shard.recorder_index, origin.process_index);
                Some(Look { recorder, index, process, file: file.file.clone(), block: *block })
            })
        });
        let mut looks: Vec<Look> = looks.collect();
        looks.sort_by_key(Look::nanos);
        // A file often begins as the one before ends.
        looks.dedup_by_key(|look| (look.recorder, look.nanos()));
        looks.into()
    }
}
