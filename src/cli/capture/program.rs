//! The program that a capture starts, and waiting for rings that are yet to be made.

use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::silence::Silence;
use eventring::reader::{Reader, ReaderErrorKind, RingState, WriterInfo};
use eventring::recorder::KEEP_VARIABLE;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often it is asked whether a ring has been made.
const INTERVAL: Duration = Duration::from_millis(50);
/// The same, where its program was started by us, and may not live long.
const SHORT_INTERVAL: Duration = Duration::from_millis(1);
/// So long after the program's end the capture ends, too, whoever else still writes to its rings.
const LINGER: Duration = Duration::from_secs(1);

/// A program that was started to be captured.
pub(super) struct Program {
    child: Child,
    name: String,
    started_epoch_nanos: u64,
    /// Whether its rings stay for our sake only.
    keeps_for_us: bool,
    ended: Option<(ExitStatus, Instant)>,
}

impl Program {
    /// Starts it. Its rings stay when it ends, so that it cannot be too fast for us. With `spares_stdout`, what it prints goes to stderr.
    pub(super) fn start(command: &[OsString], spares_stdout: bool) -> Result<Self, Failure> {
        let [program, arguments @ ..] = command else {
            return Err(Failure::new(Exit::Usage, "no program is named behind `--`"));
        };
        let name = program.to_string_lossy().into_owned();
        let cannot = |error: io::Error| Failure::io(format_args!("cannot start {name}"), &error);
        let keeps_for_us = std::env::var_os(KEEP_VARIABLE).is_none_or(|value| value.is_empty());
        let mut command = Command::new(program);
        command.args(arguments);
        if keeps_for_us {
            command.env(KEEP_VARIABLE, "1");
        }
        if spares_stdout {
            let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(cannot)?;
            command.stdout(Stdio::from(stderr));
        }
        let started_epoch_nanos = now_epoch_nanos();
        let child = command.spawn().map_err(cannot)?;
        Ok(Self { child, name, started_epoch_nanos, keeps_for_us, ended: None })
    }

    /// Whether it has ended; asks.
    fn has_ended(&mut self) -> bool {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some((status, Instant::now()));
        }
        self.ended.is_some()
    }

    /// Whether the capture shall end because the program has, and whoever else writes to its rings goes on.
    pub(super) fn is_long_gone(&mut self) -> bool {
        self.has_ended() && self.ended.is_some_and(|(_, when)| when.elapsed() > LINGER)
    }

    /// The exit code that it leaves, as a shell tells it; `None` while it runs. A program that has closed its rings has a moment to end.
    pub(super) fn exit_code(&mut self, has_closed_its_rings: bool) -> Option<i32> {
        let begin = Instant::now();
        while !self.has_ended() && has_closed_its_rings && begin.elapsed() < LINGER {
            std::thread::sleep(SHORT_INTERVAL);
        }
        let (status, _) = self.ended?;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    /// Whether the ring was made since the program was started, and is not one that was left there.
    fn has_made(&self, reader: &Reader) -> bool {
        let created = reader.info().extension.map(|extension| extension.created_epoch_nanos);
        created.is_none_or(|created| created >= self.started_epoch_nanos)
    }

    /// Removes the files of rings that stayed for our sake: those that were captured, and others of the same processes beside them.
    pub(super) fn remove_rings(&self, names: &[PathBuf]) {
        if !self.keeps_for_us {
            return;
        }
        let captured = names.iter().filter_map(|name| Reader::open(name).ok());
        for ring in captured.filter(|ring| self.has_made(ring)) {
            let Some((writer, directory)) = writer(&ring).zip(ring.path().and_then(Path::parent)) else { continue };
            for file in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
                // What was left by a death stays, as ever.
                let is_its =
                    |other: &Reader| other.state() == RingState::Ended && self::writer(other).as_ref() == Some(&writer);
                if is_file && Reader::open(file.path()).is_ok_and(|other| is_its(&other)) {
                    let _ = std::fs::remove_file(file.path());
                }
            }
        }
    }
}

fn writer(ring: &Reader) -> Option<WriterInfo> {
    ring.info().extension.map(|extension| extension.writer)
}

/// Waits until all rings are there, of `program` if there is one; false if the user stops it.
pub(super) fn wait_for_rings(
    names: &[PathBuf],
    mut program: Option<&mut Program>,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let mut silence = Silence::new(false);
    for name in names {
        loop {
            // Before the look: what it has made until its end is then seen.
            let has_ended = program.as_mut().is_some_and(|program| program.has_ended());
            match Reader::open(name) {
                Ok(reader) if program.as_ref().is_none_or(|program| program.has_made(&reader)) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ReaderErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            if let (true, Some(program)) = (has_ended, &mut program) {
                let code = program.exit_code(false).unwrap_or(0);
                let message = format!(
                    "{} has ended with exit code {code} and has not made the ring {}; give the name under which it records",
                    program.name,
                    name.display()
                );
                return Err(Failure::new(Exit::NotFound, message).into());
            }
            if interrupt.came() {
                return Ok(false);
            }
            silence.say(|| format!("waiting for the ring {} to be made", name.display()));
            std::thread::sleep(if program.is_some() { SHORT_INTERVAL } else { INTERVAL });
        }
    }
    Ok(true)
}

fn now_epoch_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
