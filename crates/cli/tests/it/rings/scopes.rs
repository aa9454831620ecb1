//! A program that mixes spans, scopes and log records on several threads, and is killed. Everything that shows spans
//! shows its scopes, and all of it agrees with what the program did.

use crate::fixtures::*;
use crate::triggers::{count, result, wait_for, watch_before};
use eventring::scope;
use eventring::tracing::PERF;

const THREADS: u64 = 3;
const STEPS: u64 = 200;

fn victim() -> ! {
    let recorder = spans_in(child::place()).shifts(18, 24).build().unwrap();
    PERF.install(recorder).unwrap();
    subscriber::set_global_default(RecorderSubscriber::global()).unwrap();
    let work = |thread: u64| {
        for step in 0..STEPS {
            let span = info_span!("step", thread, step).entered();
            let _parse = scope!("parse", bytes = 10 * step);
            info!("parsed {step}");
            {
                let _inner = scope!("inner");
                // A span that another thread enters, and leaves in a scope of its own.
                let handed = info_span!("handed");
                thread::scope(|threads| {
                    threads.spawn(|| handed.in_scope(|| drop(scope!("there"))));
                });
            }
            if step % 10 == 0 {
                std::mem::forget(scope!("forgotten"));
            }
            drop(span);
        }
    };
    thread::scope(|threads| {
        (0..THREADS).for_each(|thread| drop(threads.spawn(move || work(thread))));
    });
    let _waiting = scope!("waiting", what = "for the end");
    let _inside = scope!("inside");
    say("waiting");
    loop {
        let tick = scope!("tick", what = "a trigger");
        thread::sleep(Duration::from_millis(20));
        drop(tick);
    }
}

#[test]
fn everything_that_shows_spans_shows_the_scopes_of_a_killed_program() {
    let test = plays!(victim());
    let (directory, [ring, capture, fired]) = places(["victim", "t.evc", "tick-1.evc"]);
    let on = ["--on", "span=tick dur>10ms field.what=\"a trigger\"", "--before", "100ms", "--after", "100ms"];
    let watch = watch_before(
        &ring,
        &[&on[..], &["--debounce", "1h", "-o", argument(&directory.path().join("tick-{n}.evc"))]].concat(),
    );
    let mut talk = Talk::told(test, "victim", &ring, "waiting");
    assert_eq!(wait_for(&fired)["span"]["name"], "tick");
    let top = run!("top", &ring, "--once").out;
    for name in ["parse", "there", "tick"] {
        assert!(top.contains(name), "{top}");
    }
    for is_dead in [false, true] {
        if is_dead {
            talk.kill();
        }
        let opened = run!("open", &ring, "--json").json();
        let spans = opened["spans"].list();
        let names = spans.iter().map(|span| span["name"].text()).filter(|name| *name != "tick");
        assert_eq!(names.collect::<Vec<&str>>(), ["waiting", "inside"], "{opened:#}");
        assert_eq!(spans[1]["parents"].list().len(), 1, "{opened:#}");
        assert_eq!(spans[0]["fields"]["what"], "for the end");
    }
    assert_eq!(count(&result(&watch.end()), "fired"), 1);
    let captured = run!("capture", &ring, "-o", &capture, "--json").json();
    let asked = run!("ask", &capture, "--json").json();
    let events = asked["rings"].list().iter().map(|ring| ring["events"].number());
    assert_eq!(Some(events.sum::<u64>()), captured["events"].as_u64(), "{asked:#}");
    let page = place(&directory, "t.html");
    run!("report", &capture, "-o", &page).ends(0);
    let page = fs::read_to_string(page).unwrap();
    let shown = page.split("<span>events captured</span>").next().unwrap();
    let shown: String = shown[shown.len() - 40..].chars().filter(char::is_ascii_digit).collect();
    assert_eq!(shown, captured["events"].to_string());

    let summary = run!("summary", &capture, "--json").json();
    let all = THREADS * STEPS;
    let counted = |name: &str| {
        let spans = summary["spans"].list();
        let span = spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name}: {summary:#}"));
        let number = |key: &str| span[key].number();
        (span["kind"].text(), number("count"), number("open"), number("ended_with_parent"))
    };
    assert_eq!(counted("step"), ("span", all, 0, 0));
    assert_eq!(counted("handed"), ("span", all, 0, 0));
    assert_eq!(counted("parse"), ("scope", all, 0, all));
    assert_eq!(counted("inner"), ("scope", all, 0, 0));
    assert_eq!(counted("there"), ("scope", all, 0, 0));
    assert_eq!(counted("forgotten"), ("scope", all / 10, 0, all / 10));
    assert_eq!(counted("waiting"), ("scope", 0, 1, 0));
    let said = format!("{} ended with what was around them, and not by their guard", all / 10);
    run!("summary", &capture).shows(&said);
    assert_eq!((&summary["lost"], &summary["programs"][0]["state"]), (&0.into(), &"died".into()));

    let lines = exported(&capture);
    let of_type = |what: &str| lines.iter().filter(|line| line["type"] == what).collect::<Vec<&Value>>();
    let spans = of_type("span");
    let by_id = |id: &Value| spans.iter().find(|span| span["id"] == *id).map(|span| span["name"].text());
    let of_name = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    for (name, parent) in [("parse", "step"), ("inner", "parse"), ("handed", "inner"), ("there", "handed")] {
        let named = of_name(name);
        assert_eq!(named.len() as u64, all, "{name}");
        assert!(named.iter().all(|span| by_id(&span["parent"]) == Some(parent)), "{name} in {parent}");
        assert!(named.iter().all(|span| span.get("scope").is_some() == (name != "handed")), "{name}");
    }
    assert!(of_name("parse").iter().all(|parse| parse["fields"]["bytes"].number() % 10 == 0));
    let events = of_type("event");
    assert_eq!(events.len() as u64, all);
    assert!(events.iter().all(|event| by_id(&event["span"]) == Some("parse")));

    let total = spans.len() as u64;
    for (format, view) in [("perfetto", "thread"), ("perfetto", "span"), ("chrome", "thread"), ("chrome", "span")] {
        let file = place(&directory, "trace");
        let counts =
            run!("export", &capture, "--format", format, "--view", view, "-o", &file, "--json", "--force").json();
        assert_eq!((counts["spans"].as_u64(), &counts["lost"]), (Some(total), &0.into()), "{format} {view}: {counts}");
        if format == "chrome" {
            let ended = fs::read_to_string(&file).unwrap().matches(r#""end":"with its parent""#).count() as u64;
            // Chrome files have all arguments twice.
            assert_eq!(ended / 2, all + all / 10, "{view}");
        }
    }
    run!("export", &capture, "--format", "folded", "--view", "span").shows(";step;parse;inner;handed;there ");
    let shown = run!("watch", &capture, "--span", "waiting", "--json").json_lines();
    let begun = shown.iter().filter(|line| line["name"] == "SPAN_NEW" && line["payload"]["kind"] == "scope");
    assert!(begun.count() > 2, "waiting, and what is inside of it: {shown:#?}");
}
