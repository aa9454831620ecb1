//! `eventring mcp`: the read-only verbs as tools of the Model Context Protocol.
//!
//! | file | idea |
//! |---|---|
//! | `message` | a line of JSON-RPC, and its answer |
//! | `tools` | the tools, their arguments, and the command line of a call |
//! | `call` | a run of this program as a child, with bounds on its output, time and memory |

mod call;
mod message;
mod tools;

use super::exit::Exit;
use std::io::{self, BufRead, Read as _, Write as _};

/// Serve the verbs that only read to programs, over standard input and output, in the Model Context Protocol
///
/// The tools are ask, summary, open, why, tasks, info, list, blocks, diff, check and find. Each answer has at most
/// 16,384 bytes, unless the call asks for more. The tools read what this user can read, and change nothing
/// (docs/ANSWERS.md).
#[derive(clap::Args)]
pub(super) struct McpArgs {
    /// The longest time of a call, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
}

/// The longest message that is read.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

pub(super) fn run(args: &McpArgs) -> anyhow::Result<Exit> {
    let (mut input, mut out) = (io::stdin().lock(), io::stdout().lock());
    let caller = call::Caller::new(std::time::Duration::from_secs(args.timeout))?;
    while let Some(line) = next_line(&mut input)? {
        if let Some(answer) = message::answer(line.as_deref(), |tool, arguments| caller.call(tool, arguments)) {
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
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
