//! Channels between tasks on several threads, with tasks that are aborted at any time: all others come to their end.

use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

const PAIRS: u64 = 50;
const ROUNDS: u64 = 2000;

#[test]
fn no_wake_is_lost_in_100_000_ping_pongs_with_random_aborts() {
    let recorder = PerfRecorder::builder().anonymous().shifts(16, 22).prefault(false).build().unwrap();
    // The workers of the runtime have it too.
    tracing::subscriber::set_global_default(RecorderSubscriber::new(recorder)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let all = async {
        let mut pairs = Vec::new();
        for pair in 0..PAIRS {
            let (ping, mut pings) = unbounded_channel();
            let (pong, mut pongs) = unbounded_channel();
            let answers = eventring_tokio::spawn_named("answers", async move {
                while let Some(number) = pings.recv().await {
                    if pong.send(number).is_err() {
                        break;
                    }
                }
            });
            let asks = eventring_tokio::spawn_named("asks", async move {
                for number in 0..ROUNDS {
                    if ping.send(number).is_err() || pongs.recv().await.is_none() {
                        return number;
                    }
                }
                ROUNDS
            });
            // Xorshift: the aborts of each run are the same, and their times are not.
            let mut random = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            random ^= random << 13;
            random ^= random >> 7;
            if pair % 5 == 4 {
                let aborted = if random % 2 == 0 { asks.abort_handle() } else { answers.abort_handle() };
                eventring_tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_micros(random % 20_000)).await;
                    aborted.abort();
                });
            }
            pairs.push((pair, asks, answers));
        }
        for (pair, asks, answers) in pairs {
            let (asked, answered) = (asks.await, answers.await);
            if pair % 5 != 4 {
                assert_eq!((asked.unwrap(), answered.is_ok()), (ROUNDS, true));
            }
        }
    };
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), all).await }).expect("a wake was lost");
}
