//! The spans around an event are known after their close, as long as a span inside of them is open: a request ends, and
//! the job that it has started fails later. All verbs with conditions agree.

use crate::fixtures::*;
use crate::triggers::{count, result, watching};
use eventring::tracing::try_init;
use eventring_stress::child::place as place_of_ring;

const OF_REQUEST: &str = "span=request level>=ERROR";
const FAILED: [&str; 2] = ["job failed", "step failed"];

/// Records a request that ends before its job, and a job of which a step outlives it. Another job has no request.
fn record_jobs() {
    let pause = || thread::sleep(Duration::from_millis(60));
    let request = info_span!("request").entered();
    let job = info_span!("job");
    drop(request);
    pause();
    job.in_scope(|| error!("job failed"));
    let step = job.in_scope(|| info_span!("step"));
    drop(job);
    pause();
    step.in_scope(|| error!("step failed"));
    drop(step);
    pause();
    info_span!("job").in_scope(|| error!("other failed"));
}

/// Returns the texts of the log records that a watch shows.
fn texts(of: &Path, options: &[&str]) -> Vec<String> {
    let lines = run!("watch", of, "--from", "oldest", "--json", options).json_lines();
    let records = lines.iter().filter(|line| line["name"] == "EVENT");
    records.map(|line| line["payload"]["fields"]["message"].text().to_owned()).collect()
}

#[test]
fn a_job_that_fails_after_its_request_has_ended_is_found_by_the_request() {
    let test = plays!({
        let _recording = try_init(format!("{}:17:23", place_of_ring().display())).unwrap();
        record_jobs();
        std::process::exit(0);
    });
    let directory = directory();
    let captured = |name: &str, options: &[&str]| {
        let file = place(&directory, &format!("{name}.evc"));
        let options = [options, &["-o", argument(&file)]].concat();
        (finish(watching(test, "jobs", &place(&directory, "ring"), &options)), file)
    };
    let (_, file) = captured("all", &[]);
    assert_eq!(texts(&file, &["--where", OF_REQUEST]), FAILED);
    let (_, file) = captured("filtered", &["--where", OF_REQUEST]);
    assert_eq!(texts(&file, &[]), FAILED);
    let (watched, _) = captured("{n}", &["--on", OF_REQUEST, "--debounce", "0"]);
    assert_eq!(count(&result(&watched), "fired"), 2, "{watched:?}");
}

#[test]
fn a_watch_of_a_ring_finds_such_a_job_and_find_does_not_because_it_asks_each_event_alone() {
    let (directory, [ring]) = places(["jobs"]);
    let recorder = spans_in(&ring).keep(true).build().unwrap();
    in_recorder(recorder, record_jobs);
    assert_eq!(texts(&ring, &["--where", OF_REQUEST]), FAILED);
    let file = place(&directory, "jobs.evc");
    run!("capture", &ring, "--now", "-o", &file).ends(0);
    let found = run!("find", OF_REQUEST, &file);
    let why = "`level>=ERROR` holds only for log records, and `span=request` only for spans";
    assert!(found.code == Some(2) && found.err.contains(why), "{found:?}");
    assert!(found.err.contains("`watch --where` and `export --where` know the spans around an event"), "{found:?}");
    assert_eq!(run!("find", "level>=ERROR", &file, "--json").json_lines().len(), 3 + 1);
}
