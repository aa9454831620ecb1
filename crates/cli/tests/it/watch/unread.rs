//! Who follows notices that nobody reads any more, although nothing happens.

use crate::blocks::live::node;
use crate::fixtures::*;
use eventring_stress::chain::Made;

/// The longest wait for an end.
const LIMIT: Duration = Duration::from_secs(20);

/// Takes a line, calls `then`, closes stdout, and waits for the end. Returns the exit code.
fn end_after_one_line(mut live: Live, line: &str, then: impl FnOnce()) -> Option<i32> {
    assert!(live.line().contains(line));
    then();
    let Live { mut child, out, .. } = live;
    // The control: with a reader it goes on.
    thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None);
    drop(out);
    let until = Instant::now() + LIMIT;
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status.code(),
            None if Instant::now() > until => {
                child.kill().unwrap();
                panic!("it goes on although nobody reads");
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn verbs_that_follow_end_when_nobody_reads_them_any_more() {
    let (_dir, [ring, chain]) = places(["ring", "chain"]);
    let (recorder, node) = (exec_ring(&ring), node(&chain));
    recorder.record(ExecEvent::TxnEnd as u16, [0, 1, 0, 0], b"");
    let mut made = Made::default();
    made.block(1, 1, 1);
    made.record(0, &node);
    let watch = ["watch", argument(&ring), "--from", "oldest", "--json"];
    assert_eq!(end_after_one_line(Live::start(&watch), "TXN_END", || ()), Some(0));
    assert_eq!(
        end_after_one_line(live!("exec", "blocks", &chain, "--follow", "--json"), "\"number\":1", || ()),
        Some(0)
    );
    let reopen = live!(&watch, "--reopen");
    // The ring is gone, and the next one is awaited.
    assert_eq!(end_after_one_line(reopen, "TXN_END", || drop(recorder)), Some(0));
}

#[test]
fn a_watch_of_others_events_ends_when_nobody_reads_it_any_more() {
    let (_dir, [ring]) = places(["ring"]);
    let recorder = exec_ring(&ring);
    recorder.record(ExecEvent::TxnEnd as u16, [0, 1, 0, 0], b"");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                (0..100).for_each(|_| _ = recorder.record(ExecEvent::TxnLog as u16, [0, 2, 0, 0], b""));
                thread::sleep(Duration::from_millis(1));
            }
        });
        let watch = live!("watch", &ring, "--from", "1", "--type", "TXN_END", "--json");
        let code =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| end_after_one_line(watch, "TXN_END", || ())));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(code.unwrap(), Some(0));
    });
}
