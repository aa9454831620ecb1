//! A server of axum and hyper: its tasks, polls and wakes are counted exactly.

use super::counters::{Counters, check};
use super::{LAYERED, named, recording, runtime, tasks};
use crate::fixtures::*;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use eventring_tokio::{JoinSetExt as _, spawn_named};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

const CONNECTIONS: u64 = 8;
const REQUESTS: u64 = 50;

/// A question to the store, and where the answer goes.
type Job = (u64, oneshot::Sender<u64>);

#[derive(Clone)]
struct Shop {
    jobs: mpsc::Sender<Job>,
    counters: Arc<Counters>,
}

/// Doubles a number, by a task of its own that asks the store.
async fn double(State(shop): State<Shop>, Path(number): Path<u64>) -> String {
    let asks = async move {
        let (answer, answered) = oneshot::channel();
        shop.jobs.send((number, answer)).await.unwrap();
        tokio::select! {
            doubled = answered => doubled.unwrap(),
            () = tokio::time::sleep(Duration::from_secs(100)) => unreachable!(),
        }
    };
    spawn_named("request", shop.counters.of(asks)).await.unwrap().to_string()
}

/// Asks on one connection, and checks each answer.
fn client(address: SocketAddr, first: u64) {
    let mut stream = TcpStream::connect(address).unwrap();
    for number in first..first + REQUESTS {
        let is_last = number + 1 == first + REQUESTS;
        let connection = if is_last { "close" } else { "keep-alive" };
        write!(stream, "GET /double/{number} HTTP/1.1\r\nHost: shop\r\nConnection: {connection}\r\n\r\n").unwrap();
        let expected = (2 * number).to_string();
        let (mut answer, mut bytes) = (String::new(), [0; 4096]);
        while answer.split_once("\r\n\r\n").is_none_or(|(_, body)| body != expected) {
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "{answer}");
            answer.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

async fn serve(counters: &Arc<Counters>) {
    let (jobs, mut asked) = mpsc::channel::<Job>(2);
    let store = counters.of(async move {
        while let Some((number, answer)) = asked.recv().await {
            tokio::task::yield_now().await;
            answer.send(2 * number).unwrap();
        }
    });
    let store = spawn_named("store", store);
    let app = Router::new().route("/double/{number}", get(double));
    let app = app.with_state(Shop { jobs, counters: counters.clone() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let clients: Vec<_> = (0..CONNECTIONS).map(|at| thread::spawn(move || client(address, at * REQUESTS))).collect();
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (stream, _) = listener.accept().await.unwrap();
        let served =
            http1::Builder::new().serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.clone()));
        connections.spawn_task("connection", counters.of(served));
    }
    while let Some(served) = connections.join_next().await {
        served.unwrap().unwrap();
    }
    drop(app);
    store.await.unwrap();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn the_tasks_polls_and_wakes_of_a_server_are_those_that_it_counts() {
    let name = plays!({
        recording((18, 24));
        let counters = Arc::new(Counters::default());
        runtime().block_on(serve(&counters));
        counters.say();
        wait_for_parent();
    });
    for by in ["serves", LAYERED] {
        let (_dir, [ring]) = places(["shop"]);
        let mut child = Talk::start(name, by, &ring);
        let counted = child.hear();
        let answer = tasks(&ring, &[]);
        let counts = &answer["counts"];
        check(counts, &counted);
        let all = 1 + CONNECTIONS + CONNECTIONS * REQUESTS;
        assert_eq!((&counts["tasks"], &counts["done"], &answer["lost"]), (&all.into(), &all.into(), &0.into()));
        assert_eq!(answer["deadlocks"], json!([]));
        assert_eq!(named(&answer, "request").len() as u64, CONNECTIONS * REQUESTS);
        // The store answers each request, and waits for the next one.
        let store = named(&answer, "store")[0];
        assert!(store["polls"].number() > CONNECTIONS * REQUESTS, "{store:#}");
        assert!(child.end().success());
    }
}
