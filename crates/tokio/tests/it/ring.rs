//! What a program has recorded, read back.

use eventring::tracing::{
    PerfContent, PerfItem, PerfReader, PerfRecorder, RecorderLayer, RecorderSubscriber, Span, SpanTree,
};
use std::time::Duration;
use tracing_subscriber::layer::SubscriberExt as _;

/// The records of a program.
pub struct Recorded {
    pub tree: SpanTree,
    /// The span and the name of each event of tasks.
    pub events: Vec<(u64, String)>,
    /// The number of events of workers.
    pub workers: usize,
}

impl Recorded {
    /// Returns the spans of tasks.
    pub fn tasks(&self) -> Vec<&Span> {
        self.tree.iter().filter(|span| span.call_site.as_ref().is_some_and(|site| site.name == "task")).collect()
    }

    /// Returns the task with this name.
    pub fn task(&self, name: &str) -> &Span {
        self.tasks().into_iter().find(|task| field(task, "name") == name).unwrap()
    }

    pub fn count(&self, task: &Span, event: &str) -> usize {
        self.events.iter().filter(|(span, name)| *span == task.id.get() && name == event).count()
    }
}

pub fn field(span: &Span, name: &str) -> String {
    span.fields.get(name).map(ToString::to_string).unwrap_or_default()
}

/// Records a program on this thread, with the subscriber or the layer.
pub fn record(with_layer: bool, program: impl FnOnce()) -> Recorded {
    let recorder = PerfRecorder::builder().anonymous().shifts(16, 22).prefault(false).build().unwrap();
    if with_layer {
        let layers = tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone()));
        tracing::subscriber::with_default(layers, program);
    } else {
        tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), program);
    }
    let mut reader = PerfReader::from_shards(recorder.open_readers().unwrap());
    let (mut records, mut events, mut workers) = (Vec::new(), Vec::new(), 0);
    while let Some(item) = reader.next_timeout(Duration::from_millis(50)) {
        let PerfItem::Record(record) = item else { panic!("{item:?}") };
        if let PerfContent::Event { span, call_site, .. } = &record.content {
            workers += usize::from(call_site.target == "eventring::worker");
            if call_site.target == eventring_tokio::TARGET {
                events.push((span.map_or(0, |span| span.get()), call_site.name.clone()));
            }
        }
        records.push(record);
    }
    Recorded { tree: SpanTree::from_records(&records), events, workers }
}

/// Runs a future on a runtime of this thread.
pub fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
}
