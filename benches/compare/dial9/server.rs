//! The server of docs/COMPARE.md with dial9. Each line that only the recording needs ends with the mark //T.

use dial9::Dial9HandleTokioExt as _; //T
use dial9::RecorderPipelineExt as _; //T
use dial9_utils::tracing_layer::Dial9TracingLayer; //T
use std::error::Error;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tracing::{Instrument as _, info_span}; //T
use tracing_subscriber::layer::SubscriberExt as _; //T

const PER_SECOND: u32 = 10_000;
const STUCK: u32 = 20_000;
const SLOW: u32 = 40_000;

async fn work(id: u32) {
    match id {
        SLOW => sleep(Duration::from_millis(300)).await,
        STUCK => std::future::pending().await,
        _ => {}
    }
}

#[rustfmt::skip]
async fn handle(id: u32) {
    let step = async {
        let started = Instant::now(); //T
        work(id).instrument(info_span!("step", id)).await; //T
        let took = started.elapsed(); //T
        if took > Duration::from_millis(200) { //T
            tokio::spawn(dump(id, took)); //T
        } //T
    };
    step.instrument(info_span!("request", id)).await; //T
}

#[rustfmt::skip]
async fn dump(id: u32, took: Duration) { //T
    let Some(trigger) = dial9::Dial9Handle::current().dump_trigger() else { return }; //T
    let window = trigger.dump_time_range(Duration::from_secs(10), Duration::from_secs(2)); //T
    println!("step of request {id} took {took:?}");
    match window.with_metadata("request", id.to_string()).await { //T
        Ok(receipt) => println!("{receipt:#?}"), //T
        Err(error) => println!("{error}"), //T
    } //T
} //T

async fn serve() {
    let start = Instant::now();
    for id in 0.. {
        while start.elapsed() < Duration::from_secs(1) / PER_SECOND * id {
            sleep(Duration::from_millis(1)).await;
        }
        if id == STUCK || id == SLOW {
            println!("request {id} {}", if id == SLOW { "is slow" } else { "never ends" });
            dial9::spawn(handle(id));
        } else {
            handle(id).await;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("the directory for segments is missing")?;
    let buffer = dial9::DiskBuffer::builder() //T
        .base_path(directory) //T
        .max_total_size(256 << 20) //T
        .rotation_period(Duration::from_secs(1)) //T
        .build()?; //T
    let recorder = dial9::recorder(buffer) //T
        .with_custom_pipeline(|pipeline| pipeline.gzip().write_back()) //T
        .with_dump_trigger(|trigger| trigger.debounce(Duration::from_secs(5))) //T
        .build(); //T
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().worker_threads(2);
    let options = dial9::TokioAttachOptions::default(); //T
    let runtime = recorder.handle().attach_tokio_runtime(builder, options)?; //T
    let subscriber = tracing_subscriber::registry().with(Dial9TracingLayer::new()); //T
    tracing::subscriber::set_global_default(subscriber)?; //T
    dial9::block_on(&runtime, serve());
    Ok(())
}
