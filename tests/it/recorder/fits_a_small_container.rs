//! With the default sizes, a program with a recorder of spans and a ring of typed events fits a container of 512 MiB.
//! The tests limit the address space of a child process to this size, and count the memory that it really takes.

use crate::fixtures::*;
use eventring::EventType;
use eventring::global::GlobalRecorder;
use eventring_stress::mounted;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::DirEntry;

/// The memory of the container.
const LIMIT_BYTES: u64 = 512 << 20;
const THREADS: usize = 40;
/// Environment variable by which a child learns which control group it belongs to.
const GROUP: &str = "EVENTRING_TEST_GROUP";

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum Shop {
    DayEnded = 2,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

/// Records with the sizes that follow the names, from more threads than there are shards. Says the outcome, and the
/// number of bytes that the process has in memory besides the rings.
fn record_with(spans: &str, events: &str) -> Result<(), Box<dyn std::error::Error>> {
    let limit = Some(LIMIT_BYTES);
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit })?;
    let config = |name: &str| place().join(name).into_os_string();
    let recorder = eventring::tracing::PerfRecorder::builder().config(config(&format!("spans{spans}")));
    let recording = eventring::tracing::try_init_with(recorder, TargetFilter::all())?;
    recording.keep(true);
    SHOP.try_init::<Shop>(&config(&format!("events{events}")).into_string().unwrap_or_default())?.keep(true);
    let (all_record, one_records) = (Barrier::new(THREADS), Barrier::new(2));
    std::thread::scope(|scope| {
        for n in 0..THREADS {
            let (all_record, one_records) = (&all_record, &one_records);
            let work = move || {
                tracing::info!(n, "every thread has a shard while it waits for the others");
                one_records.wait();
                all_record.wait();
                for turn in 0..2_000 {
                    tracing::info_span!("work", turn).in_scope(|| record!(Shop::DayEnded));
                }
            };
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work).unwrap();
            // Threads that begin while another makes its shard would share one, if that takes long.
            one_records.wait();
        }
    });
    assert_eq!(SHOP.installed().map(|recorder| recorder.stats().last_seqno), Some(THREADS as u64 * 2_000));
    // In a control group the program's own memory may leave none for the last shards. Then threads share.
    assert!(
        recording.recorder().is_some_and(|recorder| recorder.stats().shard_failures == 0)
            || std::env::var_os(GROUP).is_some()
    );
    Ok(())
}

/// Returns the largest number of bytes of memory that the process had without files and shared memory.
fn private_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Plays a program with these sizes. Returns its error message, or the bytes of the rings of spans, of the ring of
/// typed events, and of its own memory.
fn bytes_with(test: &str, sizes: &str) -> Result<[u64; 3], String> {
    let directory = directory();
    bytes_in(directory.path(), test, sizes)
}

/// Plays the program with its rings in this directory.
fn bytes_in(directory: &Path, test: &str, sizes: &str) -> Result<[u64; 3], String> {
    let mut command = play(test, sizes, directory);
    // Each arena of the allocator reserves 64 MiB of addresses, which are no memory.
    command.env("MALLOC_ARENA_MAX", "1");
    let mut program = Talk::with(command);
    let said = program.hear();
    program.end();
    let private: u64 = said.parse().map_err(|_| said)?;
    let blocks_of = |name: &str| {
        let files = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        let files = files.filter(|file| file.file_name().to_string_lossy().starts_with(name));
        let bytes = |file: &DirEntry| std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap()) * 512;
        // The tables of the present are no rings. The memory in words is without them.
        let (now, rings): (Vec<_>, Vec<_>) =
            files.partition(|file| file.path().extension().is_some_and(|end| end == "now"));
        assert!(now.iter().map(bytes).sum::<u64>() <= 1 << 20);
        rings.iter().map(bytes).sum()
    };
    Ok([blocks_of("spans"), blocks_of("events"), private])
}

fn as_child() -> bool {
    let Some(part) = part() else { return false };
    let (spans, events) = part.split_once(' ').unwrap();
    match record_with(spans, events) {
        Ok(()) => say(private_bytes()),
        Err(error) => say(format!("{error}")),
    }
    true
}

#[test]
fn the_default_rings_leave_more_than_half_of_a_small_container_to_the_program() {
    if as_child() {
        return;
    }
    let test = test_name!();
    let [spans, events, private] = bytes_with(test, " ").unwrap();
    println!("spans {spans}, events {events}, private {private}");
    assert!(spans <= 64 << 20, "{spans}");
    assert_eq!(events, 98 << 20);
    assert!(spans + events + private < LIMIT_BYTES / 2);
    // The control: the sizes of the original C implementation are refused.
    let error = bytes_with(test, " :21:29").unwrap_err();
    assert!(error.contains("no space left") || error.contains("memory"), "{error}");
}

#[test]
fn all_shards_together_take_no_more_than_the_memory_in_words() {
    if as_child() {
        return;
    }
    let test = test_name!();
    for mebibytes in [10, 24, 48, 100, 200] {
        let [spans, events, _] = bytes_with(test, &format!(":{mebibytes}MiB :20MiB")).unwrap();
        let bound = mebibytes << 20;
        assert!(spans <= bound && spans > bound / 2, "{spans} of {bound}");
        assert_eq!(events, 18 << 20);
    }
}

#[test]
fn the_default_rings_leave_room_in_the_shared_memory_of_a_container() {
    if as_child() {
        return;
    }
    let test = test_name!();
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = mounted::mount_or_skip(directory.path(), "tmpfs", "size=64M") else { return };
    let [spans, events, _] = bytes_in(directory.path(), test, " ").unwrap();
    println!("spans {spans}, events {events}");
    // The ring of events was made when there was one ring of spans, and before the others.
    assert!(spans <= 32 << 20 && spans > 16 << 20, "{spans}");
    assert!(events <= 27 << 20 && events > 13 << 20, "{events}");
    // The next program replaces the rings of this one, so they do not make its own smaller.
    std::fs::remove_file(directory.path().join("events")).unwrap();
    assert_eq!(bytes_in(directory.path(), test, " ").unwrap()[0], spans);
    // The control: sizes that the program sets are as it says, or refused.
    let error = bytes_in(directory.path(), test, ":60MiB :100MiB").unwrap_err();
    assert!(error.contains("no space left on the file system: it needs 98 MiB"), "{error}");
}

/// A control group with a limit of memory. It is removed when the value is dropped.
struct Group(PathBuf);

impl Group {
    /// Makes a group, of control groups version 2 or 1.
    fn new(limit_bytes: u64) -> std::io::Result<Self> {
        let [two, one] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"].map(Path::new);
        let (root, limit) = match one.join("memory.limit_in_bytes").exists() {
            true => (one, "memory.limit_in_bytes"),
            false => (two, "memory.max"),
        };
        let group = Self(root.join(format!("eventring-test-{}", std::process::id())));
        std::fs::create_dir(&group.0)?;
        std::fs::write(group.0.join(limit), limit_bytes.to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may still be leaving the group.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn the_default_rings_fit_a_control_group_that_has_less_memory_than_the_machine() {
    if let Some(group) = std::env::var_os(GROUP) {
        std::fs::write(Path::new(&group).join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }
    if as_child() {
        return;
    }
    let test = test_name!();
    let group = match Group::new(128 << 20) {
        Ok(group) => group,
        Err(error) => {
            return eventring_stress::missing(format_args!(
                "cannot make a control group with a limit of memory: {error}"
            ));
        }
    };
    let directory = directory();
    let in_group = |sizes: &str| {
        let mut command = play(test, sizes, directory.path());
        command.env(GROUP, &group.0);
        // As above. Otherwise threads find no addresses for their stacks, and those before wait for them.
        command.env("MALLOC_ARENA_MAX", "1");
        command.output().unwrap()
    };
    let output = in_group(" ");
    // Nothing has killed the program, and it has not met an error.
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.lines().any(|line| line.strip_prefix("talk: ").is_some_and(|said| said.parse::<u64>().is_ok())),
        "{said}"
    );
    // The control: an explicit size is refused, not reduced.
    let output = in_group(":60MiB :160MiB");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("not enough memory: it needs 130 MiB"), "{said}");
}
