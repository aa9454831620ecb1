use super::*;

#[test]
fn addresses_that_are_no_addresses_say_what_was_expected() {
    for (text, problem) in [
        ("localhost:4318", "it has no scheme"),
        ("nats://localhost", "its scheme is another one"),
        ("otlp://", "it cannot be read"),
        ("otlp://user:secret@host", "it has a user"),
        ("otlp://host/?a=b", "it has a query"),
        ("otlp://host:99999", "its port is no number"),
        ("otlp://host:43l8", "port"),
    ] {
        let error = text.parse::<OtlpEndpoint>().unwrap_err();
        assert_eq!(error.kind(), OtlpErrorKind::BadEndpoint);
        let message = error.to_string();
        assert!(message.contains(problem) && message.contains("expected otlp://HOST"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    for (text, is_this_host) in [
        ("otlp://localhost", true),
        ("otlp://127.0.0.9:1", true),
        ("otlp://[::1]", true),
        ("otlp://localhost.example", false),
    ] {
        assert_eq!(text.parse::<OtlpEndpoint>().unwrap().is_this_host(), is_this_host, "{text}");
    }
    assert_eq!("otlp://[::1]".parse::<OtlpEndpoint>().unwrap().to_string(), "http://[::1]:4318");
    assert_eq!("https://host/".parse::<OtlpEndpoint>().unwrap().to_string(), "https://host");
}

#[test]
fn a_bad_header_is_named_and_its_value_is_not() {
    let endpoint: OtlpEndpoint = "otlp://host".parse().unwrap();
    let error = endpoint.clone().header("key", "secret\n").unwrap_err();
    assert_eq!(error.kind(), OtlpErrorKind::BadHeader);
    assert!(error.to_string().contains("`key`") && !error.to_string().contains("secret"), "{error}");
    assert!(endpoint.header("a b", "c").is_err());
}
