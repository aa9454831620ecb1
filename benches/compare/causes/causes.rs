//! A server with one worker, in which requests are slow for six causes. It prints the time of each slow request.
//!
//!     causes none|eventring|DIRECTORY        with the feature `dial9`, a directory is for its segments

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tracing::{Instrument as _, info_span};

const LONG: Duration = Duration::from_millis(40);
const CAUSES: [&str; 6] = ["lock", "processor", "child", "executor", "pipe", "computing"];
/// One request in so many is slow.
const EVERY: u32 = 100;
const REQUESTS: u32 = 6 * 3 * EVERY;

#[inline(never)]
#[unsafe(no_mangle)]
fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        black_box((0..500_u64).fold(1, |word, n| black_box(word ^ n.wrapping_mul(31))));
    }
}

/// Lets this thread have the first processor only, before others if it is a hog.
fn pin(is_hog: bool) {
    // SAFETY: the values live as long as the calls, which only say where and when this thread runs.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut cpus);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &cpus);
        let parameters = libc::sched_param { sched_priority: if is_hog { 20 } else { 5 } };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters);
    }
}

fn happens(cause: &str, lock: &Arc<Mutex<()>>) {
    match cause {
        "lock" => {
            let (held, has_begun) = (lock.clone(), Arc::new(Barrier::new(2)));
            let told = has_begun.clone();
            named("holder", move || {
                let _guard = held.lock();
                told.wait();
                thread::sleep(LONG);
            });
            has_begun.wait();
            drop(lock.lock());
        }
        "processor" => {
            let has_begun = Arc::new(Barrier::new(2));
            let told = has_begun.clone();
            named("hog", move || {
                told.wait();
                pin(true);
                compute(LONG);
            });
            has_begun.wait();
            compute(Duration::from_millis(2));
        }
        "pipe" => {
            let (mut end, mut begin) = std::io::pipe().expect("there are files");
            named("writer", move || {
                thread::sleep(LONG);
                begin.write_all(&[7]).expect("the other end is open");
            });
            end.read_exact(&mut [0]).expect("the other end is open");
        }
        "computing" => compute(LONG),
        _ => {}
    }
}

fn named(name: &str, body: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.to_owned()).spawn(body).expect("there can be threads");
}

async fn request(number: u32, lock: Arc<Mutex<()>>) {
    let cause = (number % EVERY == EVERY / 2).then(|| CAUSES[(number / EVERY) as usize % CAUSES.len()]);
    compute(Duration::from_micros(50));
    let begin = Instant::now();
    if let Some("executor") = cause {
        tokio::spawn(async { compute(LONG) }.instrument(info_span!(parent: None, "housekeeping")));
        tokio::task::yield_now().await;
    }
    happens(cause.unwrap_or_default(), &lock);
    let query = async { sleep(if cause == Some("child") { LONG } else { Duration::from_micros(100) }).await };
    query.instrument(info_span!("query")).await;
    if let Some(cause) = cause {
        println!("request {number}: {cause}, {} us", begin.elapsed().as_micros());
    }
}

async fn serve() {
    let lock = Arc::new(Mutex::new(()));
    pin(false);
    for number in 0..REQUESTS {
        let span = info_span!("request", number);
        request(number, lock.clone()).instrument(span).await;
        sleep(Duration::from_millis(1)).await;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recorder = std::env::args().nth(1).unwrap_or("none".to_owned());
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().worker_threads(1).on_thread_start(|| pin(false));
    match recorder.as_str() {
        "none" => builder.build()?.block_on(async { tokio::spawn(serve()).await })?,
        "eventring" => {
            let _recording = eventring::tracing::try_init("causes")?;
            builder.build()?.block_on(async { tokio::spawn(serve()).await })?;
        }
        #[cfg(feature = "dial9")]
        directory => with_dial9(directory, builder)?,
        #[cfg(not(feature = "dial9"))]
        other => return Err(format!("{other}: build it with the feature dial9").into()),
    }
    Ok(())
}

#[cfg(feature = "dial9")]
fn with_dial9(directory: &str, builder: tokio::runtime::Builder) -> Result<(), Box<dyn std::error::Error>> {
    use dial9::cpu::{CpuProfilingConfig, SchedEventConfig};
    use dial9::{Dial9HandleTokioExt as _, RecorderPerfExt as _, RecorderPipelineExt as _};
    use tracing_subscriber::layer::SubscriberExt as _;
    let buffer = dial9::DiskBuffer::builder().base_path(directory).max_total_size(256 << 20).build()?;
    let recorder = dial9::recorder(buffer)
        .with_cpu_profiling(CpuProfilingConfig::default())
        .with_sched_events(SchedEventConfig::default().include_kernel(true))
        .with_custom_pipeline(|pipeline| pipeline.write_back())
        .build();
    let runtime = recorder.handle().attach_tokio_runtime(builder, dial9::TokioAttachOptions::default())?;
    let subscriber = tracing_subscriber::registry().with(dial9_utils::tracing_layer::Dial9TracingLayer::new());
    tracing::subscriber::set_global_default(subscriber)?;
    dial9::block_on(&runtime, async { dial9::spawn(serve()).await.map_err(|error| error.to_string()) })?;
    Ok(())
}
