//! The rings that are watched, with their shards.

use super::perf::Perf;
use super::silence::Silence;
use crate::cli::decoder::Decoder;
use crate::cli::exit::{Exit, Failure};
use crate::cli::format::one_line;
use crate::cli::interrupt::Interrupt;
use crate::cli::open::Expect;
use crate::cli::paint::WARNING;
use eventring::layout::header::CONTENT_TYPE_EXEC;
use eventring::reader::{Descriptor, Reader, ReaderError, ReaderErrorKind, RingState};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::schema::{EventType as _, SPAN_WORD};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is asked whether a ring has been made.
const INTERVAL: Duration = Duration::from_millis(100);

/// A ring that is watched.
pub(super) struct Ring {
    pub reader: Reader,
    pub decoder: Decoder,
    /// The name on the command line; shards have their number behind it.
    pub label: String,
    /// Whether its events carry block, transaction and account.
    pub is_exec: bool,
    /// Whether its events name the span in which they were recorded.
    pub carries_span: bool,
    /// If its events are those of spans.
    pub perf: Option<Perf>,
    /// It was made while we waited for it: nobody has missed anything yet, and all that is recorded in it is to be accounted for.
    pub is_new: bool,
}

impl Ring {
    fn new(reader: Reader, label: String, is_new: bool) -> Self {
        let decoder = Decoder::of(&reader);
        let info = reader.info();
        let is_perf = info.content_type == PerfEvent::CONTENT_TYPE && info.schema_hash == PerfEvent::schema_hash();
        let perf = is_perf.then(|| Perf::new(&reader));
        let carries_span = reader.carries_span();
        Self { reader, decoder, label, carries_span, is_exec: info.content_type == CONTENT_TYPE_EXEC, perf, is_new }
    }

    /// The id of the span that the event is about or lies in, 0 for none.
    pub(super) fn span_id(&self, event: &Descriptor) -> u64 {
        match &self.perf {
            Some(_) => PerfExt::from_words(event.content_ext).span_id,
            None if self.carries_span => event.content_ext[SPAN_WORD],
            None => 0,
        }
    }
}

/// All of them. Those of the command line come first, in its order; shards are added behind.
pub(super) struct Rings {
    rings: Vec<Ring>,
    names: Vec<PathBuf>,
    /// How many shards of each name were opened, or tried.
    shards: Vec<u64>,
}

impl Rings {
    /// Opens all. With `wait`, those that are not there yet are waited for; `None` if the user stops it. `silence` hears of it.
    pub(super) fn open(
        names: &[PathBuf],
        expect: &Expect,
        wait: bool,
        interrupt: &Interrupt,
        silence: &mut Silence,
    ) -> anyhow::Result<Option<Self>> {
        let mut rings = Self { rings: Vec::new(), names: names.to_vec(), shards: vec![1; names.len()] };
        for name in names {
            let mut is_new = false;
            let reader = loop {
                match expect.open(name) {
                    Err(error) if wait && error.kind() == ReaderErrorKind::NotFound => {
                        if interrupt.came() {
                            return Ok(None);
                        }
                        is_new = true;
                        silence.say(|| format!("waiting for the ring {} to be made", name.display()));
                        std::thread::sleep(INTERVAL);
                    }
                    opened => break opened?,
                }
            };
            silence.ends();
            rings.rings.push(Ring::new(reader, name.to_string_lossy().into_owned(), is_new));
        }
        rings.add_shards(false);
        Ok(Some(rings))
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Ring> {
        self.rings.iter()
    }

    pub(super) fn get(&self, index: usize) -> &Ring {
        &self.rings[index]
    }

    /// Whether a line must say which ring it is of.
    pub(super) fn has_several(&self) -> bool {
        self.rings.len() > 1
    }

    /// Whether a ring is sharded: then more can come.
    pub(super) fn may_grow(&self) -> bool {
        self.rings[..self.names.len()].iter().any(|ring| shard_count(&ring.reader) > 0)
    }

    /// Opens shards that have been made since; gives the index of the first. With `is_new`, they were made while their ring was
    /// watched.
    pub(super) fn add_shards(&mut self, is_new: bool) -> usize {
        let known = self.rings.len();
        for index in 0..self.names.len() {
            let count = shard_count(&self.rings[index].reader);
            let Some(path) = self.rings[index].reader.path().map(Path::to_path_buf) else { continue };
            while self.shards[index] < count {
                let number = self.shards[index];
                self.shards[index] += 1;
                match open_shard(&path, number) {
                    Ok(reader) => {
                        let label = format!("{}.{number}", self.names[index].display());
                        let mut ring = Ring::new(reader, label, is_new || self.rings[index].is_new);
                        if let Some(shard0) = &self.rings[index].perf {
                            // The tables are in shard 0.
                            ring.perf = Some(shard0.of_shard(number as u32));
                        }
                        self.rings.push(ring);
                    }
                    Err(error) => anstream::eprintln!(
                        "{WARNING}warning:{WARNING:#} shard {number} is left out: {}",
                        one_line(&error.to_string())
                    ),
                }
            }
        }
        known
    }

    /// Waits until a name leads to another ring than before, and opens that; false if the user stops it or no name can.
    pub(super) fn wait_for_others(
        &mut self,
        expect: &Expect,
        interrupt: &Interrupt,
        silence: &mut Silence,
    ) -> anyhow::Result<bool> {
        let main = &self.rings[..self.names.len()];
        if main.iter().all(|ring| ring.reader.state() == RingState::Saved) {
            return Ok(false);
        }
        loop {
            let replaced = |index: &usize| self.rings[*index].reader.was_replaced();
            let others: Vec<usize> = (0..self.names.len()).filter(replaced).collect();
            let mut opened = Vec::new();
            for index in &others {
                match expect.open(&self.names[*index]) {
                    Ok(reader) => opened.push((self.names[*index].clone(), reader)),
                    // Gone again.
                    Err(error) if error.kind() == ReaderErrorKind::NotFound => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if !opened.is_empty() {
                self.shards = vec![1; opened.len()];
                (self.names, self.rings) = opened
                    .into_iter()
                    .map(|(name, reader)| (name.clone(), Ring::new(reader, name.to_string_lossy().into_owned(), true)))
                    .unzip();
                self.add_shards(true);
                silence.ends();
                return Ok(true);
            }
            if interrupt.came() {
                return Ok(false);
            }
            silence.say(|| {
                let names: Vec<_> = self.names.iter().map(|name| name.display().to_string()).collect();
                format!("waiting for {} to be made anew", names.join(" or "))
            });
            std::thread::sleep(INTERVAL);
        }
    }

    /// That nobody has cut off the file of any of them while it was read.
    pub(super) fn check_whole(&self) -> Result<(), Failure> {
        let Some(ring) = self.rings.iter().find(|ring| ring.reader.was_truncated()) else { return Ok(()) };
        let message = format!(
            "the file of the ring {} was truncated while it was read: the events behind its new end are lost, and how many \
             cannot be told; leave ring files alone while their programs run, and start the program again",
            ring.label
        );
        Err(Failure::new(Exit::Truncated, message))
    }

    /// The content type EXEC gives `--block`, `--txn` and the like their meaning.
    pub(super) fn need_exec(&self, option: &str) -> Result<(), Failure> {
        if self.rings.iter().any(|ring| ring.is_exec) {
            return Ok(());
        }
        let found = self.rings.first().map_or(0, |ring| ring.reader.info().content_type);
        let message =
            format!("{option} needs a ring of execution events (content type 2), this one has content type {found}");
        Err(Failure::new(Exit::WrongContentType, message))
    }
}

/// How many shards the ring's recorder has made; 0 if it is not sharded.
fn shard_count(reader: &Reader) -> u64 {
    reader.info().extension.filter(|extension| extension.shard_limit > 0).map_or(0, |extension| {
        // Both come from the file.
        extension.shard_count.min(extension.shard_limit).min(1 << 16)
    })
}

fn open_shard(path: &Path, number: u64) -> Result<Reader, ReaderError> {
    let mut path = path.as_os_str().to_os_string();
    path.push(format!(".{number}"));
    Reader::open(PathBuf::from(path))
}
