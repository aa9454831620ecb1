//! Writes the spans of a recording in a format of one's own: comma-separated values.
//!
//! ```console
//! $ EVENTRING_KEEP=1 cargo run --example quickstart
//! $ cargo run --example custom_export -- quickstart > spans.csv
//! ```

use eventring::tracing::{PerfItem, PerfReader, Span, SpanRebuilder};
use std::error::Error;
use std::io::{self, BufWriter, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "quickstart".into());
    // A recorder of spans has several rings, so that threads do not disturb each other. The reader merges them by time.
    let mut reader = PerfReader::open(name)?;
    // Events say that a span begins, is entered, has fields, ends. The rebuilder puts spans together from them.
    let mut rebuilder = SpanRebuilder::new();
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "span,id,parent,thread,created_epoch_nanos,wall_nanos,busy_nanos")?;
    while let Some(item) = reader.next() {
        match item {
            PerfItem::Record(record) => rebuilder.push(&record),
            PerfItem::Gap { .. } => rebuilder.gap(),
            // Typed events, if the reader was given their ring by `with_exec`.
            PerfItem::Exec(_) => {}
        }
        // Written as soon as they have ended: so memory holds the open ones only.
        while let Some(span) = rebuilder.take_closed() {
            write_row(&mut out, &span)?;
        }
    }
    // The spans that were open when the recording ended.
    for span in rebuilder.finish() {
        write_row(&mut out, &span)?;
    }
    out.flush()?;
    Ok(())
}

fn write_row(out: &mut impl Write, span: &Span) -> io::Result<()> {
    let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let parent = span.parent.map_or_else(String::new, |parent| parent.to_string());
    let thread = span.created.as_ref().and_then(|created| created.thread.name.as_deref()).unwrap_or_default();
    writeln!(
        out,
        "{},{},{parent},{thread},{},{},{}",
        span.name(),
        span.id,
        number(span.created.as_ref().map(|created| created.epoch_nanos)),
        number(span.wall_nanos()),
        span.busy_nanos()
    )
}
