//! Profiles for speedscope, in its own file format: one profile for each track that has slices. A profile says when
//! which frame opens and closes, in nanoseconds since the first event.
//!
//! speedscope wants the events of a profile together, in the order of time and strictly nested. The slices of a
//! recording come in the order of time, but those of all tracks mixed. So the slices are kept until the end, in 24
//! bytes each.

use super::args::Args;
use super::json::JsonText;
use super::trace_writer::{Label, SliceId, TraceWriter, Track, TrackId, TrackKind};
use eventring::schema::perf::FieldValue;
use eventring::tracing::IdMap;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, Write};

/// The number of bytes that are passed on together.
const WRITE_BYTES: usize = 64 << 10;

/// The address of the format's schema, by which speedscope knows its own files.
pub const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The end of a slice that has not ended.
const OPEN: u64 = u64::MAX;

/// The writer of profiles. It writes everything at the end.
pub struct SpeedscopeWriter<'o> {
    out: &'o mut dyn Write,
    /// The times of the first and of the last event.
    first_nanos: u64,
    last_nanos: u64,
    frames: Frames,
    profiles: Vec<Profile>,
    of_tracks: IdMap<TrackId, usize>,
    /// The slices that have not ended, each with its profile and its index there.
    open: IdMap<SliceId, (usize, usize)>,
    slices: u64,
}

/// The slices of a track.
struct Profile {
    name: String,
    slices: Vec<ProfileSlice>,
}

#[derive(Clone, Copy)]
struct ProfileSlice {
    start_nanos: u64,
    end_nanos: u64,
    frame: u32,
}

/// The frames that all profiles share.
#[derive(Default)]
struct Frames {
    frames: Vec<Frame>,
    /// The indices of the frames with a name.
    by_name: HashMap<String, Vec<u32>>,
    text_bytes: u64,
}

#[derive(Clone, PartialEq)]
struct Frame {
    name: String,
    source: Option<(String, u32)>,
}

impl Frames {
    fn index(&mut self, name: &str, source: Option<(&str, u32)>) -> u32 {
        let is_it = |frame: &Frame| frame.source.as_ref().map(|(file, line)| (file.as_str(), *line)) == source;
        let known = self.by_name.get(name).into_iter().flatten().find(|index| is_it(&self.frames[**index as usize]));
        if let Some(index) = known {
            return *index;
        }
        let index = self.frames.len() as u32;
        self.by_name.entry(name.to_owned()).or_default().push(index);
        self.text_bytes += 2 * name.len() as u64 + source.map_or(0, |(file, _)| file.len() as u64);
        self.frames.push(Frame { name: name.to_owned(), source: source.map(|(file, line)| (file.to_owned(), line)) });
        index
    }

    /// Returns the frame of a slice that was open at the end. Its name says so.
    fn open(&mut self, index: u32) -> u32 {
        let Frame { name, source } = self.frames[index as usize].clone();
        self.index(&format!("{name} (open)"), source.as_ref().map(|(file, line)| (file.as_str(), *line)))
    }
}

impl<'o> SpeedscopeWriter<'o> {
    pub fn new(out: &'o mut dyn Write, first_nanos: u64, last_nanos: u64) -> Self {
        let (of_tracks, open) = (IdMap::default(), IdMap::default());
        let (frames, profiles) = (Frames::default(), Vec::new());
        Self { out, first_nanos, last_nanos, frames, profiles, of_tracks, open, slices: 0 }
    }

    /// Returns true if no profile has a slice.
    pub fn is_empty(&self) -> bool {
        self.slices == 0
    }

    /// Ends the slices that are still open.
    fn end_open(&mut self) {
        for (profile, index) in self.open.drain().map(|(_, place)| place).collect::<Vec<_>>() {
            self.end_one(profile, index, self.last_nanos);
        }
    }

    /// Ends a slice that was open at the end.
    fn end_one(&mut self, profile: usize, index: usize, nanos: u64) {
        let slice = &mut self.profiles[profile].slices[index];
        slice.end_nanos = nanos.max(slice.start_nanos);
        slice.frame = self.frames.open(slice.frame);
    }

    /// Gives profiles of the same name a number.
    fn number_names(&mut self) {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for Profile { name, .. } in &mut self.profiles {
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                name.push_str(&format!(" ({count})"));
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.profiles.retain(|profile| !profile.slices.is_empty());
        if self.profiles.is_empty() {
            // speedscope opens no file without a profile.
            self.profiles.push(Profile { name: "no slices".to_owned(), slices: Vec::new() });
        }
        self.number_names();
        let slices = || self.profiles.iter().flat_map(|profile| &profile.slices);
        // A loss can begin before the first event, and end after the last one.
        let base_nanos = slices().map(|slice| slice.start_nanos).fold(self.first_nanos, u64::min);
        let length_nanos = slices().map(|slice| slice.end_nanos).fold(self.last_nanos, u64::max) - base_nanos;
        let busiest = (0..self.profiles.len()).rev().max_by_key(|index| self.profiles[*index].slices.len());
        let mut text = JsonText::default();
        text.begin();
        text.member("$schema", SCHEMA)?;
        text.member("exporter", "eventring")?;
        text.member("activeProfileIndex", &busiest)?;
        text.raw(b",\"shared\":{\"frames\":[");
        for Frame { name, source } in &self.frames.frames {
            let frame = match source {
                Some((file, line)) => json!({ "name": name, "file": file, "line": line }),
                None => json!({ "name": name }),
            };
            text.comma();
            text.value(&frame)?;
        }
        text.raw(b"]},\"profiles\":[");
        for profile in &mut self.profiles {
            text.comma();
            text.begin();
            text.member("type", "evented")?;
            text.member("name", &profile.name)?;
            text.member("unit", "nanoseconds")?;
            text.member("startValue", &0)?;
            text.member("endValue", &length_nanos)?;
            text.raw(b",\"events\":[");
            profile.write_events(base_nanos, &mut text, self.out)?;
            text.raw(b"]}");
        }
        text.raw(b"]}\n");
        self.out.write_all(&text.0)
    }
}

impl Profile {
    /// Writes the opens and closes in the order of time. At equal times, closes come before opens.
    fn write_events(&mut self, base_nanos: u64, text: &mut JsonText, out: &mut dyn Write) -> io::Result<()> {
        // Events of different rings can be a few nanoseconds out of order. A slice comes before those inside it, so
        // among equal slices the order of their beginnings stays.
        let order = |slice: &ProfileSlice| (slice.start_nanos, std::cmp::Reverse(slice.end_nanos));
        if !self.slices.is_sorted_by_key(order) {
            self.slices.sort_by_key(order);
        }
        let mut event = |kind: &str, frame: u32, nanos: u64| {
            if text.0.len() >= WRITE_BYTES {
                // The last character stays, because the next comma depends on it.
                let last = text.0.pop();
                out.write_all(&text.0)?;
                text.0.clear();
                text.0.extend(last);
            }
            text.comma();
            text.begin();
            text.member("type", kind)?;
            text.member("frame", &frame)?;
            text.member("at", &(nanos - base_nanos))?;
            text.end();
            io::Result::Ok(())
        };
        let mut around: Vec<ProfileSlice> = Vec::new();
        for slice in &self.slices {
            while let Some(outer) = around.pop_if(|outer| outer.end_nanos <= slice.start_nanos) {
                event("C", outer.frame, outer.end_nanos)?;
            }
            event("O", slice.frame, slice.start_nanos)?;
            // The caller of a trace writer makes sure that slices of a track nest. This keeps the file valid even so.
            let outer_end = around.last().map_or(u64::MAX, |outer| outer.end_nanos);
            around.push(ProfileSlice { end_nanos: slice.end_nanos.min(outer_end), ..*slice });
        }
        while let Some(outer) = around.pop() {
            event("C", outer.frame, outer.end_nanos)?;
        }
        Ok(())
    }
}

impl TraceWriter for SpeedscopeWriter<'_> {
    fn track(&mut self, id: TrackId, track: &Track<'_>) -> io::Result<()> {
        if matches!(track.kind, TrackKind::Process | TrackKind::Counter { .. }) {
            return Ok(());
        }
        self.of_tracks.insert(id, self.profiles.len());
        self.profiles.push(Profile { name: track.name.to_owned(), slices: Vec::new() });
        Ok(())
    }

    fn begin(&mut self, track: TrackId, slice: SliceId, nanos: u64, label: Label<'_>, _: &Args) -> io::Result<()> {
        let Some(profile) = self.of_tracks.get(&track).copied() else { return Ok(()) };
        let frame = self.frames.index(label.name, label.source);
        let slices = &mut self.profiles[profile].slices;
        self.open.insert(slice, (profile, slices.len()));
        slices.push(ProfileSlice { start_nanos: nanos, end_nanos: OPEN, frame });
        self.slices += 1;
        Ok(())
    }

    fn end_open(&mut self, slice: SliceId, nanos: u64) {
        if let Some((profile, index)) = self.open.remove(&slice) {
            self.end_one(profile, index, nanos);
        }
    }

    fn end(&mut self, _: TrackId, slice: SliceId, nanos: u64, _: &Args) -> io::Result<()> {
        if let Some((profile, index)) = self.open.remove(&slice) {
            let slice = &mut self.profiles[profile].slices[index];
            slice.end_nanos = nanos.max(slice.start_nanos);
        }
        Ok(())
    }

    /// Does nothing: speedscope shows no instants.
    fn instant(&mut self, _: TrackId, _: u64, _: Label<'_>, _: &Args) -> io::Result<()> {
        Ok(())
    }

    /// Does nothing: speedscope shows no counters.
    fn counter(&mut self, _: TrackId, _: u64, _: &FieldValue) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.end_open();
        self.write()
    }

    fn kept_bytes(&self) -> u64 {
        // Sorting takes half of it again, and a growing vector twice its length.
        const SLICE_BYTES: u64 = 3 * size_of::<ProfileSlice>() as u64;
        const FRAME_BYTES: u64 = 3 * (size_of::<Frame>() + size_of::<(String, Vec<u32>)>()) as u64;
        let frames =
            (self.frames.frames.len() as u64).saturating_mul(FRAME_BYTES).saturating_add(self.frames.text_bytes);
        self.slices.saturating_mul(SLICE_BYTES).saturating_add(frames)
    }
}

#[cfg(test)]
mod tests {
    use crate::any_capture::everything;
    use crate::tests::exported;
    use crate::{Format, View};
    use eventring::schema::perf::PerfEvent;
    use eventring_capture::CaptureFile;
    use eventring_capture::fixtures::CaptureFixture;
    use serde_json::Value;

    /// The name, the beginning and the length of a slice.
    type ReadSlice = (String, u64, u64);

    /// Returns the name of each profile, and its slices.
    fn profiles(capture: &CaptureFile, view: View) -> Vec<(String, Vec<ReadSlice>)> {
        let file: Value = serde_json::from_str(&exported(capture, Format::Speedscope, view)).unwrap();
        let of_profile = |profile: &Value| {
            let (mut stack, mut slices, mut last) = (Vec::new(), Vec::new(), 0);
            for event in profile["events"].as_array().unwrap() {
                let (frame, at) = (event["frame"].as_u64().unwrap(), event["at"].as_u64().unwrap());
                assert!(at >= last && at <= profile["endValue"].as_u64().unwrap(), "{profile}");
                last = at;
                if event["type"] == "O" {
                    stack.push((frame, at));
                    continue;
                }
                let (opened, since) = stack.pop().unwrap();
                assert_eq!(opened, frame, "{profile}");
                let name = file["shared"]["frames"][frame as usize]["name"].as_str().unwrap();
                slices.push((name.to_owned(), since, at - since));
            }
            assert!(stack.is_empty(), "{profile}");
            (profile["name"].as_str().unwrap().to_owned(), slices)
        };
        file["profiles"].as_array().unwrap().iter().map(of_profile).collect()
    }

    #[test]
    fn speedscope_by_thread() {
        insta::assert_snapshot!(exported(&everything(), Format::Speedscope, View::Thread));
    }

    #[test]
    fn speedscope_by_span() {
        insta::assert_snapshot!(exported(&everything(), Format::Speedscope, View::Span));
    }

    #[test]
    fn a_recording_without_slices_has_one_empty_profile_because_speedscope_opens_no_file_without_any() {
        let mut made = CaptureFixture::new();
        made.thread(1000, 1, "main");
        assert_eq!(profiles(&made.open(), View::Thread), [("no slices".to_owned(), vec![])]);
    }

    #[test]
    fn an_open_span_ends_with_the_recording_and_its_name_says_that_it_is_open() {
        let profiles = profiles(&everything(), View::Thread);
        let (name, slices) = &profiles[0];
        assert_eq!(name, "main");
        // The first event of the capture has the time 1000, and the last one 4100.
        assert_eq!(slices.last().unwrap(), &("request (open)".to_owned(), 3100, 0));
        assert!(slices.contains(&("request".to_owned(), 1100, 700)), "{slices:?}");
    }

    #[test]
    fn slices_that_overlap_get_profiles_of_their_own() {
        let mut made = CaptureFixture::new();
        for (nanos, event, span) in [
            (1000, PerfEvent::SpanEnter, 1),
            (1010, PerfEvent::SpanEnter, 2),
            (1030, PerfEvent::SpanExit, 1),
            (1060, PerfEvent::SpanExit, 2),
        ] {
            made.span(event, nanos, 1, span, 0);
        }
        let slices: Vec<_> = profiles(&made.open(), View::Thread).into_iter().map(|(_, slices)| slices).collect();
        assert_eq!(slices, [vec![("span 2".to_owned(), 10, 50)], vec![("span 1".to_owned(), 0, 30)]]);
    }

    #[test]
    fn slices_that_begin_and_end_at_once_keep_their_order() {
        let mut made = CaptureFixture::new();
        for (event, span) in [
            (PerfEvent::SpanEnter, 1),
            (PerfEvent::SpanEnter, 2),
            (PerfEvent::SpanExit, 2),
            (PerfEvent::SpanExit, 1),
            (PerfEvent::SpanEnter, 3),
            (PerfEvent::SpanExit, 3),
        ] {
            made.span(event, 1000, 1, span, 0);
        }
        let profiles = profiles(&made.open(), View::Thread);
        let [(_, slices)] = &profiles[..] else { panic!("{profiles:?}") };
        let names: Vec<&str> = slices.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["span 2", "span 1", "span 3"]);
    }
}
