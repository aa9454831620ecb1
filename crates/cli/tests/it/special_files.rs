//! Pipes, devices, links and directories in the place of each file that a verb reads or writes: nothing waits for
//! another process, and nothing is written where another user wants it.

use crate::fixtures::*;
use eventring_stress::users;
use rustix::fs::{CWD, FileType, mknodat};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, lchown, symlink};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

/// The time after which a run hangs. None of these runs has anything to wait for.
const HANGS_AFTER: Duration = Duration::from_secs(60);
const STRANGER: u32 = 4711;

/// Command lines that read the file `{}`. `@NAME` is a file of the scene.
const READERS: [&str; 49] = [
    "info {}",
    "info @ring --schema {}",
    "exec blocks {}",
    "exec blocks @ring --archive {}",
    "exec blocks {} @capture",
    "exec archive {} -o @out",
    "exec gateway {} --listen 127.0.0.1:0",
    "exec gateway @ring --listen 127.0.0.1:0 --archive {}",
    "watch {}",
    "find span=x {}",
    "snapshot {} -o @out",
    "capture {} --now -o @out",
    "capture {} --wait --duration 1ms -o @out",
    "forward {} --to otlp://127.0.0.1:1",
    "forward @ring --to otlps://127.0.0.1:1 --tls-ca {}",
    "forward @ring --to otlps://127.0.0.1:1 --tls-cert {} --tls-key {}",
    "forward @ring --to nats://127.0.0.1:1 --stream s --creds {}",
    "receive nats://127.0.0.1:1 --stream s -o @out --nkey {}",
    "receive tls://127.0.0.1:1 --stream s -o @out --tls-ca {}",
    "export {} -o -",
    "export @capture {} -o -",
    "view {}",
    "view @capture --ui {}",
    "summary {}",
    "diff {} @capture",
    "diff @capture {}",
    "diff @capture @capture --with {}",
    "report {} -o @out",
    "report @capture {} -o @out",
    "report @capture @capture --with {} -o @out",
    "budget check {} @capture",
    "budget check @budgets {}",
    "budget update @budgets {}",
    "profile {} -o @out",
    "icount -- {}",
    "open {}",
    "top {} --json",
    "why {} --span x",
    "ask {}",
    "tasks {}",
    "enable {} info",
    "disable {} info",
    "levels {}",
    "serve {} --socket @out",
    "exec replay {} --ring @out",
    "check {}",
    "core {} -o @out",
    "list {}",
    "clean {}",
];
/// Command lines that write the file `{}`.
pub const WRITERS: [&str; 19] = [
    "snapshot @ring -o {}",
    "capture @ring --now -o {}",
    "capture @ring --now --rotate-size 1M -o {}",
    "capture @ring --resume --now -o {}",
    "export @capture --format perfetto -o {}",
    "export @capture --format jsonl -o {}",
    "export @capture --format parquet -o {}",
    "export @capture --format ctf -o {}",
    "report @capture -o {}",
    "report @capture @capture -o {}",
    "budget update {} @capture --measure count",
    "budget check @budgets @capture --bmf {}",
    "exec archive @kept -o {}",
    "profile @ring -d 1ms -o {}",
    "icount -o {} -- /bin/true",
    "receive nats://127.0.0.1:1 --stream s -o {}",
    "exec replay @kept --ring {}",
    "serve @kept --socket {}",
    "core @kept -o {}",
];
/// The verbs that open no file that a command line names: `mcp` has other verbs do it.
const WITHOUT_FILES: [&str; 2] = ["mcp", "completions"];

/// Files to read, and a directory for special ones.
pub struct Scene {
    pub directory: TempDir,
    _ring: eventring::recorder::Recorder,
}

impl Scene {
    pub fn new() -> Self {
        let directory = directory();
        let ring = exec_ring(&place(&directory, "ring"));
        assert_ne!(ring.record(ExecEvent::TxnEnd as u16, [0; 4], b""), 0);
        let [spans, capture, budgets] = ["spans", "capture", "budgets"].map(|name| place(&directory, name));
        let perf = spans_in(&spans).shifts(15, 21).build().unwrap();
        in_recorder(perf.clone(), || info_span!("x").in_scope(|| ()));
        run!("capture", &spans, "--now", "-o", &capture).ends(0);
        run!("budget", "update", &budgets, &capture, "--measure", "count").ends(0);
        Self { directory, _ring: ring }
    }

    /// Runs a command line. Returns `None` if it hangs. Runs with different numbers may happen at the same time.
    pub fn run(&self, line: &str, special: &Path, number: usize) -> Option<Ended> {
        let word = |word: &str| match word.strip_prefix('@') {
            Some("kept") => KEPT.to_owned(),
            Some("out") => argument(&place(&self.directory, &format!("out-{number}"))).to_owned(),
            Some(name) => argument(&place(&self.directory, name)).to_owned(),
            None => word.replace("{}", argument(special)),
        };
        let words: Vec<String> = line.split(' ').map(word).collect();
        let mut command = program(&words.iter().map(String::as_str).collect::<Vec<_>>());
        // Nothing here is to be found by a bare name.
        command.env("EVENTRING_DIR", self.directory.path()).env_remove("EVENTRING_PERF");
        let [mut out, mut err] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        command.stdout(out.try_clone().unwrap()).stderr(Stdio::from(err.try_clone().unwrap()));
        let mut child = command.spawn().unwrap();
        let begin = Instant::now();
        let code = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if begin.elapsed() > HANGS_AFTER => {
                    kill(&mut child);
                    return None;
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut said = String::new();
        for file in [&mut out, &mut err] {
            std::io::Seek::rewind(file).unwrap();
            file.read_to_string(&mut said).unwrap();
        }
        Some(Ended { code, said })
    }
}

#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub said: String,
}

fn make_pipe(at: &Path) {
    mknodat(CWD, at, FileType::Fifo, 0o666.into(), 0).unwrap();
}

fn give_to_stranger(at: &Path) {
    lchown(at, Some(STRANGER), Some(STRANGER)).unwrap();
}

/// Calls `check` with each line and a number of its own, in a few threads. Returns what it has found wrong.
fn each(lines: &[&'static str], check: impl Fn(&'static str, usize) -> Option<String> + Sync) -> Vec<String> {
    const THREADS: usize = 4;
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(number) else { return };
                    let found = check(line, number);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

#[test]
fn the_tables_have_every_verb() {
    let listed: BTreeSet<String> = super::output::help::verbs().into_iter().collect();
    let words = |line: &str| if line.starts_with("exec ") { 2 } else { 1 };
    let verb = |line: &&str| line.split(' ').take(words(line)).collect::<Vec<_>>().join(" ");
    let lines = READERS.iter().chain(&WRITERS).map(verb);
    let known: BTreeSet<String> = lines.chain(WITHOUT_FILES.map(ToOwned::to_owned)).collect();
    assert_eq!(known, listed);
}

#[test]
fn no_verb_waits_for_a_pipe_or_reads_a_device() {
    let scene = Scene::new();
    let mut kinds = vec!["pipe", "link to a pipe", "device", "directory", "directory of pipes"];
    if users::can_be_played() {
        kinds.push("pipe of a stranger");
    }
    for kind in kinds {
        let special = place(&scene.directory, &kind.replace(' ', "-"));
        match kind {
            "device" => symlink("/dev/zero", &special).unwrap(),
            "directory" => fs::create_dir(&special).unwrap(),
            "directory of pipes" => {
                fs::create_dir_all(special.join("0")).unwrap();
                ["0/7.bcap", "a.evc", "ring", "index.html"].iter().for_each(|name| make_pipe(&special.join(name)));
            }
            "link to a pipe" => {
                make_pipe(&special.with_extension("end"));
                symlink(special.with_extension("end"), &special).unwrap();
            }
            _ => make_pipe(&special),
        }
        if kind == "pipe of a stranger" {
            give_to_stranger(&special);
        }
        let wrong = each(&READERS, |line, number| {
            // It serves, whatever is in the archive.
            if kind.starts_with("directory") && line.starts_with("exec gateway @ring") {
                return None;
            }
            // A directory is where many things are, and these verbs look after all of them.
            let may_succeed = kind.starts_with("directory") || ["list {}", "clean {}"].contains(&line);
            match scene.run(line, &special, number) {
                None => Some(format!("{line}: hangs")),
                Some(Ended { code: Some(0), .. }) if may_succeed => None,
                Some(Ended { code: Some(1..), said }) if !said.contains("panicked") => None,
                ended => Some(format!("{line}: {ended:?}")),
            }
        });
        assert!(wrong.is_empty(), "{kind}: {wrong:#?}");
    }
}

#[test]
fn no_verb_writes_into_what_another_user_has_put_there_or_waits_for_its_reader() {
    let scene = Scene::new();
    let mut kinds = vec!["pipe without a reader", "link to a pipe without a reader", "directory", "device"];
    if users::can_be_played() {
        kinds.extend(["pipe of a stranger", "link of a stranger to a pipe", "link of a stranger to a device"]);
    }
    for kind in kinds {
        let wrong = each(&WRITERS, |line, number| {
            let special = place(&scene.directory, &format!("{}-{number}", kind.replace(' ', "-")));
            let pipe = special.with_extension("end");
            let mut reader = None;
            match kind {
                "directory" => fs::create_dir(&special).unwrap(),
                // Bytes fit into it, and nobody would miss them.
                "device" => symlink("/dev/full", &special).unwrap(),
                "link of a stranger to a device" => symlink("/dev/null", &special).unwrap(),
                "pipe without a reader" | "pipe of a stranger" => make_pipe(&special),
                _ => {
                    make_pipe(&pipe);
                    symlink(&pipe, &special).unwrap();
                }
            }
            if kind.contains("of a stranger") {
                give_to_stranger(&special);
            }
            if kind.contains("of a stranger") && !kind.ends_with("device") {
                // Open for both, so that nobody waits, and what was written stays in the pipe.
                let both = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(&special);
                reader = Some(both.unwrap());
            }
            let ended = scene.run(line, &special, number);
            let written = reader.map_or(0, |mut reader| reader.read(&mut [0; 4096]).unwrap_or(0));
            // These make a directory, write files into one, or beside it.
            let makes_directory =
                ["archive", "parquet", "ctf", "--rotate", "--resume"].iter().any(|word| line.contains(word));
            let is_still = kind == "directory" || {
                let kind = fs::metadata(&special).unwrap().file_type();
                kind.is_fifo() || kind.is_char_device()
            };
            match ended {
                None => Some(format!("{line}: hangs")),
                Some(Ended { code: Some(0), .. }) if kind == "directory" && makes_directory => None,
                Some(Ended { code: Some(1..), said }) if written == 0 && is_still && !said.contains("panicked") => None,
                ended => Some(format!("{line}: {written} bytes written, {is_still}, {ended:?}")),
            }
        });
        assert!(wrong.is_empty(), "{kind}: {wrong:#?}");
    }
}
