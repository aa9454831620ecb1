//! A program declares a global recorder for typed events of its own content type.

use crate::fixtures::*;
use crate::read_back::events;
use eventring::global::{EXEC, GlobalRecorder, InitErrorKind};
use eventring::schema::{EventPayload, EventType, SchemaModel, Utf8};

static ORDERS: GlobalRecorder = GlobalRecorder::new("orders");

#[derive(EventPayload, Clone, Copy)]
struct Order {
    id: u64,
    items: u32,
}

#[derive(EventType, Clone, Copy, Debug, PartialEq)]
#[event(content_type = 300, name = "SHOP", recorder = ORDERS)]
#[repr(u16)]
enum Shop {
    #[event(payload = Order, trailing(note: Utf8))]
    OrderPlaced = 2,
    DayEnded = 3,
}

static OTHERS: GlobalRecorder = GlobalRecorder::new("others");

#[test]
fn a_global_recorder_refuses_events_of_other_types() {
    let directory = directory();
    let config = format!("{}:16:27", directory.path().join("others").display());
    let error = OTHERS.try_init::<Shop>(&config).unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::OtherRecorder);
    insta::assert_snapshot!(error, @"initialise the global recorder `others` for the events SHOP: these are recorded to the global recorder `orders`, expected events that are recorded here; initialise `orders`, or name this one in `#[event(recorder = …)]` on the enum");
    // A `main` that returns the error prints this text.
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(OTHERS.installed().is_none() && std::fs::read_dir(directory.path()).unwrap().next().is_none());
    // `try_init_from_env` fails in the same way. It needs a variable that is set; PATH is set wherever tests run.
    let error = OTHERS.try_init_from_env::<Shop>("PATH").unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::OtherRecorder);
}

#[test]
fn its_events_go_into_its_own_ring_and_are_decoded_by_the_ring_alone() {
    let (_directory, [path]) = places(["orders"]);
    let config = format!("{}:16:27", path.display());
    assert_eq!(record!(Shop::DayEnded), 0);
    let recorder = ORDERS.try_init::<Shop>(&config).unwrap();
    assert_eq!(recorder.path(), Some(path.as_path()));
    let order = Order { id: 7, items: 2 };
    assert_eq!(recordv!(Shop::OrderPlaced, &order, [b"in a hurry"]; ext[3] = 5), 1);
    assert_eq!(record!(Shop::DayEnded), 2);
    // The failed calls have installed nothing in the global recorder `EXEC`.
    assert!(EXEC.installed().is_none());

    let reader = Reader::open_typed::<Shop>(&path).unwrap();
    assert_eq!(reader.info().content_name.as_deref(), Some("SHOP"));
    let model = SchemaModel::parse(&reader.schema_text().unwrap()).unwrap();
    let events = events(&reader);
    let [(_, placed, ext, payload), (_, ended, _, nothing)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((Shop::from_code(*placed), *ext), (Some(Shop::OrderPlaced), [0, 0, 0, 5]));
    assert_eq!(model.decode(*placed, payload).to_string(), "id=7 items=2 note=\"in a hurry\"");
    assert_eq!((Shop::from_code(*ended), nothing.len()), (Some(Shop::DayEnded), 0));

    let error = ORDERS.try_init::<Shop>(&config).unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::AlreadyInstalled);
    insta::assert_snapshot!(error, @"initialise the global recorder `orders`: it has been initialised before, expected once; use its `set_enabled` to switch it, or `override_with` in tests");
}

static SHARED: GlobalRecorder = GlobalRecorder::new("shared");

#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "LAMPS", recorder = SHARED)]
#[repr(u16)]
enum Lamp {
    SwitchedOn = 2,
}

/// Events that name the same recorder as `Lamp`. Their code 2 means something else than code 2 of `Lamp`.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "DOORS", recorder = SHARED)]
#[repr(u16)]
enum Door {
    Opened = 2,
}

#[test]
fn two_event_types_do_not_share_a_recorder_though_they_name_the_same() {
    let directory = directory();
    let config = format!("{}:16:27", directory.path().join("shared").display());
    let recorder = SHARED.try_init::<Lamp>(&config).unwrap();
    let error = SHARED.try_init::<Door>(&config).unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::OtherEvents);
    insta::assert_snapshot!(error, @"initialise the global recorder `shared` for the events DOORS: it records the events LAMPS, whose schema is another, expected one schema for each recorder; give each event type a recorder of its own: `#[event(recorder = …)]` on the enum");

    // The ring was made for `Lamp`, so it takes only events of `Lamp`. It refuses each event of `Door`, also after it
    // has taken an event of `Lamp`.
    for _ in 0..3 {
        assert_eq!(record!(Door::Opened), 0);
        assert_ne!(record!(Lamp::SwitchedOn), 0);
    }
    assert_eq!((recorder.stats().last_seqno, recorder.stats().foreign_events), (3, 3));
    // The refused events are counted in the ring's header, where readers find the count.
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    assert_eq!(reader.info().extension.unwrap().foreign_events, 3);

    // Another recorder of `Lamp` events may override the global recorder. It refuses `Door` events, too. And a recorder
    // of `Lamp` events refuses `Mistaken` events if it is installed in the global recorder of `Mistaken`.
    let lamps = || {
        Recorder::builder(ContentDescription::from_event_type::<Lamp>()).anonymous().prefault(false).build().unwrap()
    };
    let other = lamps();
    {
        let _guard = SHARED.override_with(other.clone());
        assert_eq!((record!(Door::Opened), record!(Lamp::SwitchedOn)), (0, 1));
    }
    assert_eq!(other.stats().foreign_events, 1);
    assert_ne!(record!(Lamp::SwitchedOn), 0);
    ORDERS_BY_MISTAKE.install(lamps()).unwrap();
    assert_eq!(record!(Mistaken::DayEnded), 0);
    assert_eq!(ORDERS_BY_MISTAKE.installed().unwrap().stats().foreign_events, 1);
}

static ORDERS_BY_MISTAKE: GlobalRecorder = GlobalRecorder::new("mistaken");

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "MISTAKEN", recorder = ORDERS_BY_MISTAKE)]
#[repr(u16)]
enum Mistaken {
    DayEnded = 3,
}

#[test]
fn a_named_recorder_takes_no_events_of_another_schema() {
    let recorder =
        Recorder::builder(ContentDescription::from_event_type::<Lamp>()).anonymous().prefault(false).build().unwrap();
    let evaluated = std::cell::Cell::new(0);
    let tag = || {
        evaluated.set(evaluated.get() + 1);
        7
    };
    for _ in 0..2 {
        assert_eq!(record!(recorder => Door::Opened; ext[0] = tag()), 0);
        assert_eq!(record!(recorder => Shop::DayEnded; ext[0] = tag()), 0);
        assert_ne!(record!(recorder => Lamp::SwitchedOn), 0);
    }
    assert_eq!(recordv!(recorder => Shop::OrderPlaced, &Order { id: 1, items: 0 }, [b"no"]), 0);
    assert_eq!(evaluated.get(), 0);
    assert_eq!((recorder.stats().last_seqno, recorder.stats().foreign_events), (2, 5));
    // The check compares schema hashes. A raw event has only a type number and no schema hash, so it is not checked.
    // A ring without a schema hash takes all events of its content type.
    assert_eq!(recordv!(recorder => raw(9), [b"anything"]), 3);
    let description = ContentDescription::new(301, "THINGS");
    let recorder = Recorder::builder(description).anonymous().prefault(false).build().unwrap();
    assert_eq!((record!(recorder => Door::Opened), record!(recorder => Shop::DayEnded)), (1, 0));
}

static RACED: GlobalRecorder = GlobalRecorder::new("raced");

#[derive(EventType, Clone, Copy)]
#[event(content_type = 302, name = "RACES", recorder = RACED)]
#[repr(u16)]
enum Race {
    Run = 2,
}

#[test]
fn of_threads_that_initialise_a_recorder_at_the_same_time_one_succeeds() {
    let directory = directory();
    let config = format!("{}:16:27", directory.path().join("raced").display());
    let start = std::sync::Barrier::new(4);
    let kinds: Vec<_> = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                start.wait();
                RACED.try_init::<Race>(&config).map(|_| ()).map_err(|error| error.kind())
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(kinds.iter().filter(|kind| kind.is_ok()).count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == Err(InitErrorKind::AlreadyInstalled)).count(), 3, "{kinds:?}");
    assert_eq!(record!(Race::Run), 1);
}
