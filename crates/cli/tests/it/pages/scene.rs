//! What the commands of a page find: files, rings, a service that runs.

use crate::fixtures::*;
use crate::program::let_interrupts_reach_programs;
use rustix::process::kill_process_group;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;

/// How long a command runs that goes on until Ctrl-C, and the time after which any other one hangs.
const LOOK: Duration = Duration::from_millis(1500);
const HANGS_AFTER: Duration = Duration::from_secs(120);
/// What stands for something else in the pages, and what stands for it here.
const STANDS_FOR: [(&str, &str); 3] = [
    ("/data/blocks", "data/blocks"),
    ("/var/events", "var/events"),
    ("ADDRESS", "0x1111111111111111111111111111111111111111"),
];

/// A directory with all that the commands name. What they start ends with it.
pub struct Scene {
    directory: TempDir,
    rings: TempDir,
    /// The groups of processes that go on in the background.
    groups: Vec<Pid>,
}

impl Scene {
    pub fn new(page: &str) -> Self {
        let_interrupts_reach_programs();
        let (directory, rings) = (tempfile::tempdir().unwrap(), crate::program::directory());
        let mut scene = Self { directory, rings, groups: Vec::new() };
        let (at, rings_of) = (scene.directory.path().to_owned(), scene.rings.path().to_owned());
        let service = Path::new(PROGRAM).with_file_name("examples/http_service");
        for folder in ["bin", "target/release/examples", "DIR", "var/events"] {
            fs::create_dir_all(at.join(folder)).unwrap();
        }
        symlink(PROGRAM, at.join("bin/eventring")).unwrap();
        for name in ["bin/my-app", "bin/http_service", "target/release/examples/http_service"] {
            symlink(&service, at.join(name)).unwrap();
        }
        fs::write(at.join("shop"), "#!/bin/sh\nexec http_service --requests 200 --ring shop\n").unwrap();
        fs::set_permissions(at.join("shop"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(KEPT, at.join("saved.snapshot")).unwrap();
        fs::write(at.join("tomorrow.txt"), ExecEvent::schema().text()).unwrap();
        let mut make = |command: &str| {
            scene.run(command, false).ends(0);
        };
        make("eventring capture made -o shop.evc -- http_service --requests 200 --ring made");
        for name in ["base", "head", "crash", "all"] {
            fs::copy(at.join("shop.evc"), at.join(format!("{name}.evc"))).unwrap();
        }
        for ring in ["node", "monad-exec-events", "demo", "readme-shop"] {
            make(&format!("eventring exec replay saved.snapshot --ring {ring}"));
        }
        make("eventring capture node --now -o before.evc");
        make("eventring capture monad-exec-events --now -o after.evc");
        for name in ["a", "b", "front", "back"] {
            record(&rings_of.join(name));
            make(&format!("eventring capture {name} --now -o {name}.evc"));
        }
        for folder in ["DIR", "var/events"] {
            fs::copy(at.join("a.evc"), at.join(folder).join("a.evc")).unwrap();
        }
        // README starts its own.
        for (program, ring) in [("http_service", "shop"), ("my-app", "my-app")] {
            if page != "README.md" {
                let pace = "--slow-every 1 --slow-ms 2";
                make(&format!("{program} --requests 10000000 --ring {ring} --server {pace} >/dev/null 2>&1 &"));
            }
        }
        scene
    }

    /// Runs a command in a shell. One that goes on gets Ctrl-C after a while.
    pub fn run(&mut self, text: &str, goes_on: bool) -> Run {
        let mut text = text.to_owned();
        for (from, to) in STANDS_FOR {
            text = text.replace(from, to);
        }
        // A page begins without the files that it makes.
        if let Some((_, output)) = text.split_once(" -o ") {
            let _ = fs::remove_file(self.directory.path().join(output.split(' ').next().unwrap()));
        }
        // The shell waits for what it runs, and passes on its code.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("trap : INT; {text}")]).current_dir(&self.directory).process_group(0);
        let path = format!("{}/bin:{}", self.directory.path().display(), std::env::var("PATH").unwrap());
        shell.env("PATH", path).env("EVENTRING_DIR", self.rings.path()).env("NO_COLOR", "1").env("TZ", "UTC");
        shell.stdin(Stdio::null());
        let [out, err] = [".out", ".err"].map(|name| self.directory.path().join(name));
        shell.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let mut child = shell.spawn().unwrap();
        let group = Pid::from_child(&child);
        if text.ends_with('&') {
            self.groups.push(group);
        }
        let begin = Instant::now();
        let mut is_interrupted = false;
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if goes_on && !is_interrupted && begin.elapsed() > LOOK {
                kill_process_group(group, Signal::INT).unwrap();
                is_interrupted = true;
            }
            if begin.elapsed() > HANGS_AFTER {
                let _ = kill_process_group(group, Signal::KILL);
                child.wait().unwrap();
                break None;
            }
            thread::sleep(Duration::from_millis(10));
        };
        let [out, err] = [out, err].map(|file| fs::read_to_string(file).unwrap());
        // Who starts a service looks when it records.
        if let Some((_, ring)) = text.split_once(" --ring ").filter(|_| text.ends_with('&')) {
            let ring = self.rings.path().join(ring.split(' ').next().unwrap());
            while eventring::reader::Reader::open(&ring).is_err() && begin.elapsed() < HANGS_AFTER {
                thread::sleep(Duration::from_millis(10));
            }
        }
        Run { command: text.to_owned(), code, out, err }
    }
}

/// Records some spans and an error.
fn record(ring: &Path) {
    let recorder = spans_in(ring).keep(true).build().unwrap();
    in_recorder(recorder, || {
        for _ in 0..100 {
            info_span!("db.query", request_id = "abc").in_scope(|| ());
        }
        error!("the database is gone");
    });
}

impl Drop for Scene {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
}
