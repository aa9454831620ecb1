//! The survey of a ring and of its shards.

use super::survey::Survey;
use crate::cli::format::one_line;
use eventring::reader::{FoundShard, Reader, ShardFinder};

/// The survey of a ring, or of a recorder with all its shards.
pub(super) struct ShardedSurvey {
    /// Sum over all shards. Its oldest and newest seqno are those of shard 0.
    pub total: Survey,
    /// All shards by index, from shard 0; empty if the ring is not sharded or is not shard 0.
    pub shards: Vec<SurveyedShard>,
}

/// One shard of the recorder.
pub(super) struct SurveyedShard {
    pub index: u32,
    pub content: ShardContent,
}

/// The events of a shard, if the shard could be opened.
pub(super) enum ShardContent {
    Opened {
        reader: Reader,
        survey: Survey,
    },
    /// Error message of a shard that could not be opened.
    Unreadable(String),
}

impl ShardedSurvey {
    /// Surveys the ring, and its other shards if it is shard 0 of a recorder.
    pub(super) fn of(shard0: &Reader) -> Self {
        let survey = Survey::of(shard0);
        let mut finder = ShardFinder::new(shard0, 1);
        if !finder.can_find() {
            return Self { total: survey, shards: Vec::new() };
        }
        let mut shards =
            vec![SurveyedShard { index: 0, content: ShardContent::Opened { reader: shard0.clone(), survey } }];
        // Shards that are created meanwhile are left out, so that the loop ends.
        let count = shard0.shard_count();
        while (shards.len() as u64) < count
            && let Some(found) = finder.next()
        {
            let (index, content) = match found {
                FoundShard::Opened { index, reader } => {
                    let survey = Survey::of(&reader);
                    (index, ShardContent::Opened { reader, survey })
                }
                FoundShard::Unreadable { index, error } => {
                    (index, ShardContent::Unreadable(one_line(&error.to_string())))
                }
                FoundShard::Missed { index, seqnos } => {
                    let seqnos = seqnos.map_or("unknown".to_owned(), |seqnos| seqnos.to_string());
                    let problem = format!("it was removed; sequence numbers that it handed out: {seqnos}");
                    (index, ShardContent::Unreadable(problem))
                }
            };
            // The finder reports an unreadable shard a second time when its recorder has ended.
            if shards.iter().all(|known| known.index != index) {
                shards.push(SurveyedShard { index, content });
            }
        }
        shards.sort_by_key(|shard| shard.index);
        let mut total = Survey::default();
        if let Some(of_shard0) = shards.first().and_then(SurveyedShard::survey) {
            (total.oldest_seqno, total.newest_seqno) = (of_shard0.oldest_seqno, of_shard0.newest_seqno);
        }
        shards.iter().filter_map(SurveyedShard::survey).for_each(|of_shard| total.add(of_shard));
        Self { total, shards }
    }

    /// Returns the readers of all shards, or the ring `named` itself if it has no shards.
    pub(super) fn readers<'r>(&'r self, named: &'r Reader) -> impl Iterator<Item = &'r Reader> {
        let shards = self.shards.iter().filter_map(SurveyedShard::reader);
        Some(named).filter(|_| self.shards.is_empty()).into_iter().chain(shards)
    }
}

impl SurveyedShard {
    pub(super) fn reader(&self) -> Option<&Reader> {
        match &self.content {
            ShardContent::Opened { reader, .. } => Some(reader),
            ShardContent::Unreadable(_) => None,
        }
    }

    pub(super) fn survey(&self) -> Option<&Survey> {
        match &self.content {
            ShardContent::Opened { survey, .. } => Some(survey),
            ShardContent::Unreadable(_) => None,
        }
    }
}
