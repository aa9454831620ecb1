//! Every verb that writes, on a disk that is full: the exit code is the documented one, and what is on the disk is whole.

use crate::blocks::live::node;
use crate::fixtures::*;
use crate::special_files::{Ended, Scene, WRITERS};
use eventring_stress::chain::Made;
use eventring_stress::mounted::mount_or_skip;

/// The exit code of a full disk.
const FULL: i32 = 12;

fn fill(disk: &Path) {
    let filler = disk.join("filler");
    let mut file = File::create(&filler).unwrap();
    let full = std::io::copy(&mut std::io::repeat(1), &mut file).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn every_verb_that_writes_ends_with_the_code_of_a_full_disk() {
    let scene = Scene::new();
    let disk = place(&scene.directory, "disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = mount_or_skip(&disk, "tmpfs", "size=256k") else { return };
    fill(&disk);
    let mut told = 0;
    // A socket takes no room.
    for (number, line) in WRITERS.iter().enumerate().filter(|(_, line)| !line.starts_with("serve")) {
        // These two end sooner: there is no broker, and the file is no core file.
        let ends_sooner = ["receive", "core"].contains(&line.split(' ').next().unwrap());
        let at = disk.join(format!("file-{number}"));
        let ended = scene.run(line, &at, number).expect("it ends");
        let lacks_tool = |said: &str| line.starts_with("icount") && !said.contains("No space");
        match ended {
            Ended { code: Some(FULL), .. } => told += 1,
            Ended { code: Some(1..), said } if ends_sooner || lacks_tool(&said) => {}
            ended => panic!("{line}: {ended:?}"),
        }
        assert!(!at.is_file(), "{line}");
    }
    assert!(told > 12, "{told}");
    // `archive` has made its directory.
    let left = fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    assert_eq!(left.collect::<Vec<_>>(), [disk.join("filler")]);
}

#[test]
fn an_archive_on_a_full_disk_ends_before_the_block_that_has_no_room() {
    let (dir, [ring, disk]) = places(["node", "disk"]);
    fs::create_dir(&disk).unwrap();
    let recorder = node(&ring);
    let mut made = Made::default();
    // The block in the middle is larger than the disk.
    for (number, txns) in [(1, 1), (2, 700), (3, 1)] {
        let tag = made.block(number, number as u8, txns);
        made.finalize(tag);
    }
    made.record(0, &recorder);
    let whole = place(&dir, "whole");
    let all = run!("exec", "archive", &ring, "-o", &whole, "--json").json();
    assert_eq!(all["blocks"], 3, "{all}");
    let bytes = fs::metadata(whole.join("0/2.bcap")).unwrap().len();
    assert!(bytes > 64 << 10, "{bytes}");
    let Some(_mounted) = mount_or_skip(&disk, "tmpfs", "size=60k") else { return };
    for _ in 0..2 {
        let full = run!("exec", "archive", &ring, "-o", &disk, "--json")
            .fails(FULL, "2.bcap")
            .warns("No space left on device");
        let files: Vec<_> = fs::read_dir(disk.join("0")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, ["1.bcap"], "no hole, and nothing unfinished");
        let told = full.said();
        assert_eq!(told["not_archived"], 1, "{told}");
    }
}

#[test]
fn the_rings_of_a_core_file_that_find_no_room_are_a_full_disk_and_no_missing_ring() {
    let (dir, [disk]) = places(["disk"]);
    fs::create_dir(&disk).unwrap();
    let Some((core, _)) = crate::cores::crash(dir.path(), "memfd", "segv", 100) else { return };
    let Some(_mounted) = mount_or_skip(&disk, "tmpfs", "size=64k") else { return };
    run!("core", &core, "-o", &disk.join("out.evc")).fails(FULL, "No space left on device");
    assert_eq!(fs::read_dir(&disk).unwrap().count(), 0);
}
