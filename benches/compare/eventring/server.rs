//! The server of docs/COMPARE.md with eventring. Each line that only the recording needs ends with the mark //T.

use std::time::{Duration, Instant};
use tracing::info_span; //T

const PER_SECOND: u32 = 10_000;
const STUCK: u32 = 20_000;
const SLOW: u32 = 40_000;

fn work(id: u32) {
    match id {
        SLOW => std::thread::sleep(Duration::from_millis(300)),
        STUCK => loop {
            std::thread::park();
        },
        _ => {}
    }
}

fn handle(id: u32) {
    let _request = info_span!("request", id).entered(); //T
    let _step = info_span!("step", id).entered(); //T
    work(id);
}

fn main() {
    eventring::tracing::try_init_from_env().expect("rings"); //T
    let start = Instant::now();
    for id in 0.. {
        while start.elapsed() < Duration::from_secs(1) / PER_SECOND * id {
            std::thread::sleep(Duration::from_millis(1));
        }
        if id == STUCK || id == SLOW {
            println!("request {id} {}", if id == SLOW { "is slow" } else { "never ends" });
            std::thread::spawn(move || handle(id));
        } else {
            handle(id);
        }
    }
}
