//! A user cannot make rings in another user's ring directory. The error names the owner and a remedy.

use crate::program::{directory, finish, place, program};
use eventring_stress::users;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

#[test]
fn a_directory_of_another_user_is_named_with_its_owner_and_the_remedy() {
    if !users::can_be_played() {
        return;
    }
    let directory = directory();
    let rings = place(&directory, "rings");
    fs::create_dir(&rings).unwrap();
    for path in [directory.path(), &rings] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = program(&["demo", "--seconds", "1", "--ring", "x:16:27"]);
    command.env("EVENTRING_DIR", &rings).uid(1000).gid(1000);
    if command.output().is_err() {
        return eventring_stress::missing("another user may not execute the program here");
    }
    let run = finish(command);
    assert_eq!(run.code, Some(11), "{run:?}");
    let expected = format!(
        "cannot use ring directory {}: it belongs to user 0, and we, user 1000, may not make files in it; set EVENTRING_DIR \
         to a directory of your own, or give the ring's full path",
        rings.display()
    );
    assert!(run.err.contains(&expected), "{run:?}");
}
