//! How a program ended, found from its rings in a capture.

use crate::format::header::BlockKind;
use crate::read::file::CaptureFile;
use eventring::reader::RingEnd;

/// The life of a program, as far as a capture knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturedLife {
    /// The program lived at the end of the capture. Its state is known until this time, in nanoseconds since the epoch:
    /// the end, or that of the last event that was read, if more had been recorded.
    Lived(u64),
    /// The program had ended.
    Ended {
        /// When and how it ended.
        end: RingEnd,
        /// False in files of earlier versions, which say only that it ended.
        is_how_known: bool,
    },
    /// The capture is truncated, or a window is selected that ends before.
    Unknown,
}

impl CapturedLife {
    /// Returns the last time at which the program is known to have lived, in nanoseconds since the epoch, if the
    /// capture says it.
    pub fn until_nanos(self) -> Option<u64> {
        match self {
            Self::Lived(until) => Some(until),
            Self::Ended { end, .. } => Some(end.after_epoch_nanos),
            Self::Unknown => None,
        }
    }
}

impl CaptureFile {
    /// Returns what is known of the end of a program. `process` is the number of the process.
    pub fn life_of(&self, process: u32) -> CapturedLife {
        let Some(whole) = &self.end else { return CapturedLife::Unknown };
        // A window that ends before does not show the end.
        let to_nanos = self.choice.as_ref().map_or(u64::MAX, |choice| choice.to_nanos);
        let rings = || (0..).zip(&self.rings).filter(move |(_, ring)| ring.process == process).map(|(index, _)| index);
        let last_nanos = rings().map(|ring| self.last_nanos_of_all(ring)).max().unwrap_or(0);
        let of_capture = |ring| self.merged.iter().rev().find(move |capture| capture.first_ring <= ring);
        let ended =
            rings().next().and_then(of_capture).map_or(whole.ended_epoch_nanos, |capture| capture.ended_epoch_nanos);
        let of_rings = || rings().filter_map(|ring| whole.stats.rings.get(ring as usize));
        if of_rings().any(|ring| ring.was_live) {
            // Of events that were recorded and not read, some may have closed what was open.
            let has_unread = of_rings().any(|ring| ring.unread > 0) && last_nanos > 0;
            let until = if has_unread { last_nanos } else { ended.max(last_nanos) };
            return if to_nanos < until { CapturedLife::Unknown } else { CapturedLife::Lived(until) };
        }
        let known = of_rings().filter_map(|ring| ring.end).reduce(RingEnd::and);
        let end = known.unwrap_or(RingEnd::between(false, 0, ended.max(last_nanos)));
        if to_nanos < end.before_epoch_nanos {
            return CapturedLife::Unknown;
        }
        CapturedLife::Ended { end: end.seen_at(last_nanos), is_how_known: known.is_some() }
    }

    /// Returns the time of the last event of a process in the selected window, in nanoseconds since the epoch, whether it
    /// is selected or not; `None` if all events are.
    pub(crate) fn last_selected_time_of(&self, process: u32) -> Option<u64> {
        let to_nanos = self.choice.as_ref()?.to_nanos;
        let its = self.rings.iter().zip(0..).filter(|(ring, _)| ring.process == process);
        its.map(|(_, ring)| self.last_nanos_of_all(ring).min(to_nanos)).max()
    }

    /// Returns the largest sort time of a ring in all files; 0 if it has no events.
    pub(crate) fn last_nanos_of_all(&self, ring: u32) -> u64 {
        let of_file = |file: &Self| {
            let index = ring.checked_sub(file.place.first).filter(|index| *index < file.place.rings)?;
            let headers = file.blocks.iter().map(|block| block.header);
            let its = headers.filter(|header| header.kind == BlockKind::Events && header.ring == index);
            its.map(|header| header.last_nanos).max()
        };
        self.all_files().filter_map(of_file).max().unwrap_or(0)
    }
}
