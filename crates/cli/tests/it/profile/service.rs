//! A small service with planted faults: one executor of one thread, which handles requests one after the other.

use crate::fixtures::*;
use eventring_stress::random::Random;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::os::fd::AsRawFd as _;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Barrier, Mutex};
use std::thread::sleep;
use tracing::field::Empty;

/// The kinds of faults. Two of them have several forms.
pub const KINDS: [&str; 6] = ["lock", "processor", "child", "executor", "blocking", "computing"];
const BLOCKING: [&str; 4] = ["fsync", "pages", "pipe", "sleep"];
const EXECUTOR: [&str; 2] = ["executor", "silent"];
const LONG: Duration = Duration::from_millis(40);
/// The places in a request.
const PLACES: u64 = 3;
const FILE_BYTES: usize = 64 << 20;

/// Serves requests with planted faults, and ends the process. `part` is `serve SEED FAULTS`.
pub fn serve(part: &str) -> ! {
    let numbers: Vec<u64> = part.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [seed, faults] = numbers[..] else { panic!("{part}") };
    let recording = eventring::tracing::try_init(format!("{}:17:24", child::place().display())).unwrap();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // A request in twenty is slow.
    let count = (20 * faults).max(300);
    let mut planted: Vec<Option<&str>> = vec![None; count as usize];
    for number in 0..faults {
        let fault = match KINDS[number as usize % KINDS.len()] {
            "blocking" => BLOCKING[number as usize / KINDS.len() % BLOCKING.len()],
            "executor" => EXECUTOR[number as usize / KINDS.len() % EXECUTOR.len()],
            fault => fault,
        };
        // The first requests find nothing in caches.
        let free: Vec<usize> = (40..planted.len()).filter(|at| planted[*at].is_none()).collect();
        planted[free[random.below(free.len() as u64) as usize]] = Some(fault);
    }
    // Other programs of the machine wait for the service's threads.
    super::roles::pin();
    become_urgent(5);
    let faults = Arc::new(Faults::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for (number, fault) in planted.into_iter().enumerate() {
            let place = random.below(PLACES);
            let request = request(faults.clone(), fault, place);
            let span = info_span!("request", number, shard = number % 5, place, fault, took = Empty, ran = Empty);
            measured(request).instrument(span).await;
            tokio::time::sleep(Duration::from_micros(random.below(1500))).await;
        }
    });
    drop(recording);
    std::process::exit(0);
}

/// Notes in the span how long a request took, and how long its thread had a processor, in nanoseconds.
async fn measured(request: impl Future<Output = ()>) {
    let processor = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let (begin, ran) = (Instant::now(), processor());
    request.await;
    let (took, ran) = (begin.elapsed().as_nanos() as u64, processor() - ran);
    tracing::Span::current().record("took", took).record("ran", ran);
}

/// Gives this thread, and those that it starts, a place before all usual threads.
fn become_urgent(priority: i32) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live as long as the call.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        black_box((0..500_u64).fold(1, |word, n| black_box(word ^ n.wrapping_mul(31))));
    }
}

async fn request(faults: Arc<Faults>, fault: Option<&str>, place: u64) {
    for at in 0..PLACES {
        compute(Duration::from_micros(60));
        let fault = fault.filter(|_| at == place);
        match fault {
            Some(fault @ ("executor" | "silent")) => {
                // Another task is in the executor's queue before this one.
                let housekeeping = async { compute(LONG) };
                if fault == "silent" {
                    tokio::spawn(housekeeping);
                } else {
                    tokio::spawn(housekeeping.instrument(info_span!(parent: None, "housekeeping")));
                }
                tokio::task::yield_now().await;
            }
            Some(fault) => faults.happen(fault),
            None => {}
        }
        let query = info_span!("query", at);
        async {
            compute(Duration::from_micros(if fault == Some("child") { 20_000 } else { 30 }));
            tokio::time::sleep(if fault == Some("child") { LONG } else { Duration::from_micros(100) }).await;
        }
        .instrument(query)
        .await;
    }
}

/// What happens to requests.
struct Faults {
    lock: Arc<Mutex<()>>,
    holder: Sender<Arc<Barrier>>,
    hog: Sender<()>,
    file: File,
    memory: *const u8,
    pipe: Mutex<std::io::PipeReader>,
    writer: Sender<()>,
}

impl Faults {
    fn new() -> Self {
        let lock = Arc::new(Mutex::new(()));
        let (holder, asked) = channel::<Arc<Barrier>>();
        let held = lock.clone();
        start("holder", move || {
            for has_begun in asked {
                let guard = held.lock().unwrap();
                has_begun.wait();
                sleep(LONG);
                drop(guard);
            }
        });
        let (hog, asked) = channel::<()>();
        start("hog", move || {
            become_urgent(20);
            asked.iter().for_each(|()| compute(LONG));
        });
        let (pipe, mut input) = std::io::pipe().unwrap();
        let (writer, asked) = channel::<()>();
        start("writer", move || {
            for () in asked {
                sleep(LONG);
                input.write_all(&[7]).unwrap();
            }
        });
        // The rings may lie in memory, and this must not.
        let path = std::env::temp_dir().join(format!("eventring-faults-{}", std::process::id()));
        let mut file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        fs::remove_file(path).unwrap();
        file.write_all(&vec![7; FILE_BYTES]).unwrap();
        file.sync_all().unwrap();
        // SAFETY: a new mapping of a file that nobody makes shorter.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), FILE_BYTES, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: as above; pages are to come one at a time.
        unsafe { libc::madvise(memory, FILE_BYTES, libc::MADV_RANDOM) };
        Self { lock, holder, hog, file, memory: memory.cast(), pipe: Mutex::new(pipe), writer }
    }

    fn happen(&self, fault: &str) {
        match fault {
            "lock" => {
                let has_begun = Arc::new(Barrier::new(2));
                self.holder.send(has_begun.clone()).unwrap();
                has_begun.wait();
                drop(self.lock.lock());
            }
            "processor" => {
                self.hog.send(()).unwrap();
                compute(Duration::from_micros(500));
            }
            "fsync" => {
                let begin = Instant::now();
                while begin.elapsed() < LONG {
                    (&self.file).write_all(&[7; 4096]).unwrap();
                    self.file.sync_all().unwrap();
                }
            }
            "pages" => self.read_pages(),
            "pipe" => {
                self.writer.send(()).unwrap();
                self.pipe.lock().unwrap().read_exact(&mut [0]).unwrap();
            }
            "sleep" => sleep(LONG),
            "computing" => compute(LONG),
            _ => {}
        }
    }

    /// Reads pages of a file that have to come from the disk.
    fn read_pages(&self) {
        // SAFETY: the mapping is there as long as the process. Its pages are forgotten, and come again.
        unsafe { libc::madvise(self.memory.cast_mut().cast(), FILE_BYTES, libc::MADV_DONTNEED) };
        // SAFETY: the call forgets pages of the file, and touches no memory of the process.
        unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let begin = Instant::now();
        for page in (0..FILE_BYTES).step_by(4096) {
            // SAFETY: the page is inside of the mapping.
            black_box(unsafe { self.memory.wrapping_add(page).read_volatile() });
            if begin.elapsed() > LONG {
                break;
            }
        }
    }
}

// SAFETY: the memory is only read.
unsafe impl Send for Faults {}
// SAFETY: as above.
unsafe impl Sync for Faults {}

fn start(name: &str, body: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
}
