//! A browser without a network shows what `eventring view` serves: Perfetto's own UI finds the recorded slices.

use crate::consumers;
use crate::fixtures::*;

/// Waits until the clock has gone on, so that no slice is without length.
fn moment() {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(2) {}
}

/// Records spans on several threads, and captures them. Returns the path of the capture, and the slices by name. The
/// picture has each slice of a thread, and each span once more from creation to close.
fn capture(directory: &TempDir) -> (String, BTreeMap<String, u64>) {
    let (ring, file) = (place(directory, "shop"), place(directory, "shop.evc"));
    let (ring, file) = (ring.to_str().unwrap().to_owned(), file.to_str().unwrap().to_owned());
    let recorder = spans_in(&ring).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    thread::scope(|scope| {
        for thread in 0..3 {
            let dispatch = &dispatch;
            scope.spawn(move || {
                let record = || {
                    for number in 0..200 {
                        info_span!("request", number, thread).in_scope(|| {
                            info_span!("query", sql = "select 1").in_scope(moment);
                            moment();
                        });
                    }
                };
                dispatcher::with_default(dispatch, record);
            });
        }
    });
    run!("capture", &ring, "-o", &file, "--now", "--json").json();
    let mut slices = BTreeMap::new();
    for line in run!("export", &file, "--format", "jsonl").json_lines() {
        if line["type"] == "span" {
            *slices.entry(line["name"].text().to_owned()).or_default() += line["slices"].list().len() as u64 + 1;
        }
    }
    assert_eq!(slices, BTreeMap::from([("query".to_owned(), 1200), ("request".to_owned(), 1200)]));
    (file, slices)
}

/// Shows the capture in a browser, and checks what the UI says. The program ends when the browser has closed the page.
fn check(file: &str, slices: &BTreeMap<String, u64>, options: &[&str]) -> Option<Value> {
    let mut view = Live::start(&[&["view", file, "--no-browser", "--json"], options].concat());
    let url = view.json_line()["url"].text().to_owned();
    let answers = consumers::read("view_page.py", Path::new(&url));
    if answers.is_none() {
        view.interrupt();
    }
    view.end().ends(0);
    let answers = answers?;
    assert_eq!(answers["slices"], json!(slices.iter().collect::<Vec<_>>()));
    assert_eq!((&answers["errors"], &answers["copies"]), (&json!([]), &json!([])), "{answers}");
    Some(answers)
}

#[test]
fn the_ui_finds_the_slices_without_a_network() {
    let directory = directory();
    let (file, slices) = capture(&directory);
    let Some(ui) = consumers::perfetto_ui() else { return };
    let Some(answers) = check(&file, &slices, &["--ui", &ui]) else { return };
    let servers = answers["servers"].list();
    assert!(servers.len() == 1 && servers[0].text().starts_with("127.0.0.1:"), "{answers}");
}

#[test]
fn the_online_ui_gets_the_trace_from_the_page() {
    let directory = directory();
    let (file, slices) = capture(&directory);
    // The script answers for ui.perfetto.dev.
    let home = directory.path().to_str().unwrap();
    let mut command = program!("view", &file, "--no-browser", "--json");
    command.env("XDG_DATA_HOME", home).env_remove("EVENTRING_UI").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["ui"], "https://ui.perfetto.dev");
    let answers = consumers::read("view_page.py", Path::new(told["url"].text()));
    if answers.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    let answers = answers.unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(answers["slices"], json!(slices.iter().collect::<Vec<_>>()));
    assert_eq!(answers["errors"], json!([]), "{answers}");
}
