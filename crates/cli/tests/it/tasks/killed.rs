//! What `open` and `tasks` say of a killed program is what the program has written down itself, until the kill.

use super::{recording, runtime, tasks};
use crate::fixtures::*;
use eventring_stress::child::place as handed_over;
use eventring_tokio::Task;
use eventring_tokio::sync::Mutex;
use tokio::sync::oneshot;
use tracing::Span;

/// The threads, and the long spans of each.
const THREADS: u64 = 8;
const SPANS: u64 = 1250;
/// The pairs of tasks that wait for each other.
const PAIRS: u64 = 4;

/// The words of the account: for each thread and for the runtime what is in motion, plus one, or 0; the id of each span
/// that is open; and the two ids of each pair that waits.
const MOTIONS: u64 = THREADS + 1;
const WORDS: u64 = MOTIONS + THREADS * SPANS + 2 * PAIRS;

/// What the program writes down. The file outlives it: a kill loses nothing that was written.
#[derive(Clone)]
struct Account(Arc<File>);

impl Account {
    fn set(&self, word: u64, value: u64) {
        self.0.write_all_at(&value.to_le_bytes(), word * 8).unwrap();
    }

    /// Does what changes a thing, which is in motion meanwhile.
    fn moves<R>(&self, who: u64, what: u64, change: impl FnOnce() -> R) -> R {
        self.set(who, what + 1);
        let result = change();
        self.set(who, 0);
        result
    }

    fn read(&self) -> Vec<u64> {
        let mut bytes = vec![0; (WORDS * 8) as usize];
        self.0.read_exact_at(&mut bytes, 0).unwrap();
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

fn account_path() -> PathBuf {
    handed_over().with_extension("account")
}

/// Opens and closes spans for ever, and floods the rings between.
fn opens_and_closes(account: &Account, thread: u64) {
    let mut spans: Vec<Option<Span>> = (0..SPANS).map(|_| None).collect();
    let mut random = thread + 1;
    loop {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let slot = random % SPANS;
        let word = MOTIONS + thread * SPANS + slot;
        account.moves(thread, slot, || match spans[slot as usize].take() {
            Some(span) => {
                drop(span);
                account.set(word, 0);
            }
            None => {
                let span = info_span!(parent: None, "held", slot, note = "a text that has no room in a cell");
                account.set(word, span.id().unwrap().into_u64());
                spans[slot as usize] = Some(span);
            }
        });
        for n in 0..20 {
            info_span!("flood", n).in_scope(|| info!(n, "over"));
        }
    }
}

/// Makes two tasks that wait for each other, and returns their ids.
async fn deadlock() -> ([u64; 2], Vec<tokio::task::JoinHandle<()>>) {
    let locks = Arc::new([Mutex::new(0), Mutex::new(1)]);
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let (mut ids, mut handles) = ([0; 2], Vec::new());
    for first in 0..2 {
        let (locks, both, (tell, told)) = (locks.clone(), both.clone(), oneshot::channel());
        handles.push(tokio::spawn(Task::new("waits", async move {
            let _held = locks[first].lock().await;
            tell.send(Span::current().id().unwrap().into_u64()).unwrap();
            both.wait().await;
            drop(locks[1 - first].lock().await);
        })));
        ids[first] = told.await.unwrap();
    }
    // Long enough for both to wait.
    tokio::time::sleep(Duration::from_millis(5)).await;
    (ids, handles)
}

fn plays_until_it_is_killed() {
    recording((15, 21));
    let account = Account(Arc::new(File::options().write(true).open(account_path()).unwrap()));
    for thread in 0..THREADS {
        let account = account.clone();
        thread::spawn(move || opens_and_closes(&account, thread));
    }
    runtime().block_on(async {
        let mut pairs: Vec<Option<Vec<tokio::task::JoinHandle<()>>>> = (0..PAIRS).map(|_| None).collect();
        for turn in 0.. {
            let pair = turn % PAIRS;
            let word = MOTIONS + THREADS * SPANS + 2 * pair;
            account.set(THREADS, pair + 1);
            if let Some(handles) = pairs[pair as usize].take() {
                for handle in handles {
                    handle.abort();
                    // The second one may have got the lock of the first.
                    let _ = handle.await;
                }
                account.set(word, 0);
            } else {
                let (ids, handles) = deadlock().await;
                (0..2).for_each(|at| account.set(word + at, ids[at as usize]));
                pairs[pair as usize] = Some(handles);
            }
            account.set(THREADS, 0);
            if turn == PAIRS {
                say("ready");
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn what_was_open_and_who_waited_is_told_after_kills_at_any_moment() {
    let name = plays!(plays_until_it_is_killed());
    let kills: u64 = std::env::var("EVENTRING_TABLE_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let (mut seen, mut moving) = ([0, 0], 0);
    for kill in 0..kills {
        let (_dir, [ring]) = places(["shop"]);
        let path = ring.with_extension("account");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(WORDS * 8).unwrap();
        let mut child = Talk::told(name, "works", &ring, "ready");
        thread::sleep(Duration::from_micros(kill * 7919 % 100_000));
        child.kill();

        let account = Account(Arc::new(file)).read();
        let opened = run!("open", &ring, "--json").json();
        let of_name = |name: &str| -> BTreeSet<u64> {
            let spans = opened["spans"].list().iter().filter(|span| span["name"] == name);
            spans.map(|span| span["id"].number()).collect()
        };
        let (mut open, mut known) = (of_name("held"), 0);
        for thread in 0..THREADS {
            for slot in 0..SPANS {
                let id = account[(MOTIONS + thread * SPANS + slot) as usize];
                let is_moving = account[thread as usize] == slot + 1;
                let is_open = open.remove(&id);
                assert!(is_moving || is_open == (id != 0), "{thread}, {slot}: {id} is open: {is_open}");
                known += usize::from(is_open);
            }
        }
        // A span in motion may be open before its id is written down.
        let motions = account[..THREADS as usize].iter().filter(|motion| **motion != 0).count();
        assert!(open.len() <= motions, "{motions} are in motion, and {open:?} are open");
        assert_eq!((&opened["may_have_closed"], &opened["not_tracked"]), (&0.into(), &0.into()));

        let answer = tasks(&ring, &[]);
        let listed = answer["tasks"].list().iter();
        let states: HashMap<u64, &str> = listed.map(|task| (task["id"].number(), task["state"].text())).collect();
        let mut deadlocks: Vec<Vec<u64>> = serde_json::from_value(answer["deadlocks"].clone()).unwrap();
        deadlocks.iter_mut().for_each(|cycle| cycle.sort_unstable());
        for pair in 0..PAIRS {
            let word = (MOTIONS + THREADS * SPANS + 2 * pair) as usize;
            let mut ids = account[word..word + 2].to_vec();
            ids.sort_unstable();
            let is_moving = account[THREADS as usize] == pair + 1;
            let before = deadlocks.len();
            deadlocks.retain(|cycle| *cycle != ids);
            let is_told = deadlocks.len() < before;
            assert!(is_moving || is_told == (account[word] != 0), "{pair}: {ids:?} of {}", answer["deadlocks"]);
            let waiting = ids.iter().filter(|id| states.get(id) == Some(&"idle")).count();
            assert!(is_moving || account[word] == 0 || waiting == 2, "{pair}: {ids:?} of {states:?}");
            seen[1] += u64::from(is_told);
        }
        assert!(deadlocks.len() <= usize::from(account[THREADS as usize] != 0), "{deadlocks:?}");
        seen[0] += known as u64;
        moving += motions;
    }
    // The controls: there was much to tell, and kills came in the middle of changes.
    assert!(seen[0] > kills * 500 && seen[1] > kills / 2, "{seen:?}");
    println!(
        "{kills} kills: {} open spans and {} deadlocks were told, {moving} changes were under way",
        seen[0], seen[1]
    );
}
