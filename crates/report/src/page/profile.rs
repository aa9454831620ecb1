//! The profile that a page gives to speedscope: all slices by thread, or, if those are too many for a page, the sums of
//! their times by stack.

use super::figures::CaptureFigures;
use eventring_capture::CaptureError;
use eventring_capture::recording::write_error;
use eventring_export::speedscope::{SCHEMA, SpeedscopeWriter};
use eventring_export::stacks::HotStack;
use eventring_export::trace_builder::draw;
use eventring_export::{ExportOptions, numbers};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, Write as _};

/// The largest number of slices that a page shows one by one. A browser opens them in a second or two.
const SLICES_MAX: u64 = 200_000;
/// The largest number of stacks that a page shows.
const STACKS_MAX: usize = 20_000;
/// The largest size of a compressed profile.
const BYTES_MAX: usize = 2 << 20;

/// A profile for speedscope, as compressed JSON.
pub(super) struct EmbeddedProfile {
    pub(super) gzip: Vec<u8>,
    /// A sentence that says what the profile shows, and what it leaves out.
    pub(super) note: String,
    /// True if the profile leaves something out.
    pub(super) is_cut: bool,
    /// True if the profile has no slice.
    pub(super) is_empty: bool,
}

impl EmbeddedProfile {
    pub(super) fn of(figures: &CaptureFigures<'_>, options: ExportOptions) -> Result<Self, CaptureError> {
        Self::with_limits(figures, options, SLICES_MAX, STACKS_MAX)
    }

    pub(super) fn with_limits<'p>(
        figures: &'p CaptureFigures<'_>,
        options: ExportOptions,
        slices_max: u64,
        stacks_max: usize,
    ) -> Result<Self, CaptureError> {
        let outline = &figures.outline;
        let slices = numbers::grouped(outline.counts.slices);
        if outline.counts.slices.max(outline.counts.spans) <= slices_max {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            let mut writer = SpeedscopeWriter::new(&mut gzip, outline.first_nanos, outline.last_nanos);
            draw(&figures.recording, outline, options, &mut writer)?;
            let is_empty = writer.is_empty();
            let gzip = gzip.finish().map_err(write_error)?;
            if gzip.len() <= BYTES_MAX {
                let note =
                    format!("All {slices} slices, a profile for each thread. Losses have profiles of their own.");
                return Ok(Self { gzip, note, is_cut: false, is_empty });
            }
        }
        let (hottest, all) = figures.stacks.hottest(stacks_max);
        let programs = figures.programs();
        let program = |process: usize| programs.get(process).copied().filter(|name| !name.is_empty()).unwrap_or("?");
        let of_program = |HotStack { process, names, nanos }: HotStack<'p>| {
            (std::iter::once(program(process)).chain(names).collect(), nanos)
        };
        let mut stacks: Vec<(Vec<&str>, u64)> = hottest.into_iter().map(of_program).collect();
        // Stacks that begin with the same frames lie beside each other.
        stacks.sort_unstable();
        let mut note = format!(
            "This recording has {slices} slices, too many for a page. So this is the time of its stacks, \
             without its order; export --format speedscope has all slices."
        );
        if all > stacks.len() {
            let (all, shown) = (numbers::grouped(all as u64), numbers::grouped(stacks.len() as u64));
            note = format!("{note} Of {all} stacks, the page has the {shown} hottest.");
        }
        let gzip = compressed_stacks(&stacks).map_err(write_error)?;
        Ok(Self { gzip, note, is_cut: true, is_empty: stacks.is_empty() })
    }
}

/// Returns the times of stacks as a compressed profile.
fn compressed_stacks(stacks: &[(Vec<&str>, u64)]) -> io::Result<Vec<u8>> {
    let (mut indices, mut frames): (HashMap<&str, usize>, Vec<_>) = (HashMap::new(), Vec::new());
    let mut frame = |name| {
        *indices.entry(name).or_insert_with(|| {
            frames.push(json!({ "name": name }));
            frames.len() - 1
        })
    };
    let samples: Vec<Vec<usize>> =
        stacks.iter().map(|(stack, _)| stack.iter().copied().map(&mut frame).collect()).collect();
    let weights: Vec<u64> = stacks.iter().map(|(_, nanos)| *nanos).collect();
    let sum = weights.iter().fold(0, |sum: u64, nanos| sum.saturating_add(*nanos));
    let profile = json!({
        "type": "sampled", "name": "stacks", "unit": "nanoseconds", "startValue": 0, "endValue": sum,
        "samples": samples, "weights": weights,
    });
    let file = json!({
        "$schema": SCHEMA, "exporter": "eventring", "activeProfileIndex": 0, "shared": { "frames": frames },
        "profiles": [profile],
    });
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    write!(gzip, "{file}")?;
    gzip.finish()
}
