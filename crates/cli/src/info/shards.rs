//! The survey of a ring and of its shards.

use super::survey::Survey;
use crate::input::history::History;
use crate::text::format::one_line;
use eventring::reader::{Reader, RingSet, RingState, ShardError};
use eventring::tracing::CatalogLosses;

/// The survey of a ring, or of a recorder with all its shards.
pub(crate) struct ShardedSurvey {
    /// The sum over all shards. Seqnos cannot be summed, because each shard has its own. So the oldest and the newest
    /// seqno are those of shard 0.
    pub total: Survey,
    /// All shards by index, from shard 0. The list is empty if the ring has no shards, or if it is itself a shard
    /// other than shard 0.
    pub shards: Vec<SurveyedShard>,
    /// The number of shards that the recorder needed and could not make.
    pub not_made: u64,
}

/// One shard of the recorder.
pub(crate) struct SurveyedShard {
    pub index: u32,
    pub content: ShardContent,
}

/// The events of a shard, if the shard could be opened.
pub(crate) enum ShardContent {
    Opened {
        reader: Reader,
        survey: Survey,
    },
    /// Error message of a shard that could not be opened.
    Unreadable(String),
}

impl ShardedSurvey {
    /// Surveys the ring. If the ring is shard 0 of a recorder, also surveys the recorder's other shards.
    pub(crate) fn read(shard0: &Reader) -> Self {
        let survey = Survey::read(shard0);
        if !shard0.is_shard_0() {
            return Self { total: survey, shards: Vec::new(), not_made: 0 };
        }
        let set = RingSet::options().from_readers([shard0.clone()]);
        let unreadable = |error: &ShardError| SurveyedShard {
            index: error.shard,
            content: ShardContent::Unreadable(one_line(&error.error.to_string())),
        };
        let mut shards: Vec<SurveyedShard> = set.shard_errors().iter().map(unreadable).collect();
        for ring in set.rings() {
            let content = match ring.reader() {
                Some(reader) => ShardContent::Opened { reader: reader.clone(), survey: Survey::read(reader) },
                None => {
                    let seqnos = ring.missed_seqnos().map_or("unknown".to_owned(), |seqnos| seqnos.to_string());
                    let problem = format!(
                        "is not beside this file: it was removed or not copied; sequence numbers that it handed out: {seqnos}"
                    );
                    ShardContent::Unreadable(problem)
                }
            };
            // A shard that could not be opened is in `shards` already. If the recorder has ended, the rings of `set`
            // include this shard, too. The check makes sure that it is not added twice.
            if shards.iter().all(|known| known.index != ring.shard()) {
                shards.push(SurveyedShard { index: ring.shard(), content });
            }
        }
        shards.sort_by_key(|shard| shard.index);
        let mut total = Survey::default();
        if let Some(of_shard0) = shards.first().and_then(SurveyedShard::survey) {
            (total.oldest_seqno, total.newest_seqno) = (of_shard0.oldest_seqno, of_shard0.newest_seqno);
        }
        shards.iter().filter_map(SurveyedShard::survey).for_each(|of_shard| total.add(of_shard));
        Self { total, shards, not_made: CatalogLosses::read(shard0).shards }
    }

    /// Returns how many shards could not be opened.
    pub(crate) fn absent(&self) -> usize {
        self.shards.iter().filter(|shard| shard.survey().is_none()).count()
    }

    /// Returns the past that the ring holds, or the recorder with all its shards.
    pub(crate) fn history(&self, named: &Reader) -> History {
        let is_live = named.state() == RingState::Live;
        History::read_shards(self.readers(named), is_live)
    }

    /// Returns the readers of all shards that could be opened, or `named` itself if the ring has no shards.
    pub(crate) fn readers<'r>(&'r self, named: &'r Reader) -> impl Iterator<Item = &'r Reader> {
        let shards = self.shards.iter().filter_map(SurveyedShard::reader);
        Some(named).filter(|_| self.shards.is_empty()).into_iter().chain(shards)
    }
}

impl SurveyedShard {
    pub(crate) fn reader(&self) -> Option<&Reader> {
        match &self.content {
            ShardContent::Opened { reader, .. } => Some(reader),
            ShardContent::Unreadable(_) => None,
        }
    }

    pub(crate) fn survey(&self) -> Option<&Survey> {
        match &self.content {
            ShardContent::Opened { survey, .. } => Some(survey),
            ShardContent::Unreadable(_) => None,
        }
    }
}
