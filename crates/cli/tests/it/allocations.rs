//! What spans allocate: a program whose allocator counts (`examples/allocations.rs`), and what is told of it.

use crate::fixtures::*;

/// Starts the example, which keeps its ring in the directory. Each order allocates `more` times more.
fn start(directory: &TempDir, more: u64) -> Child {
    let example = Path::new(PROGRAM).with_file_name("examples").join("allocations");
    let mut command = Command::new(example);
    command.arg(more.to_string()).env("EVENTRING_DIR", directory.path()).env("EVENTRING_KEEP", "1");
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Runs the example, and captures its ring.
fn captured(directory: &TempDir, name: &str, more: u64) -> PathBuf {
    let file = place(directory, name);
    assert!(start(directory, more).wait().unwrap().success());
    run!("capture", place(directory, "allocations"), "-o", &file).ends(0);
    file
}

fn of_order(file: &Path) -> Value {
    let answer = run!("summary", file, "--json").ends(0).json();
    let spans = answer["spans"].as_array().unwrap().iter();
    spans.clone().find(|span| span["name"] == "order").unwrap()["allocated"].clone()
}

#[test]
fn the_counts_of_two_runs_are_equal_and_one_allocation_more_in_each_order_is_found() {
    let directory = directory();
    let [one, two, more] = [("one", 0), ("two", 0), ("more", 1)].map(|(name, more)| captured(&directory, name, more));
    let counted = of_order(&one);
    // The list, ten lines, and the text of the order; the list and its lines are freed.
    assert_eq!((&counted["allocations"], &counted["frees"]), (&json!(12_000), &json!(11_000)));
    for of in ["allocations", "allocated_bytes", "frees", "freed_bytes"] {
        assert_eq!(counted[of], of_order(&two)[of], "{of}");
    }
    let live = counted["live_bytes"].as_u64().unwrap();
    let kept = counted["allocated_bytes"].as_u64().unwrap() - counted["freed_bytes"].as_u64().unwrap();
    assert!(live.abs_diff(kept) < 16 << 10 && counted["peak_bytes"].as_u64().unwrap() >= live, "{counted}");
    let limit = "allocations(order)>+1%";
    run!("diff", &one, &two, "--fail-if", limit).ends(0);
    run!("diff", &one, &more, "--fail-if", limit).ends(18).shows("went from 12,000 to 13,000");
    run!("summary", &one, "--allocations").ends(0).shows("allocations::order       12,000  12.0");
}

#[test]
fn a_killed_program_tells_what_its_orders_have_allocated() {
    let directory = directory();
    let mut program = start(&directory, 0);
    let ring = place(&directory, "allocations");
    wait_while(|| {
        let run = run!("summary", &ring, "--json");
        let answer = serde_json::from_str::<Value>(&run.out).unwrap_or_default();
        !answer["spans"].as_array().is_some_and(|spans| spans.iter().any(|span| span["name"] == "keep"))
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let answer = run!("summary", &ring, "--json").ends(0).json();
    let order = answer["spans"].as_array().unwrap().iter().find(|span| span["name"] == "order").unwrap().clone();
    let count = order["count"].as_u64().unwrap();
    assert!(count > 0);
    assert_eq!(order["allocated"]["allocations"], json!(count * 12));
}

#[test]
fn the_counts_are_in_the_exports_and_without_an_allocator_that_counts_nobody_invents_them() {
    let directory = directory();
    let file = captured(&directory, "counted", 0);
    let exported = |format: &str| {
        let to = place(&directory, format);
        run!("export", &file, "--format", format, "-o", &to).ends(0);
        fs::read_to_string(to).unwrap()
    };
    let rows = exported("jsonl");
    let orders = rows.lines().filter(|row| row.contains("\"allocations\":12,")).count();
    assert_eq!(orders, 1_000);
    let trace = exported("chrome");
    for counter in ["allocated bytes since the begin", "live bytes: order", "peak bytes: (all)"] {
        assert!(trace.contains(counter), "{counter}");
    }
    run!("watch", &file, "--full").shows("12 allocations of").shows("ALLOCATED");
    let quiet = place(&directory, "quiet");
    in_recorder(spans_in(&quiet).keep(true).build().unwrap(), || drop(info_span!("order")));
    run!("summary", &quiet, "--allocations").ends(0).shows("no allocations were counted");
    run!("diff", &file, &quiet, "--fail-if", "allocations(order)>+1%").fails(2, "eventring::alloc::Counted");
}
