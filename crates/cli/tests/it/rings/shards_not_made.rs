//! A recorder that could not make a shard says so to whoever lists it or asks about it.

use crate::fixtures::*;

#[test]
fn list_and_info_say_how_many_shards_could_not_be_made() {
    let (directory, [ring]) = places(["spans"]);
    let recorder = spans_in(&ring).shifts(15, 21).shards(2).build().unwrap();
    let asked = || [run!("list", directory.path()).out, run!("info", &ring).out];
    assert!(asked().iter().all(|out| !out.contains("not made")));
    // Nothing can be made under the name of the second shard.
    fs::create_dir(place(&directory, "spans.1")).unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                in_recorder(recorder.clone(), || {
                    while recorder.stats().shard_failures == 0 {
                        info_span!("work").in_scope(|| ());
                    }
                });
            });
        }
    });
    let [listed, info] = asked();
    assert!(listed.contains("spans (1 shard not made)"), "{listed}");
    assert!(info.contains("1 shard could not be made: threads share the others"), "{info}");
    let listed = run!("list", directory.path(), "--json").json();
    assert_eq!(listed["rings"][0]["shards_not_made"], 1, "{listed}");
    let info = run!("info", &ring, "--json").json();
    assert_eq!(info["extension"]["shards"]["not_made"], 1, "{info}");
}
