//! Blocks and logs for WebSocket clients: `eth_subscribe` of JSON-RPC, from execution events.
//!
//! [`Gateway`] listens, and passes what [`Blocks`] tells on to each subscription. A gap is
//! announced, and the connection stays. Each client has a bounded queue of its own, so one that is slow loses news, is told
//! how many, and delays nobody.
//!
//! | file | idea |
//! |---|---|
//! | `hub` | what was told lately, and who is to be told |
//! | `client` | one connection: requests in, notifications out |
//! | `subscription` | what a client wants to know |
//! | `render` | headers and logs as Ethereum nodes write them |

#![forbid(unsafe_code)]

mod client;
mod hub;
mod render;
mod subscription;

use eventring_exec::{BlockUpdate, Blocks, NextUpdate};
use hub::{Hub, News};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest wait between two looks at whether all is over.
const PATIENCE: Duration = Duration::from_millis(20);
/// The number of clients at a time. Further ones are refused.
const CLIENTS_MAX: usize = 1000;

/// A listener for WebSocket clients.
#[derive(Debug)]
pub struct Gateway {
    listener: TcpListener,
}

/// What a gateway has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GatewayStats {
    /// The clients that came.
    pub clients: u64,
    /// The clients that were refused because there were too many.
    pub refused: u64,
    /// The news about blocks that were told.
    pub news: u64,
    /// The news that clients lost because they were too slow.
    pub lost: u64,
}

impl Gateway {
    /// Listens at an address, for example `127.0.0.1:8545`. Nobody is asked who they are: an address that others can reach
    /// gives them everything that is in the ring.
    ///
    /// # Errors
    /// The address is malformed, is in use, or is not one of this host.
    pub fn listen(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Returns the address at which it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Tells clients about blocks, until `is_over` returns true or no more blocks will come. Each client has a thread.
    pub fn serve(self, mut blocks: Blocks, is_over: impl Fn() -> bool) -> GatewayStats {
        let hub = Arc::new(Hub::default());
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let (mut clients, mut refused) = (0, 0);
                while !has_ended.load(Ordering::Relaxed) {
                    match self.listener.accept() {
                        Ok(_) if hub.clients() >= CLIENTS_MAX => refused += 1,
                        Ok((stream, _)) => {
                            clients += 1;
                            let (hub, has_ended) = (&hub, &has_ended);
                            let queue = hub.join();
                            // Without a thread the connection is closed.
                            let serve = move || {
                                client::serve(stream, hub, &queue, has_ended);
                                hub.leave(&queue);
                            };
                            let _ =
                                std::thread::Builder::new().name("gateway client".into()).spawn_scoped(scope, serve);
                        }
                        Err(_) => std::thread::sleep(PATIENCE),
                    }
                }
                (clients, refused)
            });
            let mut news = 0;
            while !is_over() {
                match blocks.next_timeout(PATIENCE) {
                    NextUpdate::Update(BlockUpdate::Changed(update)) => hub.tell(News::State(update)),
                    NextUpdate::Update(BlockUpdate::Problem(problem)) => hub.tell(News::Gap(problem)),
                    NextUpdate::Update(_) | NextUpdate::TimedOut => continue,
                    NextUpdate::Ended => break,
                }
                news += 1;
            }
            hub.drain(PATIENCE * 50);
            has_ended.store(true, Ordering::Relaxed);
            let (clients, refused) = accepting.join().unwrap_or_default();
            GatewayStats { clients, refused, news, lost: hub.lost() }
        })
    }
}
