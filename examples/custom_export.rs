//! Writes the spans of a recording in a format that eventring does not have: comma-separated values.
//!
//! ```console
//! $ EVENTRING_KEEP=1 cargo run --example quickstart
//! $ cargo run --example custom_export -- quickstart > spans.csv
//! ```

use eventring::tracing::{PerfItem, PerfReader, PerfSource, Span, SpanReplay};
use std::error::Error;
use std::io::{self, BufWriter, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "quickstart".into());
    // A recorder of spans has several rings, so that its threads do not slow each other down. The reader merges the
    // rings by time.
    let mut reader = PerfReader::open(name)?;
    // Each event is one step of a span: the span begins, is entered, gets fields, or ends. The replay collects these
    // events and builds the spans from them.
    let mut replay = SpanReplay::new();
    let mut last_epoch_nanos = 0;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "span,id,parent,thread,created_epoch_nanos,wall_nanos,busy_nanos,end")?;
    while let Some(item) = reader.next() {
        match item {
            PerfItem::Record(record) => {
                last_epoch_nanos = record.epoch_nanos;
                replay.push(0, &record);
            }
            // Events of this shard were lost. The replay must know this, because the end of a span may be among them.
            PerfItem::Gap { source: PerfSource::Shard(shard), .. } => replay.gap(Some((0, shard))),
            PerfItem::Gap { source: PerfSource::TypedEvents, .. } => replay.gap(None),
            // Typed events come only if `with_typed_events` has given their ring to the reader. This reader has none.
            PerfItem::TypedEvent(_) => {}
        }
        // Each span is written soon after it has ended. So only the open spans, and those that were closed just now,
        // are kept in memory.
        while let Some(span) = replay.take_closed() {
            write_row(&mut out, &span)?;
        }
    }
    // These are the spans that were open when the recording ended, and the spans that were closed in its last
    // milliseconds. The replay keeps a closed span for a while, because later records may still name it.
    for span in replay.finish(last_epoch_nanos) {
        write_row(&mut out, &span)?;
    }
    out.flush()?;
    Ok(())
}

fn write_row(out: &mut impl Write, span: &Span) -> io::Result<()> {
    let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let parent = span.parent.map_or_else(String::new, |parent| parent.to_string());
    let thread = span.created.as_ref().and_then(|created| created.thread.name.as_deref()).unwrap_or_default();
    // Only a closed span has a known end. If events were lost, nobody knows whether the span was closed.
    let end = match span.closed {
        Some(_) => "closed",
        None if span.is_end_lost => "lost",
        None => "open",
    };
    writeln!(
        out,
        "{},{},{parent},{thread},{},{},{},{end}",
        span.name(),
        span.id,
        number(span.created.as_ref().map(|created| created.epoch_nanos)),
        number(span.wall_nanos()),
        span.busy_nanos()
    )
}
