//! `eventring top` and `eventring open --watch` in a terminal: keys, sizes, colours, and the terminal at the end.

use crate::fixtures::*;
use crate::terminal::{BEFORE, CTRL_C, DOWN, ENTER, ESC, Terminal, UP};
use std::sync::Barrier;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 50);
/// The titles of the list of threads.
const THREADS: &str = "in, nearest first";

/// Records until the parent closes stdin: a thread waits in a lock, one works, and one is in no span.
fn shop() {
    let recorder = spans_in(child::place()).shifts(17, 23).keep(true).build().unwrap();
    subscriber::set_global_default(RecorderSubscriber::new(recorder)).unwrap();
    let begun = Barrier::new(4);
    thread::scope(|scope| {
        let start = |name: &str, work: &'static (dyn Fn(&Barrier) + Sync)| {
            let begun = &begun;
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, move || work(begun)).unwrap();
        };
        start("waits", &|begun| {
            let _transfer = info_span!("transfer").entered();
            let _lock = info_span!("lock", account = 7).entered();
            begun.wait();
            thread::park();
        });
        start("rests", &|begun| {
            info_span!("warm_up").in_scope(|| ());
            begun.wait();
            thread::park();
        });
        start("works", &|begun| {
            let _service = info_span!("service").entered();
            begun.wait();
            loop {
                let request = info_span!("request").entered();
                info_span!("query").in_scope(|| thread::sleep(Duration::from_millis(2)));
                drop(request);
                info_span!("step").in_scope(|| ());
            }
        });
        begun.wait();
        say("open");
        wait_for_parent();
        std::process::exit(0);
    });
}

/// A running shop, and the directory of its ring.
struct Shop {
    talk: Talk,
    directory: TempDir,
}

impl Shop {
    fn open(test: &str) -> Self {
        let directory = directory();
        let talk = Talk::told(test, "shop", &place(&directory, "shop"), "open");
        Self { talk, directory }
    }

    fn command(&self, verb: &str, options: &[&str]) -> Command {
        let ring = place(&self.directory, "shop");
        program!(verb, &ring, options)
    }
}

/// Returns the line that contains a text.
fn line<'s>(shown: &'s str, text: &str) -> &'s str {
    let found = shown.lines().find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no {text}:\n{shown}"))
}

/// Returns the text without what is different in each run.
fn without_numbers(shown: &str) -> String {
    let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || b".,%".contains(&byte));
    let mut lines = Vec::new();
    for line in shown.lines().map(str::trim) {
        let mut words: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            let is_unit = ["ns", "µs", "ms", "s", "min", "k", "%"].contains(&word) && words.last() == Some(&"N");
            match word {
                _ if is_unit => {}
                _ if number(word) || number(word.trim_end_matches(')')) => {
                    if words.last() != Some(&"N") {
                        words.push("N");
                    }
                }
                _ if word.starts_with("it-") => words.push("PROGRAM"),
                _ => words.push(word),
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

#[test]
fn the_keys_sort_filter_select_pause_and_show_threads_and_the_terminal_is_as_before() {
    let test = plays!(shop());
    let mut shop = Shop::open(test);
    let mut terminal = Terminal::start(shop.command("top", &[]), SMALL);
    let shown = terminal.wait(&["by self time", "query", "step", "lock", "oldest first", "q quit"]);
    assert!(!shown.contains(BEFORE) && line(&shown, "lock").contains("waits"), "{shown}");
    assert!(shown.lines().nth(23).unwrap().starts_with("q quit") && !shown.contains("target"), "{shown}");
    assert!(!terminal.changes().is_empty(), "while it runs, the terminal is not as before");

    for order in ["by rate", "by p99", "by name", "by self time"] {
        terminal.press("s");
        terminal.wait(&[order]);
    }
    terminal.press("/que");
    terminal.wait(&["filter: que▏"]);
    terminal.press(ENTER);
    let is_filtered = |shown: &str| shown.contains("filter: que  q quit") && !shown.contains("step");
    let shown = terminal.wait_for("names with `que`", is_filtered);
    assert!(shown.contains("query") && shown.contains("request"), "{shown}");

    // Two names are shown, so the selection moves between two lines.
    let selected = |shown: &str| shown.lines().position(|line| line.starts_with("> "));
    terminal.press(DOWN);
    let first = selected(&terminal.wait_for("a selection", |shown| selected(shown).is_some())).unwrap();
    terminal.press(DOWN);
    terminal.wait_for("the second line", |shown| selected(shown) == Some(first + 1));
    terminal.press(UP);
    terminal.wait_for("the first line", |shown| selected(shown) == Some(first));
    terminal.press(ENTER);
    terminal.wait(&["the last 1 s:", " 60 s:", "Esc back"]);
    terminal.press(ESC);
    terminal.wait(&["filter: que  q quit", "by self time"]);
    terminal.press(ESC);
    terminal.wait_for("no filter", |shown| shown.contains("step") && !shown.contains("filter:"));

    terminal.press("t");
    let shown = terminal.wait(&[THREADS, "rests", "works", "t back"]);
    let waiting: Vec<&str> = line(&shown, "waits").split_whitespace().collect();
    assert!(matches!(waiting[..], [.., "waits", _tid, "lock", "transfer"]), "{shown}");
    assert!(line(&shown, "rests").ends_with("in no span"), "{shown}");
    terminal.press("/LOCK\r");
    terminal.wait_for("one thread", |shown| shown.contains("waits") && !shown.contains("works"));
    terminal.press(ENTER);
    terminal.wait_for("the span of the thread", |shown| shown.contains("::lock") && shown.contains(" 60 s:"));
    terminal.press(ESC);
    terminal.wait(&[THREADS, "filter: LOCK"]);
    terminal.press("t");
    terminal.wait_for("the names", |shown| shown.contains("by self time") && !shown.contains("filter:"));

    terminal.press("p");
    let paused = terminal.wait(&["paused"]);
    assert_eq!(terminal.watch(Duration::from_millis(1200)), paused, "in a pause, the screen stands still");
    terminal.press("p");
    terminal.wait_for("another frame", |shown| shown.contains("by self time") && !shown.contains("paused"));

    terminal.resize(LARGE);
    let is_large = |shown: &str| shown.lines().nth(49).is_some_and(|line| line.starts_with("q quit"));
    let shown = terminal.wait_for("50 lines", |shown| is_large(shown) && shown.contains("target"));
    // A wide screen has the threads beside the open spans.
    assert!(shown.contains("in a span") && line(&shown, "rests").ends_with("in no span"), "{shown}");
    terminal.resize(SMALL);
    terminal.wait_for("24 lines", |shown| {
        shown.lines().nth(23).is_some_and(|line| line.starts_with("q quit")) && !shown.contains("target")
    });
    assert_eq!(terminal.press_until_end("q").code(), Some(0));
    assert_eq!(terminal.changes(), [""; 0]);
    assert_eq!(terminal.colours(), [""; 0], "NO_COLOR is set");
    shop.talk.end();
}

#[test]
fn without_no_color_there_are_colours_and_ctrl_c_and_sigterm_restore_the_terminal() {
    let test = plays!(shop());
    let mut shop = Shop::open(test);
    let mut command = shop.command("top", &[]);
    command.env_remove("NO_COLOR");
    let mut terminal = Terminal::start(command, LARGE);
    terminal.wait(&["by self time", "query", "lock"]);
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(terminal.changes(), [""; 0]);
    assert_ne!(terminal.colours(), [""; 0]);

    let mut terminal = Terminal::start(shop.command("top", &[]), SMALL);
    terminal.wait(&["by self time", "query", "lock"]);
    signal(&terminal.child, Signal::TERM);
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(terminal.changes(), [""; 0]);

    // The control: a program that is killed cannot restore anything.
    let mut terminal = Terminal::start(shop.command("top", &[]), SMALL);
    terminal.wait(&["by self time", "query", "lock"]);
    terminal.child.kill().unwrap();
    terminal.end();
    assert_eq!(terminal.changes().len(), 4, "modes, screen, cursor and text: {:?}", terminal.changes());
    shop.talk.end();
}

#[test]
fn a_terminal_that_is_closed_ends_the_program_in_it() {
    let test = plays!(shop());
    let mut shop = Shop::open(test);
    for (verb, options, shown) in [("top", &[][..], "by self time"), ("open", &["--watch", "1s"], "transfer")] {
        let mut terminal = Terminal::start(shop.command(verb, options), SMALL);
        terminal.wait(&[shown]);
        assert!(terminal.close().is_some(), "{verb} goes on");
    }
    // A program that ignores SIGHUP, in a pause in which nothing is drawn.
    let ring = place(&shop.directory, "shop");
    let mut ignores = Command::new("sh");
    ignores.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_eventring"), "top", argument(&ring)]);
    let mut terminal = Terminal::start(ignores, SMALL);
    terminal.wait(&["by self time"]);
    terminal.press("p");
    terminal.wait(&["paused"]);
    let status = terminal.close();
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{status:?}");
    shop.talk.end();
}

#[test]
fn a_program_that_is_killed_while_top_watches_leaves_its_last_seconds_on_the_screen() {
    let test = plays!(shop());
    let mut shop = Shop::open(test);
    let mut terminal = Terminal::start(shop.command("top", &[]), SMALL);
    let shown = terminal.wait(&["by self time", "query", "lock"]);
    assert!(!shown.contains("ended"), "{shown}");
    terminal.press("t");
    terminal.wait(&[THREADS, "waits"]);
    shop.talk.kill();
    let shown = terminal.wait(&["these are the last seconds: died", THREADS]);
    // The thread `works` may have been anywhere between two spans.
    let rest: Vec<String> =
        without_numbers(&shown).lines().filter(|line| !line.contains("works")).map(str::to_owned).collect();
    let without_time = |line: &String| line.split(" between ").next().unwrap_or_default().to_owned();
    let rest: Vec<String> = rest[1..].iter().map(without_time).collect();
    insta::assert_snapshot!("threads_of_a_killed_program", rest.join("\n"));
    terminal.press("t");
    terminal.wait(&["these are the last seconds: died", "by self time", "lock"]);
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(terminal.changes(), [""; 0]);
}

#[test]
fn open_with_watch_redraws_and_a_span_that_closes_leaves_the_screen() {
    let (_directory, [ring]) = places(["bank"]);
    let recorder = spans_in(&ring).shifts(17, 23).build().unwrap();
    in_recorder(recorder.clone(), || {
        let _day = info_span!("day").entered();
        let transfer = info_span!("transfer", from = 0);
        let mut terminal = Terminal::start(program!("open", &ring, "--watch", "1s"), SMALL);
        let first = terminal.wait(&["2 spans", "day", "transfer {from=0}", "in no thread"]);
        assert!(!first.contains(BEFORE), "the screen begins at the top: {first}");
        // The time of the screen goes on.
        let second = terminal.wait_for("another frame", |shown| shown.contains("2 spans") && shown != first);
        assert_eq!(without_numbers(&second).matches("transfer").count(), 1, "{second}");
        drop(transfer);
        let is_left = |shown: &str| shown.contains("1 span ") && shown.contains("day") && !shown.contains("transfer");
        terminal.wait_for("one span", is_left);
        terminal.resize(LARGE);
        let _long = info_span!("settle", note = "y".repeat(100)).entered();
        let shown = terminal.wait_for("a long line", |shown| shown.contains(&"y".repeat(100)));
        assert!(shown.contains("2 spans"), "{shown}");
        assert_eq!(terminal.colours(), [""; 0], "NO_COLOR is set");
        // The terminal has its usual modes, so it makes SIGINT of the key.
        terminal.press(CTRL_C);
        assert_eq!(terminal.end().code(), Some(0));
        let changes = terminal.changes();
        assert!(matches!(&changes[..], [one] if one.starts_with("another screen")), "{changes:?}");

        // With colours, the head is bold, and there is still one frame at a time.
        let mut command = program!("open", &ring, "--watch", "1s");
        command.env_remove("NO_COLOR");
        let mut terminal = Terminal::start(command, SMALL);
        terminal.wait(&["2 spans", "day", "settle"]);
        assert!(terminal.written.windows(4).any(|bytes| bytes == b"\x1b[1m"));
        drop(recorder);
    });
}

#[test]
fn a_format_of_several_files_is_told_so_in_a_terminal_too() {
    for (format, words) in [("parquet", "several files"), ("ctf", "several files"), ("perfetto", "not for a terminal")]
    {
        let export = program!("export", program::KEPT, "--format", format, "-o", "-");
        let mut terminal = Terminal::start(export, LARGE);
        terminal.wait(&[words]);
        assert_eq!(terminal.end().code(), Some(2), "{format}");
    }
}
