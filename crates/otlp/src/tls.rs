//! Certificates: the trusted ones, and the client's own, which is sent to the collector.

use super::error::OtlpError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// The certificates of a forwarding, as PEM.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct OtlpTls {
    /// `None` if the usual authorities are trusted.
    roots: Option<Vec<u8>>,
    /// A certificate with its chain, and its key.
    client: Option<(Vec<u8>, Vec<u8>)>,
}

impl OtlpTls {
    pub(super) fn root_certificates(self, pem: &[u8]) -> Result<Self, OtlpError> {
        let roots =
            certificates(pem).ok_or_else(|| bad("the file of trusted certificates has no certificate, as PEM"))?;
        // The parser of PEM does not look inside.
        let mut store = rustls::RootCertStore::empty();
        for root in roots {
            store.add(root).map_err(|error| bad(&format!("a trusted certificate cannot be used: {error}")))?;
        }
        Ok(Self { roots: Some(pem.to_vec()), ..self })
    }

    pub(super) fn client_certificate(self, chain: &[u8], key: &[u8]) -> Result<Self, OtlpError> {
        let parsed =
            certificates(chain).ok_or_else(|| bad("the file of the certificate has no certificate, as PEM"))?;
        let parsed_key =
            PrivateKeyDer::from_pem_slice(key).map_err(|_| bad("the file of the key has no private key, as PEM"))?;
        // The client of HTTP takes it that they fit.
        CertifiedKey::from_der(parsed, parsed_key, &rustls::crypto::ring::default_provider())
            .map_err(|error| bad(&format!("the certificate and its key cannot be used: {error}")))?;
        Ok(Self { client: Some((chain.to_vec(), key.to_vec())), ..self })
    }

    /// Returns the settings for the client of HTTP.
    pub(super) fn config(&self) -> TlsConfig {
        let parsed = |pem: &[u8]| -> Vec<Certificate<'static>> {
            let all = certificates(pem).unwrap_or_default();
            all.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
        };
        let mut config = TlsConfig::builder();
        if let Some(roots) = &self.roots {
            config = config.root_certs(RootCerts::new_with_certs(&parsed(roots)));
        }
        if let Some((chain, key)) = &self.client
            && let Ok(key) = PrivateKey::from_pem(key)
        {
            config = config.client_cert(Some(ClientCert::new_with_certs(&parsed(chain), key)));
        }
        config.build()
    }
}

/// Returns the certificates of a file. Returns `None` if there are none, or if one is damaged.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    (!all.is_empty()).then_some(all)
}

fn bad(message: &str) -> OtlpError {
    OtlpError(message.to_owned())
}

/// The key is secret, so nothing is shown but what is there.
impl fmt::Debug for OtlpTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has_roots, has_client) = (self.roots.is_some(), self.client.is_some());
        f.debug_struct("OtlpTls").field("has_roots", &has_roots).field("has_client", &has_client).finish()
    }
}
