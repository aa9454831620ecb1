//! The options of rotated captures, which `capture` and `receive` share.

use crate::args::amounts::{parse_file_bytes, parse_file_time};
use crate::exit::{Exit, Failure};
use eventring_capture::RotationOptions;
use std::time::Duration;

/// When a new file is begun, and which of the old ones go.
#[derive(clap::Args)]
pub(crate) struct RotationArgs {
    /// Begin a new file when the current file has this size; FILE.evc becomes FILE.0001.evc and so on
    #[arg(long, value_name = "SIZE", value_parser = parse_file_bytes)]
    rotate_size: Option<u64>,
    /// Begin a new file after this time
    #[arg(long, value_name = "TIME", value_parser = parse_file_time)]
    rotate_every: Option<Duration>,
    /// Keep only the last FILES files; events in removed files are no loss, and are counted as removed
    #[arg(long, value_name = "FILES", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Remove files that were written longer ago than this; the present file stays, and the one before it
    #[arg(long, value_name = "TIME", value_parser = parse_file_time)]
    keep_age: Option<Duration>,
    /// Remove the oldest files when all together have more than this; the present file stays, and the one before it. A
    /// file has at most a quarter of this
    #[arg(long, value_name = "SIZE", value_parser = parse_file_bytes)]
    keep_size: Option<u64>,
}

impl RotationArgs {
    /// Returns true if there is a rotation set.
    pub(crate) fn rotates(&self) -> bool {
        self.rotate_size.is_some() || self.rotate_every.is_some()
    }

    /// Returns the options.
    ///
    /// # Errors
    /// Files are to be removed, and there is only one.
    pub(crate) fn options(&self) -> Result<RotationOptions, Failure> {
        let kept = [
            (self.keep.is_some(), "--keep"),
            (self.keep_age.is_some(), "--keep-age"),
            (self.keep_size.is_some(), "--keep-size"),
        ];
        if let Some((_, option)) = kept.iter().find(|(is_given, _)| *is_given)
            && !self.rotates()
        {
            return Exit::Usage.fail(format!(
                "{option} needs --rotate-size or --rotate-every: it removes the oldest of several files; give one of these, too"
            ));
        }
        Ok(RotationOptions {
            rotate_bytes: self.rotate_size,
            rotate_every: self.rotate_every,
            keep_files: self.keep.map(|files| files as usize),
            keep_age: self.keep_age,
            keep_bytes: self.keep_size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_that_keeps_some_files_needs_one_that_begins_new_ones() {
        let none =
            || RotationArgs { rotate_size: None, rotate_every: None, keep: None, keep_age: None, keep_size: None };
        let time = Some(Duration::from_secs(1));
        for (args, option) in [
            (RotationArgs { keep: Some(2), ..none() }, "--keep "),
            (RotationArgs { keep_age: time, ..none() }, "--keep-age "),
            (RotationArgs { keep_size: Some(1), ..none() }, "--keep-size "),
        ] {
            assert!(args.options().unwrap_err().to_string().starts_with(option), "{option}");
            assert!(RotationArgs { rotate_every: time, ..args }.options().is_ok(), "{option}");
        }
    }
}
