//! A recorder with many threads crashes and leaves its shards. The next recorder of that name has fewer threads. The
//! tests check what happens to the shards that are left over.

use crate::fixtures::*;
use std::sync::Barrier;

/// The number of shards that a recorder may have. The tests record on as many threads at the same time.
const MANY: usize = 4;

/// Plays a program that records on `threads` threads at the same time. Then it waits for its parent. When it ends,
/// its rings stay if `keep` is true.
fn record(threads: usize, keep: bool) {
    let recorder = spans_in(child::place()).shifts(15, 21).shards(MANY).keep(keep).build().unwrap();
    let (recorded, reported) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // At first, several threads may share a shard. So each thread records until the recorder has as
                // many shards as threads.
                in_recorder(recorder.clone(), || {
                    while recorder.shard_count() < threads {
                        info_span!("work").in_scope(|| ());
                    }
                });
                recorded.wait();
                reported.wait();
            });
        }
        recorded.wait();
        say(recorder.shard_count());
        reported.wait();
    });
    wait_for_parent();
}

/// Starts a child process that plays `part` of `test`. Waits until the child's recorder has `shards` shards.
fn recording(test: &str, part: &str, ring: &Path, shards: usize) -> Talk {
    Talk::told(test, part, ring, shards.to_string())
}

/// Plays the child's part, whose name tells how many threads record, and whether the rings are kept.
fn plays(part: &str) {
    match part {
        "many" => record(MANY, false),
        "many that are kept" => record(MANY, true),
        "few" => record(1, false),
        _ => {}
    }
}

/// Starts a process that makes a recorder with many shards at `ring`. Kills the process, so that the files stay.
fn crash(test: &str, ring: &Path) {
    let mut many = recording(test, "many", ring, MANY);
    many.kill();
}

/// Makes a ring that this process owns and that is no shard.
fn plain(path: &Path) -> Recorder {
    let description = ContentDescription::new(300, "OTHER");
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).prefault(false).build().unwrap()
}

fn shard(ring: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", ring.display()))
}

#[test]
fn the_next_recorder_of_the_name_removes_the_shards_of_a_dead_one_and_nothing_else() {
    let test = plays!(|part| plays(&part));
    let (directory, [ring]) = places(["shop"]);
    crash(test, &ring);
    assert_eq!(names_in(directory.path()), ["shop", "shop.1", "shop.2", "shop.3", "shop.now"]);
    // None of these files is a left-over shard, so all of them must stay:
    // - `.2`: a dead ring of another kind;
    // - `.7` and `.03`: copies of shards under names that are not theirs;
    // - `.8`: a file that is no ring;
    // - `2.1`: a shard of a recorder of another name;
    // - `.3`: a shard with a held lock.
    fs::remove_file(shard(&ring, ".2")).unwrap();
    let other = plain(&shard(&ring, ".2"));
    other.keep(true);
    drop(other);
    fs::copy(shard(&ring, ".1"), shard(&ring, ".7")).unwrap();
    fs::copy(shard(&ring, ".3"), shard(&ring, ".03")).unwrap();
    fs::write(shard(&ring, ".8"), "no ring").unwrap();
    fs::copy(shard(&ring, ".1"), shard(&ring, "2.1")).unwrap();
    // This lock is held as another implementation would hold it: with `flock` alone.
    let locked = File::options().read(true).write(true).open(shard(&ring, ".3")).unwrap();
    locked.write_all_at(&[0; 8], eventring::internal::shm::WRITE_LOCK_OFFSET).unwrap();
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // A process died while it was making this shard, so the next recorder removes the file. (No process can have the
    // process id in its name.)
    let unfinished = shard(&ring, ".5.~4194305");
    fs::write(&unfinished, "").unwrap();
    let left = ["shop.03", "shop.2", "shop.3", "shop.7", "shop.8", "shop2.1"];

    let mut few = recording(test, "few", &ring, 1);
    let of_both = ["shop", "shop.03", "shop.2", "shop.3", "shop.7", "shop.8", "shop.now", "shop2.1"];
    assert_eq!(names_in(directory.path()), of_both);
    assert!(few.end().success());
    assert_eq!(names_in(directory.path()), left);
    // This is the control: when nobody holds the lock of shard `.3` any more, the next recorder removes the shard.
    // (A child that another test starts has the file open for a moment, too, so closing it is not enough.)
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::Unlock).unwrap();
    drop(locked);
    drop(plain(&ring));
    assert_eq!(names_in(directory.path()), ["shop.03", "shop.2", "shop.7", "shop.8", "shop2.1"]);
}

#[test]
fn shards_of_a_recorder_that_lives_stay_also_when_its_first_ring_was_removed_by_hand() {
    let test = plays!(|part| plays(&part));
    let (directory, [ring]) = places(["shop"]);
    let mut many = recording(test, "many", &ring, MANY);
    fs::remove_file(&ring).unwrap();
    let next = plain(&ring);
    assert_eq!(names_in(directory.path()), ["shop", "shop.1", "shop.2", "shop.3", "shop.now"]);
    let cleaned = run!("clean", "--json", directory.path()).json();
    assert_eq!((paths(&cleaned["removed"]), paths(&cleaned["left"]).len()), (vec![], MANY + 1));
    assert!(many.end().success());
    drop(next);
    assert!(names_in(directory.path()).is_empty());
}

fn paths(files: &Value) -> Vec<String> {
    let name = |file: &Value| Path::new(file["file"].text()).file_name().unwrap().to_str().unwrap().to_owned();
    files.list().iter().map(name).collect()
}

fn whys(files: &Value) -> Vec<(String, String)> {
    let whys = files.list().iter().map(|file| file["why"].text().to_owned());
    paths(files).into_iter().zip(whys).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(file, why)| ((*file).to_owned(), (*why).to_owned())).collect()
}

#[test]
fn shards_without_their_recorder_are_listed_as_such_and_those_of_a_recorder_count_to_it() {
    let test = plays!(|part| plays(&part));
    let (directory, [ring]) = places(["shop"]);
    crash(test, &ring);
    // This is the control: while shard 0 exists, the other shards are not listed as orphans.
    let listed = run!("list", "--json", directory.path()).json();
    assert_eq!(listed["rings"].list().len(), 1, "{listed:#}");
    assert_eq!((&listed["rings"][0]["shards"], &listed["rings"][0]["orphaned"]), (&MANY.into(), &false.into()));
    // The next recorder of the name would remove these shards. The test hides them until it has started, as if the
    // recorder were not allowed to remove them.
    let crashed = place(&directory, "crashed");
    fs::rename(&ring, &crashed).unwrap();
    for index in 1..MANY {
        fs::rename(shard(&ring, &format!(".{index}")), shard(&crashed, &format!(".{index}"))).unwrap();
    }
    let mut few = recording(test, "few", &ring, 1);
    fs::rename(shard(&crashed, ".1"), shard(&ring, ".1")).unwrap();
    fs::rename(shard(&crashed, ".2"), shard(&ring, ".2")).unwrap();
    let listed = run!("list", "--json", directory.path()).json();
    let reported: Vec<_> =
        listed["rings"].list().iter().map(|ring| (&ring["name"], &ring["state"], &ring["orphaned"])).collect();
    let expected = [
        ("crashed", "writer_died", false),
        ("shop", "live", false),
        ("shop.1", "writer_died", true),
        ("shop.2", "writer_died", true),
    ];
    let expected =
        expected.map(|(name, state, orphaned)| (Value::from(name), Value::from(state), Value::from(orphaned)));
    assert_eq!(reported, expected.each_ref().map(|(name, state, orphaned)| (name, state, orphaned)));
    let shown = run!("list", directory.path()).out;
    assert_eq!(shown.matches("(orphaned shard)").count(), 2, "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("shop.1 (orphaned shard)") && line.contains("died")), "{shown}");
    assert!(few.end().success());
}

#[test]
fn clean_removes_what_dead_programs_left_and_says_why_the_rest_stays() {
    let test = plays!(|part| plays(&part));
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    crash(test, &at("dead"));
    crash(test, &at("gone"));
    fs::remove_file(at("gone")).unwrap();
    let mut kept = recording(test, "many that are kept", &at("kept"), MANY);
    assert!(kept.end().success());
    let mut live = recording(test, "many", &at("live"), MANY);
    fs::write(at("letter"), "no ring").unwrap();
    fs::write(at("empty.~4194305"), "").unwrap();
    fs::copy(program::KEPT, at("saved.zst")).unwrap();
    let before = names_in(directory.path());

    // If shard 0 is missing, each verb that reads a ring fails. The error names the first shard that is left.
    for verb in ["info", "watch", "summary"] {
        let missing = run!(verb, &at("gone")).ends(3);
        let shard = at("gone.1").display().to_string();
        assert!(
            missing.err.contains(&format!("are left: {shard} and 2 more; `eventring info {shard}`")),
            "{missing:?}"
        );
    }

    let removed = pairs(&[
        ("dead", "writer_died"),
        ("dead.1", "writer_died"),
        ("dead.2", "writer_died"),
        ("dead.3", "writer_died"),
        ("dead.now", "writer_died"),
        ("empty.~4194305", "unfinished"),
        ("gone.1", "orphaned_shard"),
        ("gone.2", "orphaned_shard"),
        ("gone.3", "orphaned_shard"),
        ("gone.now", "orphaned_tables"),
    ]);
    let left = pairs(&[("kept", "ended"), ("live", "live"), ("saved.zst", "snapshot")]);
    let dry = run!("clean", "--dry-run", "--json", directory.path()).json();
    assert_eq!((whys(&dry["removed"]), whys(&dry["left"])), (removed.clone(), left.clone()));
    assert_eq!((&dry["dry_run"], names_in(directory.path())), (&true.into(), before));

    // `clean` removes only the files of the ring that is named: by a path, or by a name in the ring directory.
    let gone = run!("clean", "--json", &at("gone")).json();
    assert_eq!(whys(&gone["removed"]), removed[6..]);
    let mut by_name = program!("clean", "dead");
    by_name.env("EVENTRING_DIR", directory.path());
    let by_name = program::finish(by_name);
    assert_eq!((by_name.code, by_name.out.lines().count()), (Some(0), MANY + 1), "{by_name:?}");
    assert!(by_name.out.lines().all(|line| line.starts_with("removed ") && line.ends_with("its writer died")));
    assert!(by_name.err.starts_with("5 files removed, "), "{by_name:?}");

    let rest = run!("clean", "--json", directory.path()).json();
    assert_eq!((whys(&rest["removed"]), whys(&rest["left"])), (removed[5..6].to_vec(), left));
    let kept = ["kept", "kept.1", "kept.2", "kept.3", "kept.now"];
    let others = ["letter", "live", "live.1", "live.2", "live.3", "live.now", "saved.zst"];
    let stay = [kept.as_slice(), &others].concat();
    assert_eq!(names_in(directory.path()), stay);
    let ended = run!("clean", "--ended", directory.path());
    let message = format!("process {} writes it", live.child.id());
    assert!(ended.out.lines().any(|line| line.starts_with("left ") && line.ends_with(&message)), "{ended:?}");
    assert_eq!(names_in(directory.path()), others);
    assert!(live.end().success());
    assert_eq!(names_in(directory.path()), ["letter", "saved.zst"]);
    run!("clean", &at("nothing")).ends(3);
}

#[test]
fn clean_leaves_the_rings_of_other_users() {
    let test = plays!(|part| plays(&part));
    let (directory, [ring]) = places(["shop"]);
    crash(test, &ring);
    if let Err(error) = std::os::unix::fs::chown(shard(&ring, ".1"), Some(4711), None) {
        return eventring_stress::missing(format_args!("only root can give files away: {error}"));
    }
    fs::remove_file(&ring).unwrap();
    let cleaned = run!("clean", "--json", directory.path()).json();
    assert_eq!(paths(&cleaned["removed"]), ["shop.2", "shop.3", "shop.now"]);
    assert!(cleaned["left"][0]["message"].text().contains("it belongs to user 4711"), "{cleaned:#}");
    assert_eq!(names_in(directory.path()), ["shop.1"]);
    // A new recorder does not remove the file either.
    drop(plain(&ring));
    assert_eq!(names_in(directory.path()), ["shop.1"]);
}
