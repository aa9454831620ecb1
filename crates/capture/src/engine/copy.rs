//! The thread that copies events out of the rings. To keep up with the writers, this thread only copies and validates.
//! Other threads encode, compress and write the events.

use crate::engine::filter::RunningFilter;
use crate::engine::options::CaptureOptions;
use crate::engine::pace::{Backlog, Pace};
use crate::engine::slots::{BlockSlot, CopyResult, Message, Request};
use crate::engine::sources::Sources;
use crate::engine::stop::{Stop, has_ended};
use crate::error::CaptureError;
use crate::format::columns::{BlockRecords, PlacedGap};
use crate::format::end::EndReason;
use crate::format::header::{BLOCK_EVENTS_BYTES, RECORDS_MAX};
use eventring::reader::{EventBatch, Next};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

/// The time between two checks whether the writers live.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);
/// The pause between two passes over the rings after the stop.
const PAUSE_AT_STOP: Duration = Duration::from_micros(500);
/// The smallest memory of a block. With many rings, blocks become smaller, because a reader keeps one block of each
/// ring in memory.
const BLOCK_EVENTS_BYTES_MIN: usize = 64 << 10;
/// The memory of one block of each ring together.
const ALL_BLOCKS_BYTES: usize = 64 << 20;

/// The copying thread.
pub(crate) struct CopyThread {
    sources: Sources,
    requests: Receiver<Request>,
    /// Slots that come back empty.
    free: Receiver<Box<BlockSlot>>,
    out: Sender<(u64, Message)>,
    /// The number of the next message.
    number: u64,
    /// The requested level of compression.
    level: i32,
    /// The longest time for which events wait in their rings.
    wait_max: Duration,
    /// The size of the largest payload that is taken.
    payload_bytes_max: u32,
    /// True if rings may still be added.
    awaits_rings: bool,
    stop: Option<Stop>,
    /// `None` if all events are wanted.
    filter: Option<RunningFilter>,
    pace: Pace,
    /// A slot that was taken and not used.
    spare: Option<Box<BlockSlot>>,
}

/// The other threads are gone: the capture has failed or has ended for another reason.
struct Gone;

/// The reason why a pass over the rings ends the copying early.
enum CopyError {
    Gone,
    Failed(CaptureError),
}

impl From<Gone> for CopyError {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl CopyThread {
    pub(crate) fn new(
        sources: Sources,
        requests: Receiver<Request>,
        free: Receiver<Box<BlockSlot>>,
        out: Sender<(u64, Message)>,
        options: &CaptureOptions,
    ) -> Self {
        Self {
            filter: (!options.filter.keeps_all()).then(|| RunningFilter::new(&options.filter)),
            sources,
            requests,
            free,
            out,
            number: 0,
            level: options.level,
            wait_max: options.wait_max,
            payload_bytes_max: options.payload_bytes_max as u32,
            awaits_rings: true,
            stop: None,
            pace: Pace::default(),
            spare: None,
        }
    }

    /// Copies until there is a reason to stop, and sends the result.
    pub(crate) fn run(mut self) {
        let result = match self.copy() {
            Ok(reason) => Ok(reason),
            Err(CopyError::Failed(error)) => Err(error),
            Err(CopyError::Gone) => return,
        };
        let refused = |input: &crate::engine::sources::RingInput| input.payloads.refused;
        let rings = self.sources.rings.iter();
        let refused_payloads = rings.map(|ring| ring.input.as_ref().map_or(0, refused)).collect();
        let _ = self.send(Message::Done(CopyResult { result, refused_payloads }));
    }

    fn copy(&mut self) -> Result<EndReason, CopyError> {
        let mut next_check = Instant::now() + LIVENESS_INTERVAL;
        // A capture of what was recorded until now has its stop already.
        self.take_all()?;
        loop {
            self.sources.find_shards().map_err(CopyError::Failed)?;
            self.send_found()?;
            if let Some(stop) = &mut self.stop {
                stop.see(&self.sources.rings);
            }
            let has_copied = self.copy_all()?;
            let now = Instant::now();
            if now >= next_check {
                next_check = now + LIVENESS_INTERVAL;
                self.check_rings()?;
            }
            if let Some(reason) = self.reason_to_end(now, has_copied) {
                return Ok(reason);
            }
            let pause = if self.stop.is_some() { PAUSE_AT_STOP } else { self.pace.pause() };
            match self.requests.recv_timeout(pause) {
                Ok(request) => self.take(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(CopyError::Gone),
            }
            self.take_all()?;
        }
    }

    /// Takes the requests that have come.
    fn take_all(&mut self) -> Result<(), Gone> {
        loop {
            match self.requests.try_recv() {
                Ok(request) => self.take(request),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(Gone),
            }
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Add(reader) => self.sources.add_later(reader),
            Request::NoMoreRings => self.awaits_rings = false,
            Request::Stop(stop) => self.stop = Some(stop),
        }
    }

    fn reason_to_end(&self, now: Instant, has_copied: bool) -> Option<EndReason> {
        let rings = &self.sources.rings;
        if let Some(stop) = &self.stop {
            // Events whose recording began before the stop may come until the deadline. So the capture does not end
            // before the deadline, unless every ring has brought a later event.
            let is_due = now >= stop.deadline;
            let is_done = stop.is_all_over(rings) || (is_due && (!has_copied || stop.is_reached(rings)));
            if is_done {
                return Some(stop.reason);
            }
        }
        let have_ended = || self.sources.captured().all(|ring| ring.input.as_ref().is_none_or(has_ended));
        // Rings that may still come beside the only recorder are only read, and nobody waits for them.
        let awaits_rings = self.awaits_rings && !self.sources.is_of_one_recorder();
        // The rings are checked before `may_grow`. If all rings of a recorder have ended, the recorder makes no more
        // shards, so `may_grow` cannot become true after this check.
        (!awaits_rings && have_ended() && !self.sources.may_grow()).then_some(EndReason::WritersEnded)
    }

    /// Finds out whether the writers live, and whether the files of the rings are whole.
    fn check_rings(&mut self) -> Result<(), Gone> {
        for index in 0..self.sources.rings.len() {
            let Some(input) = &mut self.sources.rings[index].input else { continue };
            // The reader notices that a file was truncated only when it reads the missing part. So the slot of the next
            // event is read even if there is no next event.
            if input.cursor.lag() == 0 && !self.stop.as_ref().is_some_and(|stop| stop.is_over(index)) {
                let backlog = Backlog::measure(input);
                self.copy_ring(index, &backlog)?;
            }
            if let Some(input) = &self.sources.rings[index].input {
                input.reader.state();
            }
        }
        Ok(())
    }

    /// Copies the rings that have many new events, or old ones. Returns true if any event or gap was copied.
    fn copy_all(&mut self) -> Result<bool, Gone> {
        let mut has_copied = false;
        let now = Instant::now();
        if let Some(filter) = &mut self.filter {
            filter.begin_pass(&self.sources);
        }
        let is_crowded = self.filter.as_mut().is_some_and(RunningFilter::is_crowded);
        let mut rings: Vec<usize> = (0..self.sources.rings.len()).collect();
        if let Some(filter) = &self.filter {
            // Those that ask for spans come last: a span of which the beginning was overwritten is known by its other
            // events alone, when they are copied.
            rings.sort_by_key(|ring| filter.asks_for_spans(*ring));
        }
        for index in rings {
            let is_over = self.stop.as_ref().is_some_and(|stop| stop.is_over(index));
            let input = self.sources.rings[index].input.as_mut().filter(|_| !is_over);
            let Some(input) = input else {
                self.see_copied(index);
                continue;
            };
            let backlog = Backlog::measure(input);
            let may_get_spans = self.awaits_rings && self.filter.as_ref().is_some_and(|it| it.lacks_spans(index));
            if may_get_spans {
                input.copied.get_or_insert(now);
            }
            let is_last = self.stop.is_some() || (input.reader.is_finished() && !may_get_spans);
            if self.pace.is_due(
                &backlog,
                is_last || is_crowded || input.copied.is_none_or(|copied| now.duration_since(copied) >= self.wait_max),
            ) {
                has_copied |= self.copy_ring(index, &backlog)?;
            }
            let cursor = self.sources.rings[index].input.as_ref().map(|input| &input.cursor);
            if cursor.is_none_or(|cursor| cursor.next_seqno() >= backlog.end_seqno) {
                self.see_copied(index);
            }
        }
        self.pace.end_pass(self.sources.rings.iter().filter_map(|ring| ring.input.as_ref()));
        Ok(has_copied)
    }

    /// Tells the filter that everything was copied that this ring had in this pass.
    fn see_copied(&mut self, ring: usize) {
        if let Some(filter) = &mut self.filter {
            filter.see_copied(ring);
        }
    }

    /// Copies the events that a ring had when `backlog` was found. Returns true if there was any event or gap.
    fn copy_ring(&mut self, index: usize, backlog: &Backlog) -> Result<bool, Gone> {
        let mut has_copied = false;
        let level = backlog.level(self.level);
        loop {
            let mut slot = self.take_slot()?;
            let ring = &mut self.sources.rings[index];
            let Some(input) = &mut ring.input else { return Ok(has_copied) };
            let is_idle = slot.records.fill(&mut input.cursor);
            slot.records.ring = index as u32;
            slot.layout = ring.layout.clone();
            slot.level = level;
            input.payloads.check(&mut slot.records.events, &input.reader);
            input.see_copied(&slot.records.events);
            if let Some(stop) = &mut self.stop
                && slot.records.cut_after(stop.last_taken(index), stop.epoch_nanos)
            {
                stop.note_later_event(index);
            }
            let is_done = is_idle || input.cursor.next_seqno() >= backlog.end_seqno;
            // The thread reads no event twice, so the pages of copied events need not stay in its memory.
            input.reader.release_pages();
            if slot.records.all().len() == 0 {
                self.spare = Some(slot);
                return Ok(has_copied);
            }
            has_copied = true;
            self.filter(&mut slot.records)?;
            match self.sources.is_beside(index) {
                true => self.spare = Some(slot),
                false => self.send(Message::Records(slot))?,
            }
            if is_done || self.stop.as_ref().is_some_and(|stop| stop.is_over(index)) {
                return Ok(true);
            }
        }
    }

    /// Removes the events that are not wanted.
    fn filter(&mut self, records: &mut BlockRecords) -> Result<(), Gone> {
        let Some(filter) = &mut self.filter else { return Ok(()) };
        let mut spans = filter.verdicts(records, &self.sources.rings);
        // A thread may have made its shard, and begun a span there, after this pass began. (An error comes again at the
        // next pass.)
        let known = self.sources.rings.len();
        if !spans.unknown.is_empty() && self.sources.find_shards().is_ok() && self.sources.rings.len() > known {
            filter.add_rings(&self.sources);
            spans = filter.verdicts(records, &self.sources.rings);
        }
        filter.apply(records, &spans, &self.sources.rings);
        self.send_found()
    }

    /// Returns an empty slot. Waits until one comes back.
    fn take_slot(&mut self) -> Result<Box<BlockSlot>, Gone> {
        let mut slot = match self.spare.take() {
            Some(slot) => slot,
            None => self.free.recv().map_err(|_| Gone)?,
        };
        let bytes = ALL_BLOCKS_BYTES / self.sources.rings.len().max(1);
        let bytes = bytes.clamp(BLOCK_EVENTS_BYTES_MIN, BLOCK_EVENTS_BYTES);
        slot.records.clear();
        slot.records.events.set_limits(bytes, self.payload_bytes_max);
        Ok(slot)
    }

    fn send_found(&mut self) -> Result<(), Gone> {
        if self.sources.found.is_empty() {
            return Ok(());
        }
        let found = std::mem::take(&mut self.sources.found);
        self.send(Message::Found(found))
    }

    fn send(&mut self, message: Message) -> Result<(), Gone> {
        let number = self.number;
        self.number += 1;
        self.out.send((number, message)).map_err(|_| Gone)
    }
}

impl BlockRecords {
    /// Copies events and gaps until the batch is full, or the ring has no more. Returns true in the second case.
    fn fill(&mut self, cursor: &mut eventring::reader::Cursor) -> bool {
        // The ring has handed out further seqnos. If the next event is missing, the cursor shall find out why at once.
        cursor.probe();
        loop {
            match cursor.copy_batch(&mut self.events) {
                None => return false,
                Some(Next::Gap(gap)) => {
                    let events_before = self.events.len();
                    self.gaps.push(PlacedGap { events_before, gap });
                    if self.gaps.len() >= RECORDS_MAX {
                        return false;
                    }
                }
                // `copy_batch` hands out no single events.
                Some(Next::NotReady | Next::Event(_)) => return true,
            }
        }
    }

    /// Removes the records from the first event on that comes after `last_seqno` and was recorded after `epoch_nanos`.
    /// Returns true if there is one. Of a gap before this event, only the seqnos up to `last_seqno` stay.
    fn cut_after(&mut self, last_seqno: u64, epoch_nanos: u64) -> bool {
        // A time stamp alone does not tell that an event is later: the clock that made the stamps may be ahead.
        let is_later =
            |it: &eventring::reader::Descriptor| it.seqno > last_seqno && it.record_epoch_nanos > epoch_nanos;
        let Some(first) = self.events.descriptors().iter().position(is_later) else { return false };
        self.events.truncate(first);
        self.gaps.retain_mut(|PlacedGap { events_before, gap }| {
            if *events_before == first {
                gap.count = gap.count.min(last_seqno.saturating_add(1).saturating_sub(gap.first_seqno));
            }
            *events_before <= first && gap.count > 0
        });
        true
    }
}

impl crate::engine::sources::RingInput {
    fn see_copied(&mut self, events: &EventBatch) {
        self.copied = Some(Instant::now());
        if let Some(last) = events.descriptors().last() {
            self.payload_end = last.payload_buf_offset.saturating_add(last.payload_size.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::batch_filter::BatchFilter;
    use crate::select::events::EventSelection;
    use eventring::EventType;
    use eventring::reader::{Reader, Seek};
    use eventring::recorder::{ContentDescription, Recorder};
    use eventring::tracing::{PerfRecorder, RecorderSubscriber};
    use std::sync::mpsc::channel;

    #[derive(EventType, Clone, Copy)]
    #[event(content_type = 300, name = "SHOP")]
    #[repr(u16)]
    enum Shop {
        OrderPlaced = 2,
    }

    fn of_span(name: &str) -> BatchFilter {
        BatchFilter::new().events(EventSelection { spans: vec![name.to_owned()], ..EventSelection::default() })
    }

    #[test]
    fn a_typed_event_is_judged_by_a_span_in_a_shard_that_was_made_after_the_last_look_for_shards() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let builder = PerfRecorder::builder().config(path("spans")).shards(2).shifts(15, 21).prefault(false);
        let spans = builder.build().unwrap();
        let builder =
            Recorder::builder(ContentDescription::from_event_type::<Shop>()).config(path("typed")).prefault(false);
        let typed = builder.build().unwrap();
        let record = |span: fn() -> tracing::Span| {
            let subscriber = RecorderSubscriber::new(spans.clone());
            let record = || span().in_scope(|| eventring::record!(&typed => Shop::OrderPlaced));
            tracing::subscriber::with_default(subscriber, record)
        };
        record(|| tracing::info_span!("other"));
        let options = CaptureOptions { filter: of_span("order"), ..CaptureOptions::new() };
        let mut sources = Sources::new(Seek::Oldest, Default::default(), options.filter.clone());
        for name in ["typed", "spans"] {
            sources.add_first(Reader::open(path(name)).unwrap()).unwrap();
        }
        sources.find_shards().unwrap();
        assert_eq!(sources.rings.len(), 2);
        let ((_requests, for_copier), (slots, free), (out, sent)) = (channel(), channel(), channel());
        (0..4).for_each(|_| slots.send(Box::default()).unwrap());
        let mut copier = CopyThread::new(sources, for_copier, free, out, &options);
        std::thread::scope(|scope| _ = scope.spawn(|| record(|| tracing::info_span!("order"))).join().unwrap());
        assert!(copier.copy_all().is_ok());
        assert_eq!(events_of_first(&sent), 1);
    }

    /// Returns the number of events that were copied of the first ring.
    fn events_of_first(sent: &Receiver<(u64, Message)>) -> usize {
        let events = sent.try_iter().filter_map(|(_, message)| match message {
            Message::Records(slot) if slot.records.ring == 0 => Some(slot.records.events.len()),
            _ => None,
        });
        events.sum()
    }

    #[test]
    fn a_typed_event_is_judged_by_a_span_of_which_the_beginning_was_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let spans =
            PerfRecorder::builder().config(path("spans")).shards(1).shifts(15, 21).prefault(false).build().unwrap();
        let builder =
            Recorder::builder(ContentDescription::from_event_type::<Shop>()).config(path("typed")).prefault(false);
        let typed = builder.build().unwrap();
        tracing::subscriber::with_default(RecorderSubscriber::new(spans.clone()), || {
            tracing::info_span!("order").in_scope(|| {
                eventring::record!(&typed => Shop::OrderPlaced);
                (0..1 << 15).for_each(|_| tracing::info!("more"));
            });
        });
        let options = CaptureOptions { filter: of_span("order"), ..CaptureOptions::new() };
        let mut sources = Sources::new(Seek::Oldest, Default::default(), options.filter.clone());
        for name in ["typed", "spans"] {
            sources.add_first(Reader::open(path(name)).unwrap()).unwrap();
        }
        let ((_requests, for_copier), (slots, free), (out, sent)) = (channel(), channel(), channel());
        (0..16).for_each(|_| slots.send(Box::default()).unwrap());
        assert!(CopyThread::new(sources, for_copier, free, out, &options).copy_all().is_ok());
        assert_eq!(events_of_first(&sent), 1);
    }
}
