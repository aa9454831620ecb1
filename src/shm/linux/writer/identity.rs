//! Identities of processes. A process id alone does not identify a process, because the kernel gives the id to another
//! process after a while.

use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::super::system::paths::{self, field};
use crate::shm::answers::{Liveness, ProcessIdentity};
use crate::shm::decimal::digits;

impl ProcessIdentity {
    /// Returns the identity of the calling process. A field that `/proc` does not show is 0.
    #[must_use]
    pub fn current() -> Self {
        Self {
            pid: std::process::id(),
            start_ticks: ProcessStat::of_this_process().map_or(0, |stat| stat.start_ticks),
            pid_namespace: namespace("pid"),
            time_namespace: namespace("time"),
            boot_id: boot_id(),
        }
    }

    /// Returns whether the process with this identity still runs.
    ///
    /// If the process is of an earlier boot, it is dead. If it is in another pid namespace, or fields are missing, its
    /// state is unknown. A stopped process is alive.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        let boot_id = boot_id();
        if self.boot_id != [0; 16] && boot_id != [0; 16] && self.boot_id != boot_id {
            return Liveness::Dead;
        }
        let knows = self.boot_id != [0; 16] && self.start_ticks != 0 && self.pid_namespace != 0;
        if !knows || self.pid_namespace != namespace("pid") {
            return Liveness::Unknown;
        }
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Liveness::Unknown;
        };
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return Liveness::Dead;
        }
        // A process with this process id exists. It is the same process only if it also has the same start time. If the
        // system hides the start time (mount option hidepid), the answer is "unknown".
        match ProcessStat::of_process(pid) {
            Some(stat) if stat.is_zombie => Liveness::Dead,
            Some(_) if self.time_namespace != namespace("time") => Liveness::Unknown,
            Some(stat) if stat.start_ticks == self.start_ticks => Liveness::Alive,
            Some(_) => Liveness::Dead,
            None if test_kill_process(pid) == Err(Errno::SRCH) => Liveness::Dead,
            None => Liveness::Unknown,
        }
    }
}

impl ProcessIdentity {
    /// Returns true if the process that has the number `pid` here is the one with this identity: it has the same number
    /// in its own pid namespace, that is the same namespace, and it started at the same time. (Start times of different
    /// time namespaces cannot be compared.) Returns false if the system does not show it.
    #[must_use]
    pub fn is_process(&self, pid: u32) -> bool {
        let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
        let Some(stat) = ProcessStat::of_process(process).filter(|stat| !stat.is_zombie) else { return false };
        let is_of_this_boot = self.boot_id != [0; 16] && self.boot_id == boot_id();
        let is_comparable = self.time_namespace == namespace("time");
        is_of_this_boot
            && self.start_ticks != 0
            && (!is_comparable || self.start_ticks == stat.start_ticks)
            && self.is_number_there(pid)
    }

    /// Returns true if the process that has the number `pid` here has the number of this identity in its own pid
    /// namespace, and if that is the namespace of this identity.
    fn is_number_there(&self, pid: u32) -> bool {
        // The namespaces of other users' processes are not shown. Those of this namespace have the same number in it.
        let is_here = || (pid, self.pid_namespace) == (self.pid, namespace("pid"));
        let Ok(its) = paths::stat(Path::new(&format!("/proc/{pid}/ns/pid"))) else { return is_here() };
        self.pid_namespace == its.st_ino && own_number(&format!("/proc/{pid}")) == Some(self.pid)
    }
}

/// Returns the number that a process or a thread has in its own pid namespace. `entry` is its directory in `/proc`.
#[must_use]
pub fn own_number(entry: &str) -> Option<u32> {
    let status = paths::read(Path::new(&format!("{entry}/status")))?;
    let status = String::from_utf8_lossy(&status);
    let numbers = status.split('\n').find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Returns true if no process has this process id, or if only a zombie has it.
pub(in crate::shm::linux) fn is_gone(pid: i32) -> bool {
    Pid::from_raw(pid).is_none_or(|pid| {
        test_kill_process(pid) == Err(Errno::SRCH) || ProcessStat::of_process(pid).is_some_and(|stat| stat.is_zombie)
    })
}

struct ProcessStat {
    start_ticks: u64,
    is_zombie: bool,
}

impl ProcessStat {
    /// Reads the state of the process `pid`. Returns `None` if `/proc` belongs to another pid namespace. In that
    /// namespace the same id means another process.
    fn of_process(pid: Pid) -> Option<Self> {
        let me = rustix::fs::readlink(c"/proc/self", Vec::new()).ok()?;
        let is_ours = digits(me.to_bytes()) == Some(std::process::id().into());
        match pid.as_raw_nonzero().get() {
            _ if !is_ours => None,
            pid if pid.unsigned_abs() == std::process::id() => Self::of_this_process(),
            pid => Self::read(&pid.to_string()),
        }
    }

    /// Reads the state of the calling process, from the entry of its first thread. For a program that runs under QEMU,
    /// QEMU makes up the file `/proc/self/stat`, with another start time than other processes see.
    fn of_this_process() -> Option<Self> {
        Self::read(&format!("self/task/{}", std::process::id())).or_else(|| Self::read("self"))
    }

    fn read(process: &str) -> Option<Self> {
        // The file is read as bytes and not by `read_text`, because a process may have a name that is not UTF-8.
        let text = paths::read(Path::new(&format!("/proc/{process}/stat")))?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// Reads a line of a `stat` file. Its second field is the name of the process, in parentheses. The name may
    /// contain blanks and parentheses itself. The fields after it contain none.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let state = field(rest, 0)?;
        let threads: u64 = field(rest, 17)?.parse().ok()?;
        let start_ticks = field(rest, 19)?.parse().ok()?;
        Some(Self {
            start_ticks,
            // If the main thread has ended, the process shows as a zombie. It is alive nevertheless as long as it has
            // other threads.
            is_zombie: matches!(state, "Z" | "X") && threads <= 1,
        })
    }
}

fn namespace(kind: &str) -> u64 {
    // The files of the process are not there after its main thread has ended.
    paths::stat(&Path::new("/proc/thread-self/ns").join(kind)).map_or(0, |stat| stat.st_ino)
}

fn boot_id() -> [u8; 16] {
    paths::read_text("/proc/sys/kernel/random/boot_id").and_then(|text| parse_boot_id(&text)).unwrap_or_default()
}

/// Reads 32 hexadecimal digits with dashes between them.
fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let (mut id, mut digits) = (0, 0);
    for byte in text.trim_ascii().bytes().filter(|&byte| byte != b'-') {
        id = id << 4 | u128::from(char::from(byte).to_digit(16)?);
        digits += 1;
    }
    (digits == 32).then(|| id.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};
    use std::process::Command;

    fn identity_of(pid: u32) -> ProcessIdentity {
        ProcessIdentity {
            pid,
            start_ticks: ProcessStat::read(&pid.to_string()).unwrap().start_ticks,
            ..ProcessIdentity::current()
        }
    }

    #[test]
    fn we_are_alive_and_every_word_of_us_is_known() {
        let me = ProcessIdentity::current();
        assert_eq!(me.pid, std::process::id());
        assert!(me.start_ticks > 0 && me.pid_namespace > 0 && me.boot_id != [0; 16]);
        assert_eq!(me.liveness(), Liveness::Alive);
        assert_eq!(me, ProcessIdentity::current());
    }

    #[test]
    fn a_stopped_process_lives_a_zombie_and_a_reaped_one_are_dead() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let identity = identity_of(child.id());
        assert_eq!(identity.liveness(), Liveness::Alive);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        assert_eq!(identity.liveness(), Liveness::Alive);
        child.kill().unwrap();
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert_eq!(identity.liveness(), Liveness::Dead, "zombie");
        child.wait().unwrap();
        assert_eq!(identity.liveness(), Liveness::Dead, "reaped");
    }

    #[test]
    fn the_same_pid_with_another_start_is_another_process() {
        let me = ProcessIdentity::current();
        let earlier = ProcessIdentity { start_ticks: me.start_ticks - 1, ..me };
        assert_eq!(earlier.liveness(), Liveness::Dead);
        let before_boot = ProcessIdentity { boot_id: [7; 16], ..me };
        assert_eq!(before_boot.liveness(), Liveness::Dead);
    }

    #[test]
    fn a_process_is_its_identity_and_no_other_is() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let identity = identity_of(child.id());
        assert_eq!(own_number(&format!("/proc/{}", child.id())), Some(child.id()));
        assert!(identity.is_process(child.id()));
        let others = [
            ProcessIdentity { pid: std::process::id(), ..identity },
            ProcessIdentity { start_ticks: identity.start_ticks + 1, ..identity },
            ProcessIdentity { start_ticks: 0, ..identity },
            ProcessIdentity { pid_namespace: 1, ..identity },
            ProcessIdentity { boot_id: [7; 16], ..identity },
            ProcessIdentity::default(),
        ];
        others.iter().for_each(|other| assert!(!other.is_process(child.id()), "{other:?}"));
        assert!(!identity.is_process(std::process::id()) && !identity.is_process(0) && !identity.is_process(u32::MAX));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!identity.is_process(child.id()));
    }

    #[test]
    fn strangers_namespaces_and_missing_words_are_unknown() {
        let me = ProcessIdentity::current();
        for identity in [
            ProcessIdentity::default(),
            ProcessIdentity { pid_namespace: 1, ..me },
            ProcessIdentity { time_namespace: 1, ..me },
            ProcessIdentity { start_ticks: 0, ..me },
            ProcessIdentity { pid: 0, ..me },
            ProcessIdentity { pid: u32::MAX, ..me },
        ] {
            assert_eq!(identity.liveness(), Liveness::Unknown, "{identity:?}");
        }
    }

    #[test]
    fn a_process_name_cannot_fool_the_parser() {
        let line = "7 (a) Z 1 (b)) S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 12345 1 1";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!(stat.start_ticks, 12345);
        assert!(!stat.is_zombie);
        assert!(ProcessStat::parse(&line.replace(") S", ") Z")).is_some_and(|s| !s.is_zombie));
        assert!(
            ProcessStat::parse(&line.replace(") S", ") Z").replace(" 3 0 12345", " 1 0 12345"))
                .is_some_and(|s| s.is_zombie)
        );
        for broken in ["", "7 (x", "7 (x) S 1"] {
            assert!(ProcessStat::parse(broken).is_none());
        }
    }
}
