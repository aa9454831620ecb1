//! The server of tools, asked by a client of others, and by hostile ones.

use super::{Random, recorded, usual};
use crate::consumers::script;
use crate::fixtures::*;

/// Records spans of these names.
macro_rules! spans {
    ($($name:literal)*) => { $(info_span!($name).in_scope(|| std::hint::black_box(()));)* };
}

#[test]
fn a_client_of_others_lists_calls_and_goes_through_pages() {
    let Some(mut client) = script("mcp_client.py") else { return };
    let dir = directory();
    let (ring, _recorder) = recorded(&dir, "shop", || {
        usual(&mut Random(3), 50);
        spans!("a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p" "q" "r");
    });
    let capture = place(&dir, "shop.evc");
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    let output = client.args([PROGRAM, argument(&capture), argument(&place(&dir, "nothing")), KEPT]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["server"], "eventring");
    let tools = seen["tools"].as_object().unwrap();
    assert!(tools.len() == 11 && tools.values().all(|reads_only| *reads_only == true), "{tools:?}");
    for (call, bytes_max) in [("ask", 16_384), ("small", 2000), ("whole", 16_384), ("why", 16_384)] {
        let answer = &seen[call];
        assert!(answer["is_error"] == false && answer["bytes"].number() <= bytes_max, "{call}: {answer}");
        serde_json::from_str::<Value>(answer["text"].text()).unwrap();
    }
    let pages = seen["pages"].list();
    let names: Vec<&Value> = pages.iter().flat_map(|page| page.list()).collect();
    let whole = run!("summary", &capture, "--json").json();
    let whole: Vec<&Value> = whole["spans"].list().iter().map(|span| &span["name"]).collect();
    assert!(pages.len() > 2 && names == whole, "{pages:?}");
    let check: Value = serde_json::from_str(seen["check"]["text"].text()).unwrap();
    assert!(seen["check"]["is_error"] == false && check["recording"] == false, "{check}");
    for (call, least) in [("find", 2), ("find_some", 10)] {
        let text = seen[call]["text"].text();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (end, found) = lines.split_last().unwrap();
        let is_cut = end["cut"] == true && end["next"].is_string();
        assert!(end["hits"] == found.len() && found.len() >= least && is_cut && text.len() <= 16_384, "{call}: {text}");
    }
    let text = seen["blocks"]["text"].text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() == 2 && lines[1]["cut"] == 1 && lines[1]["next"].is_string(), "{text}");
    for (call, says) in [
        ("no_file", "no answer: "),
        ("an_option", "no answer: "),
        ("unknown_argument", "output: there is no such argument; `ask` takes files, max_bytes"),
        (
            "no_expression",
            "expression: it must be given; `find` takes files, expression, from, to, limit, after, max_bytes",
        ),
        ("no_option", "no answer: "),
    ] {
        let answer = &seen[call];
        assert!(answer["is_error"] == true && answer["text"].text().contains(says), "{call}: {answer}");
    }
}

#[test]
fn hostile_lines_are_answered_by_errors_and_the_next_line_as_usual() {
    let mut server = program!("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let long = "x".repeat(3 << 20);
    let deep = "[".repeat(100_000);
    for line in
        ["", "\u{0}", "{}", "[]", "null", long.as_str(), deep.as_str(), r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#]
    {
        writeln!(input, "{line}").unwrap();
    }
    input.write_all(b"\xff\xfe\n").unwrap();
    writeln!(input, r#"{{"jsonrpc":"2.0","id":7,"method":"ping"}}"#).unwrap();
    // The last line has no end.
    write!(input, r#"{{"jsonrpc":"2.0","id":8,"method":"ping"}}"#).unwrap();
    drop(input);
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (pings, errors): (Vec<&Value>, Vec<&Value>) = answers.iter().partition(|answer| answer.get("result").is_some());
    assert_eq!(pings.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(errors.len(), 8, "{text}");
    assert!(errors.iter().all(|answer| answer["error"]["code"].as_i64().unwrap() <= -32_600), "{text}");
}

#[test]
fn no_answer_has_a_byte_of_a_file_that_is_no_recording() {
    let (_dir, [secret]) = places(["secret"]);
    // Beside what is no recording, what begins like one, and like a snapshot and a core file.
    let beginnings = [&b""[..], b"RING", b"EVRCAPT1", b"EVCAP_01", b"\x28\xb5\x2f\xfd", b"\x7fELF\x02\x01\x01"];
    for beginning in beginnings {
        fs::write(&secret, [beginning, &b"QZXW-SECRET\n".repeat(500)].concat()).unwrap();
        let mut server = program!("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = server.stdin.take().unwrap();
        let with_files = ["ask", "summary", "open", "why", "tasks", "info", "exec_blocks", "diff", "check", "find"]
            .map(|verb| {
                let files = vec![argument(&secret); if verb == "diff" { 2 } else { 1 }];
                let mut arguments = json!({ "files": files });
                if verb == "find" {
                    arguments["expression"] = "a=1".into();
                }
                (verb, arguments)
            });
        for (verb, arguments) in &with_files {
            let params = json!({ "name": verb, "arguments": arguments });
            let call = json!({ "jsonrpc": "2.0", "id": verb, "method": "tools/call", "params": params });
            writeln!(input, "{call}").unwrap();
        }
        drop(input);
        let output = server.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), with_files.len(), "{text}");
        assert!(!text.contains("QZ"), "{}: {text}", beginning.escape_ascii());
    }
}

#[test]
fn a_ping_is_answered_during_a_call_and_a_call_that_is_not_wanted_any_more_ends() {
    use std::io::{BufRead as _, BufReader};
    let dir = directory();
    let (ring, _recorder) = recorded(&dir, "shop", || usual(&mut Random(3), 50));
    let capture = place(&dir, "shop.evc");
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    let mut server = program!("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
    // A thousand files take long.
    let files: Vec<String> = (0..1000).map(|number| format!("{}.{number}", argument(&capture))).collect();
    files.iter().for_each(|file| fs::copy(&capture, file).map(drop).unwrap());
    let call = |id: u32| {
        let params = json!({ "name": "find", "arguments": { "files": files, "expression": "number=-1" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let begin = Instant::now();
    writeln!(input, "{}", call(1)).unwrap();
    writeln!(input, r#"{{"jsonrpc":"2.0","id":2,"method":"ping"}}"#).unwrap();
    let mut next = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let first = next();
    assert_eq!((&first["id"], &first["result"]), (&2.into(), &json!({})));
    // It is not asked for before it is under way.
    thread::sleep(Duration::from_millis(100));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    writeln!(input, "{cancel}").unwrap();
    let second = next();
    let text = second["result"]["content"][0]["text"].text();
    assert!(second["id"] == 1 && text.contains("does not want the answer any more"), "{second} {:?}", begin.elapsed());
    drop(input);
    assert!(server.wait().unwrap().success());
}
