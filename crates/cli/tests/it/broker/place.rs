//! A directory with a broker, and the verbs that talk to it.

use super::Broker;
use crate::fixtures::*;
use crate::orders::ended_orders;

/// A directory, and a broker that stores its streams there.
pub struct Place {
    pub dir: TempDir,
    pub broker: Broker,
}

impl Place {
    /// Returns `None`, and says so, if there is no `nats-server`.
    pub fn new() -> Option<Self> {
        Self::with(&[])
    }

    pub fn with(more: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let broker = super::is_installed().then(|| Broker::start_with(&dir.path().join("js"), more))?;
        Some(Self { dir, broker })
    }

    /// Starts a broker with this configuration.
    pub fn configured(config: &str) -> Option<Self> {
        let (_dir, [path]) = places(["nats.conf"]);
        fs::write(&path, config).unwrap();
        Self::with(&["-c", argument(&path)])
    }

    /// Makes a ring of so many orders that has ended. Returns its path.
    pub fn orders(&self, name: &str, count: u64) -> String {
        let ring = self.path(name);
        ended_orders(&ring, count);
        ring
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Makes a kept ring of the HTTP service, and returns its path.
    pub fn service_ring(&self, requests: u32) -> String {
        let ring = self.path("shop");
        let service = Path::new(PROGRAM).with_file_name("examples").join("http_service");
        let mut service = Command::new(service);
        service.args(["--requests", &requests.to_string(), "--ring", &ring, "--keep"]).stdout(Stdio::null());
        assert!(service.status().unwrap().success());
        ring
    }

    pub fn forward(&self, rings: &[&str]) -> Run {
        self.forward_as("web-1", rings)
    }

    pub fn forward_as(&self, host: &str, rings: &[&str]) -> Run {
        let address = self.broker.address();
        run!("forward", rings, "--to", &address, "--stream", "S", "--host", host, "--json")
    }

    /// Receives so many events, of which so many are lost.
    pub fn receives(&self, file: &str, more: &[&str], events: u64, lost: u64) -> Value {
        let received = self.receive(&self.path(file), more).json();
        assert_eq!((received["events"].number(), received["lost"].number()), (events, lost), "{received}");
        received
    }

    pub fn receive(&self, file: &str, more: &[&str]) -> Run {
        let from = ["receive", &self.broker.address(), "--stream", "S", "-o", file, "--json"].map(str::to_owned);
        let from: Vec<&str> = from.iter().map(String::as_str).collect();
        run!(&from, "--until-idle", "300ms", more)
    }
}

/// Returns the lines of a capture, in an order that does not depend on the order of its rings.
///
/// Leaves out the states and ends of the programs: each reader has looked at another time.
pub fn lines(capture: &str) -> Vec<String> {
    let exported = run!("export", capture, "--format", "jsonl").ends(0);
    // The first line is about the file.
    let mut lines: Vec<String> = exported.out.lines().skip(1).map(without_ends).collect();
    lines.sort();
    lines
}

fn without_ends(line: &str) -> String {
    if !line.starts_with(r#"{"type":"end""#) {
        return line.to_owned();
    }
    let mut end: Value = serde_json::from_str(line).unwrap();
    for process in end["processes"].as_array_mut().unwrap() {
        process.as_object_mut().unwrap().retain(|name, _| name == "process");
    }
    end.to_string()
}

/// Publishes messages as any program may.
pub fn publish(place: &Place, subject: &str, bodies: &[&[u8]]) {
    let mut raw = TcpStream::connect(place.broker.address().trim_start_matches("nats://")).unwrap();
    let mut message = b"CONNECT {\"verbose\":false}\r\n".to_vec();
    for body in bodies {
        message.extend(format!("PUB {subject} {}\r\n", body.len()).as_bytes());
        message.extend([body, &b"\r\n"[..]].concat());
    }
    raw.write_all(&[&message[..], b"PING\r\n"].concat()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"PONG\r\n") {
        let mut byte = [0];
        raw.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
}
