//! Users who may switch, and make as many and as long filter overrides as they can, without end.

use crate::fixtures::*;
use crate::served::{GUESTS, OWNER, Served, as_user, message, program_with, send};
use eventring::control::{ControlError, ControlErrorKind, OverrideTime, Process};
use rustix::net::RecvFlags;

/// Plays the program. Its filter takes filter overrides.
fn program() {
    program_with(|| {
        let spans = PerfRecorder::builder().anonymous().shifts(15, 21).prefault(false).build().unwrap();
        let subscriber = RecorderSubscriber::new(spans).with_filter("info".parse().unwrap());
        tracing::subscriber::set_default(subscriber)
    });
}

/// Returns a filter override of nearly 16 KiB with one directive.
fn long(number: usize) -> String {
    format!("t{number}{}=debug", "x".repeat(16_000))
}

/// Returns a filter override of nearly 16 KiB with as many directives as it has room for.
fn heavy(number: usize) -> String {
    (0..1100).map(|part| format!("t{number}_{part}=debug,")).collect::<String>().trim_end_matches(',').to_owned()
}

/// Makes filter overrides until one is refused. Returns how many were granted, and the reason.
fn fill(process: &Process, filter_override: impl Fn(usize) -> String) -> (usize, String) {
    for number in 0..1025 {
        if let Err(error) = process.add_override(&filter_override(number), OverrideTime::Kept) {
            assert_eq!(error.kind(), ControlErrorKind::TooMany, "{error}");
            return (number, error.to_string());
        }
    }
    panic!("no filter override is refused");
}

#[test]
fn the_overrides_of_a_user_who_was_let_in_are_small_enough_to_be_told() {
    let test = plays!(program());
    let Some(served) = Served::start(test) else { return };
    let (granted, refusal) = as_user(GUESTS[0], || fill(&served.connect().unwrap(), long));
    // The owner's and root's filter overrides have room beside them, until these are too many, too.
    let own = || {
        (0..9).map(|number| served.connect()?.add_override(&long(1000 + number), OverrideTime::Kept)).all(|w| w.is_ok())
    };
    assert!(own() && as_user(OWNER, own));
    for user in [0, OWNER, GUESTS[0]] {
        let state = as_user(user, || served.connect().unwrap().state()).unwrap();
        assert_eq!(state.overrides.len(), granted + 18, "{refusal}");
    }
    let says = "the server has at most 524288 bytes of filter overrides: 131072 of them may be of one other user";
    assert!((4..9).contains(&granted) && refusal.contains(says), "{granted}: {refusal}");
}

#[test]
fn a_user_who_changes_long_overrides_without_end_gets_a_fifth_of_a_processor() {
    let test = plays!(program());
    let Some(served) = Served::start(test) else { return };
    as_user(GUESTS[0], || {
        (0..7).for_each(|n| _ = served.connect().unwrap().add_override(&heavy(n), OverrideTime::Kept).unwrap())
    });
    let is_over = AtomicBool::new(false);
    // A client's requests wait in its socket, so that the server could answer many of them in each round.
    let flood = || {
        let texts = [heavy(8)].map(|text| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat());
        let changes = [message(5, &[&2_u16.to_le_bytes()[..], &[0; 8], &texts[0]].concat()), message(6, &texts[0])];
        let clients: Vec<OwnedFd> = (0..3).map(|_| served.greeting()).collect();
        let mut buffer = vec![0; 1000];
        for client in &clients {
            rustix::net::recv(client, &mut buffer[..], RecvFlags::empty()).unwrap();
            // The connections before have ended, so there is a place.
            assert_eq!(buffer[6..8], [0x01, 0x80], "no WELCOME");
        }
        while !is_over.load(Ordering::Relaxed) {
            for client in &clients {
                while rustix::net::recv(client, &mut buffer[..], RecvFlags::DONTWAIT).is_ok_and(|(_, bytes)| bytes > 0)
                {
                }
                changes.iter().for_each(|change| _ = send(client, change));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| as_user(GUESTS[0], flood));
        // Some work is free.
        std::thread::sleep(Duration::from_secs(2));
        let work = served.work_for(5);
        // Others have their turn meanwhile.
        let start = Instant::now();
        let ask = || served.connect().and_then(|process| process.files());
        let is_late = |error: &ControlError| error.kind() == ControlErrorKind::NoAnswer;
        // On a busy machine, one client's timeout may not suffice.
        let rings = (0..5).map(|_| ask()).find(|rings| !rings.as_ref().is_err_and(is_late)).unwrap_or_else(ask);
        let waited = start.elapsed();
        is_over.store(true, Ordering::Relaxed);
        assert!(work < 0.27, "the server works {work} of the time");
        assert!(rings.is_ok_and(|rings| rings.len() == 2) && waited < Duration::from_secs(30), "{waited:?}");
        assert!(work > 0.01, "the server has little to do: {work}");
    });
}
