//! Advice that the command line adds to the errors of readers: the kind of a file that is no ring, and the verb or
//! option that helps.

use crate::exit::{Exit, Failure};
use crate::input::directories;
use crate::input::programs::processes;
use crate::input::programs::strangers::warn_of_strangers_ring;
use crate::text::paint::WARNING;
use eventring::files::{ByteCount, CONTENT_TYPE_PERF, RingDirectories, content_type_name};
use eventring::reader::{Reader, ReaderError, ReaderErrorKind};
use eventring::schema::perf::PerfEvent;
use eventring_ask::command_line;
use eventring_capture::{CaptureError, CaptureFile};
use std::path::Path;

/// Returns the error with advice if the program knows a remedy. Otherwise returns the error as it is.
pub(crate) fn on(error: anyhow::Error) -> anyhow::Error {
    // Each error of a file is wrapped in an error that names the file. So a plain `io::Error` can only come from
    // stdout.
    if let Some(stdout) = error.downcast_ref::<std::io::Error>() {
        return Failure::io("cannot write to stdout", stdout).into();
    }
    let of_reader = error.chain().find_map(|cause| cause.downcast_ref::<ReaderError>());
    if let Some((ReaderErrorKind::NotFound, Some(path))) = of_reader.map(|error| (error.kind(), error.path())) {
        let message = instead_of_a_name(path).unwrap_or_else(|| format!("{error}{}", why_gone(path)));
        return Exit::NotFound.failure(message).into();
    }
    let Some((ReaderErrorKind::NotARing, Some(path))) = of_reader.map(|error| (error.kind(), error.path())) else {
        return error;
    };
    match instead_of_a_ring(path) {
        Some(message) => Exit::NotARing.failure(message).into(),
        None => error,
    }
}

/// Warns on stderr if the ring is a shard other than shard 0, and names the ring that stands for all shards. Also warns
/// if a stranger serves it. `name` is the argument that the user gave.
pub(crate) fn warn_of_shard(name: &Path, reader: &Reader) {
    warn_of_strangers_ring(name, reader);
    let Some(index) = shard_index(reader) else { return };
    let shown = name.display().to_string();
    let recorder = match recorder_of(&shown, index) {
        Some(recorder) => format!("name {recorder} to read all shards"),
        None => "name shard 0 to read all shards".to_owned(),
    };
    say!(
        "{WARNING}warning:{WARNING:#} {shown} is only shard {index} of a recorder; the names of spans, call sites and threads are in shard 0; \
         {recorder}"
    );
}

/// Refuses a shard other than shard 0 if its recorder is there. A span that was opened in one shard may be closed in
/// another, so the counts of one shard mean nothing. If the recorder is gone, warns.
pub(crate) fn check_not_a_shard(name: &Path, reader: &Reader) -> Result<(), Failure> {
    let Some(index) = shard_index(reader) else { return Ok(()) };
    let shown = name.display().to_string();
    match recorder_of(&shown, index).filter(|recorder| Reader::open(recorder).is_ok()) {
        None => {
            warn_of_shard(name, reader);
            Ok(())
        }
        Some(recorder) => Exit::Usage.fail(format!(
                "{shown} is only shard {index} of a recorder: it has spans that were closed in other shards, and would show them as open; \
             name {recorder}, which stands for all shards"
            )),
    }
}

/// Returns the index of a shard other than shard 0.
fn shard_index(reader: &Reader) -> Option<u64> {
    reader.info().extension.map(|extension| extension.shard_index).filter(|index| *index > 0)
}

/// Returns the name of the recorder of which `shown` is the shard with this index, if the name says so.
fn recorder_of(shown: &str, index: u64) -> Option<&str> {
    shown.strip_suffix(&format!(".{index}"))
}

/// Returns the name that the user would type for the ring at `path`: the file name alone if the ring is in a ring
/// directory, and otherwise the whole path. Returns `None` if the name is not UTF-8.
fn short_name(path: &Path) -> Option<&str> {
    let is_in_ring_directory =
        |directory| RingDirectories::from_environment().for_reading().iter().any(|it| it == directory);
    let name = match path.parent() {
        Some(directory) if is_in_ring_directory(directory) => Path::new(path.file_name()?),
        _ => path,
    };
    name.to_str()
}

/// Returns a text to append to the error message that there is no ring at `path`. If shards of the missing ring still
/// exist, the text names them. If not, it explains why the ring may be gone and how to keep it. The text is empty if
/// `path` is the name of a capture.
pub(crate) fn why_gone(path: &Path) -> String {
    let is_capture = path.extension().is_some_and(|extension| extension == "evc");
    // The message names the rings that the program has.
    if is_capture || processes::is_of_process(path) {
        return String::new();
    }
    if let Some(shards) = orphaned_shards(path) {
        return shards;
    }
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    if let Some(why) = crate::input::programs::open_files::why_not_made(path) {
        return format!("; {why}");
    }
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    if let Some(removed) =
        crate::input::programs::open_files::instead_of(path, &RingDirectories::from_environment().for_reading())
    {
        return removed;
    }
    // One that begins with a dash would be an option.
    let name = short_name(path).filter(|name| !name.starts_with('-')).unwrap_or("RING");
    let file = Path::new(name).file_name().map_or("ring".into(), |file| file.to_string_lossy());
    let capture = command_line("capture", &[name], &["-o", &format!("{file}.evc"), "--", "PROGRAM"]);
    format!(
        "; a ring is removed when its program exits normally: set EVENTRING_KEEP=1 in the program's environment to keep it, or \
         save it with `{capture}`"
    )
}

/// Returns a text that names the shards that still exist, although the ring at `path` is missing. Returns `None` if no
/// shard exists.
fn orphaned_shards(path: &Path) -> Option<String> {
    let orphans = directories::orphans_of(path);
    let first = short_name(orphans.first()?)?;
    let more = match orphans.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Some(format!(
        "; only shards of that recorder are left: {first}{more}; `{}` shows one, `eventring clean` removes \
         them if their program is dead",
        command_line("info", &[first], &[])
    ))
}

/// Returns an error message if `path` is a recorder's configuration string (a name and sizes, as in `name:15:24` or
/// `name:64MiB`) and not the name of a ring. Otherwise returns `None`.
pub(crate) fn instead_of_a_name(path: &Path) -> Option<String> {
    let name = short_name(path)?;
    if name.contains('*') {
        return Some(format!(
            "cannot find {name}: this verb takes no patterns; `eventring list` shows the rings, `{}` \
             shows the events of those that fit",
            command_line("watch", &[name], &[])
        ));
    }
    let is_shift = |field: &str| field.len() <= 2 && field.bytes().all(|byte| byte.is_ascii_digit());
    let is_in_words = |field: &str| ByteCount::parse(field).is_ok();
    let (first, last) = name.rsplit_once(':').filter(|(_, last)| is_shift(last) || is_in_words(last))?;
    let (ring, sizes) = match first.rsplit_once(':') {
        Some((ring, shift)) if is_shift(shift) => (ring, format!("{shift}:{last}")),
        _ => (first, last.to_owned()),
    };
    let is_name = !ring.is_empty() && !ring.ends_with('/');
    is_name.then(|| {
        format!(
            "cannot find a ring called {name}: `:{sizes}` are sizes for the recorder and not a part of the ring's name; give the name \
             alone: {ring}"
        )
    })
}

/// Returns an error message if the file at `path` is certainly no ring, such as a directory or a capture. Otherwise
/// returns `None`.
fn instead_of_a_ring(path: &Path) -> Option<String> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.is_dir() {
        return Some(format!(
            "{shown} is a directory, expected a ring; `{}` shows the rings in it",
            command_line("list", &[path], &[])
        ));
    }
    if metadata.is_file() && metadata.len() == 0 {
        return Some(format!("{shown} is empty, expected a ring, a snapshot or a capture; record or copy it again"));
    }
    if let Some(tables) = directories::TablesFile::from_path(path) {
        return Some(format!(
            "{shown} has the tables of the present of a recorder, and is no ring; name the ring: {}",
            short_name(&tables.ring).map_or_else(|| tables.ring.display().to_string(), str::to_owned)
        ));
    }
    CaptureFile::is_capture(path).ok().filter(|is_capture| *is_capture)?;
    Some(format!(
        "{shown} is a capture, not a ring; `{}` counts its spans, `{}` shows the open ones, `{}` prints its events",
        command_line("summary", &[path], &[]),
        command_line("open", &[path], &[]),
        command_line("export", &[path], &["--format", "jsonl"])
    ))
}

/// Returns the error of a ring that does not match `--expect`, or instead of which there is something else.
pub(crate) fn on_expected(name: &Path, error: ReaderError) -> anyhow::Error {
    let shown = error.path().unwrap_or(name).display().to_string();
    let message = match error.kind() {
        ReaderErrorKind::WrongContentType { found, expected } => format!(
            "the ring {shown} holds {}, expected {} (--expect); name another ring, or leave out --expect",
            events_of(found),
            events_of(expected)
        ),
        ReaderErrorKind::WrongSchema { found, expected } => format!(
            "the events of the ring {shown} have schema {}…, expected {}… (--expect): its program was built with another version of \
             the schema; use the `eventring` of that version, or leave out --expect",
            eventring::schema::Hex(&found[..8]),
            eventring::schema::Hex(&expected[..8])
        ),
        // A name without a slash is looked for where the rings are, and may be that of something here.
        ReaderErrorKind::NotFound => match instead_of_a_ring(name) {
            Some(message) => message,
            None => return error.into(),
        },
        _ => return error.into(),
    };
    Exit::from_error(&error.into()).failure(message).into()
}

/// Returns the error of a capture or ring that cannot be exported or summarised, with advice if there is any.
pub(crate) fn on_saved(name: &Path, error: CaptureError) -> anyhow::Error {
    match error.reader_error() {
        Some(of_reader) => on_spans(name, of_reader).unwrap_or_else(|| error.into()),
        None => error.into(),
    }
}

/// Returns the error of a ring that was opened as a perf ring.
pub(crate) fn on_perf(name: &Path, error: ReaderError) -> anyhow::Error {
    on_spans(name, &error).unwrap_or_else(|| error.into())
}

/// Checks that a perf ring has the schema of this version. Rings of other events have no such schema.
pub(crate) fn check_perf_schema(ring: &Reader) -> Result<(), ReaderError> {
    match ring.info().content_type {
        CONTENT_TYPE_PERF => ring.check_events::<PerfEvent>(),
        _ => Ok(()),
    }
}

/// Returns an error with advice in three cases: the ring is missing, holds no spans, or holds spans of another schema.
/// Otherwise returns `None`.
fn on_spans(name: &Path, error: &ReaderError) -> Option<anyhow::Error> {
    let shown = error.path().unwrap_or(name).display();
    let (exit, message) = match error.kind() {
        ReaderErrorKind::NotFound => (
            Exit::NotFound,
            instead_of_a_name(name).or_else(|| instead_of_a_ring(name)).unwrap_or_else(|| format!(
                "cannot find {}: there is neither a capture nor a ring of that name; `eventring list` shows the rings, \
                 `eventring capture RING -o FILE` makes a capture{}",
                name.display(),
                why_gone(error.path().unwrap_or(name))
            )),
        ),
        ReaderErrorKind::WrongContentType { found, .. } => (
            Exit::WrongContentType,
            format!(
                "the ring {shown} holds {} and no spans; `eventring summary` counts them, `watch` shows them, and `export` writes \
                 them in formats other than folded",
                events_of(found)
            ),
        ),
        ReaderErrorKind::WrongSchema { found, expected } => (
            Exit::WrongSchema,
            format!(
                "the perf ring {shown} has schema {}…, expected {}…: use the `eventring` of the version with which it was recorded",
                eventring::schema::Hex(&found[..8]),
                eventring::schema::Hex(&expected[..8])
            ),
        ),
        _ => return None,
    };
    Some(exit.failure(message).into())
}

/// Returns words for the events of a content type: `EXEC events (content type 2)`, `events of content type 300`.
fn events_of(content_type: u16) -> String {
    match content_type_name(content_type) {
        "unknown" => format!("events of content type {content_type}"),
        name => format!("{name} events (content type {content_type})"),
    }
}
