//! `eventring report` writes a page about one capture or two.

use crate::counted::{called, capture, capture_with_losses};
use crate::fixtures::*;

/// Returns the text of each cell of the row of a span in the first table of a page.
fn cells(page: &str, span: &str) -> Vec<String> {
    let (_, table) = page.split_once("<tbody>").unwrap();
    let (table, _) = table.split_once("</tbody>").unwrap();
    let mut rows = table.split("</tr>");
    let row = rows.find(|row| row.contains(&format!("</span>{span}<"))).unwrap_or_else(|| panic!("{span}: {table}"));
    let text = |cell: &str| {
        let mut texts = cell.split('<').map(|part| part.split_once('>').map_or("", |(_, text)| text));
        texts.by_ref().collect::<String>()
    };
    row.split("</td>").filter(|cell| cell.contains("<td")).map(text).collect()
}

/// Returns the instructions of both sides and their change, from the row of a comparing page.
fn instructions(row: &[String]) -> &[String] {
    &row[row.len() - 4..row.len() - 1]
}

#[test]
fn a_report_about_one_capture_has_its_spans_and_its_flame_graphs() {
    let directory = directory();
    let file = capture(&directory, "shop", &[called("request", 500, 1000), called("query", 333, 77)]);
    let page = place(&directory, "page.html");
    run!("report", &file, "-o", &page).ends(0).warns("bytes written to");
    let page = fs::read_to_string(page).unwrap();
    let row = cells(&page, "request");
    assert_eq!((row[0].as_str(), row[1].as_str(), row[10].as_str()), ("shop::request", "500", "500,000"));
    assert!(page.contains("<h3>Time by stack</h3>") && page.contains("<h3>Instructions by stack</h3>"));
    assert!(page.contains("query: 25,641 instructions"), "{page}");
    assert!(page.len() < 128 << 10, "{} bytes", page.len());
    for (format, instead) in
        [("html", "`eventring report FILE` writes the page"), ("speedscope", "--format chrome and --format folded")]
    {
        run!("export", &file, "--format", format, "-o", "-").fails(2, instead);
    }
}

#[test]
fn a_report_about_two_captures_has_the_figures_of_diff() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 500, 1000), called("gone", 3, 5)]);
    let b = capture(&directory, "b", &[called("request", 400, 1100), called("new", 7, 5)]);
    let done = run!("report", &a, &b, "--per", "request", "-o", "-").ends(0);
    let diff = run!("diff", &a, &b, "--json").json();
    let spans = diff["spans"].list();
    for span in spans {
        let row = cells(&done.out, span["name"].text());
        let count = |side: &str| span[side]["count"].as_u64().map_or("–".to_owned(), |count| count.to_string());
        assert_eq!(row[1..3], [count("a"), count("b")], "{row:?} {span}");
        let sure = span["significant"].as_bool().map_or("", |is_sure| if is_sure { "yes" } else { "no" });
        assert_eq!(row.last().unwrap(), sure, "{row:?} {span}");
    }
    let request = cells(&done.out, "request");
    assert_eq!(request[1..4], ["500", "400", "-20.0%"]);
    assert_eq!(instructions(&request), ["1,000", "1,100", "+10.0%"]);
    // Seven calls with five instructions each, for 400 calls of request.
    assert_eq!(instructions(&cells(&done.out, "new"))[1], "0.09");
    assert!(cells(&done.out, "gone")[0].ends_with("gone") && cells(&done.out, "new")[0].ends_with("newnew"));
    assert!(done.out.contains("request +10.0%</text>"), "{}", done.out);
}

#[test]
fn report_and_diff_show_the_change_of_a_call_however_long_the_captures_are() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 500, 1000)]);
    // Four times as many calls, each with a tenth more.
    let b = capture(&directory, "b", &[called("request", 2000, 1100)]);
    let page = run!("report", &a, &b, "-o", "-").out;
    assert_eq!(instructions(&cells(&page, "request")), ["1,000", "1,100", "+10.0%"]);
    assert!(page.contains("<b>per call</b> of their span") && page.contains("instructions, per call"), "{page}");
    let diff = run!("diff", &a, &b).out;
    let row: Vec<&str> = diff.lines().find(|line| line.contains("request")).unwrap().split_whitespace().collect();
    assert_eq!(row[1..], ["500→2,000", "1,000", "1,100", "+100", "+10.0%"], "{diff}");
    assert!(diff.contains("instructions/call A"), "{diff}");
    // The sums for a second are still there, for those who ask for them.
    run!("report", &a, &b, "--per", "second", "-o", "-").shows("instructions, per second");
}

#[test]
fn the_page_has_its_name_from_the_captures_and_replaces_nothing_without_being_asked() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 5, 0)]);
    let b = capture(&directory, "b", &[called("request", 5, 0)]);
    run!("report", &a).ends(0);
    assert!(place(&directory, "a.report.html").exists());
    let written = run!("report", &a, &b, "--json").json();
    let page = place(&directory, "a-b.report.html");
    let captures = json!([
        { "files": [a], "lost": 0, "overwritten_before": 0, "filtered": 0, "lost_payloads": 0, "problems": [] },
        { "files": [b], "lost": 0, "overwritten_before": 0, "filtered": 0, "lost_payloads": 0, "problems": [] },
    ]);
    assert_eq!((&written["file"], &written["captures"]), (&json!(page), &captures));
    assert_eq!(written["bytes"], fs::metadata(&page).unwrap().len());
    run!("report", &a, &b).fails(14, "--force");
    run!("report", &a, &b, "--force").ends(0);
    let over_input = run!("report", &a, &b, "--force", "-o", &b);
    assert_ne!(over_input.code, Some(0), "{over_input:?}");
    run!("summary", &b).ends(0);
}

#[test]
fn a_command_line_that_makes_no_sense_says_what_was_expected() {
    let directory = directory();
    let file = |name| capture(&directory, name, &[called("request", 5, 0)]);
    let [a, b, c] = ["a", "b", "c"].map(file);
    let refused = |arguments: &[&str], code: i32, part: &str| {
        run(&[&["report"], arguments].concat()).fails(code, part).shows_nothing();
    };
    refused(&[&a, &b, &c, "-o", "-"], 2, "3 captures are given, expected one, or two to compare");
    refused(&[&a, &b, "--with", &c, "-o", "-"], 2, "3 captures are given, expected one before --with");
    refused(&[&a, "--per", "request", "-o", "-"], 2, "--per is for two captures, found one");
    refused(&[&a, &b, "--per", "requests", "-o", "-"], 2, "no closed span requests");
    refused(&[&a, &b, "--alpha", "2", "-o", "-"], 2, "between 0 and 1");
    refused(&[&a, "--json", "-o", "-"], 2, "both want stdout");
    refused(&[&a, &b, "--span", "requests", "-o", "-"], 2, &format!("{a}: the capture has no span requests"));
    refused(&[&a, "/no/such.evc", "-o", "-"], 3, "/no/such.evc");
    let text = place(&directory, "text.evc");
    fs::write(&text, "no capture").unwrap();
    refused(&[&a, argument(&text), "-o", "-"], 4, "text.evc");
    refused(&[argument(&text), "-o", "-"], 4, "text.evc");
}

#[test]
fn what_was_overwritten_before_is_on_the_page_and_on_stderr_and_no_loss() {
    let directory = directory();
    let whole = capture(&directory, "whole", &[called("request", 10, 0)]);
    let lossy = capture_with_losses(&directory, "lossy", &[called("request", 20_000, 0)]);
    let losses = run!("summary", &lossy, "--json").json()["lost"].number();
    assert!(losses > 0);
    let digits = losses.to_string();
    let grouped =
        format!("{},{} had been overwritten before", &digits[..digits.len() - 3], &digits[digits.len() - 3..]);
    for arguments in [vec!["report", lossy.as_str()], vec!["report", &whole, &lossy]] {
        let done = run(&[&arguments[..], &["-o", "-"]].concat()).ends(0).warns("no event was lost, ");
        let on_page = grouped.replace(" had", " events had");
        assert!(done.err.contains(&grouped) && done.out.contains(&on_page), "{grouped}");
        run(&[&arguments[..], &["-o", "-", "--strict"]].concat()).ends(0);
    }
    run!("report", &whole, "-o", "-", "--strict").ends(0);
}

#[test]
fn a_damaged_capture_is_shown_as_far_as_it_goes_and_has_its_exit_code_on_either_side() {
    let directory = directory();
    let whole = capture(&directory, "a", &[called("request", 10, 100)]);
    let bytes = fs::read(&whole).unwrap();
    let cut = place(&directory, "cut.evc");
    fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    let cut = argument(&cut);
    for captures in [vec![cut], vec![cut, &whole], vec![&whole, cut]] {
        run(&[&["report", "-o", "-"], &captures[..]].concat())
            .fails(6, "truncated")
            .shows("request")
            .shows("class=\"cut\"");
    }
}

#[test]
fn the_files_of_a_rotated_capture_are_one_side() {
    let directory = directory();
    let whole = capture(&directory, "ring", &[called("request", 3000, 1000)]);
    let (ring, rotated) = (place(&directory, "ring"), place(&directory, "rotated.evc"));
    run!("capture", &ring, "--now", "--rotate-size", "4k", "-o", &rotated).ends(0);
    let file = |number: usize| argument(&place(&directory, &format!("rotated.{number:04}.evc"))).to_owned();
    let files: Vec<String> = (1..).map(file).take_while(|file| Path::new(file).exists()).collect();
    assert!(files.len() > 2, "{files:?}");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    for arguments in [[&[whole.as_str()], &files[..]].concat(), [&[&whole, "--with"], &files[..]].concat()] {
        let done = run(&[&["report", "-o", "-"], &arguments[..]].concat()).ends(0);
        assert_eq!(cells(&done.out, "request")[1..4], ["3,000", "3,000", "0%"]);
    }
    // A capture may also be compared with itself.
    run!("report", &whole, "--with", &whole, "-o", "-").ends(0).shows("Difference flame graph");
    let one = run(&[&["report", "--json"], &files[..]].concat()).json();
    assert!(one["file"].text().ends_with("rotated.report.html"), "{one}");
}

#[test]
fn a_part_is_selected_on_both_sides() {
    let directory = directory();
    let capture = |name: &str| {
        let (ring, file) = (place(&directory, name), place(&directory, &format!("{name}.evc")));
        let recorder = spans_in(&ring).keep(true).build().unwrap();
        in_recorder(recorder, || {
            (0..30).for_each(|_| info_span!("query").in_scope(|| ()));
            (0..20).for_each(|_| info_span!("request").in_scope(|| ()));
        });
        run!("capture", &ring, "--now", "-o", &file).ends(0);
        argument(&file).to_owned()
    };
    let (a, b) = (capture("a"), capture("b"));
    let done = run!("report", &a, &b, "--span", "query", "-o", "-").ends(0);
    assert_eq!(cells(&done.out, "query")[1..3], ["30", "30"]);
    run!("report", &a, &b, "-o", "-").shows("</span>request<");
    assert!(!done.out.contains("</span>request<"), "{}", done.out);
}

#[test]
fn a_ring_is_reported_as_it_is_now_and_two_without_spans_and_blocks_are_not_compared() {
    let directory = directory();
    capture(&directory, "shop", &[called("request", 5, 0)]);
    let mut report = program!("report", "shop", "-o", "page.html");
    report.current_dir(directory.path()).env("EVENTRING_DIR", directory.path());
    finish(report).ends(0);
    assert!(fs::read_to_string(place(&directory, "page.html")).unwrap().contains("</span>request<"));
    run!("report", program::KEPT, program::KEPT, "-o", "-").ends(0).shows("<td>transactions</td><td>3</td><td>3</td>");
    let ring = place(&directory, "node");
    let recorder = program::exec_ring(&ring);
    run!("report", program::KEPT, &ring, "-o", "-").ends(8).shows_nothing();
    drop(recorder);
}
