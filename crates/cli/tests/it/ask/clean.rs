//! Recordings without faults have no flags.

use super::{Random, recorded, usual};
use crate::fixtures::*;
use eventring_tokio::spawn_named;

/// How often a recording is made again: a machine that stops the program for a while makes a span truly slow.
const TRIES: usize = 4;

fn flags_of_clean(seed: u64) -> Value {
    let dir = directory();
    let mut seeded = Random(seed);
    let (ring, _recorder) = recorded(&dir, "shop", || {
        usual(&mut seeded, 200);
        info!("ready");
        // Single errors, and a span that is open, are usual.
        info_span!("request").in_scope(|| error!("not found"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for _ in 0..20 {
                spawn_named("job", tokio::task::yield_now()).await.unwrap();
            }
        });
        std::mem::forget(info_span!("request"));
        usual(&mut seeded, 10);
    });
    run!("ask", &ring, "--json").json()["flags"].clone()
}

#[test]
fn a_task_that_lives_long_beside_short_ones_is_not_hung_and_tasks_of_other_places_are_not_compared() {
    let dir = directory();
    let (ring, _recorder) = recorded(&dir, "shop", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let waits = spawn_named("connection 1", tokio::time::sleep(Duration::from_secs(3600)));
            for number in 0..40 {
                spawn_named(&format!("job {number}"), tokio::task::yield_now()).await.unwrap();
            }
            let time = Duration::from_millis(700);
            spawn_named("cleaner", tokio::time::sleep(time)).await.unwrap();
            let asked = run!("ask", &place(&dir, "shop"), "--json").json();
            assert_eq!(asked["flags"], json!([]), "{asked:#}");
            let names: Vec<&str> = asked["names"].list().iter().map(|name| name["name"].text()).collect();
            let of_jobs = names.iter().filter(|name| name.starts_with("task job #, spawned at ")).count();
            assert!(of_jobs == 1 && names.len() == 3, "{names:?}");
            waits.abort();
        });
    });
    assert!(ring.exists());
}

#[test]
fn clean_recordings_have_no_flags() {
    for seed in 1..=20 {
        let tries: Vec<Value> =
            (0..TRIES).map(|_| flags_of_clean(seed * 31)).take_while(|flags| *flags != Value::Array(vec![])).collect();
        assert!(tries.len() < TRIES, "{tries:#?}");
    }
}
