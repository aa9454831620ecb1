//! A ring, with its shards if it has some.

use super::survey::Survey;
use crate::cli::format::one_line;
use eventring::reader::{FoundShard, Reader, ShardFinder};

/// A ring that was named, and what is in it.
pub(super) struct Whole {
    /// What is in all of its shards; the oldest and the newest number are those of shard 0.
    pub survey: Survey,
    /// By index, shard 0 among them; empty if the ring is not sharded, or another shard was named.
    pub shards: Vec<Shard>,
}

/// A shard.
pub(super) struct Shard {
    pub index: u32,
    pub found: Found,
}

/// What became of it.
pub(super) enum Found {
    Opened {
        reader: Reader,
        survey: Survey,
    },
    /// Why it could not be opened.
    Unreadable(String),
}

impl Whole {
    pub(super) fn of(shard0: &Reader) -> Self {
        let survey = Survey::of(shard0);
        let mut finder = ShardFinder::new(shard0, 1);
        if !finder.can_find() {
            return Self { survey, shards: Vec::new() };
        }
        let mut shards = vec![Shard { index: 0, found: Found::Opened { reader: shard0.clone(), survey } }];
        // Not those that are made meanwhile: there could be no end.
        let count = shard0.shard_count();
        while (shards.len() as u64) < count
            && let Some(found) = finder.next()
        {
            let (index, found) = match found {
                FoundShard::Opened { index, reader } => {
                    let survey = Survey::of(&reader);
                    (index, Found::Opened { reader, survey })
                }
                FoundShard::Unreadable { index, error } => (index, Found::Unreadable(one_line(&error.to_string()))),
                FoundShard::Missed { index, seqnos } => {
                    let held = seqnos.map_or("nobody knows how many".to_owned(), |seqnos| seqnos.to_string());
                    (index, Found::Unreadable(format!("it was removed; sequence numbers that it handed out: {held}")))
                }
            };
            // One that cannot be read is told of again when its recorder has ended.
            if shards.iter().all(|known| known.index != index) {
                shards.push(Shard { index, found });
            }
        }
        shards.sort_by_key(|shard| shard.index);
        let mut survey = Survey::default();
        if let Some(of_shard0) = shards.first().and_then(Shard::survey) {
            (survey.oldest_seqno, survey.newest_seqno) = (of_shard0.oldest_seqno, of_shard0.newest_seqno);
        }
        shards.iter().filter_map(Shard::survey).for_each(|of_shard| survey.add(of_shard));
        Self { survey, shards }
    }

    /// The rings that were read: the one that was named, and its shards.
    pub(super) fn readers<'r>(&'r self, named: &'r Reader) -> impl Iterator<Item = &'r Reader> {
        let shards = self.shards.iter().filter_map(Shard::reader);
        Some(named).filter(|_| self.shards.is_empty()).into_iter().chain(shards)
    }
}

impl Shard {
    pub(super) fn reader(&self) -> Option<&Reader> {
        match &self.found {
            Found::Opened { reader, .. } => Some(reader),
            Found::Unreadable(_) => None,
        }
    }

    pub(super) fn survey(&self) -> Option<&Survey> {
        match &self.found {
            Found::Opened { survey, .. } => Some(survey),
            Found::Unreadable(_) => None,
        }
    }
}
