//! A small shop: an HTTP service on the loopback interface with an embedded SQLite. The program also sends the
//! customers' requests.
//!
//! Only the set-up in `main` uses eventring. The spans and log records are those of plain `tracing`.
//!
//! ```console
//! $ cargo run --release -p eventring-http-service --example http_service -- --requests 100000 --ring shop
//! $ eventring watch shop                       # meanwhile, in another terminal
//! $ eventring capture shop -o shop.evc         # until the service ends
//! $ eventring export shop.evc --view span      # shop.perfetto-trace, for https://ui.perfetto.dev
//! ```
//!
//! - `--tasks` also records the tasks of customers and queries ([TOKIO](../../docs/TOKIO.md)).
//! - `--slow-every 1000 --slow-ms 50` delays by 50 ms each span `request` whose field `number` is a multiple of 1,000.
//! - `--slow-how` gives the delay another cause than a timer, for example `lock`. `eventring why` finds the cause.

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use eventring::tracing::{PerfRecorder, RecorderLayer, RecorderSubscriber, TargetFilter};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tracing::subscriber::Interest;
use tracing::{Instrument as _, Span, debug, field, info, info_span, instrument, span, warn};
use tracing_subscriber::layer::SubscriberExt as _;

/// The number of items that the shop has.
const ITEMS: u64 = 100;
static RECORDS_TASKS: AtomicBool = AtomicBool::new(false);

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse()?;
    let mut switch: Option<Box<dyn Fn(bool)>> = None;
    let _server = options.server()?;
    // Only these lines of the program use eventring. `RecorderLayer` can be combined with other layers.
    // `RecorderSubscriber` is used alone, and costs less.
    match options.subscriber.as_str() {
        "recorder" => {
            let recorder = options.recorder()?;
            tracing::subscriber::set_global_default(
                RecorderSubscriber::new(recorder.clone()).with_filter(Options::filter()?),
            )?;
            switch = Some(Box::new(move |on| recorder.set_enabled(on)));
        }
        "layer" => {
            let stack = tracing_subscriber::registry().with(RecorderLayer::new(options.recorder()?));
            tracing::subscriber::set_global_default(stack)?;
        }
        "registry" => tracing::subscriber::set_global_default(tracing_subscriber::registry())?,
        "nothing" => {
            tracing::subscriber::set_global_default(Nothing)?;
            switch = Some(Box::new(|on| {
                NOTHING_IS_ON.store(on, Ordering::Relaxed);
                tracing::callsite::rebuild_interest_cache();
            }));
        }
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("shop-worker").build()?;
    match switch {
        Some(switch) if options.rounds > 0 => runtime.block_on(compare(&options, &switch)),
        None if options.rounds > 0 => Err("--rounds goes with the subscribers recorder and nothing".into()),
        _ => runtime.block_on(run(&options)),
    }
}

async fn open(slow: &Arc<SlowRequests>) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let service = shop(slow.clone())?;
    tokio::spawn(async move { axum::serve(listener, service).await });
    info!(%address, "the shop is open");
    Ok(address)
}

/// Sends the same requests with the subscriber switched on and off in turn. Both cases run in one process, so a
/// disturbance of the machine affects both alike.
async fn compare(options: &Options, switch: &dyn Fn(bool)) -> Result<(), Box<dyn Error>> {
    let address = open(&Arc::new(options.slow_requests())).await?;
    let mut pairs = Vec::new();
    for round in 0..=options.rounds {
        // The case that comes first alternates from round to round.
        let mut per_second = [0.0; 2];
        for is_on in [round % 2 == 0, round % 2 == 1] {
            switch(is_on);
            let started = Instant::now();
            visit(address, options).await?;
            per_second[usize::from(is_on)] = options.requests as f64 / started.elapsed().as_secs_f64();
        }
        // The first round warms up.
        if round > 0 {
            pairs.push(per_second);
        }
    }
    let median = |of: fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (off, on, ratio) = (median(|pair| pair[0]), median(|pair| pair[1]), median(|pair| pair[1] / pair[0]));
    println!(
        "{} rounds of {} requests: {off:.0} requests/s off, {on:.0} on, ratio {ratio:.3}",
        options.rounds, options.requests
    );
    Ok(())
}

async fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let slow = Arc::new(options.slow_requests());
    let address = open(&slow).await?;
    let started = Instant::now();
    let failed = visit(address, options).await?;
    let seconds = started.elapsed().as_secs_f64();
    let per_second = options.requests as f64 / seconds;
    let planted = slow.planted.load(Ordering::Relaxed);
    info!(requests = options.requests, failed, "the shop closes");
    if options.json {
        let object = json!({
            "requests": options.requests, "failed": failed, "seconds": seconds, "requests_per_second": per_second,
            "subscriber": options.subscriber, "ring": options.ring, "slow_planted": planted,
        });
        println!("{object}");
    } else {
        let slow = if options.slow_every > 0 { format!(", {planted} slow planted") } else { String::new() };
        println!("{} requests in {seconds:.2} s: {per_second:.0} requests/s, {failed} failed{slow}", options.requests);
    }
    Ok(())
}

/// The options of the command line.
struct Options {
    requests: u64,
    /// The number of customers who buy at the same time.
    customers: u64,
    ring: String,
    subscriber: String,
    keep: bool,
    json: bool,
    /// True if the service has a server, through which other programs switch on what it records.
    server: bool,
    /// The number of rounds that compare the subscriber on and off; 0 for a single run without comparison.
    rounds: usize,
    /// Every request with a number that is a multiple of this one is slow; 0 for none.
    slow_every: u64,
    /// Time in milliseconds that a slow request sleeps.
    slow_ms: u64,
    /// What a slow request does in this time.
    slow_how: String,
}

impl Options {
    fn parse() -> Result<Self, Box<dyn Error>> {
        const USAGE: &str = "options: --requests N  --customers N  --ring NAME  --subscriber recorder|layer|registry|nothing|none  --keep  --json  --server  --tasks  --rounds N  --slow-every N  --slow-ms MS  --slow-how waiting|computing|lock|sleeping|child|executor";
        let mut options = Self {
            requests: 20_000,
            customers: 16,
            ring: "shop".into(),
            subscriber: "recorder".into(),
            keep: false,
            json: false,
            server: false,
            rounds: 0,
            slow_every: 0,
            slow_ms: 100,
            slow_how: "waiting".into(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value; {USAGE}"));
            match argument.as_str() {
                "--requests" => options.requests = value()?.parse()?,
                "--customers" => options.customers = value()?.parse()?,
                "--ring" => options.ring = value()?,
                "--subscriber" => options.subscriber = value()?,
                "--keep" => options.keep = true,
                "--json" => options.json = true,
                "--server" => options.server = true,
                "--tasks" => RECORDS_TASKS.store(true, Ordering::Relaxed),
                "--rounds" => options.rounds = value()?.parse()?,
                "--slow-every" => options.slow_every = value()?.parse()?,
                "--slow-ms" => options.slow_ms = value()?.parse()?,
                "--slow-how" => options.slow_how = value()?,
                _ => return Err(format!("{argument} is not known; {USAGE}").into()),
            }
        }
        if !["recorder", "layer", "registry", "nothing", "none"].contains(&options.subscriber.as_str()) {
            return Err(format!("--subscriber {} is not known; {USAGE}", options.subscriber).into());
        }
        Ok(options)
    }

    fn slow_requests(&self) -> SlowRequests {
        let pause = Duration::from_millis(self.slow_ms);
        let how = self.slow_how.clone();
        SlowRequests { every: self.slow_every, pause, how, requests: AtomicU64::new(0), planted: AtomicU64::new(0) }
    }

    /// Starts the server, through which `eventring enable shop 'http_service=debug'` switches on what the service
    /// records. By default, everything is on already: start the service with EVENTRING_FILTER=info to see a difference.
    fn server(&self) -> Result<Option<eventring::control::Server>, Box<dyn Error>> {
        Ok(if self.server { Some(eventring::control::Server::start()?) } else { None })
    }

    /// Returns the filter that the environment variable gives. Without it, everything is recorded.
    fn filter() -> Result<TargetFilter, Box<dyn Error>> {
        match std::env::var("EVENTRING_FILTER") {
            Ok(filter) if !filter.is_empty() => Ok(filter.parse()?),
            _ => Ok(TargetFilter::all()),
        }
    }

    /// Makes the recorder. It has several rings under one name, and each thread records to one of them.
    fn recorder(&self) -> Result<PerfRecorder, Box<dyn Error>> {
        let is_set = |name| std::env::var(name).is_ok_and(|value| value == "1");
        let recorder = PerfRecorder::builder()
            .config(&self.ring)
            // The rings of a second instance are called `shop~2`.
            .numbered(true)
            .keep(self.keep || is_set("EVENTRING_KEEP"))
            .in_core_files(is_set("EVENTRING_CORE"))
            .build()?;
        if let Some(error) = eventring::control::environment_error() {
            eprintln!("warning: no server was started: {error}");
        }
        Ok(recorder)
    }
}

/// A subscriber that wants every span and log record, and does nothing with them. It shows the cost of `tracing`
/// itself.
struct Nothing;

static NOTHING_IS_ON: AtomicBool = AtomicBool::new(true);

impl tracing::Subscriber for Nothing {
    fn register_callsite(&self, _: &'static tracing::Metadata<'static>) -> Interest {
        if NOTHING_IS_ON.load(Ordering::Relaxed) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The database, which the handlers share.
type Database = Arc<Mutex<Connection>>;

/// The requests that are made slow on purpose.
struct SlowRequests {
    every: u64,
    pause: Duration,
    how: String,
    /// Number of requests so far, of the whole process.
    requests: AtomicU64,
    /// Number of slow requests so far.
    planted: AtomicU64,
}

impl SlowRequests {
    /// Returns the number of the next request, from 1.
    fn next(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Is slow if it is the turn of the request with this number.
    async fn wait(&self, number: u64) {
        if self.every > 0 && number.is_multiple_of(self.every) {
            self.planted.fetch_add(1, Ordering::Relaxed);
            self.be_slow().await;
        }
    }

    async fn be_slow(&self) {
        let pause = self.pause;
        match self.how.as_str() {
            "computing" => compute(pause),
            "sleeping" => std::thread::sleep(pause),
            "child" => tokio::time::sleep(pause).instrument(info_span!("retry")).await,
            "lock" => {
                let (lock, begun) = (Arc::new(Mutex::new(())), Arc::new(Barrier::new(2)));
                let (held, has_begun) = (lock.clone(), begun.clone());
                std::thread::spawn(move || {
                    let _guard = held.lock();
                    has_begun.wait();
                    std::thread::sleep(pause);
                });
                begun.wait();
                drop(lock.lock());
            }
            "executor" => {
                // Two tasks for each thread of the executor, and none of them gives its thread back before it is done.
                (0..2 * tokio::runtime::Handle::current().metrics().num_workers()).for_each(|_| {
                    tokio::spawn(async move { compute(pause) });
                });
                // This task is behind them. (It is woken at once, and not when its thread has nothing to do.)
                let mut was_polled = false;
                std::future::poll_fn(|context| {
                    if std::mem::replace(&mut was_polled, true) {
                        return std::task::Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    std::task::Poll::Pending
                })
                .await;
            }
            _ => tokio::time::sleep(pause).await,
        }
    }
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn shop(slow: Arc<SlowRequests>) -> Result<Router, rusqlite::Error> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(
        "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER);
         CREATE TABLE orders (id INTEGER PRIMARY KEY, item INTEGER, quantity INTEGER);",
    )?;
    for id in 0..ITEMS {
        connection.execute("INSERT INTO items VALUES (?1, ?2, 1000)", (id as i64, format!("item {id}")))?;
    }
    Ok(Router::new()
        .route("/items/{id}", get(item))
        .route("/orders", post(order))
        .layer(middleware::from_fn_with_state(slow, in_span))
        .with_state(Arc::new(Mutex::new(connection))))
}

/// Makes a span of each request. A slow request sleeps inside its span.
async fn in_span(State(slow): State<Arc<SlowRequests>>, request: Request, next: Next) -> Response {
    let (number, path) = (slow.next(), request.uri().path());
    let span = info_span!("request", number, method = %request.method(), path, status = field::Empty);
    let answer = async {
        slow.wait(number).await;
        next.run(request).await
    };
    let response = answer.instrument(span.clone()).await;
    span.record("status", response.status().as_u16());
    response
}

type Answer = Result<Json<Value>, (StatusCode, String)>;

async fn item(State(database): State<Database>, Path(id): Path<u64>) -> Answer {
    let sql = "SELECT name, stock FROM items WHERE id = ?1";
    let found = query(database, sql, move |connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([id as i64], |row| {
            Ok(json!({ "name": row.get::<_, String>(0)?, "stock": row.get::<_, i64>(1)? }))
        })?;
        rows.collect()
    })
    .await?;
    found.into_iter().next().map(Json).ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no item {id}")))
}

async fn order(State(database): State<Database>, Query(wanted): Query<HashMap<String, u64>>) -> Answer {
    let number =
        |name: &str| wanted.get(name).copied().ok_or((StatusCode::BAD_REQUEST, format!("`{name}` is missing")));
    let (item, quantity) = (number("item")?, number("quantity")?);
    let sql = "UPDATE items SET stock = stock - ?2 WHERE id = ?1 AND stock >= ?2 RETURNING stock";
    let left = query(database.clone(), sql, move |connection| {
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_map((item as i64, quantity as i64), |row| row.get::<_, i64>(0))?.collect()
    })
    .await?;
    let Some(left) = left.first().copied() else {
        warn!(item, quantity, "sold out");
        return Err((StatusCode::CONFLICT, "sold out".into()));
    };
    let sql = "INSERT INTO orders (item, quantity) VALUES (?1, ?2) RETURNING id";
    let order = query(database, sql, move |connection| {
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_map((item as i64, quantity as i64), |row| row.get::<_, i64>(0))?.collect()
    })
    .await?;
    debug!(item, left, "ordered");
    Ok(Json(json!({ "order": order.first(), "left": left })))
}

/// Runs a query on a thread that may block. A span covers the query.
#[instrument(level = "info", skip_all, fields(sql, rows = field::Empty))]
async fn query<T: Send + 'static>(
    database: Database,
    sql: &'static str,
    work: impl FnOnce(&Connection) -> rusqlite::Result<Vec<T>> + Send + 'static,
) -> Result<Vec<T>, (StatusCode, String)> {
    let span = Span::current();
    span.record("sql", sql);
    let work = move || {
        let _entered = info_span!(parent: &span, "sqlite").entered();
        let rows = work(&database.lock().unwrap_or_else(PoisonError::into_inner));
        if let Ok(rows) = &rows {
            span.record("rows", rows.len());
        }
        rows
    };
    let failed = |error: String| {
        warn!(error, "query failed");
        (StatusCode::INTERNAL_SERVER_ERROR, error)
    };
    let rows = match records_tasks() {
        true => eventring_tokio::spawn_blocking_named("query", work),
        false => tokio::task::spawn_blocking(work),
    };
    let rows = rows.await.map_err(|error| failed(error.to_string()))?;
    rows.map_err(|error| failed(error.to_string()))
}

/// Returns true if the tasks of customers and queries are recorded, too (`--tasks`).
fn records_tasks() -> bool {
    RECORDS_TASKS.load(Ordering::Relaxed)
}

/// Sends the requests, and returns how many of them failed. A request for a product that is sold out has not failed.
async fn visit(address: SocketAddr, options: &Options) -> Result<u64, Box<dyn Error>> {
    let next = Arc::new(AtomicU64::new(0));
    let customers: Vec<_> = (0..options.customers)
        .map(|customer| {
            let next = next.clone();
            let span = info_span!("customer", customer);
            let visits = customer_visits(address, options.requests, next).instrument(span);
            if records_tasks() { eventring_tokio::spawn_named("customer", visits) } else { tokio::spawn(visits) }
        })
        .collect();
    let mut failed = 0;
    for customer in customers {
        failed += customer.await??;
    }
    Ok(failed)
}

async fn customer_visits(address: SocketAddr, requests: u64, next: Arc<AtomicU64>) -> std::io::Result<u64> {
    let mut connection = BufReader::new(TcpStream::connect(address).await?);
    connection.get_ref().set_nodelay(true)?;
    let mut failed = 0;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= requests {
            return Ok(failed);
        }
        let item = number.wrapping_mul(7919) % ITEMS;
        let line = match number % 4 {
            0 => format!("POST /orders?item={item}&quantity={}", 1 + number % 3),
            _ => format!("GET /items/{item}"),
        };
        let request = format!("{line} HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n");
        connection.get_mut().write_all(request.as_bytes()).await?;
        if !matches!(status(&mut connection).await?, 200 | 409) {
            failed += 1;
        }
    }
}

/// Reads a response and returns its status.
async fn status(connection: &mut BufReader<TcpStream>) -> std::io::Result<u16> {
    let mut line = String::new();
    let (mut status, mut body_bytes) = (0, 0);
    loop {
        line.clear();
        if connection.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
            status = rest.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            body_bytes = value.trim().parse().unwrap_or(0);
        } else if line.trim().is_empty() {
            let mut body = vec![0; body_bytes];
            connection.read_exact(&mut body).await?;
            return Ok(status);
        }
    }
}
