//! A program declares a recorder of its own for events of its own content type.
#![cfg(feature = "macros")]

use eventring::global::{EXEC, GlobalRecorder, InitErrorKind};
use eventring::reader::{Next, Reader, Seek};
use eventring::schema::{EventPayload, EventType, SchemaModel, Utf8};
use eventring::{record, recordv};

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
fn a_slot_refuses_events_that_are_recorded_elsewhere() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let config = format!("{}:16:27", directory.path().join("others").display());
    let error = OTHERS.try_init::<Shop>(&config).unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::OtherSlot);
    insta::assert_snapshot!(error, @"initialise the global recorder `others` for the events SHOP: these are recorded to the global recorder `orders`, expected events that are recorded here; initialise `orders`, or name this one in `#[event(recorder = …)]` on the enum");
    // What a `main` that returns it prints.
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(OTHERS.installed().is_none() && std::fs::read_dir(directory.path()).unwrap().next().is_none());
    // From the environment as well; the variable is one that is set wherever tests run.
    let error = OTHERS.try_init_from_env::<Shop>("PATH").unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::OtherSlot);
}

#[test]
fn its_events_go_into_its_own_ring_and_are_decoded_by_the_ring_alone() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("orders");
    let config = format!("{}:16:27", path.display());
    assert_eq!(record!(Shop::DayEnded), 0);
    let recorder = ORDERS.try_init::<Shop>(&config).unwrap();
    assert_eq!(recorder.path(), Some(path.as_path()));
    let order = Order { id: 7, items: 2 };
    assert_eq!(recordv!(Shop::OrderPlaced, &order, [b"in a hurry"]; ext[3] = 5), 1);
    assert_eq!(record!(Shop::DayEnded), 2);
    // The exec slot is another one.
    assert!(EXEC.installed().is_none());

    let reader = Reader::open_typed::<Shop>(&path).unwrap();
    assert_eq!(reader.info().content_name.as_deref(), Some("SHOP"));
    let model = SchemaModel::parse(&reader.schema_text().unwrap()).unwrap();
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let Next::Event(event) = cursor.next() else { panic!() };
    assert_eq!((Shop::from_code(event.event_type), event.content_ext), (Some(Shop::OrderPlaced), [0, 0, 0, 5]));
    let mut buffer = Vec::new();
    let payload = cursor.payload(&event, &mut buffer).valid().unwrap();
    assert_eq!(model.decode(event.event_type, payload).to_string(), "id=7 items=2 note=\"in a hurry\"");
    let Next::Event(event) = cursor.next() else { panic!() };
    assert_eq!((Shop::from_code(event.event_type), event.payload_size), (Some(Shop::DayEnded), 0));

    let error = ORDERS.try_init::<Shop>(&config).unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::AlreadyInstalled);
    insta::assert_snapshot!(error, @"initialise the global recorder `orders`: it has been initialised before, expected once; use its `set_enabled` to switch it, or `override_with` in tests");
    let panic = std::panic::catch_unwind(|| ORDERS.init::<Shop>(&config)).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().unwrap(), &error.to_string());
}
