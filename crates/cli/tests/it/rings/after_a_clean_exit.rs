//! A program that exits normally removes its ring. A later attempt to open the ring fails. The error message names
//! this cause, and tells the user how to keep the ring. In arguments of `eventring`, event types may be named as in
//! the ring or as in the program's source.

use crate::fixtures::*;
use crate::shop::{Order, Shop};

fn ring(path: &Path) -> Recorder {
    let ring = typed_in::<Shop>(path).build().unwrap();
    for id in 0..3 {
        record!(ring => Shop::OrderPlaced, &Order { id });
        record!(ring => Shop::OrderShipped, &Order { id });
    }
    ring
}

#[test]
fn every_verb_says_why_a_ring_may_be_gone_and_how_to_keep_it() {
    let (directory, [path]) = places(["shop"]);
    let verb = |arguments: &[&str]| {
        let mut command = program::program(arguments);
        command.env("EVENTRING_DIR", directory.path()).current_dir(directory.path());
        finish(command)
    };
    let verbs =
        [&["info", "shop"][..], &["watch", "shop"], &["snapshot", "shop"], &["export", "shop"], &["summary", "shop"]];
    let verbs = verbs.into_iter().chain([&["capture", "shop", "-o", "/dev/null"][..]]);
    let recorder = ring(&path);
    verb(&["info", "shop"]).ends(0);
    drop(recorder);
    for arguments in verbs {
        let printed = verb(arguments);
        assert!(printed.code == Some(3) && printed.out.is_empty() && printed.err.lines().count() == 1, "{printed:?}");
        for words in [
            "is removed when its program exits normally",
            "EVENTRING_KEEP=1",
            "`eventring capture shop -o shop.evc -- PROGRAM`",
        ] {
            assert!(printed.err.contains(words), "{arguments:?}: {printed:?}");
        }
    }
    // Neither name can be the name of a ring: captures end in `.evc`, and `:16:27` are sizes. The error message
    // explains this.
    for (name, words) in [("shop.evc", "neither a capture nor a ring"), ("shop:16:27", "give the name alone: shop")] {
        let printed = verb(&["summary", name]);
        assert!(printed.err.contains(words) && !printed.err.contains("EVENTRING_KEEP"), "{printed:?}");
    }
}

#[test]
fn a_type_is_named_as_in_the_ring_or_as_in_the_source() {
    let (_directory, [path]) = places(["shop"]);
    let _recorder = ring(&path);
    let count = |name: &str| {
        let watched = run!("watch", &path, "--from", "oldest", "--count", "3", "--json", "--type", name).ends(0);
        watched.json_lines().iter().filter(|line| line["name"] == "ORDER_SHIPPED").count()
    };
    assert_eq!(["ORDER_SHIPPED", "order_shipped", "OrderShipped", "3"].map(count), [3; 4]);
    run!("watch", &path, "--type", "OrderSent").fails(2, "there are RECORD_ERROR, ORDER_PLACED, ORDER_SHIPPED");
}
