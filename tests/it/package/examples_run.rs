//! Every program in `examples/` does what its comments say.

use crate::fixtures::*;
use eventring::tracing::PerfItem;

/// Returns the path of an example's program.
fn program(name: &str) -> PathBuf {
    built(name, name)
}

/// Returns the path of the file that is made of an example. `cargo test` builds the examples, unless its options select
/// a single test.
fn built(file: &str, name: &str) -> PathBuf {
    // This test is in TARGET/PROFILE/deps.
    let profile = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let program = profile.join("examples").join(file);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    // The example that needs a web framework is a package of its own.
    let folder = if name == "http_service" { examples.join(name) } else { examples };
    let source = folder.join(name).with_extension("rs");
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    assert!(
        changed(&program) >= changed(&source),
        "{} is missing or older than its source; build it: cargo build --workspace --examples",
        program.display()
    );
    program
}

/// Makes a directory for the rings of one test.
fn command(directory: &TempDir, name: &str) -> Command {
    let mut command = Command::new(program(name));
    command.env("EVENTRING_DIR", directory.path()).stdin(Stdio::null());
    for variable in ["EVENTRING_PERF", "EVENTRING_FILTER", "EVENTRING_REDACT", "EVENTRING_KEEP"] {
        command.env_remove(variable);
    }
    command
}

/// Runs the program to its end and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the spans of a recording, and the texts of its log records.
fn spans_and_messages(path: &Path) -> (SpanTree, Vec<String>) {
    let mut reader = PerfReader::open(path).unwrap();
    let records: Vec<_> = std::iter::from_fn(|| reader.next())
        .map(|item| match item {
            PerfItem::Record(record) => record,
            other => panic!("{other:?}"),
        })
        .collect();
    let messages = records.iter().filter_map(|record| match &record.content {
        PerfContent::Event { fields, .. } => Some(fields.get("message")?.to_string()),
        _ => None,
    });
    (SpanTree::from_records(&records), messages.collect())
}

/// Returns the number of spans with that name.
fn count(spans: &SpanTree, name: &str) -> usize {
    spans.iter().filter(|span| span.call_site.as_ref().is_some_and(|site| site.name == name)).count()
}

/// Returns the number of events that the ring at `path` holds.
fn count_events(path: &Path) -> usize {
    let mut cursor = Reader::open(path).unwrap().cursor();
    cursor.seek(Seek::Oldest);
    std::iter::from_fn(|| matches!(cursor.next(), Next::Event(_)).then_some(())).count()
}

#[test]
fn quickstart_records_its_spans_and_custom_export_writes_them() {
    let directory = directory();
    let said = run(command(&directory, "quickstart").env("EVENTRING_KEEP", "1"));
    assert_eq!(said, "answered 20 requests\n");
    let (spans, messages) = spans_and_messages(&directory.path().join("quickstart"));
    assert_eq!((count(&spans, "request"), count(&spans, "answer"), messages.len()), (20, 20, 20));

    let table = run(command(&directory, "custom_export").arg("quickstart"));
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 40, "{table}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    let answer = rows.iter().find(|row| row[0].ends_with("answer")).unwrap();
    assert!(rows.iter().any(|row| row[0].ends_with("request") && row[1] == answer[2]), "{table}");
    assert!(answer[5].parse::<u64>().unwrap() >= 5_000_000, "{table}");
    // The last spans were closed within milliseconds of the end of the recording. They are closed nevertheless.
    assert!(rows[1..].iter().all(|row| row[7] == "closed"), "{table}");
}

#[test]
fn custom_export_tells_a_span_that_was_open_at_the_end_from_one_that_was_closed_just_before() {
    let (directory, [path]) = places(["open"]);
    let recorder = PerfRecorder::builder().config(&path).shifts(15, 21).shards(1).keep(true).build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        std::mem::forget(tracing::info_span!("never_closed"));
        drop(tracing::info_span!("closed_last"));
    });
    let table = run(command(&directory, "custom_export").arg("open"));
    let end = |name: &str| {
        let row = table.lines().find(|row| row.split(',').next().unwrap().ends_with(name));
        row.unwrap_or_else(|| panic!("{table}")).rsplit(',').next().unwrap()
    };
    assert_eq!((end("never_closed"), end("closed_last")), ("open", "closed"), "{table}");
}

#[test]
fn quickstart_leaves_nothing_and_goes_on_without_a_recording() {
    let directory = directory();
    run(&mut command(&directory, "quickstart"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);

    let output = command(&directory, "quickstart").env("EVENTRING_FILTER", "=").output().unwrap();
    assert!(output.status.success() && !output.stderr.is_empty(), "{output:?}");
}

#[test]
fn reader_waits_for_the_ring_of_typed_events_and_decodes_all_of_it() {
    let directory = directory();
    let reader = command(&directory, "reader").arg("typed-events").stdout(Stdio::piped()).spawn().unwrap();
    let said = run(command(&directory, "typed_events").env("EVENTRING_KEEP", "1"));
    assert_eq!(said, "recorded 26 events\n");
    let read = String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!(lines.len(), 27, "{read}");
    assert_eq!(lines[0], "1 ORDER_PLACED order_id=1 price_cents=1250 payment=CARD");
    assert_eq!(
        lines[4],
        r#"5 ORDER_SHIPPED order_id=4 parcel_count=2 parcels=[4715, 4815] note="leave it with the neighbours""#
    );
    assert_eq!(lines[25..], ["26 DAY_ENDED ", "26 events read, 0 lost"]);
}

#[test]
fn layer_with_fmt_shows_less_than_it_records_and_no_secret() {
    let directory = directory();
    let said = run(&mut command(&directory, "layer_with_fmt"));
    assert_eq!((said.matches("logged in").count(), said.matches("looking").count()), (3, 0), "{said}");
    let (spans, messages) = spans_and_messages(&directory.path().join("layer-with-fmt"));
    let about = |text: &str| messages.iter().filter(|message| *message == text).count();
    assert_eq!((about("logged in"), about("looking the user up")), (3, 3), "{messages:?}");
    let fields = format!("{:?}", spans.iter().map(|span| &span.fields).collect::<Vec<_>>());
    assert!(fields.contains("grace") && !fields.contains("secret"), "{fields}");
}

#[test]
fn switch_by_environment_is_off_unless_the_environment_says_otherwise() {
    let directory = directory();
    assert_eq!(run(&mut command(&directory, "switch_by_environment")), "spans: off\norders: off\n");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);

    let mut on = command(&directory, "switch_by_environment");
    on.envs([("EVENTRING_PERF", "service"), ("EVENTRING_FILTER", "debug"), ("ORDERS_RING", "orders:16:27")]);
    assert_eq!(run(on.env("EVENTRING_KEEP", "1")), "spans: recorded\norders: recorded\n");
    let (spans, messages) = spans_and_messages(&directory.path().join("service"));
    assert_eq!((count(&spans, "order"), count(&spans, "not recorded"), messages.len()), (10, 0, 10));
    assert_eq!(count_events(&directory.path().join("orders")), 10);
}

#[test]
fn after_a_crash_the_last_step_is_known() {
    let directory = directory();
    let said = run(&mut command(&directory, "after_a_crash"));
    assert!(said.ends_with("the last event: step 7 begun\n"), "{said}");
    assert!(said.starts_with("the program has ended: signal: 6"), "{said}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn demo_accounts_for_every_event_that_it_records() {
    let directory = directory();
    // At the highest rate, many events are lost, and now and then a thread gives a sequence number up.
    for rate in ["20000", "max"] {
        let said = run(command(&directory, "demo").args(["--json", "--seconds", "0.5", "--rate", rate]));
        let account: serde_json::Value = serde_json::from_str(&said).unwrap();
        let number = |name: &str| account[name].as_u64().unwrap();
        assert_eq!((said.lines().count(), number("torn")), (1, 0), "{rate}: {said}");
        assert!(number("recorded") > 1000 && number("read") > 1000, "{rate}: {said}");
        assert_eq!(number("recorded"), number("read") + number("lost"), "{rate}: {said}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
    let said = run(command(&directory, "demo").args(["--seconds", "1.1", "--rate", "20000"]));
    assert_eq!(
        (said.lines().count(), said.matches(" recorded = ").count(), said.matches(" 0 torn").count()),
        (3, 3, 3)
    );
}

#[test]
fn demo_removes_its_rings_also_if_it_is_killed() {
    let directory = directory();
    let files = || std::fs::read_dir(directory.path()).unwrap().count();
    let mut demo = command(&directory, "demo").args(["--seconds", "600", "--rate", "1000"]).spawn().unwrap();
    while files() < 2 {
        assert!(demo.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    demo.kill().unwrap();
    demo.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while files() > 0 {
        assert!(Instant::now() < end, "the rings are still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn http_service_records_every_request() {
    let directory = directory();
    run(command(&directory, "http_service").args(["--requests", "200", "--ring", "shop", "--keep"]));
    let (spans, _) = spans_and_messages(&directory.path().join("shop"));
    assert_eq!(count(&spans, "request"), 200);
    assert!(count(&spans, "query") >= 200);
    let mut slow = command(&directory, "http_service");
    slow.args(["--requests", "200", "--ring", "slow", "--keep", "--slow-every", "30", "--slow-ms", "40", "--json"]);
    assert!(run(&mut slow).contains("\"slow_planted\":6"));
    let (spans, _) = spans_and_messages(&directory.path().join("slow"));
    let requests = spans.iter().filter(|span| span.name() == "request");
    assert!(requests.filter(|span| span.wall_nanos() >= Some(40_000_000)).count() >= 6);
}

/// Loads the plugin, calls it on a thread, waits for the thread's end, and unloads the plugin.
fn use_plugin(path: &Path, request: u32) {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: the path is a valid string. The constructors of the plugin are those of Rust's standard library.
    let plugin = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!plugin.is_null());
    // SAFETY: the plugin was loaded just now.
    let answer = unsafe { libc::dlsym(plugin, c"answer".as_ptr()) };
    assert!(!answer.is_null());
    // SAFETY: the plugin's function `answer` has this type.
    let answer = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn(u32)>(answer) };
    std::thread::spawn(move || answer(request)).join().unwrap();
    // SAFETY: the plugin was loaded above, and this program uses it no more.
    assert_eq!(unsafe { libc::dlclose(plugin) }, 0);
}

/// Maps a page beyond the end of a file and reads it, which raises SIGBUS.
fn fault() {
    let file = tempfile::tempfile().unwrap();
    let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: the mapping is new, at an address of the kernel's choice.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 1, read, shared, file.as_fd().as_raw_fd(), 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: the page is mapped. The access raises the signal instead of returning.
    unsafe { page.cast::<u8>().read_volatile() };
}

extern "C" fn on_sigbus(_: libc::c_int) {
    // SAFETY: the call ends the process. It may be made in a signal handler.
    unsafe { libc::_exit(77) };
}

/// Plays a program that has unloaded its plugin.
fn host(part: &str) {
    // SAFETY: the handler only ends the process.
    unsafe { libc::signal(libc::SIGBUS, on_sigbus as *const () as libc::sighandler_t) };
    use_plugin(&child::place(), 1);
    match part {
        "fault" => fault(),
        "fork" => assert_eq!(forked::in_child(|| 0), 0),
        "again" => use_plugin(&child::place(), 2),
        _ => {}
    }
    std::process::exit(0);
}

#[test]
fn a_program_that_unloads_the_plugin_goes_on_and_ends_in_good_order() {
    let test = plays!(|part| host(&part));
    let plugin = built("libplugin.so", "plugin");
    let end = |part: &str, server: &str, keep: &str| {
        let directory = directory();
        let mut program = child::play(test, part, &plugin);
        program.env("EVENTRING_DIR", directory.path()).env("EVENTRING_SERVER", server).env("EVENTRING_KEEP", keep);
        let status = program.output().unwrap().status;
        (status.code(), directory)
    };
    for server in ["0", "1"] {
        for (part, code) in [("exit", 0), ("fork", 0), ("again", 0), ("fault", 77)] {
            let (found, directory) = end(part, server, "0");
            assert_eq!(found, Some(code), "{part}, server {server}");
            let files = std::fs::read_dir(directory.path()).unwrap().count();
            // The last program has ended without its exit handlers, so its ring stays.
            assert_eq!(files > 0, part == "fault", "{part}, server {server}");
        }
    }
    let (code, directory) = end("again", "0", "1");
    let (spans, messages) = spans_and_messages(&directory.path().join("plugin"));
    assert_eq!((code, count(&spans, "request"), messages.len()), (Some(0), 2, 2));
}
