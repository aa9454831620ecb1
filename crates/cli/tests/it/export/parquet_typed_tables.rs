//! The tables of typed events have names that depend on the schemas, and not on which event comes first.

use crate::program::run;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::{EventPayload, EventType};
use std::collections::BTreeMap;
use std::path::Path;

/// The program before an upgrade.
mod before {
    use super::*;

    #[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
    pub struct Order {
        pub price: u32,
    }

    #[derive(EventType, Clone, Copy, Debug, PartialEq)]
    #[event(content_type = 300, name = "ORDERS")]
    #[repr(u16)]
    pub enum Event {
        #[event(payload = Order)]
        Order = 2,
        #[event(payload = Order)]
        Other = 3,
    }
}

/// The program after the upgrade: its orders have another field.
mod after {
    use super::*;

    #[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
    pub struct Order {
        pub price: u32,
        pub count: u32,
    }

    #[derive(EventType, Clone, Copy, Debug, PartialEq)]
    #[event(content_type = 300, name = "ORDERS")]
    #[repr(u16)]
    pub enum Event {
        #[event(payload = Order)]
        Order = 2,
    }
}

fn recorder(path: &Path, description: ContentDescription) -> Recorder {
    let builder = Recorder::builder(description).config(path).compact(true);
    builder.shifts(15, 21).prefault(false).keep(true).build().unwrap()
}

/// Exports the captures or rings. Returns the columns of each table of typed events.
fn columns(names: &[&str], dir: &Path) -> BTreeMap<String, Vec<String>> {
    let files = dir.join("files");
    let more = ["--format", "parquet", "-o", files.to_str().unwrap(), "--force", "--json"];
    run(&[&["export"], names, &more].concat()).json();
    let entries = std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().path());
    let tables = entries.filter_map(|path| {
        let name = path.file_stem()?.to_str()?.strip_prefix("events-")?.to_owned();
        let file = std::fs::File::open(&path).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        Some((name, reader.schema().fields().iter().map(|field| field.name().clone()).collect()))
    });
    tables.collect()
}

#[test]
fn programs_of_two_versions_have_the_same_tables_whichever_records_first() {
    let mut seen = Vec::new();
    for is_old_first in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["old", "new"].map(|name| dir.path().join(name));
        let old = recorder(&paths[0], ContentDescription::from_event_type::<before::Event>());
        let new = recorder(&paths[1], ContentDescription::from_event_type::<after::Event>());
        let of_old = || {
            old.record(before::Event::Order.code(), [0; 4], &[7, 0, 0, 0]);
            // A table that takes the events of all further types has this name, too.
            old.record(before::Event::Other.code(), [0; 4], &[7, 0, 0, 0]);
            old.record(77, [0; 4], b"nobody knows this");
        };
        let of_new = || {
            new.record(after::Event::Order.code(), [0; 4], &[7, 0, 0, 0, 1, 0, 0, 0]);
            new.record(77, [0; 4], b"nor that");
        };
        if is_old_first {
            of_old();
            of_new();
        } else {
            of_new();
            of_old();
        }
        seen.push(columns(&paths.each_ref().map(|path| path.to_str().unwrap()), dir.path()));
    }
    assert_eq!(seen[0], seen[1]);
    let names: Vec<&str> = seen[0].keys().map(String::as_str).collect();
    let suffix = names[1].strip_prefix("ORDER-").unwrap_or_else(|| panic!("{names:?}"));
    assert_eq!(suffix.len(), 8);
    assert!(names[2].starts_with("OTHER-"), "{names:?}");
    let unknown = ["event_77", &format!("event_77-{suffix}")];
    assert_eq!((names[0], &names[3..]), ("ORDER", &unknown[..]));
    let has_count = |name: &str| seen[0][name].contains(&"count".to_owned());
    assert_eq!((has_count("ORDER"), has_count(names[1])), (false, true));
}
