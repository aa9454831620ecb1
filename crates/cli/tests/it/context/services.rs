//! The two services of ours. One has a subscriber of its own, the other a layer.

use crate::fixtures::*;
use eventring::tracing::RecorderLayer;
use eventring::tracing::context;
use std::fmt::Write as _;
use std::io::BufRead;
use std::net::TcpListener;
use tracing_subscriber::prelude::*;

const THREADS: usize = 4;

/// Makes a recorder that loses nothing of this number of requests.
fn recorder(path: &Path, requests: usize) -> PerfRecorder {
    let shift = (requests * 24).next_power_of_two().ilog2().max(15);
    let recorder = spans_in(path).shards(1).shifts(shift, shift + 6).tables_shift(16);
    recorder.prefault(false).keep(true).build().unwrap()
}

/// Reads the head of a request or of an answer without a body. Returns `None` at the end of the connection.
fn head(stream: &mut impl BufRead) -> Option<HashMap<String, String>> {
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) => drop(headers.insert(name.to_ascii_lowercase(), value.to_owned())),
            None if line.trim_end().is_empty() => return Some(headers),
            None => {}
        }
    }
}

/// A connection to another service.
struct Callee(BufReader<TcpStream>);

impl Callee {
    fn connect(port: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Calls the service, in the current span.
    fn call(&mut self) {
        let mut request = "GET / HTTP/1.1\r\nhost: callee\r\n".to_owned();
        assert!(context::inject_current(|name, value| write!(request, "{name}: {value}\r\n").unwrap()));
        request.push_str("\r\n");
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        head(&mut self.0).expect("an answer");
    }
}

/// The service that begins each trace.
pub(super) fn front(place: &Path, requests: usize) {
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder(&place.join("front"), requests)));
    let ports = fs::read_to_string(place.join("ports")).unwrap();
    let (middle, back) = ports.split_once(' ').unwrap();
    child::say("ready");
    child::wait_for_parent();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let dispatch = &dispatch;
            let serve = move || {
                let (mut middle, mut back) = (Callee::connect(middle), Callee::connect(back));
                for number in (thread..requests).step_by(THREADS) {
                    let _order = info_span!("order", number).entered();
                    info_span!("pay").in_scope(|| middle.call());
                    info_span!("check").in_scope(|| back.call());
                }
            };
            scope.spawn(move || dispatcher::with_default(dispatch, serve));
        }
    });
}

/// The service that is called.
pub(super) fn back(place: &Path, requests: usize) {
    let layer = RecorderLayer::new(recorder(&place.join("back"), requests));
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    child::say(listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let dispatch = dispatch.clone();
            thread::spawn(move || dispatcher::with_default(&dispatch, || serve(stream.unwrap())));
        }
    });
    child::wait_for_parent();
}

fn serve(stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut stream = BufReader::new(stream);
    while let Some(headers) = head(&mut stream) {
        let request = info_span!("request");
        let caller = context::extract(|name| headers.get(name)).expect("a caller");
        assert!(caller.attach(&request));
        request.in_scope(|| info_span!("work").in_scope(thread::yield_now));
        drop(request);
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}
