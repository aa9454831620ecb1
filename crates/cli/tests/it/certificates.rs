//! Certificates for tests.

use crate::fixtures::*;

/// Certificates of two authorities, of a broker or collector and of a client, made by `openssl`.
pub struct Certificates(PathBuf);

impl Certificates {
    /// Returns `None`, and says so, if there is no `openssl`.
    pub fn make(dir: &Path) -> Option<Self> {
        let openssl = |words: &str| {
            let mut command = Command::new("openssl");
            command.args(words.split(' ')).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().map(|status| assert!(status.success(), "openssl {words}"))
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for authority in ["ours", "other"] {
            let (files, ca) =
                (format!("-keyout {authority}.key -out {authority}.pem"), "basicConstraints=critical,CA:TRUE");
            if openssl(&format!("req -x509 {key} {files} -subj /CN={authority} -addext {ca}")).is_err() {
                eventring_stress::missing("there is no openssl (Debian: apt install openssl); .ci/run installs it");
                return None;
            }
        }
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n";
        fs::write(dir.join("names"), names).unwrap();
        for name in ["broker", "client"] {
            openssl(&format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}")).unwrap();
            let ca = "-CA ours.pem -CAkey ours.key -CAcreateserial -extfile names";
            openssl(&format!("x509 -req -in {name}.csr {ca} -out {name}.pem")).unwrap();
        }
        Some(Self(dir.to_path_buf()))
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}
