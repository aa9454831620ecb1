//! A collector is known by its certificate and knows its clients by theirs. What is wrong with certificates is said,
//! and is a refusal for good.

use crate::certificates::Certificates;
use crate::fixtures::*;
use crate::http;
use crate::http::Collector;
use crate::orders::ended_orders;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// Makes a ring with one event, and returns its path.
fn ring(directory: &Path) -> String {
    let path = directory.join("orders");
    ended_orders(&path, 1);
    argument(&path).to_owned()
}

/// Starts a collector that has the certificate of the broker. With `verifies`, it wants one of its clients.
fn collector(made: &Certificates, verifies: bool) -> Collector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_file(made.file("broker.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(made.file("broker.key")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(made.file("ours.pem")).unwrap()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = if verifies {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let config = Arc::new(builder.with_single_cert(vec![certificate], key).unwrap());
    let wrap = move |mut stream: TcpStream| -> Option<Box<dyn http::Stream>> {
        let mut connection = ServerConnection::new(config.clone()).unwrap();
        // A client that does not trust the certificate ends the connection, and so does a server that knows no client.
        while connection.is_handshaking() {
            if connection.complete_io(&mut stream).is_err() {
                // If something were left unread, the system would throw the alert away, which says why.
                stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
                return None;
            }
        }
        Some(Box::new(StreamOwned::new(connection, stream)))
    };
    Collector::start_over(wrap, |_| "200 OK".to_owned())
}

#[test]
fn a_collector_is_known_by_its_certificate_and_knows_its_clients_by_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let Some(made) = Certificates::make(directory.path()) else { return };
    let [ours, other, certificate, key] =
        ["ours.pem", "other.pem", "client.pem", "client.key"].map(|name| made.file(name));
    let (with_tls, verifying) = (collector(&made, false), collector(&made, true));
    let ring = ring(directory.path());
    let forward = |collector: &Collector, options: &[&str]| {
        let to = format!("otlps://localhost:{}", collector.port());
        run!("forward", &ring, "--to", &to, "--json", options)
    };
    let client = ["--tls-ca", &ours, "--tls-cert", &certificate, "--tls-key", &key];
    for (collector, options) in [(&with_tls, &client[..2]), (&with_tls, &client), (&verifying, &client)] {
        let sent = forward(collector, options);
        assert_eq!(sent.json()["log_records"], 1, "{options:?}: {sent:?}");
    }
    // None of these is tried again. The timeout would be 30 seconds.
    for (collector, options, needed) in [
        (&with_tls, &[][..], "UnknownIssuer"),
        (&with_tls, &["--tls-ca", &other], "UnknownIssuer"),
        (&verifying, &["--tls-ca", &ours], "CertificateRequired"),
    ] {
        let requests = collector.requests();
        let refused = forward(collector, options);
        let counts = refused.said();
        assert_eq!(
            (refused.code, &counts["rejected"], &counts["retries"]),
            (Some(1), &json!(1), &json!(0)),
            "{counts}"
        );
        assert!(refused.err.contains(needed), "{options:?}: {refused:?}");
        assert_eq!(collector.requests(), requests);
    }
    for (options, code, needed) in [
        (&["--tls-ca", "none.pem"][..], 3, "none.pem: cannot read"),
        (&["--tls-ca", &key], 2, "has no certificate"),
        (&["--tls-cert", &certificate, "--tls-key", &certificate], 2, "has no private key"),
        (&["--tls-cert", &certificate, "--tls-key", &made.file("broker.key")], 2, "cannot be used"),
        (&["--to", "otlp://localhost", "--tls-ca", &ours], 2, "it has no TLS"),
    ] {
        let to: &[&str] = if options.contains(&"--to") { &[] } else { &["--to", "otlps://localhost"] };
        let refused = run!("forward", &ring, to, options).fails(code, needed);
        // Nothing of a key is shown.
        assert!(!refused.err.contains("PRIVATE KEY"), "{refused:?}");
    }
}
