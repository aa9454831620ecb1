//! `eventring top --once` shows what a program does: rates, percentiles, errors, open spans, threads, rings;
//! of a capture, what its rings would show.

use crate::fixtures::*;

#[test]
fn one_frame_and_one_json_object_show_what_the_program_does() {
    let (_directory, [ring]) = places(["shop"]);
    let recorder = spans_in(&ring).shifts(17, 23).build().unwrap();
    let ends = AtomicBool::new(false);
    let (shown, text) = thread::scope(|scope| {
        let work = thread::Builder::new().name("worker".to_owned());
        let work = work.spawn_scoped(scope, || {
            in_recorder(recorder.clone(), || {
                let _service = info_span!("service").entered();
                while !ends.load(Ordering::Relaxed) {
                    info_span!("request").in_scope(|| {
                        thread::sleep(Duration::from_millis(2));
                        error!("refused");
                    });
                }
            });
        });
        let shown = run!("top", &ring, "--once", "--json");
        let text = run!("top", &ring, "--once");
        ends.store(true, Ordering::Relaxed);
        work.unwrap().join().unwrap();
        (shown.json(), text)
    });

    assert!(!text.out.contains("\n\n\n"), "{text:?}");
    for rate in ["events_per_s", "spans_per_s", "errors_per_s"] {
        assert!(shown[rate].as_f64() > Some(0.0), "{rate}: {shown:#}");
    }
    let of_name = |list: &str, name: &str| {
        let found = shown[list].list().iter().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {shown:#}")).clone()
    };
    let request = of_name("names", "request");
    assert!(request["count"].as_u64() > Some(0) && request["self_share"] == 1.0, "{request}");
    let walls = ["p50_ns", "p90_ns", "p99_ns", "max_ns"].map(|wall| request[wall].number());
    assert!(walls[0] > 1_900_000 && walls[3] >= walls[0], "each took two milliseconds: {request}");
    let service = of_name("open", "service");
    assert!(service["thread"] == "worker" && service["age_ns"].as_u64() > Some(900_000_000), "{service}");
    let worker = of_name("threads", "worker");
    // The thread is in a request, or has left one and is in the service.
    let is_in_request = worker["span"] == "request";
    let path = if is_in_request { json!(["service"]) } else { json!([]) };
    assert!(is_in_request || worker["span"] == "service", "{worker}");
    assert_eq!((&worker["path"], &worker["certain"], &worker["seen"]), (&path, &true.into(), &true.into()), "{worker}");
    assert_eq!(worker["id"] == service["id"], !is_in_request, "{worker}");
    assert_eq!((worker["pid"].as_u64(), worker["tid"].is_u64()), (Some(std::process::id().into()), true));
    let [at, since, nanos] = [&shown["at_ns"], &worker["since_ns"], &worker["for_ns"]].map(|it| it.number());
    assert!(since <= at && nanos == at - since, "{worker}");
    let of_ring = of_name("rings", "shop");
    assert!(of_ring["fill"].as_f64() > Some(0.0) && of_ring["past_s"].as_f64() > Some(0.9), "{of_ring}");
    assert_eq!((&shown["lost"], &shown["ended"], &shown["not_tracked"]), (&0.into(), &false.into(), &0.into()));

    assert_eq!((text.code, text.err.as_str()), (Some(0), ""), "{text:?}");
    let parts = [format!("(pid {})", std::process::id()), "spans/s".into(), "request".into(), "service".into()];
    assert!(parts.iter().all(|part| text.out.contains(part)) && !text.out.contains(['\u{1b}', '↑']), "{}", text.out);
    drop(recorder);
}

#[test]
fn a_shard_whose_thread_ended_long_before_the_program_does_not_make_the_rate_of_the_ring_too_high() {
    let (directory, [ring]) = places(["shop"]);
    let recorder = spans_in(&ring).shifts(15, 21).shards(2).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let work = |spans: u32| {
        dispatcher::with_default(&dispatch, || {
            (0..spans).for_each(|_| info_span!("request").in_scope(|| ()));
        });
    };
    work(1);
    thread::scope(|scope| drop(scope.spawn(|| work(2000)).join()));
    let pause = Duration::from_millis(300);
    thread::sleep(pause);
    work(1);
    drop((dispatch, recorder));
    let top = run!("top", &ring, "--once", "--json").json();
    assert_eq!((&top["ended"], &top["rings"][0]["shards"]), (&true.into(), &2.into()), "{top:#}");
    let all = run!("info", &ring, "--json").json();
    let most = all["events"]["count"].as_f64().unwrap() / pause.as_secs_f64();
    let listed = run!("list", directory.path(), "--json").json();
    for rate in [&top["rings"][0]["events_per_s"], &all["events_per_s"], &listed["rings"][0]["events_per_s"]] {
        let rate = rate.as_f64().unwrap_or_else(|| panic!("no rate: {listed:#}"));
        assert!(rate > 0.0 && rate <= most, "{rate}, at most {most}");
    }
}

#[test]
fn a_capture_of_a_ring_that_has_ended_shows_what_the_ring_shows() {
    let (_directory, [ring, file]) = places(["shop", "shop.evc"]);
    let recorder = spans_in(&ring).shifts(17, 23).keep(true).build().unwrap();
    in_recorder(recorder.clone(), || {
        (0..100).for_each(|_| info_span!("request").in_scope(|| error!("refused")));
    });
    drop(recorder);
    run!("capture", &ring, "-o", &file, "--json").json();
    let [mut of_ring, mut of_capture] = [&ring, &file].map(|name| run!("top", name, "--once", "--json").json());
    assert_eq!((&of_ring["names"][0]["count"], &of_ring["ended"]), (&100.into(), &true.into()), "{of_ring:#}");
    // A capture has no rings that hold anything now.
    assert_eq!((of_ring["rings"].take().list().len(), of_capture["rings"].take()), (1, json!([])));
    // Each has seen the end at a time of its own.
    for shown in [&mut of_ring, &mut of_capture] {
        shown["programs"][0]["ended_before_ns"].take();
    }
    assert_eq!(of_ring, of_capture);
    run!("top", &ring, "--once", "--at", "+1s").fails(2, "--at needs a capture");
}

#[test]
fn without_a_terminal_or_a_name_top_says_what_to_do() {
    program::finish(program!("top", "no-such-ring")).fails(2, "stdout is no terminal; use --once");
    for (arguments, code, said) in [
        (&["top", "--once"][..], 2, "nothing to read"),
        (&["top", "x", "--json"], 2, "--once"),
        (&["top", "/dev/shm/no-such-ring", "--once"], 3, "no-such-ring"),
    ] {
        run(arguments).fails(code, said);
    }
}
