//! The options behind the plugin's file name.

use std::path::{self, PathBuf};

/// The ways of counting.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    /// A call for each executed block.
    Block,
    /// A call for each executed instruction: slow, and a check of [`Mode::Block`].
    Instruction,
}

impl Mode {
    /// Returns the value of the option.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Block => "tb",
            Mode::Instruction => "insn",
        }
    }

    /// Returns the number that the guest sees.
    pub fn number(self) -> u64 {
        match self {
            Mode::Block => 1,
            Mode::Instruction => 2,
        }
    }
}

/// The options of a run.
pub struct Options {
    pub mode: Mode,
    /// The absolute path of the report.
    pub report: Option<PathBuf>,
}

const EXPECTED: &str = "expected mode=tb, mode=insn or report=PATH";

impl Options {
    /// Reads the words that QEMU found between commas. QEMU makes `name=on` of a lonely `name`.
    pub fn parse(words: &[String]) -> Result<Options, String> {
        let mut options = Options { mode: Mode::Block, report: None };
        for word in words {
            match word.split_once('=') {
                Some(("mode", "tb")) => options.mode = Mode::Block,
                Some(("mode", "insn")) => options.mode = Mode::Instruction,
                Some(("mode", other)) => return Err(format!("unknown mode `{other}`, expected mode=tb or mode=insn")),
                Some(("report", "")) => return Err("the report has no path, expected report=PATH".to_owned()),
                // The guest may change the working directory.
                Some(("report", path)) => {
                    let absolute = path::absolute(path).map_err(|error| format!("report={path}: {error}"))?;
                    options.report = Some(absolute);
                }
                _ => return Err(format!("unknown option `{word}`, {EXPECTED}")),
            }
        }
        Ok(options)
    }
}
