//! Fields whose names are no identifiers can be asked for by all verbs, and several fields of one name by this name.

use crate::fixtures::*;

/// Returns the texts of the log records that a verb shows.
fn texts(arguments: &[&str]) -> Vec<String> {
    let lines = run(arguments).json_lines();
    let text = |line: &Value| {
        let fields = if line["payload"].is_object() { &line["payload"]["fields"] } else { &line["fields"] };
        let is_record = line["name"] == "EVENT" || line["type"] == "event";
        Some(line["message"].as_str().or(fields["message"].as_str())?.to_owned()).filter(|_| is_record)
    };
    lines.iter().filter_map(text).collect()
}

#[test]
fn fields_of_any_name_are_asked_for_in_quotation_marks() {
    let (dir, [ring]) = places(["shop"]);
    let recorder = spans_in(&ring).keep(true).build().unwrap();
    in_recorder(recorder, || {
        info_span!("request", "content-type" = "html").in_scope(|| info!("quoted key" = 7, "served"));
        info_span!("request", "content-type" = "json")
            .in_scope(|| error!("quoted key" = "7.0", x = 1, x = 2, "failed"));
    });
    let (ring, file, part) = (argument(&ring), place(&dir, "shop.evc"), place(&dir, "part.evc"));
    let file = argument(&file);
    run!("capture", ring, "--now", "-o", file).ends(0);
    for (condition, expected) in [
        (r#"field."content-type"=json"#, &["failed"][..]),
        (r#"field."content-type"=*ml level>=INFO"#, &["served"]),
        (r#"field."quoted key"=7"#, &["served", "failed"]),
        (r#"field."quoted key">6.5 field.x=2"#, &["failed"]),
        ("field.x!=2", &[]),
    ] {
        let of_ring = texts(&["watch", ring, "--from", "oldest", "--json", "--where", condition]);
        assert_eq!(of_ring, expected, "{condition}");
        if expected.is_empty() {
            continue;
        }
        assert_eq!(texts(&["watch", file, "--json", "--where", condition]), expected, "{condition}");
        let exported = texts(&["export", file, "--format", "jsonl", "-o", "-", "--where", condition]);
        assert_eq!(exported, expected, "{condition}");
        let filtered = run!("capture", ring, "--now", "--force", "-o", &part, "--where", condition);
        assert_eq!(
            (filtered.code, texts(&["watch", argument(&part), "--json"])),
            (Some(0), expected.iter().map(|it| (*it).to_owned()).collect()),
            "{condition}"
        );
    }
    // A search asks each event alone, and names there are those of fields.
    for (condition, expected) in
        [(r#""quoted key"=7"#, 2), ("x=2", 1), ("x#2=2", 1), ("x#2=1", 0), (r#""content-type"=html"#, 1)]
    {
        for scan in [&[][..], &["--scan"]] {
            let found = run!("find", condition, file, "--json", scan).json_lines();
            assert_eq!(found.len(), expected + 1, "{condition} {scan:?}");
        }
    }
    let unknown = run!("watch", file, "--where", "field.y=1");
    let lists = |name: &str| unknown.err.contains(name);
    assert!(lists("no event has a field `y`; there are ") && lists("\"content-type\", "), "{unknown:?}");
    run!("watch", file, "--where", "field.content-type=html").fails(2, r#"is quoted: field."content-type""#);
}
