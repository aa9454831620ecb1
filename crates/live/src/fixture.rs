//! A stream for tests: records with chosen times, which the engine processes like those of a ring.

use super::core::LiveCore;
use super::engine::consumer::{LiveConsumer, replay};
use super::observation::Observation;
use super::options::LiveOptions;
use super::state::LiveState;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead};
use eventring::schema::EventType as _;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt, ThreadView};
use eventring::tracing::{Catalog, RawRecord};
use eventring_capture::recording::{
    EntryContent, NewRing, RecordedProgram, RecordedRings, RecordingEntry, RecordingReplay, RecordingTables,
    ReplayConsumer,
};
use std::sync::Arc;

/// The time of the first event, in nanoseconds since the epoch.
pub const START: u64 = 1_000_000_000;

/// A stream of one perf ring.
pub struct StreamFixture {
    pub tables: RecordingTables,
    pub replay: RecordingReplay,
    pub(super) core: LiveCore,
    seqno: u64,
}

impl StreamFixture {
    pub fn new(options: &LiveOptions) -> Self {
        let mut rings = RecordedRings::default();
        rings.add_process(0, RecordedProgram::new(1, "program"));
        rings.add(&NewRing {
            process: 0,
            shard: Some((0, 0)),
            name: "ring",
            created_epoch_nanos: 0,
            content_type: PerfEvent::CONTENT_TYPE,
            schema_hash: PerfEvent::schema_hash(),
            schema_text: None,
        });
        let tables = RecordingTables { rings: Arc::new(rings), catalogs: vec![Catalog::live()] };
        let (mut replay, mut core) = (replay(options), LiveCore::new(options));
        replay.grow(&tables);
        core.grow(&tables);
        Self { tables, replay, core, seqno: 0 }
    }

    pub fn state(&self) -> LiveState<'_> {
        LiveState { replayed: self.replay.state(&self.tables), core: &self.core }
    }

    /// Takes a record.
    pub fn push(
        &mut self,
        nanos: u64,
        event: PerfEvent,
        ext: PerfExt,
        payload: &[u8],
        see: &mut impl FnMut(&Observation<'_>, LiveState<'_>),
    ) {
        self.push_to(nanos, event, ext, payload, (see, &mut ()));
    }

    /// Takes a record that has lost its payload.
    pub fn push_lost(
        &mut self,
        nanos: u64,
        event: PerfEvent,
        ext: PerfExt,
        see: &mut impl FnMut(&Observation<'_>, LiveState<'_>),
    ) {
        self.push_read(nanos, event, ext, PayloadRead::Expired, (see, &mut ()));
    }

    /// Takes a record, and gives it to a consumer, too.
    pub fn push_to(
        &mut self,
        nanos: u64,
        event: PerfEvent,
        ext: PerfExt,
        payload: &[u8],
        watchers: (&mut impl FnMut(&Observation<'_>, LiveState<'_>), &mut impl ReplayConsumer),
    ) {
        self.push_read(nanos, event, ext, PayloadRead::Valid(payload), watchers);
    }

    fn push_read(
        &mut self,
        nanos: u64,
        event: PerfEvent,
        ext: PerfExt,
        payload: PayloadRead<'_>,
        (see, also): (&mut impl FnMut(&Observation<'_>, LiveState<'_>), &mut impl ReplayConsumer),
    ) {
        self.seqno += 1;
        let descriptor = Descriptor {
            seqno: self.seqno,
            event_type: event as u16,
            payload_size: payload.valid().map_or(0, |payload| payload.len() as u32),
            record_epoch_nanos: nanos,
            payload_buf_offset: 0,
            content_ext: ext.to_words(),
        };
        let record = RawRecord::new(&mut self.tables.catalogs[0], 0, &descriptor, payload);
        let content = EntryContent::Perf { recorder: 0, record, catalog: &self.tables.catalogs[0] };
        let entry = entry_of(&self.tables, content);
        self.replay.step(&entry, &mut LiveConsumer { core: &mut self.core, see, also }).unwrap();
        if let Some(thread) = self.replay.ended_thread(&entry) {
            self.tables.catalogs[0].forget_thread(thread.thread_id);
        }
    }

    /// Takes a record that nobody watches.
    pub fn quiet(&mut self, nanos: u64, event: PerfEvent, ext: PerfExt, payload: &[u8]) {
        self.push(nanos, event, ext, payload, &mut |_, _| ());
    }

    /// Takes the description of a call site of spans.
    pub fn call_site(&mut self, id: u32, name: &str) {
        self.call_site_in(id, CallSiteKind::Span, ("shop", name), "n");
    }

    /// Takes the description of a call site of this kind and target, with a field.
    pub fn call_site_in(&mut self, id: u32, kind: CallSiteKind, (target, name): (&str, &str), field: &str) {
        let view = CallSiteView {
            kind,
            level: CallSiteLevel::Info,
            name: name.into(),
            target: target.into(),
            module: "".into(),
            file: "".into(),
            line: 0,
            field_names: vec![field.into()],
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
        let content = EntryContent::Gap(Gap { first_seqno: self.seqno, count: 1, cause });
        let entry = entry_of(&self.tables, content);
        let see = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
        self.replay.step(&entry, &mut LiveConsumer { core: &mut self.core, see, also: &mut () }).unwrap();
    }

    /// Ticks at a time, as the engine does.
    pub fn tick(&mut self, nanos: u64, see: &mut impl FnMut(&Observation<'_>, LiveState<'_>)) {
        self.tick_to(nanos, see, &mut ());
    }

    /// Ticks at a time, and tells a consumer, too.
    pub fn tick_to(
        &mut self,
        nanos: u64,
        see: &mut impl FnMut(&Observation<'_>, LiveState<'_>),
        also: &mut impl ReplayConsumer,
    ) {
        self.core.advance(nanos.max(self.state().now_epoch_nanos()));
        let mut consumer = LiveConsumer { core: &mut self.core, see, also };
        self.replay.advance(nanos, &self.tables, &mut consumer).unwrap();
        self.replay.make_room(&self.tables, &mut consumer).unwrap();
        see(&Observation::Tick, self.state());
    }

    /// Ends the stream.
    pub fn end(&mut self, see: &mut impl FnMut(&Observation<'_>, LiveState<'_>)) {
        let mut consumer = LiveConsumer { core: &mut self.core, see, also: &mut () };
        self.replay.close_all(&self.tables, &mut consumer).unwrap();
    }
}

/// Returns an entry of the only ring.
fn entry_of<'e>(tables: &'e RecordingTables, content: EntryContent<'e>) -> RecordingEntry<'e> {
    RecordingEntry { tables, ring: 0, process: 0, process_index: 0, content, gap_until_nanos: None }
}
