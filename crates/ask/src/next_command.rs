//! The next command for a flag: a line for a shell, which works on the same files or rings.

use crate::flag::{Flag, FlagKind, WHAT_BYTES, cut};
use std::ffi::{OsStr, OsString};

/// Returns a word as a shell reads it. What is no text, or would change the terminal, is written as numbers.
fn quoted(word: &OsStr) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && !text.starts_with('=') && text.chars().all(is_plain) => text.to_owned(),
        Some(text) if cut(text, usize::MAX) == text => format!("'{}'", text.replace('\'', "'\\''")),
        _ => {
            let byte = |byte: &u8| match byte {
                b' '..=b'~' if !b"'\\".contains(byte) => char::from(*byte).to_string(),
                // Three digits: what follows may be a digit, too.
                _ => format!("\\{byte:03o}"),
            };
            format!("$'{}'", word.as_encoded_bytes().iter().map(byte).collect::<String>())
        }
    }
}

/// Returns the command line of a verb about these files or rings, with further options, for a shell.
///
/// ```
/// assert_eq!(eventring_ask::command_line("open", &["my shop.evc"], &["--all"]), "eventring open 'my shop.evc' --all");
/// assert_eq!(eventring_ask::command_line("open", &["-x.evc"], &["--all"]), "eventring open --all -- -x.evc");
/// ```
#[must_use]
pub fn command_line(verb: &str, inputs: &[impl AsRef<OsStr>], options: &[&str]) -> String {
    let mut inputs: Vec<String> = inputs.iter().map(|input| quoted(input.as_ref())).collect();
    let mut options: Vec<String> = options.iter().map(|word| quoted(word.as_ref())).collect();
    // An input that begins with a dash would be an option.
    if inputs.iter().any(|input| input.trim_start_matches(['$', '\'']).starts_with('-')) {
        options.push("--".to_owned());
        std::mem::swap(&mut inputs, &mut options);
    }
    let words = ["eventring".to_owned(), verb.to_owned()].into_iter().chain(inputs).chain(options);
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the command that shows more about a flag.
pub(crate) fn next(flag: &Flag, inputs: &[OsString]) -> String {
    let at = flag.at_nanos.unwrap_or(0).to_string();
    let line = |verb, options: &[&str]| command_line(verb, inputs, options);
    match flag.kind {
        FlagKind::Damaged | FlagKind::Losses | FlagKind::OpenSpans => line("summary", &[]),
        FlagKind::RecordErrors => line("export", &["--format", "jsonl", "--where", "event=RECORD_ERROR"]),
        FlagKind::Died => line("open", &[]),
        FlagKind::Panic | FlagKind::ErrorBurst => line("export", &["--format", "jsonl", "--where", "level>=ERROR"]),
        FlagKind::TaskPanicked => line("tasks", &["--json"]),
        FlagKind::TaskDeadlock | FlagKind::Futurelock | FlagKind::LostWaker => line("tasks", &["--deadlocks"]),
        FlagKind::HungSpan => line("open", &["--min-age", "500ms"]),
        FlagKind::LongPoll => line("tasks", &["--slowest", "longest-poll"]),
        FlagKind::LatePoll => line("tasks", &["--slowest", "scheduled"]),
        FlagKind::WakeStorm => line("tasks", &["--slowest", "wakes"]),
        FlagKind::LatencyStep => line("summary", &["--from", &at]),
        FlagKind::LockWait if flag.id.is_none() => line("tasks", &["--json"]),
        FlagKind::LockWait | FlagKind::SlowChild | FlagKind::ProcessorWait | FlagKind::SlowSpan => {
            let id = flag.id.unwrap_or(0).to_string();
            let is_whole = flag.what.len() + 4 < WHAT_BYTES && !flag.what.contains(char::REPLACEMENT_CHARACTER);
            if is_whole && flag.is_of_spans && !flag.what.starts_with('-') {
                line("why", &["--span", &flag.what])
            } else {
                line("why", &["--id", &id])
            }
        }
        FlagKind::Silence => line("summary", &["--around", &format!("{at}+-10ms")]),
        FlagKind::BlocksRejected | FlagKind::BlocksIncomplete => line("exec blocks", &[]),
    }
}
