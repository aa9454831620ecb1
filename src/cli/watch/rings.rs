//! The rings that are watched, with their shards.

use super::perf::Perf;
use crate::cli::advice;
use crate::cli::decoder::Decoder;
use crate::cli::exit::{Exit, Failure};
use crate::cli::format::one_line;
use crate::cli::interrupt::Interrupt;
use crate::cli::open::Expect;
use crate::cli::paint::WARNING;
use crate::cli::silence::Silence;
use eventring::layout::header::CONTENT_TYPE_EXEC;
use eventring::reader::{Descriptor, FoundShard, Gap, LostPages, Reader, ReaderErrorKind, RingState, ShardFinder};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::schema::{EventType as _, ExtWords};
use std::collections::VecDeque;
use std::path::PathBuf;
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
    /// The names of its events' extension words.
    pub words: ExtWords,
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
        let words = reader.ext_words();
        Self { reader, decoder, label, words, is_exec: info.content_type == CONTENT_TYPE_EXEC, perf, is_new }
    }

    /// The id of the span that the event is about or lies in, 0 for none.
    pub(super) fn span_id(&self, event: &Descriptor) -> u64 {
        match &self.perf {
            Some(_) => PerfExt::from_words(event.content_ext).span_id,
            None => self.words.span_id(event.content_ext),
        }
    }
}

/// All of them. Those of the command line come first, in its order; shards are added behind.
pub(super) struct Rings {
    rings: Vec<Ring>,
    names: Vec<PathBuf>,
    /// What finds the shards of each name.
    shards: Vec<ShardFinder>,
    /// Shards that were missed from the start, to be told.
    missed: VecDeque<AddedShard>,
}

/// What became of a shard.
pub(super) enum AddedShard {
    /// It is the ring with this index.
    Ring(usize),
    /// It could not be opened, and so many events of the ring with that index are lost.
    Missed { ring: usize, gap: Gap },
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
        let mut rings = Self { rings: Vec::new(), names: names.to_vec(), shards: Vec::new(), missed: VecDeque::new() };
        for name in names {
            let mut is_new = false;
            let reader = loop {
                match expect.open(name) {
                    // Nobody will ever make a ring of such a name.
                    Err(error)
                        if wait
                            && error.kind() == ReaderErrorKind::NotFound
                            && advice::instead_of_a_name(name).is_none() =>
                    {
                        if interrupt.came() {
                            return Ok(None);
                        }
                        is_new = true;
                        silence.say(|| format!("waiting for the ring {} to be made", name.display()));
                        std::thread::sleep(INTERVAL);
                    }
                    opened => break opened.map_err(|error| advice::on_expected(name, error))?,
                }
            };
            silence.ends();
            advice::warn_of_shard(name, &reader);
            rings.shards.push(ShardFinder::new(&reader, 1));
            rings.rings.push(Ring::new(reader, name.to_string_lossy().into_owned(), is_new));
        }
        rings.add_shards();
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

    /// Whether all are shards of one recorder.
    pub(super) fn are_of_one_name(&self) -> bool {
        self.names.len() == 1
    }

    /// Whether a ring is sharded: then more can come.
    pub(super) fn may_grow(&self) -> bool {
        self.shards.iter().any(ShardFinder::can_find)
    }

    /// Opens the shards that there are.
    fn add_shards(&mut self) {
        while let Some(shard) = self.find_shard(false) {
            if let AddedShard::Missed { .. } = shard {
                self.missed.push_back(shard);
            }
        }
    }

    /// The next shard that has been made since.
    pub(super) fn next_shard(&mut self) -> Option<AddedShard> {
        self.missed.pop_front().or_else(|| self.find_shard(true))
    }

    /// With `is_new`, it was made while its ring was watched.
    fn find_shard(&mut self, is_new: bool) -> Option<AddedShard> {
        for index in 0..self.shards.len() {
            while let Some(found) = self.shards[index].next() {
                match found {
                    FoundShard::Opened { index: number, reader } => {
                        let label = format!("{}.{number}", self.names[index].display());
                        let mut ring = Ring::new(reader, label, is_new || self.rings[index].is_new);
                        if let Some(shard0) = &self.rings[index].perf {
                            // The tables are in shard 0.
                            ring.perf = Some(shard0.of_shard(number));
                        }
                        self.rings.push(ring);
                        return Some(AddedShard::Ring(self.rings.len() - 1));
                    }
                    FoundShard::Missed { seqnos, .. } => {
                        let gap = Gap::of_missed_shard(seqnos);
                        return Some(AddedShard::Missed { ring: index, gap });
                    }
                    FoundShard::Unreadable { index: number, error } => anstream::eprintln!(
                        "{WARNING}warning:{WARNING:#} shard {number} is left out: {}",
                        one_line(&error.to_string())
                    ),
                }
            }
        }
        None
    }

    /// Whether no more shards will be found.
    pub(super) fn have_all_shards(&self) -> bool {
        self.missed.is_empty() && self.shards.iter().all(ShardFinder::has_ended)
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
                    Err(error) => return Err(advice::on_expected(&self.names[*index], error)),
                }
            }
            if !opened.is_empty() {
                self.shards = opened.iter().map(|(_, reader)| ShardFinder::new(reader, 1)).collect();
                (self.names, self.rings) = opened
                    .into_iter()
                    .map(|(name, reader)| (name.clone(), Ring::new(reader, name.to_string_lossy().into_owned(), true)))
                    .unzip();
                self.add_shards();
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

    /// That all pages of their files could be read: nobody has cut one off.
    pub(super) fn check_whole(&self) -> Result<(), Failure> {
        let lost = self.rings.iter().find_map(|ring| Some((ring, ring.reader.lost_pages()?)));
        let Some((ring, lost)) = lost else { return Ok(()) };
        let remedy = match lost {
            LostPages::NoMemory => "free some, and watch it again",
            LostPages::Truncated => "leave ring files alone while their programs run, and start the program again",
            _ => "copy the file to another disk, as far as it can be read",
        };
        let message = format!("{}: {lost}: events are lost, and how many cannot be told; {remedy}", ring.label);
        Err(Failure::new(Exit::of_lost_pages(lost), message))
    }

    /// Returns the extension word that execution events call `word`, for `option`.
    pub(super) fn exec_word(&self, option: &str, word: &str) -> Result<usize, Failure> {
        self.need_exec(option)?;
        let exec = self.rings.iter().filter(|ring| ring.is_exec);
        exec.filter_map(|ring| ring.words.index_of(word)).next().ok_or_else(|| {
            Failure::new(Exit::WrongContentType, format!("{option}: these events have no word `{word}`"))
        })
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
