//! Paths that the profiled program chooses lead nowhere else: what it has mapped is read, and nothing that it has put in
//! its place.

use super::roles::play;
use crate::fixtures::*;
use crate::program::program_in;

/// The longest time that a look at a program may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the program `eventring`, which must end by itself.
fn ends(rings: &Path, arguments: &[&str]) -> Run {
    let mut child = program_in(rings, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reads = thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        text
    });
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > TIMEOUT {
            kill(&mut child);
            panic!("{arguments:?} did not end");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    Run { command: String::new(), code: child.wait().unwrap().code(), out: reads.join().unwrap(), err: said }
}

/// Starts a copy of this executable, which plays a part of `test` and puts pipes where its own file was.
fn replaced(test: &str, part: &str, directory: &Path) -> Talk {
    let copy = directory.join("program");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let played = child::play(test, part, &directory.join("ring"));
    let mut command = Command::new(&copy);
    command.args(played.get_args()).envs(played.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "ready");
    talk
}

#[test]
fn a_program_whose_file_is_a_pipe_now_is_looked_at_and_its_functions_have_their_names() {
    let test = plays!(|part| play(&part));
    if !eventring_stress::users::can_be_played() {
        return;
    }
    let directory = directory();
    let mut talk = replaced(test, "replaced", directory.path());
    let (ring, file) = (place(&directory, "ring"), place(&directory, "p.evc"));
    let process = format!("pid:{}", talk.child.id());
    ends(directory.path(), &["check", &process]).shows("ring");
    ends(directory.path(), &["open", argument(&ring), "--stacks"]).ends(0).shows("at hot_function");
    let profiled =
        ends(directory.path(), &["profile", &process, "-o", argument(&file), "--stacks", "--resolve", "-d", "500ms"]);
    assert_eq!(profiled.code, Some(0), "{profiled:?}");
    assert!(talk.end().success());
    let events = run!("watch", &file, "--json").json_lines();
    let named = events.iter().filter(|event| event["payload"]["function"] == "hot_function").count();
    assert!(named > 0, "{profiled:?}");

    // Without names in it, a capture names files, which may be anything by now.
    let (bare, again) = (place(&directory, "bare.evc"), crate::program::directory());
    let mut talk = replaced(test, "replaced", again.path());
    let process = format!("pid:{}", talk.child.id());
    let profiled = ends(directory.path(), &["profile", &process, "-o", argument(&bare), "--stacks", "-d", "300ms"]);
    assert!(profiled.code == Some(0) && talk.end().success(), "{profiled:?}");
    let folded =
        ends(directory.path(), &["export", argument(&bare), "--format", "folded", "--weight", "cpu", "-o", "-"]);
    assert!(folded.code == Some(0) && folded.out.contains("program+0x"), "{folded:?}");
}
