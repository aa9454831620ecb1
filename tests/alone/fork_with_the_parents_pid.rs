//! A forked child has the same process id as its parent if each of them is the first process of a pid namespace. The
//! child still owns none of its parent's rings.

use crate::fixtures::*;

/// A ring that is never dropped.
static RING: OnceLock<Recorder> = OnceLock::new();

fn recorder(path: &Path) -> Recorder {
    let description = ContentDescription::new(300, "FORKED");
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).prefault(false).build().unwrap()
}

/// Forks, runs `child` in the forked child, and waits until it ends. The child exits through the exit handlers, which
/// must not remove the parent's rings.
fn fork(child: impl FnOnce()) {
    let code = forked::in_child(|| {
        child();
        // SAFETY: this is the call that `std::process::exit` makes, and this process has no other thread.
        unsafe { libc::exit(0) }
    });
    assert_eq!(code, 0);
}

/// Arranges that the next child process is process 1 of a new pid namespace. Returns false if that is not permitted.
fn begin_namespace() -> bool {
    // SAFETY: the call only changes the namespace of the next child.
    unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 }
}

fn parent() {
    assert_eq!(std::process::id(), 1);
    let dropped = recorder(&place().with_extension("dropped"));
    let ring = RING.get_or_init(|| recorder(&place()));
    assert_eq!(ring.record(2, [0; 4], b"of the parent"), 1);
    assert!(begin_namespace());
    let mut dropped = Some(dropped);
    fork(|| {
        assert_eq!(std::process::id(), 1);
        let is_quiet = !ring.belongs_to_this_process() && ring.record(2, [0; 4], b"of the child") == 0;
        drop(dropped.take());
        say(if is_quiet { "it records nothing" } else { "it records" });
    });
    let stay = [place(), place().with_extension("dropped")].map(|path| {
        let has_writer = path.exists() && Reader::open(&path).unwrap().state() == RingState::Live;
        (path.exists(), has_writer)
    });
    say(format!("{stay:?} {}", ring.record(2, [0; 4], b"of the parent")));
    drop(dropped);
    // This is the control: if the process that made the ring drops the recorder, the file is removed.
    say(format!("{:?}", place().with_extension("dropped").exists()));
}

#[test]
fn a_child_with_its_parents_pid_leaves_its_parents_rings_alone() {
    let test = plays!({
        if begin_namespace() {
            say("ready");
            fork(parent);
        } else {
            say("not permitted");
        }
    });
    let (_directory, [path]) = places(["ring"]);
    let mut talk = Talk::start(test, "grandparent", &path);
    if talk.hear() == "not permitted" {
        return eventring_stress::missing("a pid namespace may not be made here");
    }
    assert_eq!(talk.hear(), "it records nothing");
    assert_eq!(talk.hear(), "[(true, true), (true, true)] 2");
    assert_eq!(talk.hear(), "false");
    assert!(talk.end().success());
    assert!(!path.exists());
}
