//! Several files that are read as one capture: the files of a rotated capture, and captures of different rings.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::end::CaptureEnd;
use crate::format::ring::{CapturedRing, RingRole};
use crate::read::file::{CaptureFile, MergedCapture};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl CaptureFile {
    /// Opens several files as one capture. `paths` may be in any order. They may be the files of a rotated capture:
    /// then files may be missing at the start and at the end of this capture, but not in between. They may also be
    /// captures of different rings: their rings get new indices, and their processes stay apart. Events are ordered by
    /// their times, so the captures should come from one machine: the clocks of different machines are not aligned.
    ///
    /// # Errors
    /// An error of [`Self::open`]; or two captures have the same ring; or a file of a rotated capture is missing or
    /// named twice.
    pub fn open_all(paths: &[impl AsRef<Path>]) -> Result<Self, CaptureError> {
        let mut files = Vec::new();
        for (place, path) in paths.iter().enumerate() {
            files.push((Self::open(path.as_ref())?, path.as_ref().to_path_buf(), place));
        }
        files.sort_by_key(|(file, ..)| file.part());
        let mut captures: Vec<(OpenedParts, usize)> = Vec::new();
        for (file, path, place) in files {
            match captures.iter_mut().find(|(parts, _)| parts.whole.is_same_capture(&file)) {
                Some((parts, first)) => {
                    parts.add(file, path)?;
                    *first = place.min(*first);
                }
                None => captures.push((OpenedParts { whole: file, last: path.clone(), first: path }, place)),
            }
        }
        captures.sort_by_key(|(_, place)| *place);
        let mut captures = captures.into_iter().map(|(parts, _)| parts);
        let Some(first) = captures.next() else {
            return Err(CaptureError::new(
                CaptureErrorKind::BadOptions,
                "no capture is named, expected one at least; name it",
            ));
        };
        let others: Vec<OpenedParts> = captures.collect();
        if others.is_empty() {
            return Ok(first.whole);
        }
        let mut names = vec![(0, first.first.clone())];
        let mut all = first.labelled();
        for other in others {
            let path = other.first.clone();
            all.check_other(&other.whole, &names).map_err(|error| error.at(&path))?;
            names.push((all.rings.len(), path));
            all.merge(other.labelled());
        }
        Ok(all)
    }

    /// Returns true if both are files of one rotated capture.
    #[must_use]
    pub fn is_same_capture(&self, other: &Self) -> bool {
        let is_same = |(ours, its): (&CapturedRing, &CapturedRing)| {
            identity(ours) == identity(its)
                && (ours.role, ours.schema_hash, ours.process) == (its.role, its.schema_hash, its.process)
        };
        self.part() != 0 && other.part() != 0 && self.rings.iter().zip(&other.rings).all(is_same)
    }

    /// Checks that another capture has no ring that this one has. `names` are the captures that are in this one: the
    /// index of the first ring, and the path.
    fn check_other(&self, other: &Self, names: &[(usize, PathBuf)]) -> Result<(), CaptureError> {
        let is_known = |ring: &&CapturedRing| ring.pid != 0 && ring.created_epoch_nanos != 0;
        let twice = other.rings.iter().filter(is_known).find_map(|its| {
            let index = self.rings.iter().position(|ours| identity(ours) == identity(its))?;
            Some((its, index))
        });
        let Some((ring, index)) = twice else { return Ok(()) };
        let before = names.iter().rev().find(|(first, _)| *first <= index).map(|(_, path)| path.display().to_string());
        let message = format!(
            "it has the ring {} of process {}, and so has {}: the same events would be there twice; name one of the two",
            ring.name,
            ring.pid,
            before.unwrap_or_default()
        );
        Err(CaptureError::new(CaptureErrorKind::BadOptions, message))
    }

    /// Appends the next file of the same rotated capture.
    fn append(&mut self, mut part: Self) {
        for (known, catalog) in self.catalogs.iter_mut().zip(&part.catalogs) {
            known.learn_all(catalog);
        }
        for (known, blocks) in self.blocks_of_rings.iter_mut().zip(&part.blocks_of_rings) {
            Arc::make_mut(known).extend(blocks.iter().map(|(tag, block)| (*tag, block.clone())));
        }
        let known = self.rings.len();
        self.rings.extend(part.rings.iter().skip(known).cloned());
        self.catalogs.extend(part.catalogs.iter().skip(known).cloned());
        self.blocks_of_rings.extend(part.blocks_of_rings.iter().skip(known).cloned());
        self.end = match (self.end.take(), &part.end) {
            (Some(end), Some(last)) => Some(end.followed_by(last)),
            _ => None,
        };
        self.is_truncated |= part.is_truncated;
        part.label = format!("file {}: ", part.part()).into();
        self.problems.extend(part.problems.iter().map(|problem| format!("{}{problem}", part.label)));
        self.later.push(part);
        let rings = self.rings.len() as u32;
        self.place.rings = rings;
        self.later.iter_mut().for_each(|part| part.place.rings = rings);
    }

    /// Adds the rings, tables and files of another capture.
    fn merge(&mut self, mut other: Self) {
        let first_ring = self.rings.len() as u32;
        let first_process = self.rings.iter().map(|ring| ring.process.saturating_add(1)).max().unwrap_or(0);
        self.rings.extend(other.rings.drain(..).map(|mut ring| {
            ring.process = ring.process.saturating_add(first_process);
            if let RingRole::Shard { recorder, .. } = &mut ring.role {
                *recorder += first_ring;
            }
            ring
        }));
        self.catalogs.append(&mut other.catalogs);
        self.blocks_of_rings.append(&mut other.blocks_of_rings);
        self.end = match (self.end.take(), other.end.take()) {
            (Some(mut end), Some(its)) => {
                if self.merged.is_empty() {
                    self.merged.push(MergedCapture { first_ring: 0, ended_epoch_nanos: end.ended_epoch_nanos });
                }
                self.merged.push(MergedCapture { first_ring, ended_epoch_nanos: its.ended_epoch_nanos });
                end.stats.rings.extend(its.stats.rings.iter().cloned());
                let stats = end.stats.clone();
                let lower_level_events = end.lower_level_events.saturating_add(its.lower_level_events);
                let last = if its.ended_epoch_nanos > end.ended_epoch_nanos { its } else { end };
                Some(CaptureEnd { stats, lower_level_events, ..last })
            }
            _ => None,
        };
        self.is_truncated |= other.is_truncated;
        self.problems.append(&mut other.problems);
        // The clocks of the header were read together, so they are taken from one file.
        let part = self.header.part.max(other.header.part);
        if other.header.started_epoch_nanos < self.header.started_epoch_nanos {
            self.header = other.header;
        }
        self.header.part = part;
        let later = std::mem::take(&mut other.later);
        self.later.extend(std::iter::once(other).chain(later).map(|mut file| {
            file.place.first = first_ring;
            file
        }));
    }
}

/// The files of a capture that were found so far.
struct OpenedParts {
    whole: CaptureFile,
    first: PathBuf,
    last: PathBuf,
}

impl OpenedParts {
    /// Adds the next file.
    ///
    /// # Errors
    /// It is not the next file.
    fn add(&mut self, part: CaptureFile, path: PathBuf) -> Result<(), CaptureError> {
        let refuse = |what: String| Err(CaptureError::new(CaptureErrorKind::BadOptions, what).at(&path));
        let before = self.whole.later.last().map_or(self.whole.part(), CaptureFile::part);
        let shown = self.last.display();
        match part.part() - before {
            0 => refuse(format!("it is file {before} of its capture, and so is {shown}; name each once")),
            1 => {
                self.whole.append(part);
                self.last = path;
                Ok(())
            }
            _ => refuse(format!(
                "it is file {} of its capture, and the one before it is file {before}, {shown}; name those in between, too",
                part.part()
            )),
        }
    }

    /// Returns the capture. The messages about it name its first file.
    fn labelled(self) -> CaptureFile {
        let Self { mut whole, first, .. } = self;
        let label = |file: &CaptureFile| format!("{}: {}", first.display(), file.label).into();
        whole.label = label(&whole);
        whole.problems.iter_mut().for_each(|problem| *problem = format!("{}: {problem}", first.display()));
        whole.later.iter_mut().for_each(|file| file.label = label(file));
        whole
    }
}

/// Returns what tells a ring from all other rings of a machine.
fn identity(ring: &CapturedRing) -> (&str, u32, u64) {
    (&ring.name, ring.pid, ring.created_epoch_nanos)
}
