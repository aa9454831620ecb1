//! `eventring icount`: exact counts of instructions under QEMU. Without QEMU these tests say that they skip.

use crate::fixtures::*;
use crate::qemu::{plugin, qemu_major};

fn example(name: &str) -> PathBuf {
    // `cargo test` builds the examples, unless its options select a single test.
    let example = Path::new(PROGRAM).parent().unwrap().join("examples").join(name);
    assert!(example.exists(), "{} is missing; build it: cargo build --workspace --examples", example.display());
    example
}

/// Runs `eventring icount` with these arguments.
fn icount(plugin: &Path, arguments: &[&str]) -> Run {
    let mut command = program!("icount");
    if qemu_major() >= 10 {
        // This QEMU places the program's memory at random, and the way through `realloc` depends on the place.
        command = Command::new("setarch");
        command.args(["-R", PROGRAM, "icount"]).stdin(Stdio::null()).env("NO_COLOR", "1");
    }
    command.args(arguments).env("EVENTRING_QEMU_PLUGIN", plugin);
    for variable in ["EVENTRING_PERF", "EVENTRING_FILTER", "EVENTRING_DIR", "EVENTRING_INSTRUCTIONS"] {
        command.env_remove(variable);
    }
    finish(command)
}

#[test]
fn five_runs_count_the_same_as_one_that_counts_each_instruction() {
    let Some(plugin) = plugin() else { return };
    let example = example("instruction_clock");
    let spans = |mode: &str| {
        let counted = icount(plugin, &["--json", "--mode", mode, "--", argument(&example)]).json();
        assert_eq!((&counted["exact"], &counted["lost"]), (&true.into(), &0.into()), "{counted}");
        counted["spans"].clone()
    };
    let of_each = spans("insn");
    for _ in 0..5 {
        assert_eq!(spans("tb"), of_each);
    }
    let named = |name: &str| of_each.list().iter().find(|span| span["name"] == name).unwrap().clone();
    // Each of the five calls of `mix` has two halves, and each half does the same.
    let half = named("half");
    assert_eq!((&half["count"], &half["min"]), (&10.into(), &half["max"]));
    assert_eq!(half["instructions"].number(), 10 * half["min"].number());
    // A span holds those inside it, and itself.
    let [mix, work] = [named("mix"), named("work")];
    let number = |span: &Value, what: &str| span[what].number();
    assert_eq!(number(&mix, "instructions"), number(&mix, "self_instructions") + number(&half, "instructions"));
    let inside = ["make", "sort", "format", "count"].map(|name| number(&named(name), "instructions"));
    assert_eq!(number(&work, "instructions"), number(&work, "self_instructions") + inside.iter().sum::<u64>());
}

#[test]
fn the_capture_shows_the_counts_in_every_format() {
    let Some(plugin) = plugin() else { return };
    let (_directory, [file]) = places(["counted.evc"]);
    let example = example("instruction_clock");
    let counted = icount(plugin, &["--json", "-o", argument(&file), "--", argument(&example)]).json();
    crate::ask::schemas::check(&[("icount", counted.clone())]);
    let sort = counted["spans"].list().iter().find(|span| span["name"] == "sort").unwrap();
    let each = sort["min"].number();

    let lines = exported(&file);
    let sorts: Vec<&Value> = lines.iter().filter(|line| line["name"] == "sort").collect();
    assert!(sorts.len() == 2 && sorts.iter().all(|line| line["instructions"] == each), "{sorts:?}");
    let log: Vec<&Value> = lines.iter().filter(|line| line["type"] == "event").collect();
    assert!(log.len() == 2 && log.iter().all(|line| line["instructions"].as_u64() > Some(each)), "{log:?}");
    run!("export", &file, "--format", "chrome", "-o", "-")
        .shows(format!("\"instructions\":{each},\"self_instructions\":{each}"));
    let folded = run!("export", &file, "--format", "folded", "--weight", "instructions").out;
    assert!(folded.lines().any(|line| line == format!("instruction_clock;work;sort {}", 2 * each)), "{folded}");
    let summary = run!("summary", &file, "--json").json();
    let spans = summary["spans"].list();
    let of_sort = &spans.iter().find(|span| span["name"] == "sort").unwrap()["instructions"];
    assert_eq!(
        *of_sort,
        json!({ "spans": 2, "all": 2 * each, "self": 2 * each, "min": each, "max": each, "exact": true })
    );
}

#[test]
fn without_qemu_the_same_program_records_no_counts_and_no_error() {
    let (directory, [file]) = places(["native.evc"]);
    let example = example("instruction_clock");
    let mut command = program!("capture", "instruction-clock", "-o", &file, "--strict", "--");
    command.arg(example).env("EVENTRING_DIR", directory.path()).env_remove("EVENTRING_INSTRUCTIONS");
    finish(command).ends(0);
    let lines = run!("export", &file, "--format", "jsonl");
    assert!(lines.out.contains("\"name\":\"sort\"") && !lines.out.contains("instructions\""), "{}", lines.out);
    run!("export", &file, "--format", "folded", "--weight", "instructions")
        .ends(1)
        .shows_nothing()
        .warns("no instructions were counted");
    let stacks = place(&directory, "native.folded");
    run!("export", &file, "--format", "folded", "--weight", "instructions", "-o", &stacks).ends(1);
    assert!(!stacks.exists());
    for format in ["perfetto", "chrome", "jsonl"] {
        run!("export", &file, "--format", format, "--weight", "instructions", "-o", "-").fails(2, "--format folded");
    }
}

#[test]
fn paths_may_have_all_characters() {
    let Some(plugin) = plugin() else { return };
    let (_directory, [strange]) = places(["a,b=c d ü"]);
    fs::create_dir(&strange).unwrap();
    let [moved, program] = ["plug,in.so", "pro gram"].map(|name| strange.join(name));
    fs::copy(plugin, &moved).unwrap();
    fs::copy(example("instruction_clock"), &program).unwrap();
    let file = strange.join("x,y.evc");
    let counted =
        icount(&moved, &["-o", argument(&file), "--", argument(&program)]).ends(0).shows("instruction_clock::sort");
    // `summary` shows the same table, after that of the times.
    let summary = run!("summary", &file);
    let table = counted.out.lines().skip(1).filter(|line| line.starts_with("instruction_clock::")).collect::<Vec<_>>();
    assert!(table.len() == 7 && summary.out.contains(&table.join("\n")), "{summary:?}");
}

#[test]
fn other_processes_read_the_rings_of_a_program_under_qemu_while_it_runs() {
    if plugin().is_none() {
        return;
    }
    let directory = directory();
    let mut guest = Command::new("qemu-x86_64");
    guest.arg(example("http_service")).args(["--requests", "1000000000", "--ring", "shop:64MiB"]);
    guest.env("EVENTRING_DIR", directory.path()).stdout(Stdio::null());
    let mut guest = guest.spawn().unwrap();
    let ring = place(&directory, "shop");
    let until = Instant::now() + Duration::from_secs(60);
    wait_while(|| !ring.exists() && Instant::now() < until);
    let info = run!("info", &ring, "--json");
    // On a busy machine the guest needs seconds to its first request.
    let seen = run!("watch", &ring, "--where", "span=request", "--count", "1", "--json", "--quiet");
    assert_eq!(seen.json_lines().len(), 1, "{seen:?}");
    let file = place(&directory, "live.evc");
    let captured = run!("capture", &ring, "-o", &file, "--duration", "2s", "--json", "--strict");
    let is_running = guest.try_wait().unwrap().is_none();
    kill(&mut guest);
    assert_eq!(info.json()["state"], "live", "{info:?}");
    assert!(is_running);
    let captured = captured.json();
    assert_eq!(captured["lost"], 0, "{captured}");
    let spans = run!("summary", &file, "--json").json();
    assert!(spans["spans"].list().iter().any(|span| span["name"] == "request"), "{spans}");
}

#[test]
fn what_cannot_be_counted_is_an_error_that_says_how_to_mend_it() {
    let Some(plugin) = plugin() else { return };
    let (directory, [script]) = places(["script"]);
    fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    let text = place(&directory, "text");
    fs::write(&text, "no program").unwrap();
    for (arguments, code, words) in [
        (["--", argument(&script)], 15, "is a script; name the program that the script starts"),
        (["--", argument(&text)], 15, "is no ELF program"),
        (["--", "no-such-program"], 3, "there is no program no-such-program in $PATH"),
        // This program records no spans.
        (["--", "true"], 3, "has recorded nothing, and has ended with exit code 0"),
    ] {
        icount(plugin, &arguments).fails(code, words).shows_nothing();
    }
    let example = example("instruction_clock");
    // A shell that is killed, one that becomes another program, and one that starts another program.
    for (script, words) in [
        ("kill -9 $$".to_owned(), "the program was killed by signal 9"),
        (format!("exec {}", argument(&example)), "replaced itself by another one (exec)"),
        (format!("{}; exit 5", argument(&example)), "25 spans without counts"),
    ] {
        icount(plugin, &["--", "sh", "-c", &script]).fails(1, words);
    }
    icount(plugin, &["--cpu", "nonsense", "--", argument(&example)]).fails(1, "before the program began");
    let with = |name: &str, value: &str| {
        let mut command = program!("icount", "--json", "--", &example);
        command.env("EVENTRING_QEMU_PLUGIN", plugin).env(name, value);
        finish(command)
    };
    with("EVENTRING_QEMU_PLUGIN", "/no/such/plugin.so").fails(3, "cargo build --release -p eventring-qemu-plugin");
    with("PATH", "/no/such/directory").fails(15, "apt install qemu-user");
    // A QEMU that runs nothing, and a filter that lets no span through.
    with("EVENTRING_QEMU", "true").fails(1, "is no QEMU that loads plugins");
    with("EVENTRING_FILTER", "off").fails(1, "no span was counted");
    with("EVENTRING_INSTRUCTIONS", "off").fails(1, "EVENTRING_INSTRUCTIONS must not be `off`");
}
