//! A ring, or a recorder with its shards. `list`, `info`, `check` and `clean` show parts of this report.

use super::history::History;
use super::state::{ContentType, EndTimes, StateWord, Writer};
use super::survey::Survey;
use crate::input::directories::{ShardRole, shard_role};
use crate::text::format::{content_name, one_line};
use eventring::reader::{Reader, RingEnd, RingInfo, RingSet, RingState};
use eventring::tracing::CatalogLosses;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A ring, or a recorder with its shards, at one moment.
pub(crate) struct RingReport {
    /// The ring that was opened: of a recorder, its shard 0.
    pub reader: Reader,
    pub info: RingInfo,
    pub state: RingState,
    pub role: ShardRole,
    /// The path that the file had, if no directory has it: it was removed, or it is in anonymous memory.
    pub was_at: Option<PathBuf>,
    /// All shards by index, from shard 0. The list is empty if the ring has no shards, or if it is itself a shard
    /// other than shard 0, and before [`Self::with_shards`].
    pub shards: Vec<ShardReport>,
    /// The number of shards that the recorder needed and could not make.
    pub not_made: u64,
    /// The sum over all shards, after [`Self::with_events`]. Seqnos cannot be summed, because each shard has its own.
    /// So the oldest and the newest seqno are those of shard 0.
    pub total: Survey,
}

/// One shard of the recorder.
pub(crate) struct ShardReport {
    pub index: u32,
    /// The shard with its events, or why it could not be opened.
    pub content: Result<(Reader, Survey), String>,
}

/// The facts about a ring that several verbs have in their JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RingFacts {
    /// Null in anonymous memory.
    pub file: Option<String>,
    #[serde(with = "StateWord")]
    pub state: RingState,
    pub content_type: ContentType,
    pub writer: Option<Writer>,
    #[serde(flatten)]
    pub history: History,
    #[serde(flatten)]
    pub end: EndTimes,
}

impl RingFacts {
    /// Returns the facts about a ring alone. `counted` are its events.
    pub(crate) fn from_reader(reader: &Reader, counted: &Survey) -> Self {
        let end = reader.end().map(|end| counted.seen_until(end));
        Self::new(reader, History::read(reader, reader.state() == RingState::Live), end)
    }

    fn new(reader: &Reader, history: History, end: Option<RingEnd>) -> Self {
        let info = reader.info();
        Self {
            file: reader.path().map(|path| path.to_string_lossy().into_owned()),
            state: reader.state(),
            content_type: ContentType { code: info.content_type, name: content_name(&info).to_owned() },
            writer: Writer::from_reader(reader),
            history,
            end: end.into(),
        }
    }
}

impl RingReport {
    /// Looks at a ring, and not at its shards or events.
    pub(crate) fn new(reader: Reader) -> Self {
        let (info, state) = (reader.info(), reader.state());
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        let was_at = reader.was_at().map(Path::to_path_buf);
        #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
        let was_at = None;
        Self {
            role: reader.path().map_or(ShardRole::First, |path| shard_role(path, &info)),
            was_at,
            not_made: CatalogLosses::read(&reader).shards,
            shards: Vec::new(),
            total: Survey::default(),
            reader,
            info,
            state,
        }
    }

    /// Opens the other shards, if the ring is shard 0 of a recorder.
    pub(crate) fn with_shards(mut self) -> Self {
        if !self.reader.is_shard_0() {
            return self;
        }
        let set = RingSet::options().from_readers([self.reader.clone()]);
        let errors = set.shard_errors().iter();
        let mut contents: Vec<_> = errors.map(|it| (it.shard, Err(one_line(&it.error.to_string())))).collect();
        for ring in set.rings() {
            let opened = ring.reader().map(|reader| (reader.clone(), Survey::default()));
            let content = opened.ok_or_else(|| {
                let seqnos = ring.missed_seqnos().map_or("unknown".to_owned(), |seqnos| seqnos.to_string());
                format!(
                    "is not beside this file: it was removed or not copied; sequence numbers that it handed out: {seqnos}"
                )
            });
            // If the recorder has ended, a shard that could not be opened is among the rings, too.
            if contents.iter().all(|(index, _)| *index != ring.shard()) {
                contents.push((ring.shard(), content));
            }
        }
        contents.sort_by_key(|(index, _)| *index);
        self.shards = contents.into_iter().map(|(index, content)| ShardReport { index, content }).collect();
        self
    }

    /// Opens the other shards, and reads every event.
    pub(crate) fn with_events(self) -> Self {
        let mut report = self.with_shards();
        if report.shards.is_empty() {
            report.total = Survey::read(&report.reader);
        }
        for (reader, survey) in report.shards.iter_mut().filter_map(|shard| shard.content.as_mut().ok()) {
            *survey = Survey::read(reader);
            report.total.add(survey);
        }
        if let Some(Ok((_, of_shard0))) = report.shards.first().map(|shard| &shard.content) {
            (report.total.oldest_seqno, report.total.newest_seqno) = (of_shard0.oldest_seqno, of_shard0.newest_seqno);
        }
        // Whether the file is whole is known now.
        (report.info, report.state) = (report.reader.info(), report.reader.state());
        report
    }

    /// Returns the path from which the file was removed while the program runs.
    pub(crate) fn removed_from(&self) -> Option<&Path> {
        self.was_at.as_deref().filter(|path| !path.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
    }

    /// Returns the readers of all shards that could be opened, or that of the ring if it has no shards.
    pub(crate) fn readers(&self) -> impl Iterator<Item = &Reader> {
        let shards = self.shards.iter().filter_map(|shard| Some(&shard.content.as_ref().ok()?.0));
        Some(&self.reader).filter(|_| self.shards.is_empty()).into_iter().chain(shards)
    }

    /// Returns a sum over the headers of all shards.
    pub(crate) fn sum(&self, of: impl Fn(&RingInfo) -> u64) -> u64 {
        // A damaged header can hold any number.
        self.readers().map(|reader| of(&reader.info())).fold(0, u64::saturating_add)
    }

    /// Returns the past that the ring holds, or the recorder with all its shards.
    pub(crate) fn history(&self) -> History {
        History::read_shards(self.readers(), self.state == RingState::Live)
    }

    /// Returns the end of the recording; for a recorder, that of all shards together.
    pub(crate) fn end(&self) -> Option<RingEnd> {
        let end = self.readers().filter_map(Reader::end).reduce(RingEnd::and);
        end.map(|end| self.total.seen_until(end))
    }

    /// Returns the facts that several verbs have in their JSON.
    pub(crate) fn facts(&self) -> RingFacts {
        RingFacts::new(&self.reader, self.history(), self.end())
    }
}
