//! Each fuzz target runs again on every stored input: the seeds, and the inputs that the fuzzer has found since.

use crate::hostile::bytes as hostile;

#[test]
fn inputs_that_were_kept_are_an_error_or_a_counted_loss() {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    // These tests are also compiled in the crate `tests/mutants`. From there, the fuzz targets are found at
    // `../fuzz`.
    let seeds = [package.join("../../tests/fuzz/seeds"), package.join("../fuzz/seeds")];
    let seeds = seeds.iter().find(|seeds| seeds.is_dir()).unwrap();
    for (name, target) in hostile::TARGETS {
        let mut count = 0;
        for entry in std::fs::read_dir(seeds.join(name)).unwrap() {
            let path = entry.unwrap().path();
            let input = std::fs::read(&path).unwrap();
            println!("{}", path.display());
            target(&input);
            // The first half of the input is one more hostile input: one that is cut off in the middle.
            target(&input[..input.len() / 2]);
            count += 1;
        }
        assert!(count >= 3, "{name} has only {count} inputs");
    }
}

/// So the fuzzer begins with payloads that are read with another version of their schema.
#[cfg(not(eventring_mutants))]
#[test]
fn the_other_versions_among_the_kept_inputs_are_compatible() {
    let texts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds/schema_text");
    for (name, note) in [("older-version", ""), ("newer-version", "ok")] {
        let input = std::fs::read(texts.join(name)).unwrap();
        let end = input.iter().position(|byte| *byte == 0).unwrap();
        let model = eventring::schema::SchemaModel::parse(std::str::from_utf8(&input[..end]).unwrap()).unwrap();
        let read = hostile::versions::read_as_another_version(&model, &input[end + 1..]);
        assert_eq!(read.as_deref(), Some(note), "{name}");
    }
}

/// A capture of an older version is refused at its head, and tries nothing of the rest.
#[cfg(not(eventring_mutants))]
#[test]
fn the_whole_captures_among_the_kept_inputs_have_the_present_version() {
    let captures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds/capture");
    for name in ["both", "quick0", "typed0"] {
        let capture = eventring_capture::CaptureFile::open(&captures.join(name)).unwrap();
        assert!(!capture.rings().is_empty(), "{name}");
    }
}

#[test]
fn random_bytes_are_an_error_or_a_counted_loss() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (_, target) in hostile::TARGETS {
        for _ in 0..40 {
            let bytes: Vec<u8> =
                (0..random() % 300).map(|_| if random() % 3 == 0 { 0 } else { random() as u8 }).collect();
            target(&bytes);
        }
    }
}
