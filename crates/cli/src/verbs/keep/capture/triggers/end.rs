//! The end of a watch: all events recorded before the end are read, and pending files are written.

use super::manifest::Shot;
use super::shared::{ActionState, WatchEnd, WriterMessage};
use super::watch::{HISTORY_TIME_MAX, PAUSE, Watch};
use crate::interrupt::Interrupt;
use crate::text::format::{counted, duration};
use crate::text::paint::DIM;
use eventring_capture::EndReason;
use eventring_live::LiveProgress;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// The longest time for which files are written after the user or `--duration` has ended the watch. Many managers of
/// services kill what has not ended 90 s after SIGTERM; then there would be no result.
const QUEUE_TIME_MAX: Duration = Duration::from_secs(60);
/// The time between two lines about the files that wait.
const WORD_PAUSE: Duration = Duration::from_secs(10);

impl Watch<'_> {
    /// Reads what was recorded before the end, if the engine has fallen behind. An interrupt leaves the rest unread.
    pub(super) fn read_rest(&mut self, end: WatchEnd, shots: &Sender<Shot>, interrupt: &Interrupt) {
        let Some(until_nanos) = end.until_nanos() else { return };
        self.judge.until_nanos = until_nanos;
        let until = Instant::now() + HISTORY_TIME_MAX;
        loop {
            let progress = self.read(shots, |live, see| live.read(PAUSE, see));
            if progress != LiveProgress::Behind || self.live.state().now_epoch_nanos() > until_nanos {
                return;
            }
            self.is_hurried |= interrupt.came();
            if self.is_hurried || Instant::now() >= until {
                self.unread = self.unread_events();
                return;
            }
        }
    }

    /// Returns how many events of the rings were not read.
    fn unread_events(&self) -> u64 {
        let unread = self.live.rings().rings().iter().filter_map(|ring| {
            let (info, next) = (ring.reader()?.info(), ring.cursor()?.next_seqno());
            // A ring holds no more than this; the last seqno of a damaged one may be any number.
            Some(info.last_seqno.saturating_add(1).saturating_sub(next).min(info.geometry.descriptor_capacity()))
        });
        unread.sum()
    }

    /// Waits until the files that wait are written and the commands have ended. When an interrupt comes, or when this
    /// takes too long, files and commands that are not begun are left out. Commands that run have their own limit; only
    /// after an interrupt they are not waited for.
    pub(super) fn finish_files(
        &mut self,
        end: WatchEnd,
        told: &Receiver<WriterMessage>,
        interrupt: &Interrupt,
        commands: &ActionState,
    ) {
        let begun = Instant::now();
        let mut next_word = begun;
        loop {
            self.is_hurried |= interrupt.came();
            self.is_slow |= !self.is_hurried && end.until_nanos().is_some() && begun.elapsed() >= QUEUE_TIME_MAX;
            if self.is_hurried {
                let _ = commands.is_interrupted.set(());
            }
            if self.is_hurried || self.is_slow {
                let _ = commands.is_hurried.set(());
            }
            if !self.is_hurried && Instant::now() >= next_word {
                next_word += WORD_PAUSE;
                self.say_what_waits(end, commands.len());
            }
            match told.recv_timeout(PAUSE) {
                Ok(told) => self.hear(told),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn say_what_waits(&self, end: WatchEnd, commands: usize) {
        let files = match self.judge.waiting.len() {
            0 => None,
            files => {
                let at_most = match end.until_nanos() {
                    Some(_) => format!(", for at most {} s", QUEUE_TIME_MAX.as_secs()),
                    None => String::new(),
                };
                Some(format!("{} to be written{at_most}", counted(files as u64, "file waits", "files wait")))
            }
        };
        let commands = (commands > 0).then(|| {
            let commands = counted(commands as u64, "command of --exec has", "commands of --exec have");
            format!("{commands} not ended, and may run for {} each", duration(self.args.triggers.exec_timeout))
        });
        let parts: Vec<String> = files.into_iter().chain(commands).collect();
        if parts.is_empty() {
            return;
        }
        let again = if end.reason == EndReason::Interrupted { "a further Ctrl-C" } else { "Ctrl-C" };
        self.screen.say(format!("{DIM}{}; {again} leaves out what is not done{DIM:#}", parts.join("; ")));
    }

    /// Returns why files were left out, if some were.
    pub(super) fn why_left_out(&self) -> Option<String> {
        let files = match self.not_written {
            0 => return None,
            files => counted(files, "file was", "files were"),
        };
        let why = match self.is_slow {
            true => format!(
                "writing was not done {} s after the end; a larger --debounce, or --max, makes fewer files",
                QUEUE_TIME_MAX.as_secs()
            ),
            false => "an interrupt has ended the writing".to_owned(),
        };
        Some(format!("{files} not written: {why}"))
    }
}
