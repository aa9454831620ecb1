//! Blocks and logs for WebSocket clients: `eth_subscribe` of JSON-RPC, from execution events.
//!
//! [`Gateway`] sends the updates of [`Blocks`] to each subscription. A gap is reported, and the connection stays open.
//!
//! All clients share one history of updates, in which each subscription has a position. A slow client delays nobody,
//! and takes no more memory than a fast client. A client that falls too far behind gets a report of its losses.
//!
//! The crate `eventring-door` accepts the connections, and tasks of `tokio` serve them.
//!
//! | file | idea |
//! |---|---|
//! | `visit` | one connection, from its request to its end |
//! | `client` | one client: its requests, and the messages to it |
//! | `requests`, `messages` | JSON-RPC |
//! | `turns` | the order in which clients get their messages |
//! | `hub`, `notification` | the last notifications, which all clients share |
//! | `params`, `subscription` | a subscription's parameters and messages |
//! | `render` | headers and logs as Ethereum nodes write them |

#![forbid(unsafe_code)]

mod client;
mod hub;
mod messages;
mod notification;
mod params;
mod render;
mod requests;
mod subscription;
mod turns;
mod visit;

use eventring_door::Door;
use eventring_exec::{BlockUpdate, Blocks, NextUpdate};
use hub::Hub;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use turns::BUSY_OF_ROUND;

/// The longest wait between two looks at whether all is over.
const TIMEOUT: Duration = Duration::from_millis(20);
/// The number of threads that serve clients at most.
const WORKERS_MAX: usize = 4;

/// The number of connections that have not asked yet. If there are more, the oldest one is closed.
const WAITING_MAX: usize = 512;
/// The longest time from the end to that of all connections.
const END_LIMIT: Duration = Duration::from_millis(2500);

/// The bytes that are asked for what waits to be sent to a client, and for what it sends. Linux takes twice as many,
/// with all that belongs to them. Without these limits the system lets a connection have megabytes.
const SENT_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 32 << 10;

/// A listener for WebSocket clients.
#[derive(Debug)]
pub struct Gateway {
    listener: TcpListener,
    origins: Vec<String>,
    linger: Option<Duration>,
}

/// What a gateway has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct GatewayStats {
    /// The clients that came.
    pub clients: u64,
    /// The clients that were refused: there were too many, or they are web pages of another origin.
    pub refused: u64,
    /// The notifications about blocks.
    pub notifications: u64,
    /// The notifications that clients lost because they were too slow.
    pub lost: u64,
}

impl Gateway {
    /// Listens at an address, for example `127.0.0.1:8545`. Nobody is asked who they are: an address that others can
    /// reach gives them everything that is in the ring.
    ///
    /// # Errors
    /// The address is malformed, is in use, or is not one of this host.
    pub fn listen(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // All its connections get the same.
        set_socket_send_buffer_size(&listener, SENT_BYTES)?;
        set_socket_recv_buffer_size(&listener, READ_BYTES)?;
        Ok(Self { listener, origins: Vec::new(), linger: None })
    }

    /// Lets web pages of these origins connect, for example `https://example.org`; `*` stands for all. Without it none
    /// may: a browser lets every page connect to the addresses of its host.
    #[must_use]
    pub fn allow_origins(self, origins: Vec<String>) -> Self {
        Self { origins, ..self }
    }

    /// Ends this long after the node's ring has ended, if no other one has come.
    #[must_use]
    pub fn linger(self, limit: Duration) -> Self {
        Self { linger: Some(limit), ..self }
    }

    /// Returns the address at which it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Tells clients about blocks, until `is_over` returns true or no more blocks will come. Ends within three seconds
    /// then, whatever clients do.
    ///
    /// # Errors
    /// The system has no more file descriptors, or no memory.
    pub fn serve(self, blocks: &mut Blocks, is_over: impl Fn() -> bool) -> io::Result<GatewayStats> {
        let workers = std::thread::available_parallelism().map_or(1, NonZero::get).min(WORKERS_MAX);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.event_interval(BUSY_OF_ROUND).global_queue_interval(BUSY_OF_ROUND);
        let runtime = runtime.worker_threads(workers).enable_all().build()?;
        // Busy clients do not hold up those that come: these have a thread of their own.
        let entrance = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let door = entrance.block_on(async { Door::open(self.listener, WAITING_MAX) })?;
        let (hub, origins) = (Hub::new(), Arc::<[String]>::from(self.origins));
        let (visited, clients) = (hub.clone(), runtime.handle().clone());
        let visit =
            move |stream, waiting| visit::visit(stream, waiting, visited.clone(), origins.clone(), clients.clone());
        let serving = door.serve(hub.ended(), END_LIMIT, visit);
        let serving = std::thread::spawn(move || entrance.block_on(serving));
        let mut notifications = 0;
        while !is_over() {
            match blocks.next_timeout(TIMEOUT) {
                NextUpdate::Update(BlockUpdate::Changed(update)) => hub.changed(update),
                NextUpdate::Update(BlockUpdate::Problem(problem)) => hub.problem(&problem),
                NextUpdate::Update(_) => continue,
                NextUpdate::TimedOut => {
                    let ended = blocks.ended_since().map(|since| Instant::now().saturating_duration_since(since));
                    if ended.zip(self.linger).is_some_and(|(ended, limit)| ended >= limit) {
                        break;
                    }
                    continue;
                }
                NextUpdate::Ended => break,
            }
            notifications += 1;
        }
        hub.set_ended();
        _ = serving.join();
        runtime.shutdown_background();
        let [clients, refused] = [&hub.clients, &hub.refused].map(|count| count.load(Ordering::Relaxed));
        Ok(GatewayStats { clients, refused, notifications, lost: hub.lost() })
    }
}
