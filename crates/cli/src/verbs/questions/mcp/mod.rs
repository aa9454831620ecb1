//! `eventring mcp`: the read-only verbs as tools of the Model Context Protocol.
//!
//! | file | idea |
//! |---|---|
//! | `message` | a line of JSON-RPC, and its answer |
//! | `tools` | the tools, their arguments, and the command line of each tool call |
//! | `call` | a run of this program as a child process, with limits on its output, time and memory |

mod call;
mod message;
mod tools;

use crate::exit::Exit;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

/// Serve the verbs that only read in the Model Context Protocol
///
/// Programs ask over standard input and output. The tools are ask, summary, open, why, tasks, info, list, exec_blocks,
/// diff, check and find. Each answer has at most 16,384 bytes, unless the call asks for more. The tools read what this
/// user can read, and change nothing (docs/ANSWERS.md).
#[derive(clap::Args)]
pub(crate) struct McpArgs {
    /// The longest time of a call, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
}

/// The longest message that is read.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// The largest number of lines with calls that are under way. Then nothing is read until one of them has its answer.
const CALLS_MAX: usize = 16;

pub(crate) fn run(args: &McpArgs) -> anyhow::Result<Exit> {
    let (mut input, out) = (io::stdin().lock(), Mutex::new(io::stdout()));
    let caller = call::Caller::new(std::time::Duration::from_secs(args.timeout))?;
    let answer = |line: Option<Vec<u8>>| -> io::Result<()> {
        let answer = message::answer(line.as_deref(), |id, tool, arguments| caller.call(id, tool, arguments));
        let Some(answer) = answer else { return Ok(()) };
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(out, "{answer}")?;
        out.flush()
    };
    std::thread::scope(|scope| {
        let mut calls: VecDeque<ScopedJoinHandle<'_, io::Result<()>>> = VecDeque::new();
        while let Some(line) = next_line(&mut input)? {
            if let Some(id) = line.as_deref().and_then(message::cancelled) {
                caller.cancel(&id);
            }
            if !line.as_deref().is_some_and(message::may_call) {
                answer(line)?;
                continue;
            }
            // A call takes long. What comes meanwhile is answered: a ping, or that the call is not wanted any more.
            calls.push_back(scope.spawn(|| answer(line)));
            while calls.len() >= CALLS_MAX || calls.front().is_some_and(ScopedJoinHandle::is_finished) {
                ended(calls.pop_front())?;
            }
        }
        calls.into_iter().try_for_each(|call| ended(Some(call)))
    })?;
    Ok(Exit::Done)
}

/// Waits until a call has its answer.
fn ended(call: Option<ScopedJoinHandle<'_, io::Result<()>>>) -> io::Result<()> {
    call.map_or(Ok(()), |call| call.join().unwrap_or_else(|_| Err(io::Error::other("a call has panicked"))))
}

/// Returns the next line: `Some(None)` is one that is too long, which is skipped, and `None` the end.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Option<Vec<u8>>>> {
    let mut line = Vec::new();
    input.by_ref().take(MESSAGE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || (line.len() as u64) < MESSAGE_BYTES_MAX {
        return Ok(Some(Some(line)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(None))
}
