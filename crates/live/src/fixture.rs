//! A stream for tests: records with any times, taken as the engine takes those of a ring.

use super::core::LiveCore;
use super::options::LiveOptions;
use super::sight::Sight;
use super::state::LiveState;
use super::tables::LiveTables;
use eventring::reader::{Descriptor, GapCause, PayloadRead};
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt, ThreadView};
use eventring_capture::recording::EntryContent;

/// The time of the first event, in nanoseconds since the epoch.
pub const START: u64 = 1_000_000_000;

/// A stream of one perf ring.
pub struct StreamFixture {
    pub tables: LiveTables,
    pub(super) core: LiveCore,
    seqno: u64,
}

impl StreamFixture {
    pub fn new(options: &LiveOptions) -> Self {
        let tables = LiveTables::of_one_perf_ring();
        let mut core = LiveCore::new(options);
        core.grow(&tables);
        Self { tables, core, seqno: 0 }
    }

    pub fn state(&self) -> LiveState<'_> {
        LiveState { tables: &self.tables, core: &self.core }
    }

    /// Takes a record.
    pub fn push(
        &mut self,
        nanos: u64,
        event: PerfEvent,
        ext: PerfExt,
        payload: &[u8],
        see: &mut impl FnMut(&Sight<'_>, LiveState<'_>),
    ) {
        self.seqno += 1;
        let descriptor = Descriptor {
            seqno: self.seqno,
            event_type: event as u16,
            payload_size: payload.len() as u32,
            record_epoch_nanos: nanos,
            payload_buf_offset: 0,
            content_ext: ext.to_words(),
        };
        if let Some(shard) = self.tables.know(0, &descriptor, &[]) {
            self.core.take_perf(&mut self.tables, 0, shard, (&descriptor, PayloadRead::Valid(payload)), see);
        }
    }

    /// Takes a record that nobody watches.
    pub fn quiet(&mut self, nanos: u64, event: PerfEvent, ext: PerfExt, payload: &[u8]) {
        self.push(nanos, event, ext, payload, &mut |_, _| ());
    }

    /// Takes the description of a call site of spans.
    pub fn call_site(&mut self, id: u32, name: &str) {
        let view = CallSiteView {
            kind: CallSiteKind::Span,
            level: CallSiteLevel::Info,
            name: name.into(),
            target: "shop".into(),
            module: "".into(),
            file: "".into(),
            line: 0,
            field_names: vec!["n".into()],
        };
        self.quiet(START, PerfEvent::CallSite, PerfExt::of_span(0, id), &view.encode());
    }

    /// Takes the description of a thread.
    pub fn thread(&mut self, id: u32, name: &str) {
        let ext = PerfExt { thread_id: id, ..PerfExt::of_span(0, 0) };
        self.quiet(START, PerfEvent::ThreadStarted, ext, &ThreadView::encode(START, id, name));
    }

    /// Takes the loss of an event.
    pub fn lose(&mut self) {
        self.gap(GapCause::Overwritten);
    }

    /// Takes the loss of an event that was overwritten before anybody read.
    pub fn lose_first(&mut self) {
        self.gap(GapCause::OverwrittenBefore);
    }

    fn gap(&mut self, cause: GapCause) {
        self.seqno += 1;
        let content = EntryContent::Gap { first_seqno: self.seqno, count: 1, cause };
        let entry = self.tables.entry(0, content);
        self.core.take(&self.tables, &entry, &mut |_: &Sight<'_>, _: LiveState<'_>| ());
    }

    /// Ticks at a time, as the engine does.
    pub fn tick(&mut self, nanos: u64, see: &mut impl FnMut(&Sight<'_>, LiveState<'_>)) {
        self.core.advance(&self.tables, nanos, see);
        self.core.make_room(&self.tables, see);
        see(&Sight::Tick, LiveState { tables: &self.tables, core: &self.core });
    }

    /// Ends the stream.
    pub fn end(&mut self, see: &mut impl FnMut(&Sight<'_>, LiveState<'_>)) {
        self.core.close_at_end(&self.tables, see);
    }
}
