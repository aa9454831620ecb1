//! Files that are no core files, and core files whose bytes were changed.

use super::crash;
use crate::fixtures::*;
use eventring_stress::random::Random;

/// The number of changed files.
const MUTANTS: u64 = 150;

#[test]
fn what_is_no_core_file_is_answered_by_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    fs::write(place("empty"), b"").unwrap();
    fs::write(place("text"), b"not a core file at all").unwrap();
    fs::write(place("zstd"), [0x28, 0xb5, 0x2f, 0xfd, 0, 0]).unwrap();
    fs::write(place("short"), b"\x7fELF\x02\x01\x01").unwrap();
    fs::write(place("32-bit"), b"\x7fELF\x01\x01\x01").unwrap();
    fs::copy(std::env::current_exe().unwrap(), place("program")).unwrap();
    // A table of 2^32 segments, of which the file has none.
    let mut header = [0_u8; 128];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16..24].copy_from_slice(&[4, 0, 62, 0, 1, 0, 0, 0]);
    header[32] = 64;
    header[40] = 64;
    header[52..64].copy_from_slice(&[64, 0, 56, 0, 0xff, 0xff, 64, 0, 1, 0, 0, 0]);
    header[64 + 44..64 + 48].fill(0xff);
    fs::write(place("segments"), header).unwrap();
    let capture = place("core.evc");
    for (name, words) in [
        ("empty", "it has 0 bytes"),
        ("text", "expected an ELF header"),
        ("zstd", "decompress it first"),
        ("short", "damaged"),
        ("32-bit", "32-bit"),
        ("program", "it is a program or a library"),
        ("segments", "segments, expected at most"),
        ("missing", "No such file"),
        ("", "is no file"),
    ] {
        let answer = run!("core", &place(name), "-o", &capture);
        assert!(answer.err.contains(words) && answer.err.lines().count() == 1, "{name}: {answer:?}");
        assert!(answer.code.is_some_and(|code| code != 0) && answer.out.is_empty(), "{name}: {answer:?}");
        // No message shows bytes of a file that may be anything.
        assert!(!answer.err.contains("not a"), "{answer:?}");
    }
    assert!(!capture.exists());
}

#[test]
fn a_core_file_with_changed_bytes_is_answered_without_a_panic_and_with_bounded_memory() {
    let directory = directory();
    let Some((core, _)) = crash(directory.path(), "memfd", "abort", 20) else { return };
    let (mutant, capture) = (program::place(&directory, "mutant"), program::place(&directory, "mutant.evc"));
    // The ELF header and the tables come first, then the notes; the rings' headers begin with their magic.
    let bytes = fs::read(&core).unwrap();
    let headers: Vec<u64> =
        (0..bytes.len()).step_by(4096).filter(|at| bytes[*at..].starts_with(b"RING01")).map(|at| at as u64).collect();
    assert!(headers.len() >= 3, "{headers:?}");
    let mut numbers = Random(0x5eed);
    let begin = Instant::now();
    let mut taken = 0;
    for number in 0..MUTANTS {
        fs::copy(&core, &mutant).unwrap();
        let file = File::options().write(true).open(&mutant).unwrap();
        for _ in 0..=numbers.below(4) {
            let at = match numbers.below(4) {
                0 => numbers.below(64),
                1 => numbers.below(8192),
                2 => headers[numbers.below(headers.len() as u64) as usize] + numbers.below(128),
                _ => headers[numbers.below(headers.len() as u64) as usize] + numbers.below(4096),
            };
            let value = [0, 0xff, 0x7f, 1, numbers.below(256) as u8][numbers.below(5) as usize];
            file.write_all_at(&vec![value; 1 + numbers.below(8) as usize], at).unwrap();
        }
        if number % 10 == 0 {
            file.set_len(numbers.below(bytes.len() as u64)).unwrap();
        }
        let mut limited = program!("core", &mutant, "-o", &capture, "--json", "--force");
        limited.env("RUST_BACKTRACE", "0");
        let answer = crate::program::finish(limited);
        assert!(answer.code.is_some_and(|code| code < 100), "{number}: {answer:?}");
        assert!(!answer.err.contains("panicked"), "{number}: {answer:?}");
        if answer.code == Some(0) {
            taken += 1;
        } else if answer.out.is_empty() {
            assert_eq!(answer.err.lines().count(), 1, "{number}: {answer:?}");
        }
        let left = fs::read_dir(directory.path()).unwrap().flatten();
        assert!(left.into_iter().all(|file| !file.file_name().to_str().unwrap().starts_with(".eventring")));
    }
    eprintln!("{taken} of {MUTANTS} changed core files had rings, in {:?}", begin.elapsed());
    assert!(taken > 0 && taken < MUTANTS, "{taken}");
    let mut command = program!("core", &core, "-o", &capture, "--force", "--json");
    command.stdout(Stdio::null());
    let (is_good, memory_kib) = crate::program::memory_of(command);
    assert!(is_good && memory_kib < 200 << 10, "{memory_kib} KiB");
}
