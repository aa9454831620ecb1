//! Patterns of ring names on the command line: `shop*` means the rings of all instances of a program.

use crate::exit::{Exit, Failure};
use crate::input::directories::{self, ShardRole};

use eventring::files::RingDirectories;
use eventring::reader::Reader;
use eventring_live::NamePattern;
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two looks for rings that have come.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns true if the name is a pattern: it has a `*` after its last `/`.
pub(crate) fn is_pattern(name: &Path) -> bool {
    name.file_name().is_some_and(|name| name.as_encoded_bytes().contains(&b'*'))
}

/// Returns the names of all rings that fit the pattern, in order: paths if the pattern is a path.
///
/// # Errors
/// No ring fits.
pub(crate) fn rings(pattern: &Path) -> Result<Vec<PathBuf>, Failure> {
    let found = FollowedPatterns::new(&[pattern.to_path_buf()]).look();
    if found.is_empty() {
        return Exit::NotFound.fail(format!(
            "no ring fits {} that this user may read; `eventring list` shows the rings, and a pattern stands in quotes, so \
             that the shell leaves it alone",
            pattern.display()
        ));
    }
    Ok(found)
}

/// Returns the name of one ring: the name itself, or of a pattern the only ring that fits.
///
/// # Errors
/// No ring fits, or several do.
pub(crate) fn one_ring(name: &Path) -> Result<Cow<'_, Path>, Failure> {
    /// So many rings are named at most.
    const NAMES_MAX: usize = 8;
    if !is_pattern(name) || name.exists() {
        return Ok(name.into());
    }
    let mut found = rings(name)?;
    if let [_] = found[..] {
        return Ok(found.remove(0).into());
    }
    let names: Vec<String> = found.iter().take(NAMES_MAX).map(|ring| ring.display().to_string()).collect();
    let more = if found.len() > NAMES_MAX { ", …" } else { "" };
    Exit::Usage.fail(format!(
        "{} fits {} rings, expected one: {}{more}; name one of them",
        name.display(),
        found.len(),
        names.join(", ")
    ))
}

/// Patterns, and the rings that are known to fit them.
#[derive(Default)]
pub(crate) struct FollowedPatterns {
    patterns: Vec<PathBuf>,
    /// The names that have been looked at: rings that fit, and further shards of recorders.
    known: HashSet<PathBuf>,
    next_look: Option<Instant>,
}

impl FollowedPatterns {
    /// Follows those of the names that are patterns. No ring is known.
    pub(crate) fn new(names: &[PathBuf]) -> Self {
        let patterns = names.iter().filter(|name| is_pattern(name)).cloned().collect();
        Self { patterns, ..Self::default() }
    }

    /// Makes rings known: they do not count as new.
    pub(crate) fn knowing(mut self, rings: &[PathBuf]) -> Self {
        self.known.extend(rings.iter().cloned());
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns the patterns, if no ring has fitted any of them.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = String> {
        let patterns = if self.known.is_empty() { self.patterns.as_slice() } else { &[] };
        patterns.iter().map(|pattern| pattern.display().to_string())
    }

    /// Returns the rings that have come since the last call. This may be called often: it looks ten times a second.
    pub(crate) fn new_rings(&mut self) -> Vec<PathBuf> {
        let now = Instant::now();
        if self.is_empty() || self.next_look.is_some_and(|next| now < next) {
            return Vec::new();
        }
        self.next_look = Some(now + PAUSE);
        self.look()
    }

    fn look(&mut self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for pattern in &self.patterns {
            let name = NamePattern::new(pattern.file_name().unwrap_or_default().to_string_lossy());
            let parent = pattern.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directories = match parent {
                Some(parent) => vec![parent.to_path_buf()],
                None => RingDirectories::from_environment().for_reading(),
            };
            for path in directories::finished_files(&directories, false).unwrap_or_default() {
                let file = path.file_name().unwrap_or_default();
                let its_name = if parent.is_some() { path.clone() } else { file.into() };
                if !name.fits(&file.to_string_lossy()) || self.known.contains(&its_name) {
                    continue;
                }
                // A file that is no ring now may become one: it may be a ring that is being made.
                let Ok(ring) = Reader::options().header_only().open(&path) else { continue };
                if directories::shard_role(&path, &ring.info()) == ShardRole::First {
                    found.push(its_name.clone());
                }
                self.known.insert(its_name);
            }
        }
        found
    }
}
