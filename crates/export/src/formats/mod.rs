//! The formats, and the writer of each.
//!
//! | file | idea |
//! |---|---|
//! | `trace_writer` | the interface of formats with tracks and slices |
//! | `perfetto/`, `chrome` | traces as files |
//! | `folded`, `jsonl` | folded stacks; JSON lines |
//! | `json`, `json_rows` | JSON texts, and rows as JSON |
//! | `files` | the interface for the files of a format that is a directory |
//! | `ctf/` | traces of the Common Trace Format |

#[doc(hidden)]
pub mod chrome;
#[doc(hidden)]
pub mod ctf;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod folded;
#[doc(hidden)]
pub mod json;
pub(crate) mod json_rows;
#[doc(hidden)]
pub mod jsonl;
#[doc(hidden)]
pub mod perfetto;
#[doc(hidden)]
pub mod trace_writer;

// The command line has its own list of formats, with names and help texts (`crates/cli/src/output/formats.rs`).

/// A format that [`export`](crate::export) writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// Perfetto trace: ui.perfetto.dev, trace_processor
    Perfetto,
    /// Chrome's trace JSON: chrome://tracing, the Firefox Profiler, speedscope
    Chrome,
    /// Folded stacks with self times in nanoseconds: inferno, flamegraph.pl, speedscope
    Folded,
    /// A JSON object a line: spans, log records, typed events, counters, losses
    Jsonl,
    /// A Common Trace Format 1.8 trace, which is a directory: babeltrace2, Trace Compass
    Ctf,
}

impl Format {
    /// Returns the usual end of a file name of this format, `.perfetto-trace` for example.
    #[must_use]
    pub fn file_extension(self) -> &'static str {
        match self {
            Self::Perfetto => ".perfetto-trace",
            Self::Chrome => ".chrome.json",
            Self::Folded => ".folded",
            Self::Jsonl => ".jsonl",
            Self::Ctf => ".ctf",
        }
    }

    /// Returns true if the format is binary, and false if it is text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        match self {
            Self::Perfetto | Self::Ctf => true,
            Self::Chrome | Self::Folded | Self::Jsonl => false,
        }
    }

    /// Returns true if an export in this format is several files, which have a directory to themselves.
    /// [`export_files`](crate::export_files) writes them, and [`export`](crate::export) writes all other formats.
    #[must_use]
    pub fn is_directory(self) -> bool {
        match self {
            Self::Ctf => true,
            Self::Perfetto | Self::Chrome | Self::Folded | Self::Jsonl => false,
        }
    }

    /// Returns true if an export in this format makes a file with this name, or may make one. So a directory that has
    /// other files is no export in this format. Only formats that are directories have such names.
    #[must_use]
    pub fn may_have_file(self, name: &str) -> bool {
        match self {
            Self::Ctf => ctf::may_have_file(name),
            Self::Perfetto | Self::Chrome | Self::Folded | Self::Jsonl => false,
        }
    }

    /// Returns the name of a file that each export in this format has, and a text that such a file has and no file of
    /// another program. Only formats that are directories have them.
    #[must_use]
    pub fn mark(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Ctf => Some(ctf::MARK),
            Self::Perfetto | Self::Chrome | Self::Folded | Self::Jsonl => None,
        }
    }

    /// Returns true if an export in this format shows nothing but spans. Such an export needs a perf ring.
    #[must_use]
    pub fn has_only_spans(self) -> bool {
        match self {
            Self::Folded => true,
            Self::Perfetto | Self::Chrome | Self::Jsonl | Self::Ctf => false,
        }
    }
}
