//! Fields that have the same name in the program's source: every output has the values of all.

use crate::fixtures::*;

/// Returns all objects that have a member `size` at any depth.
fn with_size<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    if value.get("size").is_some() {
        found.push(value);
    }
    match value {
        Value::Object(members) => members.values().for_each(|member| with_size(member, found)),
        Value::Array(members) => members.iter().for_each(|member| with_size(member, found)),
        _ => {}
    }
}

#[test]
fn fields_of_one_name_are_both_in_every_output() {
    let (directory, [ring]) = places(["twice"]);
    let recorder = spans_in(&ring).shifts(15, 21).keep(true).build().unwrap();
    in_recorder(recorder, || {
        let span = info_span!("upload", size = 1, size = 2);
        let _entered = span.entered();
        info!(message = "raw", size = 3, size = 4, "text");
    });
    let file = place(&directory, "twice.evc");
    let [ring, file] = [ring.to_str().unwrap(), file.to_str().unwrap()];
    run!("capture", ring, "-o", file, "--now").ends(0);
    let (of_span, of_event) = (json!([1, 2]), json!([3, 4]));
    let sizes = |what: &str, lines: &[Value]| {
        let mut found = Vec::new();
        lines.iter().for_each(|line| with_size(line, &mut found));
        for expected in [&of_span, &of_event] {
            let is_it = |value: &&&Value| json!([value["size"], value["size#2"]]) == *expected;
            assert!(found.iter().any(|value| is_it(&value)), "{what}: no {expected} in {found:?}");
        }
    };
    for arguments in [&["watch", ring, "--json"][..], &["export", file, "--format", "jsonl"]] {
        let lines = run(arguments).json_lines();
        sizes(arguments[0], &lines);
        let fields = lines.iter().map(|line| line.get("payload").unwrap_or(line)).map(|line| &line["fields"]);
        let is_it = |fields: &&Value| fields["message"] == "text" && fields["message#2"] == "raw";
        assert_eq!(fields.filter(is_it).count(), 1, "{lines:?}");
    }
    sizes("chrome", &[run!("export", file, "--format", "chrome", "-o", "-").json()]);
    let text = run!("watch", ring).out;
    assert!(text.contains("size=1 size#2=2") && text.contains("text message#2=\"raw\" size=3 size#2=4"), "{text}");
    run!("export", file, "--format", "otlp-json", "-o", "-").shows(r#"{"key":"size#2","value":{"intValue":"2"}}"#);
    // Conditions take the names that the outputs show.
    let count = |arguments: &[&str]| run(arguments).out.matches("\"size#2\":").count();
    for (condition, of_ring) in [("field.size#2=2", 1), ("field.message#2=raw", 1), ("not field.size#2=1", 2)] {
        assert!(count(&["watch", ring, "--json", "--where", condition]) >= of_ring, "{condition}");
        assert!(count(&["watch", file, "--json", "--where", condition]) >= of_ring, "{condition}");
        assert!(count(&["find", condition, file, "--json"]) >= of_ring, "{condition}");
    }
    assert_eq!((count(&["find", "size#2=4", file, "--json"]), count(&["find", "size#2=3", file, "--json"])), (1, 0));
    // A capture and a ring that were made from what a reader knows have the same names.
    let again = place(&directory, "again");
    run!("snapshot", ring, "-o", again.to_str().unwrap()).ends(0);
    sizes("snapshot", &run!("watch", again.to_str().unwrap(), "--json").json_lines());
}
