//! `eventring view`: what it serves, to whom, and when it ends.

use crate::fixtures::*;
use std::os::unix::fs::PermissionsExt as _;

/// The first answer is compared with its schema.
static VIEWED: std::sync::Once = std::sync::Once::new();

/// A folder that looks like a Perfetto UI, beside a secret.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(directory());
        fs::write(folder.0.path().join("secret"), "secret").unwrap();
        fs::create_dir_all(folder.ui().join("v1")).unwrap();
        for name in ["index.html", "v1/frontend_bundle.js", "v1/trace_processor.wasm"] {
            fs::write(folder.ui().join(name), format!("this is {name}")).unwrap();
        }
        std::os::unix::fs::symlink("../secret", folder.ui().join("link.js")).unwrap();
        std::os::unix::fs::symlink("..", folder.ui().join("up")).unwrap();
        folder
    }

    fn ui(&self) -> PathBuf {
        self.0.path().join("ui")
    }
}

/// A running `eventring view`, and what its line says.
struct View {
    live: Live,
    port: u16,
    token: String,
    trace_bytes: usize,
    folder: Folder,
    _end: EndWithTest,
}

/// Ends the program if the test fails. It would serve for ever.
struct EndWithTest(Pid);

impl Drop for EndWithTest {
    fn drop(&mut self) {
        if thread::panicking() {
            _ = kill_process(self.0, Signal::KILL);
        }
    }
}

/// The answer to a request.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl View {
    fn start(name: &str, options: &[&str]) -> Self {
        let folder = Folder::new();
        let ui = folder.ui();
        let arguments = ["view", name, "--no-browser", "--json", "--ui", argument(&ui)];
        let mut live = Live::start(&[&arguments, options].concat());
        let end = EndWithTest(Pid::from_child(&live.child));
        let told = live.json_line();
        VIEWED.call_once(|| crate::ask::schemas::check(&[("view", told.clone())]));
        assert_eq!(told.as_object().unwrap().keys().collect::<Vec<_>>(), ["url", "ui", "trace_bytes"]);
        assert_eq!(told["ui"], argument(&ui.canonicalize().unwrap()));
        let (port, token) = parts(&told);
        Self { live, port, token, trace_bytes: told["trace_bytes"].number() as usize, folder, _end: end }
    }

    /// Sends what our own page would send.
    fn get(&self, path: &str) -> Answer {
        self.try_get(path).unwrap()
    }

    fn try_get(&self, path: &str) -> Option<Answer> {
        let (port, token) = (self.port, &self.token);
        let origin = "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty";
        ask(port, &format!("GET /{token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{origin}\r\n"))
    }

    /// Returns the path of the trace, which the page names.
    fn trace(&self) -> String {
        let page = String::from_utf8(self.get("").body).unwrap();
        page.split_once("data-trace=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
    }

    fn interrupted(self) -> program::Run {
        self.live.interrupt();
        self.live.end()
    }
}

/// Opens the stream of a page, as our own page does.
fn open_page(port: u16, token: &str) -> TcpStream {
    let mut page = TcpStream::connect(("127.0.0.1", port)).unwrap();
    page.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    page.write_all(format!("GET /{token}/alive HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes()).unwrap();
    page
}

/// Returns the port and the token of an address.
fn parts(told: &Value) -> (u16, String) {
    let url = told["url"].text();
    let (port, token) = url.strip_prefix("http://127.0.0.1:").unwrap().split_once('/').unwrap();
    let token = token.strip_suffix('/').unwrap();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{url}");
    (port.parse().unwrap(), token.to_owned())
}

/// Records this many spans into the ring at `ring`.
fn record(ring: &Path, spans: u32) -> PerfRecorder {
    let recorder = spans_in(ring).build().unwrap();
    let record = || (0..spans).for_each(|number| info_span!("request", number).in_scope(|| ()));
    in_recorder(recorder.clone(), record);
    recorder
}

/// Captures spans. Returns the path of the capture.
fn capture(directory: &TempDir) -> String {
    let (ring, file) = (place(directory, "shop"), place(directory, "shop.evc"));
    let _recorder = record(&ring, 200);
    run!("capture", &ring, "-o", &file, "--now", "--json").json();
    argument(&file).to_owned()
}

/// Sends the first lines of a request. Returns `None` if there is no answer.
fn ask(port: u16, head: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    // A server that never answers makes the test fail, and not hang.
    stream.set_read_timeout(Some(Duration::from_secs(300))).ok()?;
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let body = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).unwrap().to_lowercase();
    Some(Answer { status: head.split(' ').nth(1)?.parse().ok()?, head, body })
}

#[test]
fn one_line_says_where_the_trace_is_and_how_many_bytes_it_has() {
    let directory = directory();
    let view = View::start(&capture(&directory), &[]);
    let answer = view.get(&view.trace());
    assert_eq!((answer.status, answer.body.len()), (200, view.trace_bytes));
    assert!(answer.head.contains(&format!("content-length: {}\r\n", view.trace_bytes)), "{}", answer.head);
    // A second time, too: a page may be loaded again.
    assert!(view.trace_bytes > 1_000 && view.get(&view.trace()).body == answer.body);
    assert_eq!(view.get("ui/v1/frontend_bundle.js").body, b"this is v1/frontend_bundle.js");
    for (path, policy) in [("", "frame-ancestors 'none'"), ("ui/index.html", "frame-ancestors 'self'"), ("page.js", "")]
    {
        let head = view.get(path).head;
        for line in ["cache-control: no-store", "referrer-policy: no-referrer", "nosniff", policy] {
            assert!(head.contains(line), "{path}: {head}");
        }
        assert!(!head.contains("access-control"), "{head}");
    }
    view.interrupted().ends(0);
}

#[test]
fn whoever_is_not_our_own_page_gets_nothing() {
    let view = View::start(KEPT, &[]);
    let (port, token, trace) = (view.port, view.token.clone(), view.trace());
    let host = format!("Host: 127.0.0.1:{port}");
    let good = format!("/{token}/{trace}");
    let wrong_token = format!("/{}/{trace}", "0".repeat(32));
    let longer = format!("/{token}0/{trace}");
    let shorter = format!("/{}/{trace}", &token[..31]);
    let requests = [
        // A program of another user, who does not know the token.
        ("GET", wrong_token.as_str(), host.clone()),
        ("GET", &longer, host.clone()),
        ("GET", &shorter, host.clone()),
        ("GET", "/", host.clone()),
        ("GET", &format!("/{trace}"), host.clone()),
        ("GET", "/vizviewer_info", host.clone()),
        // A name that was made to resolve to 127.0.0.1.
        ("GET", &good, format!("Host: evil.example:{port}")),
        ("GET", &good, "Host: 127.0.0.1".into()),
        ("GET", &good, format!("Host: 127.0.0.1:{port}.evil.example")),
        ("GET", &good, format!("Host: 127.0.0.1:{port}\r\nHost: evil.example")),
        ("GET", &good, "X-No-Host: at all".into()),
        ("GET", &format!("http://evil.example{good}"), host.clone()),
        // A page of another origin that fetches.
        ("GET", &good, format!("{host}\r\nOrigin: https://evil.example")),
        ("GET", &good, format!("{host}\r\nOrigin: http://127.0.0.1:1")),
        ("GET", &good, format!("{host}\r\nOrigin: null")),
        ("GET", &good, format!("{host}\r\nOrigin: https://ui.perfetto.dev")),
        ("GET", &good, format!("{host}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors")),
        ("GET", &good, format!("{host}\r\nSec-Fetch-Site: same-site")),
        // A page that shows our page in a frame.
        (
            "GET",
            &format!("/{token}/"),
            format!("{host}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe"),
        ),
        // Other methods.
        ("POST", &good, format!("{host}\r\nContent-Length: 0")),
        ("OPTIONS", &good, format!("{host}\r\nOrigin: https://evil.example")),
        ("DELETE", &good, host.clone()),
    ];
    for (method, path, headers) in requests {
        let answer = ask(port, &format!("{method} {path} HTTP/1.1\r\n{headers}\r\n")).unwrap();
        assert!([400, 403, 404].contains(&answer.status), "{method} {path} {headers}: {answer:?}");
        assert!(answer.body.is_empty() && !answer.head.contains("access-control"), "{answer:?}");
    }
    // The browser comes from the file that leads it here, or from its address bar.
    for site in ["cross-site", "none"] {
        let visit = format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document");
        assert_eq!(ask(port, &format!("GET /{token}/ HTTP/1.1\r\n{host}\r\n{visit}\r\n")).unwrap().status, 200);
    }
    let head = ask(port, &format!("HEAD {good} HTTP/1.1\r\nHost: localhost:{port}\r\n")).unwrap();
    assert_eq!((head.status, head.body.len()), (200, 0));
    view.interrupted().ends(0);
}

#[test]
fn no_request_leads_out_of_the_folder() {
    let view = View::start(KEPT, &[]);
    assert_eq!(view.get("ui/index.html").body, b"this is index.html");
    let paths = [
        "ui/../secret",
        "ui/%2e%2e/secret",
        "ui/..%2fsecret",
        "ui/..\\secret",
        "ui//etc/passwd",
        "ui/./index.html",
        "ui/link.js",
        "ui/up/secret",
        "ui/v1",
        "ui/v1/",
        "ui/",
        "ui",
        "secret",
        "trace/",
        "trace/other",
        "../",
    ];
    for path in paths {
        let answer = view.get(path);
        assert!(answer.status == 404 && answer.body.is_empty(), "{path}: {answer:?}");
    }
    // A file that has become a link since the start is not followed.
    let file = view.folder.ui().join("index.html");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("../secret", &file).unwrap();
    assert_eq!(view.get("ui/index.html").status, 404);
    view.interrupted().ends(0);
}

#[test]
fn with_once_it_ends_after_the_trace_was_fetched_whole() {
    let view = View::start(KEPT, &["--once"]);
    let trace = view.trace();
    // A fetch that stops before the end does not count.
    let head = format!("GET /{}/{trace} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", view.token, view.port);
    let mut half = TcpStream::connect(("127.0.0.1", view.port)).unwrap();
    half.write_all(head.as_bytes()).unwrap();
    drop(half);
    let page = open_page(view.port, &view.token);
    assert_eq!(view.get(&trace).body.len(), view.trace_bytes);
    // It ends although the page is still open.
    view.live.end().ends(0);
    drop(page);
}

#[test]
fn it_ends_when_the_last_page_is_closed() {
    let mut view = View::start(KEPT, &[]);
    let open = || {
        let page = open_page(view.port, &view.token);
        let mut line = String::new();
        BufReader::new(page.try_clone().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        page
    };
    let (first, second) = (open(), open());
    drop(first);
    thread::sleep(Duration::from_secs(5));
    assert_eq!(view.get("page.js").status, 200);
    assert!(view.live.child.try_wait().unwrap().is_none());
    drop(second);
    view.live.end().ends(0);
}

#[test]
fn the_browser_is_led_by_a_private_file_that_goes_at_the_end() {
    let (directory, folder) = (directory(), Folder::new());
    let (runtime, seen) = (place(&directory, "runtime"), place(&directory, "seen"));
    fs::create_dir(&runtime).unwrap();
    let browser = place(&directory, "browser");
    fs::write(
        &browser,
        format!(
            "#!/bin/sh\nstat -c %a \"$1\" > {0}.new\necho \"$1\" >> {0}.new\ncat \"$1\" >> {0}.new\nmv {0}.new {0}\n",
            argument(&seen)
        ),
    )
    .unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["view", KEPT, "--json", "--ui", argument(&folder.ui())]).env("BROWSER", &browser);
    let mut child = command.env("XDG_RUNTIME_DIR", &runtime).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    wait_while(|| !seen.exists());
    let seen = fs::read_to_string(seen).unwrap();
    let (mode, rest) = seen.split_once('\n').unwrap();
    let (path, html) = rest.split_once('\n').unwrap();
    assert_eq!((mode, Path::new(path).starts_with(&runtime)), ("600", true), "{seen}");
    assert!(html.contains(told["url"].text()) && !path.contains(&parts(&told).1), "{seen}");
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_dir(runtime).unwrap().count(), 0);
}

#[test]
fn without_a_screen_it_prints_the_address() {
    let folder = Folder::new();
    program::let_interrupts_reach_programs();
    let mut command = Command::new(PROGRAM);
    command.args(["view", KEPT]).env("EVENTRING_UI", folder.ui());
    ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"].iter().for_each(|name| _ = command.env_remove(name));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_folder_without_a_perfetto_ui_is_refused() {
    let directory = directory();
    for (file, found) in [(None, "it has no file index.html"), (Some("index.html"), "no folder v*/ in it has both")] {
        file.iter().for_each(|file| fs::write(place(&directory, file), "").unwrap());
        run!("view", KEPT, "--no-browser", "--ui", directory.path())
            .ends(3)
            .shows_nothing()
            .warns(found)
            .warns("pip install");
    }
    run!("view", KEPT, "--no-browser", "--ui", "/no/such/folder").ends(3);
}

#[test]
fn a_rings_name_shows_what_it_holds_now() {
    let (_directory, [ring]) = places(["shop"]);
    let recorder = record(&ring, 100);
    let few = View::start(argument(&ring), &[]);
    assert_eq!(few.trace(), "trace/shop.perfetto-trace");
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let more = || (0..2_000).for_each(|number| info_span!("more", number).in_scope(|| ()));
    dispatcher::with_default(&dispatch, more);
    let many = View::start(argument(&ring), &[]);
    assert!(many.trace_bytes > 4 * few.trace_bytes, "{} {}", many.trace_bytes, few.trace_bytes);
    assert_eq!(few.get(&few.trace()).body.len(), few.trace_bytes);
    [few, many].into_iter().for_each(|view| drop(view.interrupted().ends(0)));
}

/// Starts the program, and returns it with its port and token when the page is there.
fn start_and_wait_for_page(file: &str, folder: &Folder) -> (Live, u16, String) {
    let mut live = live!("view", file, "--no-browser", "--ui", &folder.ui());
    let url = live.line();
    let (port, token) = parts(&json!({ "url": url }));
    (live, port, token)
}

#[test]
fn the_page_says_how_far_the_conversion_is_and_an_interrupt_ends_it() {
    let (directory, folder) = (directory(), Folder::new());
    let (ring, file) = (place(&directory, "shop"), place(&directory, "shop.evc"));
    let recorder = spans_in(&ring).shifts(21, 26).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let record = || (0..400_000).for_each(|number| info_span!("request", number).in_scope(|| ()));
    dispatcher::with_default(&dispatch, record);
    run!("capture", &ring, "-o", &file, "--now", "--json").json();
    let (live, port, token) = start_and_wait_for_page(argument(&file), &folder);
    let _end = EndWithTest(Pid::from_child(&live.child));
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    // The page is there before the trace is.
    assert_eq!(ask(port, &format!("GET /{token}/ HTTP/1.1\r\n{host}")).unwrap().status, 200);
    let trace = format!("GET /{token}/trace/shop.perfetto-trace HTTP/1.1\r\n{host}");
    assert_eq!(ask(port, &trace).unwrap().status, 503);
    let page = open_page(port, &token);
    // Each step begins anew.
    let (mut step, mut percents) = (Value::Null, Vec::new());
    for line in BufReader::new(page).lines().map(Result::unwrap) {
        if let Some(data) = line.strip_prefix("data: {") {
            let data: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            if data["text"] != step {
                (step, percents) = (data["text"].clone(), Vec::new());
            }
            percents.push(data["percent"].number());
        }
        if percents.len() == 3 {
            break;
        }
    }
    assert!(percents.is_sorted() && percents[0] < percents[2], "{percents:?}");
    live.interrupt();
    let ended = live.end().ends(0).shows_nothing();
    assert_eq!(ended.err, "ended before the capture was converted; nothing was shown\n");
}

#[test]
fn the_page_learns_what_a_truncated_capture_lacks() {
    let (directory, folder) = (directory(), Folder::new());
    let file = capture(&directory);
    for is_cut in [false, true] {
        if is_cut {
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        }
        let (live, port, token) = start_and_wait_for_page(&file, &folder);
        let _end = EndWithTest(Pid::from_child(&live.child));
        let page = open_page(port, &token);
        let mut lines = BufReader::new(page).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "event: ready"));
        let data: Value = serde_json::from_str(lines.next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
        let problems = data["problems"].list();
        assert_eq!(problems.len(), usize::from(is_cut), "{data}");
        assert!(problems.iter().all(|problem| problem.text().starts_with("truncated: ")), "{data}");
        live.interrupt();
        live.end().ends(if is_cut { 6 } else { 0 });
    }
}

#[test]
fn a_program_that_floods_the_port_does_not_keep_the_page_out() {
    let view = View::start(KEPT, &[]);
    let trace = view.trace();
    // The program cannot keep all connections of the flood.
    let files = rustix::process::Rlimit { current: Some(200), maximum: Some(200) };
    let pid = Pid::from_child(&view.live.child);
    rustix::process::prlimit(Some(pid), rustix::process::Resource::Nofile, files).unwrap();
    // This connection knows the token, so it stays.
    let mut page = BufReader::new(open_page(view.port, &view.token));
    let mut line = String::new();
    page.read_line(&mut line).unwrap();
    let starts: [&[u8]; 4] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: ",
        b"\0\xff\x16\x03\x01 garbage",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
    ];
    let mut flood = Vec::new();
    for number in 0..700 {
        let mut stream = TcpStream::connect(("127.0.0.1", view.port)).unwrap();
        _ = stream.write_all(starts[number % starts.len()]);
        flood.push(stream);
    }
    for _ in 0..5 {
        assert_eq!(view.get(&trace).body.len(), view.trace_bytes);
    }
    line.clear();
    while !line.contains("\r\n\r\n") && line != "\r\n" {
        line.clear();
        page.read_line(&mut line).unwrap();
    }
    line.clear();
    page.read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "the page's stream was closed");
    view.interrupted().ends(0);
    drop(flood);
}
