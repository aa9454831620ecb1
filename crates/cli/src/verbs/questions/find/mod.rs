//! `eventring find`.

mod files;
mod gaps;

use crate::args::limit::{LineLimitArgs, Part};
use crate::args::selection::Time;
use crate::exit::Exit;
use crate::input::names::fields::{KnownFields, check_fields};
use crate::interrupt::Interrupt;
use crate::output::json_line;
use crate::text::format::{TimeFormat, counted, grouped};
use crate::text::losses::report_problem;
use crate::text::paint::{DIM, WARNING};
use crate::verbs::now::watch::EventLine;
use crate::verbs::now::watch::search::{HitStyle, search};
use eventring_capture::{BlockTest, CaptureFile};
use eventring_live::Condition;
use gaps::{Gap, Gaps};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One in so many bytes of a budget is for the last line.
const END_PART: usize = 4;
/// The largest number of gaps that are shown to people.
const GAPS_SHOWN: usize = 10;

/// Find events in many captures by what they say themselves
///
/// Blocks of a capture say which values they have, and only those are read that may have a hit; whether they say the
/// truth is not checked. A hit is a new span
/// with its fields (or fields that were recorded later), a log record, mark or typed event. Files are searched in the
/// order of time. At the end it is said which losses could hide a hit, and what filters left out and rotation removed.
#[derive(clap::Args)]
pub(crate) struct FindArgs {
    /// The condition: 'request_id=abc', 'span=query field.rows>1000', 'level>=ERROR'; the terms are those of --where
    /// about single events, and other names are fields
    #[arg(value_name = "EXPRESSION", value_parser = Condition::for_search)]
    condition: Condition,
    /// Capture files, and directories with captures at any depth
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Only what was recorded from this time on: 2026-11-22T19:30:00Z (RFC 3339), nanoseconds since the epoch, or the
    /// time since the capture began (+1.5s)
    #[arg(long, value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    from: Option<Time>,
    /// Only what was recorded up to this time, as for --from
    #[arg(long, value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    to: Option<Time>,
    #[command(flatten)]
    limit: LineLimitArgs,
    /// Read all blocks, whatever they say of their values
    #[arg(long)]
    scan: bool,
    /// One JSON object a line: the hits, and at last {hits, blocks_read, blocks, gaps, cut, next}
    #[arg(long)]
    json: bool,
    /// Show all columns, whole payloads and lines
    #[arg(long)]
    full: bool,
    /// Show times in UTC, not in local time
    #[arg(long)]
    utc: bool,
}

/// The counts of a search.
#[derive(Default)]
struct SearchCounts {
    /// The hits.
    part: Part,
    files: u64,
    blocks: u64,
    blocks_read: u64,
    gaps: Gaps,
    /// Why no event of a file can have a field of the condition, as long as this holds for each file.
    unknown_field: Option<String>,
    is_field_known: bool,
    /// True if there may be more hits, because the search has ended early.
    is_cut: bool,
    problem: Option<Exit>,
}

/// A line of `find --json`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum FindLine<'a> {
    #[expect(dead_code, reason = "what prints the lines of watch prints the hits")]
    Hit(EventLine<'a>),
    End(FindEnd<'a>),
}

/// The last line.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindEnd<'a> {
    hits: u64,
    blocks_read: u64,
    blocks: u64,
    files: u64,
    /// True if `--limit`, `--budget` or Ctrl-C has ended the search.
    cut: bool,
    /// The id for `--after`.
    next: Option<String>,
    /// Those for which the budget had no room.
    gaps_left_out: usize,
    gaps: &'a [Gap],
}

pub(crate) fn run(args: &FindArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let test = if args.scan { BlockTest::May } else { args.condition.block_test() };
    let end_bytes = args.limit.budget.map_or(0, |budget| budget as usize / END_PART);
    let mut found = SearchCounts { part: args.limit.part(end_bytes), ..SearchCounts::default() };
    for path in files::in_order(&args.paths)? {
        found.is_cut |= interrupt.came();
        if found.is_cut {
            break;
        }
        // What an earlier answer had is not searched again.
        if !found.part.awaits_what_begins_otherwise(&format!("{}:", path.display())) {
            found.search(args, &test, &path, &interrupt)?;
        }
    }
    found.gaps.finish();
    if let Some(why) = found.unknown_field.as_ref().filter(|_| !found.is_field_known) {
        say!("{WARNING}warning:{WARNING:#} {why}");
    }
    if args.json {
        json_line(&found.last_line(end_bytes)?)?;
    } else {
        found.print(&TimeFormat::new(args.utc));
    }
    Ok(match found.part.taken {
        0 => found.problem.unwrap_or(Exit::NothingFound),
        _ => Exit::Done,
    })
}

impl SearchCounts {
    /// Searches a file.
    fn search(&mut self, args: &FindArgs, test: &BlockTest, path: &Path, interrupt: &Interrupt) -> anyhow::Result<()> {
        let name = path.display().to_string();
        let mut capture = match CaptureFile::open(path) {
            Ok(capture) => capture,
            // The others may have a hit.
            Err(error) => {
                report_problem(true, &error.to_string());
                self.gaps.add_unreadable(&name);
                self.problem = self.problem.or(Some(Exit::from_error(&error.into())));
                return Ok(());
            }
        };
        let nanos = |time: Option<Time>| time.map(|time| time.as_seen(args.utc).epoch_nanos(&capture));
        let (from, to) = (nanos(args.from).unwrap_or(0), nanos(args.to).unwrap_or(u64::MAX));
        if from > to {
            return Exit::Usage.fail("the time window ends before it begins; swap --from and --to");
        }
        self.files += 1;
        match check_fields(&args.condition, &KnownFields::of_capture(&capture)) {
            Ok(()) => self.is_field_known = true,
            Err(why) => self.unknown_field = Some(why),
        }
        let kept = capture.keep_blocks(test, from, to);
        let style = HitStyle { is_json: args.json, is_full: args.full, is_utc: args.utc };
        let shown = search((&capture, &name), &args.condition, style, &mut self.part, &|| interrupt.came())?;
        self.blocks += kept.blocks;
        self.blocks_read += kept.kept;
        self.is_cut |= shown.is_stopped || self.part.is_over();
        self.gaps.add(&name, &capture, kept.losses.into_iter().chain(shown.losses).collect());
        self.gaps.add_left_out(path, &capture, (from, to));
        for problem in &shown.problems {
            report_problem(true, &format!("{name}: {problem}"));
            let exit = if capture.is_truncated() { Exit::Truncated } else { Exit::Damaged };
            self.problem = self.problem.or(Some(exit));
        }
        Ok(())
    }

    /// Returns the last line. `end_bytes` of the budget are left for it.
    ///
    /// # Errors
    /// As those of [`Part::end`].
    fn last_line(&self, end_bytes: usize) -> anyhow::Result<FindLine<'_>> {
        let all = self.gaps.all();
        let mut end = FindEnd {
            hits: self.part.taken,
            blocks_read: self.blocks_read,
            blocks: self.blocks,
            files: self.files,
            cut: self.is_cut,
            next: self.part.end(self.is_cut, "no hit in these files has this id")?.next,
            gaps_left_out: usize::MAX,
            gaps: &[],
        };
        let mut left = end_bytes.saturating_sub(serde_json::to_string(&end)?.len());
        let fits = |gap: &&Gap| {
            left = left.saturating_sub(serde_json::to_string(gap).map_or(0, |text| text.len()) + 1);
            end_bytes == 0 || left > 0
        };
        end.gaps = &all[..all.iter().take_while(fits).count()];
        end.gaps_left_out = all.len() - end.gaps.len();
        Ok(FindLine::End(end))
    }

    /// Prints the counts and the first gaps to stderr.
    fn print(&self, clock: &TimeFormat) {
        let gaps = self.gaps.in_words(clock);
        for gap in gaps.iter().take(GAPS_SHOWN) {
            say!("{WARNING}gap:{WARNING:#} {gap}");
        }
        if gaps.len() > GAPS_SHOWN {
            let more = grouped((gaps.len() - GAPS_SHOWN) as u64);
            say!("{WARNING}gap:{WARNING:#} {more} more; --json has all");
        }
        let hidden = match gaps.len() {
            0 => "no gap could hide a hit".to_owned(),
            count => format!("{WARNING}{} could hide a hit{WARNING:#}", counted(count as u64, "gap", "gaps")),
        };
        // A file may say of itself what it likes.
        let believed = match self.blocks_read < self.blocks {
            true => "; that the other blocks have none is what they say, and was not checked (--scan reads them)",
            false => "",
        };
        say!(
            "{DIM}──{DIM:#} {}{}, {} of {} read in {}, {hidden}{believed}",
            counted(self.part.taken, "hit", "hits"),
            if self.is_cut { " (there may be more)" } else { "" },
            grouped(self.blocks_read),
            counted(self.blocks, "block", "blocks"),
            counted(self.files, "file", "files"),
        );
    }
}
