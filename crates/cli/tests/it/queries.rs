//! Queries of documents, and a recording to which they have answers.

use crate::fixtures::*;
use serde_json::Map;

/// The number of requests that are closed. One of them is slow.
pub const REQUESTS: u64 = 12;

/// Returns the queries of a document of this project by their headings.
pub fn queries(document: &str) -> Map<String, Value> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document)).unwrap();
    let mut queries = Map::new();
    let (mut heading, mut query) = (String::new(), None::<String>);
    for line in text.lines() {
        match (&mut query, line) {
            (None, "```sql") => query = Some(String::new()),
            (Some(sql), "```") => {
                let before = queries.insert(heading.clone(), std::mem::take(sql).into());
                assert_eq!(before, None, "two queries below `{heading}`");
                query = None;
            }
            (Some(sql), line) => *sql += &format!("{line}\n"),
            (None, line) => heading = line.strip_prefix("## ").map_or(heading, str::to_owned),
        }
    }
    queries
}

/// Records requests with queries. Request 7 waits for its query. The last request stays open.
fn record() {
    for number in 0..=REQUESTS {
        let request = info_span!("request", number);
        request.in_scope(|| {
            let query = info_span!("query", table = "orders");
            query.in_scope(|| info_span!("sqlite").in_scope(|| info!("read")));
            if number == 7 {
                // The thread is in no span while the query waits.
                return Some(query);
            }
            None
        });
        if number == 7 {
            thread::sleep(Duration::from_millis(200));
            request.in_scope(|| info_span!("answer").in_scope(|| error!("too late")));
        }
        if number == REQUESTS {
            std::mem::forget(request.entered());
        }
    }
}

/// Records the requests in a ring with this path, on a thread `worker`. The ring exists until the recorder is dropped.
pub fn record_requests(ring: &str) -> PerfRecorder {
    let recorder = spans_in(ring).build().unwrap();
    in_recorder(recorder.clone(), || {
        thread::scope(|scope| {
            let dispatch = dispatcher::get_default(Clone::clone);
            let body = move || dispatcher::with_default(&dispatch, record);
            thread::Builder::new().name("worker".into()).spawn_scoped(scope, body).unwrap();
        });
    });
    recorder
}
