//! The thread that writes the files, one after the other, while the watch continues.

use super::action;
use super::history::History;
use super::manifest::{Shot, Window, WrittenFile};
use super::names::{NameParts, NameTemplate};
use super::shared::{ActionEnd, ActionState, WaitingShots, WatchEnd, WriterMessage};
use crate::exit::Failure;
use crate::output;
use crate::text::format::TimeFormat;
use crate::verbs::keep::capture::args::Args;
use eventring::recorder::Clock;
use eventring_capture::{CaptureError, CaptureErrorKind, OutputEntry, ReadFiles, RollingCapture};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// The pause between two looks at whether a file is due.
const PAUSE: Duration = Duration::from_millis(20);

/// A writer of files.
pub(super) struct FileWriter<'w> {
    pub(super) kept: &'w History,
    pub(super) names: &'w NameTemplate,
    pub(super) args: &'w Args,
    /// The commands that run after files; `None` without `--exec`.
    pub(super) actions: Option<FileActions<'w>>,
    /// The end of the watch, if it has ended.
    pub(super) is_over: &'w OnceLock<WatchEnd>,
    /// A value if the files that are not begun are to be left out.
    pub(super) is_hurried: &'w OnceLock<()>,
    /// The shots that wait, oldest first.
    pub(super) waiting: &'w WaitingShots,
    pub(super) times: TimeFormat,
}

/// The way to the commands that run after files.
pub(super) struct FileActions<'w> {
    pub(super) command: &'w str,
    pub(super) state: &'w ActionState,
    pub(super) files: Sender<(PathBuf, PathBuf)>,
}

impl FileWriter<'_> {
    /// Writes a file for each shot, until no more come.
    pub(super) fn run(self, shots: &Receiver<Shot>, tell: &Sender<WriterMessage>) {
        let (mut number, mut bytes) = (0, 0_u64);
        for shot in shots {
            if self.is_hurried.get().is_some() {
                self.waiting.done();
                let _ = tell.send(WriterMessage::LeftOut);
                continue;
            }
            if self.args.triggers.max_bytes.is_some_and(|max| bytes >= max) {
                self.waiting.done();
                let _ = tell.send(WriterMessage::Suppressed);
                continue;
            }
            // What the rings hold now may soon be overwritten.
            let copied = self.kept.copied();
            self.kept.hold(self.waiting.oldest_nanos(self.args.triggers.before));
            let told = match copied.map_err(Into::into).and_then(|copied| self.write(&copied, &shot, &mut number)) {
                Ok(written) => {
                    bytes = bytes.saturating_add(written.cut.bytes);
                    self.act(&written, tell);
                    WriterMessage::Written(Box::new(written))
                }
                Err(error) => WriterMessage::Failed(Box::new(shot), error),
            };
            self.waiting.done();
            self.kept.hold(self.waiting.oldest_nanos(self.args.triggers.before));
            if self.waiting.len() == 0 {
                self.kept.rest();
            }
            // The watch waits for the writer, so it listens.
            let _ = tell.send(told);
        }
    }

    fn write(&self, copied: &RollingCapture, shot: &Shot, number: &mut u64) -> anyhow::Result<WrittenFile> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let asked = Window {
            from_epoch_nanos: shot.epoch_nanos.saturating_sub(nanos(self.args.triggers.before)),
            to_epoch_nanos: shot.epoch_nanos.saturating_add(nanos(self.args.triggers.after)),
        };
        let now_nanos = || Clock::global().now_epoch_nanos();
        while now_nanos() < asked.to_epoch_nanos && self.is_over.get().is_none() {
            std::thread::sleep(PAUSE);
        }
        let to = match self.is_over.get().and_then(|end| end.until_nanos()) {
            // The user has ended the watch, and with it the time after the event.
            Some(until_nanos) => asked.to_epoch_nanos.min(until_nanos),
            // If the programs have ended, nothing is missing.
            None if copied.state().has_ended => asked.to_epoch_nanos,
            None => asked.to_epoch_nanos.min(now_nanos()),
        };
        let time = self.times.file_name(shot.epoch_nanos);
        loop {
            *number += 1;
            let path: PathBuf = self.names.path(&NameParts { number: *number, what: &shot.name, time: &time });
            let manifest_path = WrittenFile::manifest_path(&path);
            if !self.args.force && (path.symlink_metadata().is_ok() || manifest_path.symlink_metadata().is_ok()) {
                continue;
            }
            if let Some(directory) = path.parent().filter(|_| self.names.has_directories()) {
                std::fs::create_dir_all(directory).map_err(|error| Failure::writing(directory, &error))?;
            }
            let cut = match copied.cut(asked.from_epoch_nanos..=to, &path, self.args.force) {
                // Somebody has just made a file of this name.
                Err(error) if error.kind() == CaptureErrorKind::Exists => continue,
                cut => cut?,
            };
            let written = WrittenFile { path, shot: shot.clone(), asked, cut };
            write_manifest(&written, &manifest_path, self.args.force).map_err(output::failure)?;
            return Ok(written);
        }
    }

    /// Has the command run for a file, and does not wait for it.
    fn act(&self, written: &WrittenFile, tell: &Sender<WriterMessage>) {
        let Some(FileActions { command, state, files }) = &self.actions else { return };
        if state.add() {
            // The commands are awaited until no more files come.
            let _ = files.send((written.path.clone(), WrittenFile::manifest_path(&written.path)));
        } else {
            let left_out = ActionEnd::LeftOut(action::left_out(&written.path, command));
            let _ = tell.send(WriterMessage::ActionEnded(left_out));
        }
    }
}

/// Writes the manifest. It has names and values of the recording, so nobody may read it who may not read the file.
fn write_manifest(written: &WrittenFile, path: &Path, overwrite: bool) -> Result<(), CaptureError> {
    let place = OutputEntry::open(path)?;
    let unfinished = place.create_unfinished()?;
    let text = serde_json::to_string_pretty(&written.manifest()).map_err(std::io::Error::from);
    let text = text.and_then(|text| writeln!(unfinished.file(), "{text}"));
    text.map_err(|error| CaptureError::io_writing("write it", error).at(path))?;
    unfinished.publish(overwrite, &ReadFiles::default())
}
