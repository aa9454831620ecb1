//! Advice that the command line adds to the errors of readers: it says which kind of file was found instead of a ring,
//! and which verb or option helps.

use super::directories;
use super::exit::{Exit, Failure};
use super::paint::WARNING;
use eventring::__internals::layout::header::content_type_name;
use eventring::__internals::shm::RingDirectories;
use eventring::capture::{CaptureError, CaptureFile};
use eventring::reader::{Reader, ReaderError, ReaderErrorKind};
use std::path::Path;

/// Returns the error with advice if the program knows a remedy, and otherwise the error itself.
pub(super) fn on(error: anyhow::Error) -> anyhow::Error {
    // An error of a file names its file, so it is no plain I/O error. A plain one can only come from stdout.
    if let Some(stdout) = error.downcast_ref::<std::io::Error>() {
        return Failure::io("cannot write to stdout", stdout).into();
    }
    let of_reader = error.chain().find_map(|cause| cause.downcast_ref::<ReaderError>());
    if let Some((ReaderErrorKind::NotFound, Some(path))) = of_reader.map(|error| (error.kind(), error.path())) {
        let message = instead_of_a_name(path).unwrap_or_else(|| format!("{error}{}", why_gone(path)));
        return Failure::new(Exit::NotFound, message).into();
    }
    let Some((ReaderErrorKind::NotARing, Some(path))) = of_reader.map(|error| (error.kind(), error.path())) else {
        return error;
    };
    match instead_of_a_ring(path) {
        Some(message) => Failure::new(Exit::NotARing, message).into(),
        None => error,
    }
}

/// Warns on stderr if the ring is one shard of several, and names the ring that stands for all of them. `name` is the
/// argument that the user gave.
pub(super) fn warn_of_shard(name: &Path, reader: &Reader) {
    let Some(index) = reader.info().extension.map(|extension| extension.shard_index).filter(|index| *index > 0) else {
        return;
    };
    let shown = name.display().to_string();
    let recorder = match shown.strip_suffix(&format!(".{index}")) {
        Some(recorder) => format!("name {recorder} to read all shards"),
        None => "name shard 0 to read all shards".to_owned(),
    };
    anstream::eprintln!(
        "{WARNING}warning:{WARNING:#} {shown} is only shard {index} of a recorder; the names of spans, call sites and threads are in shard 0; \
         {recorder}"
    );
}

/// Returns the name that the user would type for the ring at `path`: the bare file name if the ring is in a ring
/// directory, and otherwise the whole path.
fn short_name(path: &Path) -> Option<&str> {
    let is_in_ring_directory =
        |directory| RingDirectories::from_environment().for_reading().iter().any(|it| it == directory);
    let name = match path.parent() {
        Some(directory) if is_in_ring_directory(directory) => Path::new(path.file_name()?),
        _ => path,
    };
    name.to_str()
}

/// Returns the last part of the message that no ring is at `path`. It names the shards that are left of the ring, or
/// else says why the ring may be gone and how to keep it. The text is empty if `path` is the name of a capture.
pub(super) fn why_gone(path: &Path) -> String {
    if path.extension().is_some_and(|extension| extension == "evc") {
        return String::new();
    }
    if let Some(shards) = orphaned_shards(path) {
        return shards;
    }
    let name = short_name(path).unwrap_or("RING");
    let file = Path::new(name).file_name().map_or("ring".into(), |file| file.to_string_lossy());
    format!(
        "; a ring is removed when its program exits normally: set EVENTRING_KEEP=1 in the program's environment to keep it, or \
         save it with `eventring capture {name} -o {file}.evc -- PROGRAM`"
    )
}

/// Returns the last part of that message if shards of the missing ring are still there, and otherwise `None`.
fn orphaned_shards(path: &Path) -> Option<String> {
    let orphans = directories::orphans_of(path);
    let first = short_name(orphans.first()?)?;
    let more = match orphans.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Some(format!(
        "; only shards of that recorder are left: {first}{more}; `eventring info {first}` shows one, `eventring clean` removes \
         them if their program is dead"
    ))
}

/// Returns a message if `path` is a recorder's configuration string (name and sizes) and not a ring's name.
pub(super) fn instead_of_a_name(path: &Path) -> Option<String> {
    let name = short_name(path)?;
    let is_shift = |field: &str| field.len() <= 2 && field.bytes().all(|byte| byte.is_ascii_digit());
    let (first, last) = name.rsplit_once(':').filter(|(_, last)| is_shift(last))?;
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

/// Returns a message if the file at `path` is known to be something else than a ring.
fn instead_of_a_ring(path: &Path) -> Option<String> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.is_dir() {
        return Some(format!(
            "{shown} is a directory, expected a ring; `eventring list {shown}` shows the rings in it"
        ));
    }
    // Opening a pipe would block until another process opens it for writing.
    if !metadata.is_file() {
        return None;
    }
    if metadata.len() == 0 {
        return Some(format!("{shown} is empty, expected a ring, a snapshot or a capture; record or copy it again"));
    }
    CaptureFile::is_capture(path).ok().filter(|is_capture| *is_capture)?;
    Some(format!(
        "{shown} is a capture, not a ring; `eventring summary {shown}` counts its spans, `eventring export {shown} --format jsonl` prints its events"
    ))
}

/// Returns the error of a ring that does not match `--expect`.
pub(super) fn on_expected(name: &Path, error: ReaderError) -> anyhow::Error {
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
        _ => return error.into(),
    };
    Failure::new(Exit::of(&error.into()), message).into()
}

/// Returns the error of a capture or ring that cannot be exported or summarised.
pub(super) fn on_saved(name: &Path, error: CaptureError) -> anyhow::Error {
    match error.reader_error() {
        Some(of_reader) => on_spans(name, of_reader).unwrap_or_else(|| error.into()),
        None => error.into(),
    }
}

/// Returns the error of a ring that was opened as a perf ring.
pub(super) fn on_perf(name: &Path, error: ReaderError) -> anyhow::Error {
    on_spans(name, &error).unwrap_or_else(|| error.into())
}

/// Returns the error with advice if the ring is missing or holds no spans.
fn on_spans(name: &Path, error: &ReaderError) -> Option<anyhow::Error> {
    let shown = error.path().unwrap_or(name).display();
    let (exit, message) = match error.kind() {
        ReaderErrorKind::NotFound => (
            Exit::NotFound,
            instead_of_a_name(name).unwrap_or_else(|| format!(
                "cannot find {}: there is neither a capture nor a ring of that name; `eventring list` shows the rings, \
                 `eventring capture RING -o FILE` makes a capture{}",
                name.display(),
                why_gone(error.path().unwrap_or(name))
            )),
        ),
        ReaderErrorKind::WrongContentType { found, .. } => (
            Exit::WrongContentType,
            format!(
                "the ring {shown} holds {} and no spans; name the perf ring of its program (`eventring list` shows it), or a \
                 capture of both",
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
    Some(Failure::new(exit, message).into())
}

/// Names the events of a content type: `EXEC events (content type 2)`, `events of content type 300`.
fn events_of(content_type: u16) -> String {
    match content_type_name(content_type) {
        "unknown" => format!("events of content type {content_type}"),
        name => format!("{name} events (content type {content_type})"),
    }
}
