//! Messages without secrets.

use eventring_capture::secret::without_secrets_of;

/// Returns a message without keys, and without the passwords of addresses in this program's arguments and environment.
pub(crate) fn without_secrets(message: &str) -> String {
    let is_ours = |name: &str| ["NATS_", "EVENTRING_", "OTEL_"].iter().any(|prefix| name.starts_with(prefix));
    let environment = std::env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy())).map(|(_, value)| value);
    let given = std::env::args_os().skip(1).chain(environment);
    without_secrets_of(given.map(|text| text.to_string_lossy().into_owned()), message)
}
