//! `eventring snapshot`.

use crate::exit::{Exit, Failure};
use crate::input::patterns::is_pattern;
use crate::input::ring_args::RingArgs;
use crate::output;
use crate::text::format::{bytes, content_name, counted, events, grouped, one_line, were};
use crate::text::paint::{DIM, WARNING};
use eventring::internal::{now_path, remove_dead_tables, save_tables};
use eventring::now::NowReader;
use eventring::reader::{Reader, RingState, SnapshotOptions, SnapshotSummary};
use eventring_capture::{OutputKind, ReadFiles};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _};
use std::path::{Path, PathBuf};

/// Save the events that are in a ring now as a compressed file
///
/// Every reader of rings can open it. A recorder of spans with several shards has several rings: `eventring capture
/// RING --now` saves them all.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArgs,
    /// File to write; `-` for stdout [default: the ring's name and `.snapshot.zst`, in the current directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Only events from this sequence number on; their numbers begin with 1 in the file
    #[arg(long, value_name = "SEQNO")]
    from: Option<u64>,
    /// Only events up to this sequence number
    #[arg(long, value_name = "SEQNO")]
    to: Option<u64>,
    /// Compression level of zstd, 1 to 22
    #[arg(long, alias = "level", value_name = "LEVEL", default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=22))]
    compression: i32,
    /// Print one JSON object about the snapshot
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Exit::Usage.fail(format!(
            "--from {from} is greater than --to {to}, expected a first number that is not greater than the last; exchange them"
        ));
    }
    let options = SnapshotOptions::new().compression_level(args.compression);
    let options = args.from.into_iter().fold(options, SnapshotOptions::first_seqno);
    let mut options = args.to.into_iter().fold(options, SnapshotOptions::last_seqno);
    let reader = args.ring.open()?;
    check_one_ring(&reader, args.ring.name())?;
    let output = args.output.clone().unwrap_or_else(|| output_name(&reader, args.ring.name(), ".snapshot.zst"));
    if !output::is_stdout(&output) {
        // The directory of the output has room for the snapshot, so it is likely to have room for the events, too.
        let directory = output.parent().filter(|directory| !directory.as_os_str().is_empty());
        options = options.temporary_directory(directory.unwrap_or(".".as_ref()));
    }
    let mut read = ReadFiles::default();
    read.add_ring(&reader);
    // A part of the events that ends before has another end than the tables tell of.
    let tables = NowReader::open_beside(&reader).ok().flatten().filter(|_| args.to.is_none());
    let summary = if output::is_stdout(&output) {
        if args.json {
            return Exit::Usage.fail("--json and `--output -` both want stdout; give a file");
        }
        read.check_stream(io::stdout(), "stdout")?;
        to_stdout(&reader, &options)?
    } else {
        let target = output::look(&output, args.force)?;
        let has_tables = tables.is_some() && matches!(target, OutputKind::File);
        if has_tables {
            output::look(&now_path(&output), args.force)?;
        }
        let image = tables.filter(|_| has_tables).map(|tables| tables.image(|_| None));
        let saved = output::write_whole((&output, target), args.force, &read, |file| {
            to_file(&reader, &output, file, &options)
        })?;
        save_beside(&reader, image.as_deref(), (&output, args.force), &saved, &read)?;
        saved
    };
    let last = reader.info().last_seqno;
    if let Some(from) = args.from.filter(|from| summary.events == 0 && *from > last) {
        say!(
            "{WARNING}warning:{WARNING:#} the snapshot is empty: --from is {}, and the last sequence number of the ring is {}",
            grouped(from),
            grouped(last)
        );
    }
    if args.json {
        output::json_line(&Saved::new(&output, &summary))?;
    } else {
        report(&output, &summary);
    }
    Ok(Exit::Done)
}

/// Refuses a recorder of several rings. A snapshot of its shard 0 would show spans of other threads as open, or not at
/// all. (That a snapshot is one shard cannot be helped any more.)
fn check_one_ring(reader: &Reader, as_written: &Path) -> Result<(), Failure> {
    let is_whole = reader.shard_count() <= 1 || !reader.is_shard_0() || reader.state() == RingState::Saved;
    if is_whole {
        return Ok(());
    }
    let name = if is_pattern(as_written) { reader.path().unwrap_or(as_written) } else { as_written };
    let (name, shards) = (name.display(), reader.shard_count());
    let file = output_name(reader, as_written, ".evc");
    let file = file.display();
    Exit::Usage.fail(format!(
        "{name} is a recorder of {shards} shards, and a snapshot holds one ring; save all of them with `eventring capture \
         {name} --now -o {file}`"
    ))
}

/// Returns the name of the ring, as a file name with this extension. A ring of a server has no path: it is called what
/// the user calls it, or, if the user has named only the program, by its content.
fn output_name(reader: &Reader, as_written: &Path, extension: &str) -> PathBuf {
    let of_server = || as_written.to_str()?.rsplit_once('/').map(|(_, ring)| OsString::from(ring));
    let of_content = || Some(OsString::from(one_line(content_name(&reader.info())).replace('/', "_")));
    let of_file = reader.path().and_then(Path::file_name).map(OsStr::to_os_string);
    let mut name = of_file.or_else(of_server).or_else(of_content).unwrap_or_default();
    name.push(extension);
    PathBuf::from(name)
}

fn to_stdout(reader: &Reader, options: &SnapshotOptions) -> anyhow::Result<SnapshotSummary> {
    let out = io::stdout();
    if out.is_terminal() {
        let message = "a snapshot is binary data and is not written to a terminal; redirect it to a file or a pipe";
        return Exit::Usage.fail(message);
    }
    Ok(reader.write_snapshot(BufWriter::new(out.lock()), options)?)
}

fn to_file(reader: &Reader, output: &Path, file: &File, options: &SnapshotOptions) -> anyhow::Result<SnapshotSummary> {
    reader.write_snapshot(BufWriter::new(file), options).map_err(|error| {
        // The error does not name the output, so the message begins with the output's name.
        let failure = Failure::about(output.display(), error);
        // The events are collected in the directory of the output.
        match failure.exit {
            Exit::NoSpace => failure.and("free some there, or choose a directory with more").into(),
            _ => failure.into(),
        }
    })
}

/// Saves what the tables of the present show beside the snapshot, where readers look for them. Those of an earlier
/// snapshot of this recorder are removed.
fn save_beside(
    reader: &Reader,
    image: Option<&[u8]>,
    (output, force): (&Path, bool),
    saved: &SnapshotSummary,
    read: &ReadFiles,
) -> anyhow::Result<()> {
    let Some(group) = reader.info().extension.map(|extension| extension.shard_group) else { return Ok(()) };
    remove_dead_tables(output, group);
    let Some(image) = image else { return Ok(()) };
    let beside = now_path(output);
    let lost = saved.last_seqno.saturating_sub(saved.events);
    output::write_whole((&beside, OutputKind::File), force, read, |file| {
        save_tables(image, group, lost, file).map_err(|error| Failure::writing(&beside, &error).into())
    })
}

/// What `snapshot --json` prints. The tables of the present are in a second file, with `.now` after the name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Saved<'a> {
    file: Cow<'a, str>,
    events: u64,
    /// Of the range, those that are not in the snapshot.
    lost: u64,
    /// Those of `lost` that have lost their payload only.
    expired: u64,
    /// Those of `lost` that were still being written.
    being_written: u64,
    first_seqno: u64,
    last_seqno: u64,
    payload_bytes: u64,
    image_bytes: u64,
    snapshot_bytes: u64,
}

impl<'a> Saved<'a> {
    fn new(output: &'a Path, summary: &SnapshotSummary) -> Self {
        let SnapshotSummary { events, lost, expired, being_written, first_seqno, last_seqno, .. } = *summary;
        let SnapshotSummary { payload_bytes, image_bytes, snapshot_bytes, .. } = *summary;
        let file = output.to_string_lossy();
        Self {
            file,
            events,
            lost,
            expired,
            being_written,
            first_seqno,
            last_seqno,
            payload_bytes,
            image_bytes,
            snapshot_bytes,
        }
    }
}

fn report(output: &Path, summary: &SnapshotSummary) {
    let to = if output::is_stdout(output) { "stdout".into() } else { output.to_string_lossy() };
    let [snapshot, image] = [summary.snapshot_bytes, summary.image_bytes].map(bytes);
    say!("{} in {snapshot} ({image} of ring image) written to {to}", events(summary.events));
    if summary.being_written > 0 {
        say!(
            "{WARNING}{} still being written and not in the snapshot{WARNING:#}",
            counted(summary.being_written, "event was", "events were")
        );
    }
    let gone = summary.lost - summary.being_written;
    if gone > 0 {
        say!(
            "{WARNING}{} of the sequence numbers {} to {} {} not in the ring any more{WARNING:#}{}",
            grouped(gone),
            grouped(summary.first_seqno),
            grouped(summary.last_seqno),
            were(gone),
            match summary.expired {
                0 => String::new(),
                expired => format!("{DIM}; {} of them had lost their payload only{DIM:#}", grouped(expired)),
            }
        );
    }
}
