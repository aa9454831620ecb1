//! Credentials, NKeys and certificates: a broker that wants them gets them, and what is wrong with them is said.

use crate::broker;
use crate::broker::Broker;
use crate::certificates::Certificates;
use crate::fixtures::*;
use crate::orders::ended_orders;

/// Returns the path of a file of keys, which are only for tests.
fn key(name: &str) -> String {
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/broker/keys");
    keys.join(name).to_str().unwrap().to_owned()
}

/// Makes a ring with one event, and returns its path.
fn ring(dir: &Path) -> String {
    let path = dir.join("orders");
    ended_orders(&path, 1);
    argument(&path).to_owned()
}

/// Forwards the ring and receives it again with these options, which the broker accepts.
fn assert_accepted(dir: &Path, address: &str, options: &[&str]) {
    let (ring, file) = (ring(dir), dir.join("all.evc"));
    run!("forward", &ring, "--to", address, "--stream", "S", options).ends(0).warns("1 event in 1 batch ");
    let words = ["receive", address, "--stream", "S", "-o", file.to_str().unwrap(), "--force", "--until-end"];
    run!(&words, options).ends(0).warns("1 event of 1 ring");
}

/// Tries to forward with options that do not do, and checks what is said.
fn assert_refused(dir: &Path, address: &str, options: &[&str], needed: &str) {
    let sent = run!("forward", &ring(dir), "--to", address, "--stream", "S", options);
    assert!(sent.code.is_some_and(|code| code > 0) && sent.err.contains(needed), "{options:?}: {sent:?}");
    // The seed of crates/cli/tests/it/broker/keys/user.nk.
    assert!(!sent.err.contains("SU"), "{sent:?}");
}

#[test]
fn credentials_and_nkeys_are_shown_to_a_broker_that_wants_them() {
    if !broker::is_installed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let start = |name: &str| Broker::start_with(&dir.path().join(name), &["-c", &key(name)]);
    let (with_accounts, with_nkeys) = (start("accounts.conf"), start("nkey.conf"));
    let (creds, nkey) = (key("user.creds"), key("user.nk"));
    assert_accepted(dir.path(), &with_accounts.address(), &["--creds", &creds]);
    assert_accepted(dir.path(), &with_nkeys.address(), &["--nkey", &nkey]);
    for (broker, options, needed) in [
        (&with_accounts, &[][..], "authorization violation"),
        (&with_accounts, &["--nkey", &nkey], "authorization violation"),
        (&with_nkeys, &["--creds", &creds], "authorization violation"),
        (&with_nkeys, &["--nkey", &key("nkey.conf")], "cannot connect"),
        (&with_nkeys, &["--nkey", "none.nk"], "none.nk: cannot read"),
        (&with_accounts, &["--creds", "none.creds"], "none.creds: cannot read"),
    ] {
        assert_refused(dir.path(), &broker.address(), options, needed);
    }
}

#[test]
fn a_broker_is_known_by_its_certificate_and_knows_its_clients_by_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let Some(made) = broker::is_installed().then(|| Certificates::make(dir.path())).flatten() else { return };
    let file = |name: &str| made.file(name);
    let [ours, other, certificate, key] = ["ours.pem", "other.pem", "client.pem", "client.key"].map(file);
    let own = ["--tlscert", &file("broker.pem"), "--tlskey", &file("broker.key")].map(str::to_owned);
    let own = own.each_ref().map(String::as_str);
    let with_tls = Broker::start_with(&dir.path().join("tls"), &own);
    let verify = [&own[..], &["--tlsverify", "--tlscacert", &ours]].concat();
    let verifying = Broker::start_with(&dir.path().join("verify"), &verify);
    let tls = |broker: &Broker| broker.address().replace("nats://", "tls://");
    let client = ["--tls-ca", &ours, "--tls-cert", &certificate, "--tls-key", &key];
    assert_accepted(dir.path(), &tls(&with_tls), &["--tls-ca", &ours]);
    assert_accepted(dir.path(), &tls(&verifying), &client);
    for (broker, options, needed) in [
        (&with_tls, &[][..], "UnknownIssuer"),
        (&with_tls, &["--tls-ca", &other], "UnknownIssuer"),
        (&verifying, &["--tls-ca", &ours], "cannot connect to tls://"),
        (&with_tls, &["--tls-ca", "none.pem"], "none.pem: cannot read"),
    ] {
        assert_refused(dir.path(), &tls(broker), options, needed);
    }
}

#[test]
fn no_message_has_a_password_or_key_of_an_address() {
    let dir = program::directory();
    let (ring, file) = (ring(dir.path()), place(&dir, "all.evc"));
    let file = program::argument(&file);
    for address in [
        "nats://user:S3CRET@127.0.0.1:99999",
        "nats://S3CRET@",
        "nats://user:S3CRET",
        "nats://user:S3CRET and S3CRET@127.0.0.1:x",
        "nats://user:a@S3CRET@127.0.0.1:x,tls://S3CRET%40@b:y",
        "user:S3CRET@127.0.0.1:4222",
        "nats:/user:S3CRET@127.0.0.1:4222",
        "otlp://user:S3CRET@127.0.0.1:1",
        "otlp://127.0.0.1:1/?key=S3CRET",
        "redis://127.0.0.1:1/?token=S3CRET",
    ] {
        let to = format!("--to={address}");
        for arguments in [
            &["forward", &ring, "--to", address, "--stream", "S"][..],
            &["forward", &ring, "--to", address],
            &["forward", &ring, &to, "--timeout", "no time"],
            &["forward", &ring, &to, "--json", "--header", "a=b"],
            &["forward", &ring, "--too", address],
            &["receive", address, "--stream", "S", "-o", file],
            &["receive", "nats://a", address],
            &["receive", address, "-o", file, "--max-age", address],
            &["export", address],
            &["list", "--color", address],
            &[address],
        ] {
            let ended = run(arguments);
            assert_ne!(ended.code, Some(0), "{arguments:?}");
            assert!(!ended.out.contains("S3CRET") && !ended.err.contains("S3CRET"), "{arguments:?}: {ended:?}");
            assert!(!ended.err.is_empty(), "{arguments:?}");
        }
    }
}

#[test]
fn a_key_in_place_of_its_file_is_not_shown_and_nothing_of_the_environment_is() {
    let dir = program::directory();
    let ring = ring(dir.path());
    let read = |name: &str| fs::read_to_string(key(name)).unwrap();
    let (creds, nkey) = (read("user.creds"), read("user.nk").trim().to_owned());
    let nkey_option = format!("--nkey={nkey}");
    let pem = "-----BEGIN PRIVATE KEY-----\nS3CRET\n-----END PRIVATE KEY-----\n";
    let forward = ["forward", &ring, "--to", "nats://127.0.0.1:1", "--stream", "S"];
    let with = |options: &[&'static str]| [&forward[..], options].concat();
    let no_env = ("NATS_X", "");
    let cases: Vec<(Vec<&str>, (&str, &str))> = vec![
        ([&forward[..], &["--nkey", &nkey]].concat(), no_env),
        ([&forward[..], &[&nkey_option]].concat(), no_env),
        ([&forward[..], &["--creds", &creds]].concat(), no_env),
        (with(&["--tls-ca", pem]), no_env),
        (with(&["--creds", "S3CRET\nS3CRET"]), no_env),
        (vec!["forward", &ring, "--nkay", &nkey], no_env),
        (vec!["list", &creds], no_env),
        (with(&[]), ("NATS_CREDS", &creds)),
        (with(&[]), ("NATS_CREDS", &nkey)),
        (with(&[]), ("NATS_CREDS", "nats://u:S3CRET@x")),
        (vec!["view", program::KEPT], ("EVENTRING_UI", "https://u:S3CRET@x/")),
    ];
    let secrets = ["S3CRET", &nkey, "eyJ", &nkey[20..]];
    for (arguments, (name, value)) in cases {
        let mut command = program::program(&arguments);
        command.env(name, value);
        let ended = program::finish(command);
        let said = format!("{}{}", ended.out, ended.err);
        assert!(!said.is_empty(), "{arguments:?}");
        assert!(!secrets.iter().any(|secret| said.contains(secret)), "{name} {arguments:?}: {said}");
    }
}
