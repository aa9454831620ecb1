//! The consumer that makes messages from a recording: a capture, or live rings.

use super::happenings::{Happening, attributes_of};
use super::mapper::OtlpMapper;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{SpanId, SpanStep};
use eventring_capture::recording::{
    EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayNeeds, ReplayState, SpanOver,
};
use std::io;

/// Makes messages of what a replay tells. Calls `leave` whenever a batch is full.
pub(crate) struct OtlpConsumer<'m, L> {
    pub(crate) mapper: &'m mut OtlpMapper,
    pub(crate) leave: L,
}

impl<L: FnMut(&mut OtlpMapper) -> io::Result<()>> ReplayConsumer for OtlpConsumer<'_, L> {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { fields: true, remaining: true, ..ReplayNeeds::default() }
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let (process, rings) = (entry.process_index, &*state.tables.rings);
        self.mapper.learn(rings);
        let known = |id: Option<SpanId>| id.and_then(|id| state.span(process, id));
        match &entry.content {
            EntryContent::Perf { record, catalog, .. } => {
                let id = record.span();
                if let (Some(PerfEvent::SpanFollowsFrom), Some(of), Some(to)) = (record.event, id, record.related()) {
                    self.mapper.link(process, (of, known(id)), (to, known(Some(to))), record.epoch_nanos());
                } else if let Some(happening) = Happening::of_record(record, catalog) {
                    self.mapper.happening(process, id, known(id), happening);
                }
            }
            EntryContent::Typed { descriptor, payload } => {
                let happening = Happening::of_typed_event(rings, entry.ring, descriptor, *payload);
                let id = rings.span(entry.ring, descriptor);
                self.mapper.happening(process, id, known(id), happening);
            }
            EntryContent::Gap(gap) => self.mapper.loss(process, (rings, entry.ring), *gap, state.now_nanos),
        }
        self.pass_on()
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        let is_remaining = over.over == SpanOver::Remaining;
        if is_remaining && !self.mapper.is_sent_first(process, over.span) {
            return Ok(());
        }
        self.mapper.span(process, over.span, attributes_of(over.span), over.end_nanos);
        self.pass_on()
    }

    fn process_end(&mut self, process: usize) -> io::Result<()> {
        self.mapper.end_process(process);
        self.let_go(|of, _| of != process)
    }

    fn kept_bytes(&self) -> u64 {
        self.mapper.kept_bytes()
    }

    fn tidy(&mut self, state: ReplayState<'_>) -> io::Result<()> {
        match self.mapper.is_crowded() {
            true => self.let_go(|process, id| state.span(process, id).is_some()),
            false => Ok(()),
        }
    }
}

impl<L: FnMut(&mut OtlpMapper) -> io::Result<()>> OtlpConsumer<'_, L> {
    fn pass_on(&mut self) -> io::Result<()> {
        if self.mapper.batch.is_full() { (self.leave)(self.mapper) } else { Ok(()) }
    }

    /// Lets go of what happened in spans that nobody knows. A batch that is full leaves in between: there may be much.
    fn let_go(&mut self, is_known: impl Fn(usize, SpanId) -> bool) -> io::Result<()> {
        for (process, of, happening) in self.mapper.take_gone(is_known) {
            self.mapper.log_record_apart(process, of, happening);
            self.pass_on()?;
        }
        Ok(())
    }
}
