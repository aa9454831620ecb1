//! Which process is looked at: the one that writes the ring, whatever number the ring names.

use super::roles::play;
use crate::fixtures::*;
use crate::program::program_in;
use eventring_stress::users::can_be_played;

/// The places in a ring's header of the number and the start of its writer (`docs/FORMAT.md`).
const WRITER_PID: u64 = 0x110;
const WRITER_START_TICKS: u64 = 0x118;

#[test]
fn a_program_in_another_pid_namespace_is_found_and_no_process_of_its_number_here() {
    let test = plays!(|part| play(&part));
    let namespace = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    match Command::new("unshare").args(namespace).arg("true").status() {
        Ok(status) if status.success() => {}
        failed => return eventring_stress::missing(format_args!("cannot make a pid namespace: {failed:?}")),
    }
    let (directory, [ring, file]) = places(["hung", "p.evc"]);
    let played = child::play(test, "hang", &ring);
    let mut command = Command::new("unshare");
    command.args(namespace).arg(played.get_program()).args(played.get_args());
    command.envs(played.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut talk = Talk::with(command);
    talk.hear();
    let outside = talk.child.id();
    let inside = fs::read_to_string(format!("/proc/{outside}/task/{outside}/children")).unwrap();
    let inside: u32 = inside.trim().parse().unwrap();
    run!("open", &ring, "--stacks").shows("at stuck_function");
    let listed = run!("info", &ring, "--json").json();
    assert_eq!(listed["writer"]["pid"], inside, "{listed:#}");
    let checked = run!("check", &ring, "--json").json();
    assert_eq!(checked["rings"][0]["pid"], inside, "{checked:#}");
    let profiled = run!("profile", &ring, "-o", &file, "--sched", "-d", "500ms", "--json").ends(0);
    let by_number = place(&directory, "n.evc");
    let process = format!("pid:{inside}");
    let words = ["profile", &process, "-o", argument(&by_number), "--sched", "-d", "100ms", "--json"];
    let by_number = finish(program_in(directory.path(), &words));
    for said in [&profiled, &by_number] {
        assert_eq!(said.err.matches("is in another pid namespace").count(), 1, "{said:?}");
    }
    if profiled.json()["missing"] == json!([]) {
        let events = run!("watch", &file, "--json").json_lines();
        let of = |name: &str| {
            events.iter().filter(|event| event["name"] == name).map(|event| &event["payload"]).collect::<Vec<_>>()
        };
        assert_eq!(of("SESSION")[0]["process_id"], inside);
        let seen = of("THREAD_SEEN");
        assert!(seen.iter().all(|seen| seen["process_id"] == inside), "{seen:?}");
        assert!(seen.iter().any(|seen| seen["name"] == "stuck"), "{seen:?}");
        assert!(!of("SWITCHED_OUT").is_empty());
    }
    assert!(talk.end().success());
}

/// A process that has nothing to do with any ring.
struct Stranger(Child);

impl Stranger {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    /// Writes into a ring, and its further shards, that this process is its writer; with `has_start`, since its own start.
    fn forge(&self, ring: &Path, has_start: bool) {
        (1..).map(|shard| ring.with_extension(shard.to_string())).take_while(|shard| shard.exists()).for_each(
            |shard| {
                self.forge_one(&shard, has_start);
            },
        );
        self.forge_one(ring, has_start);
    }

    fn forge_one(&self, ring: &Path, has_start: bool) {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let start: u64 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
        let file = File::options().write(true).open(ring).unwrap();
        file.write_all_at(&u64::from(self.0.id()).to_le_bytes(), WRITER_PID).unwrap();
        if has_start {
            file.write_all_at(&start.to_le_bytes(), WRITER_START_TICKS).unwrap();
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_a_ring_names_and_that_does_not_write_it_is_left_alone() {
    let test = plays!(|part| play(&part));
    if !can_be_played() {
        return;
    }
    let (_directory, [ring, file]) = places(["hung", "p.evc"]);
    let mut talk = Talk::start(test, "hang", &ring);
    talk.hear();
    let stranger = Stranger::start();
    stranger.forge(&ring, true);
    run!("profile", &ring, "-o", &file, "--sched", "-d", "300ms").fails(3, "it is not known which process");
    run!("open", &ring, "--stacks").ends(0).warns("no stacks: ");
    let checked = run!("check", &ring, "--json");
    assert!(!checked.out.contains(&format!("\"pid\":{}", stranger.0.id())), "{checked:?}");
    drop(stranger);
    assert!(talk.end().success());
}

#[test]
fn a_later_process_of_the_number_of_a_dead_writer_is_left_alone() {
    let test = plays!(|part| play(&part));
    let (_directory, [ring, file]) = places(["dead", "p.evc"]);
    let mut talk = Talk::start(test, "waits", &ring);
    talk.hear();
    talk.kill();
    let later = Stranger::start();
    later.forge(&ring, false);
    run!("profile", &ring, "-o", &file, "--sched", "-d", "300ms").fails(3, "no such program runs");
}
