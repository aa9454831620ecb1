//! An environment variable turns on the recording of a service. The service is not compiled again.

use crate::fixtures::*;
use crate::read_back::events;
use eventring::global::EXEC;

const VARIABLE: &str = "MY_SERVICE_RING";

#[test]
fn the_variable_names_the_ring_and_without_it_nothing_happens() {
    let test = plays!({
        let recorder = EXEC.try_init_from_env::<ExecEvent>(VARIABLE);
        say(match &recorder {
            Ok(None) => "off".to_owned(),
            Ok(Some(recorder)) => recorder.path().unwrap().display().to_string(),
            Err(error) => error.to_string(),
        });
        say(record!(ExecEvent::TxnEnd; txn = 5));
        wait_for_parent();
    });
    let (directory, [path]) = places(["service"]);
    let serve = |value: Option<String>| {
        let mut command = play(test, "service", directory.path());
        command.env_remove(VARIABLE).env("EVENTRING_DIR", directory.path());
        if let Some(value) = value {
            command.env(VARIABLE, value);
        }
        Talk::with(command)
    };
    for value in [None, Some(String::new())] {
        let mut service = serve(value);
        assert_eq!((service.hear().as_str(), service.hear().as_str()), ("off", "0"));
        assert!(service.end().success());
    }

    // The variable holds a bare name with sizes.
    let mut service = serve(Some("service:16:27".into()));
    assert_eq!(service.hear(), path.display().to_string());
    assert_eq!(service.hear(), "1");
    let reader = Reader::open_typed::<ExecEvent>(&path).unwrap();
    assert_eq!((reader.info().geometry.descriptor_capacity(), reader.state()), (1 << 16, RingState::Live));
    let (_, event_type, ext, _) = events(&reader)[0];
    assert_eq!((event_type, ext[1]), (ExecEvent::TxnEnd as u16, 5));
    assert!(service.end().success());
    // The program has exited normally. Nothing drops a recorder in a static, but the ring was ended and its file was
    // removed.
    assert!(!path.exists());
    // The reader still has the ring open, and sees that the program ended normally. It does not report that the
    // writer died.
    assert_eq!(reader.state(), RingState::Ended);

    let mut service = serve(Some("service:3:27".into()));
    let error = service.hear();
    assert!(
        error.starts_with("initialise the global recorder `exec`: cannot use ring configuration: \"service:3:27\""),
        "{error}"
    );
    assert_eq!(service.hear(), "0");
}
