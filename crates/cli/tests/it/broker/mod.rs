//! A `nats-server` of the test's own, which can be killed and started again.

pub mod forged;
pub mod place;

use crate::fixtures::*;
use std::net::TcpListener;

/// A broker with JetStream. It is killed when this value is dropped.
pub struct Broker {
    server: Child,
    port: u16,
    directory: PathBuf,
    more: Vec<String>,
}

/// Returns true if `nats-server` is installed. Prints a line if it is not.
pub fn is_installed() -> bool {
    let found = Command::new("nats-server").arg("--version").stdout(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        eventring_stress::missing("there is no nats-server (Debian: apt install nats-server); .ci/run installs it");
    }
    is_there
}

impl Broker {
    /// Starts a broker, which stores its streams in this directory.
    pub fn start(directory: &Path) -> Self {
        Self::start_with(directory, &[])
    }

    /// Starts a broker with more arguments.
    pub fn start_with(directory: &Path, more: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let more: Vec<String> = more.iter().map(|argument| (*argument).to_owned()).collect();
        let server = serve(port, directory, &more);
        let broker = Self { server, port, directory: directory.to_path_buf(), more };
        broker.wait();
        broker
    }

    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills the broker as `kill -9` does.
    pub fn kill(&mut self) {
        kill(&mut self.server);
    }

    /// Removes everything that the broker has stored. It must not run.
    pub fn forget_all(&self) {
        fs::remove_dir_all(&self.directory).unwrap();
        fs::create_dir(&self.directory).unwrap();
    }

    /// Starts it again, with the streams that it had.
    pub fn start_again(&mut self) {
        self.server = serve(self.port, &self.directory, &self.more);
        self.wait();
    }

    fn wait(&self) {
        wait_while(|| TcpStream::connect(("127.0.0.1", self.port)).is_err());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn serve(port: u16, directory: &Path, more: &[String]) -> Child {
    let mut command = Command::new("nats-server");
    command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]).arg(directory).args(more);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}
