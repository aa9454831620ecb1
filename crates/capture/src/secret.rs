//! Addresses of brokers and collectors that may contain passwords or keys, which are never shown.

use std::fmt;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// An address, or several with commas between them. What is shown of it has no user, password, token or query.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretAddress(String);

impl SecretAddress {
    /// Returns the whole address. It must not be shown.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SecretAddress {
    fn from(address: &str) -> Self {
        Self(address.to_owned())
    }
}

impl From<String> for SecretAddress {
    fn from(address: String) -> Self {
        Self(address)
    }
}

impl fmt::Debug for SecretAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SecretAddress {
    /// Shows too little rather than too much of an address that can be read in two ways.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut begin = 0;
        // A comma may be a part of a password, except before the scheme of the next address.
        let is_scheme = |text: &str| text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme));
        for (comma, _) in self.0.match_indices(',').filter(|(comma, _)| is_scheme(self.0[comma + 1..].trim_start())) {
            write!(f, "{},", shown(&self.0[begin..comma]))?;
            begin = comma + 1;
        }
        f.write_str(&shown(&self.0[begin..]))
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn shown(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme.trim_start()) => (&address[..scheme.len() + 3], rest),
        _ => ("", address),
    };
    let (user, host) = rest.rsplit_once('@').map_or(("", rest), |(_, host)| ("…@", host));
    // An `@` after a `?` may be a part of a key.
    if rest[..rest.len() - host.len()].contains(['?', '#']) {
        return format!("{scheme}…");
    }
    let (host, query) = host.split_once(['?', '#']).map_or((host, ""), |(host, _)| (host, "?…"));
    let (authority, path) = host.split_at(host.find('/').unwrap_or(host.len()));
    let after_host = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    // Other text than a port may be a password whose host was forgotten.
    match authority[after_host..].split_once(':') {
        Some((name, port))
            if !scheme.is_empty() && user.is_empty() && !port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{scheme}{}{name}:…", &authority[..after_host])
        }
        _ => format!("{scheme}{user}{authority}{path}{query}"),
    }
}

/// Returns the text without keys, and without the passwords, tokens and queries of the addresses in `arguments`,
/// wherever it repeats them.
pub fn without_secrets_of<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>, text: &str) -> String {
    let mut addresses = Vec::new();
    for argument in arguments {
        addresses_in(argument.as_ref(), &mut addresses);
    }
    // Those that are parts of others come after them, and parts of addresses after whole ones.
    addresses.sort_by_key(|address| std::cmp::Reverse(address.len()));
    let mut text = text.to_owned();
    for address in &addresses {
        text = text.replace(address, &SecretAddress::from(address.as_str()).to_string());
    }
    for (part, shown) in addresses.iter().filter_map(|address| secret_part(address)) {
        text = text.replace(&part, &shown);
    }
    without_keys(&text)
}

/// Returns the text without PEM blocks, seeds of NKeys and JSON web tokens. Users give them in place of the files that
/// have them.
fn without_keys(text: &str) -> String {
    const SEED_LENGTH_MIN: usize = 52;
    let is_base32 = |c: char| matches!(c, 'A'..='Z' | '2'..='7');
    let seed_in = |run: &str| run.find('S').filter(|at| run.len() - at >= SEED_LENGTH_MIN);
    let is_token_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let token_in = |run: &str| run.find("eyJ").filter(|at| run[*at..].contains(".eyJ"));
    let text = without_runs(&without_pem(text), is_token_part, token_in);
    without_runs(&text, is_base32, seed_in)
}

/// Returns the text without what lies between the first begin of a PEM block and the end of the last one.
fn without_pem(text: &str) -> String {
    let Some((before, block)) = text.split_once("-----BEGIN ") else { return text.to_owned() };
    let end = block.rsplit_once("-----END ").and_then(|(_, end)| end.split_once("-----"));
    let after = end.map_or("", |(_, after)| after.trim_start_matches('-'));
    format!("{before}…{after}")
}

/// Replaces the ends of runs of such characters, from where `secret_in` finds a secret in a run.
fn without_runs(text: &str, is_part: impl Fn(char) -> bool, secret_in: impl Fn(&str) -> Option<usize>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(begin) = rest.find(&is_part) {
        let end = rest[begin..].find(|c| !is_part(c)).map_or(rest.len(), |length| begin + length);
        match secret_in(&rest[begin..end]) {
            Some(secret) => out.extend([&rest[..begin + secret], "…"]),
            None => out.push_str(&rest[..end]),
        }
        rest = &rest[end..];
    }
    out + rest
}

/// Adds the addresses in an argument that have a secret.
fn addresses_in(argument: &str, out: &mut Vec<String>) {
    let mut add = |address: &str| {
        if SecretAddress::from(address).to_string() != address {
            out.push(address.to_owned());
        }
    };
    // The whole rest, too: a password may have spaces in it.
    for (at, _) in argument.match_indices("://") {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let from = argument[..at]
            .rfind(|c: char| !is_part(c))
            .map_or(0, |before| before + argument[before..].chars().next().map_or(1, char::len_utf8));
        add(&argument[from..]);
        add(argument[from..].split_whitespace().next().unwrap_or_default());
    }
    let is_user_and_password = |user: &str| user.contains(':') && !user.contains("://");
    if argument.split_once('@').is_some_and(|(user, _)| is_user_and_password(user)) {
        add(argument);
    }
}

/// Returns the part of an address that a message may repeat alone, and what is shown instead. The sign beside the
/// secret keeps a short one from matching everywhere.
fn secret_part(address: &str) -> Option<(String, String)> {
    let shown = SecretAddress::from(address).to_string();
    let (before, after) = shown.split_once('…')?;
    let secret = address.strip_prefix(before)?.strip_suffix(after).filter(|secret| !secret.is_empty())?;
    Some(match (after.is_empty(), before.chars().next_back()) {
        (true, Some(sign)) => (format!("{sign}{secret}"), format!("{sign}…")),
        (true, None) => (secret.to_owned(), "…".to_owned()),
        (false, _) => (format!("{secret}@"), "…@".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_user_password_token_and_query() {
        for (address, shown) in [
            ("nats://a:4222", "nats://a:4222"),
            ("tls://[::1]:4222", "tls://[::1]:4222"),
            ("otlp://a:1/path", "otlp://a:1/path"),
            ("nats://u:PW@a:1,tls://b:2, nats://PW@c", "nats://…@a:1,tls://b:2, nats://…@c"),
            ("nats://u:P,W@a", "nats://…@a"),
            ("nats://u:P@W@a", "nats://…@a"),
            ("nats://u:P W@a", "nats://…@a"),
            ("nats://u:P/W@a:1", "nats://…@a:1"),
            ("nats://u:P%40W@a", "nats://…@a"),
            ("nats://u:P?W@a", "nats://…"),
            ("nats://u:PW", "nats://u:…"),
            ("u:PW@a", "…@a"),
            ("otlp://a/p?key=PW", "otlp://a/p?…"),
            ("otlp://a?key=P@W", "otlp://…"),
        ] {
            let secret = SecretAddress::from(address);
            assert_eq!((secret.to_string(), secret.expose()), (shown.to_owned(), address));
            assert_eq!(format!("{secret:?} {:?}", Secret("PW".into())), format!("{shown} …"));
        }
    }

    #[test]
    fn a_text_that_repeats_arguments_has_no_secret_of_them() {
        let arguments = ["--to=nats://u:P W@a", "-onats://PW@b", "curl -d x https://u:PW@c/ -v", "u:PW@d", "my@file"];
        let text = "'nats://u:P W@a' nats://PW@b curl -d x https://u:PW@c/ -s u:PW@d my@file";
        let shown = without_secrets_of(arguments, text);
        assert_eq!(shown, "'nats://…@a' nats://PW@b curl -d x https://…@c/ -s …@d my@file".replace("PW@b", "…@b"));
    }

    #[test]
    fn a_text_that_repeats_a_key_has_nothing_of_it() {
        let (seed, token) = (format!("SU{}", "A7".repeat(28)), format!("eyJ0{}.eyJ1_-.x", "a".repeat(20)));
        let pem = "-----BEGIN PRIVATE KEY-----\nS3CRET\n------END PRIVATE KEY------\n";
        for (text, shown) in [
            (format!("--nkey={seed}: none"), "--nkey=…: none"),
            (format!("\u{1b}[33m{token}\u{1b}[0m and {token}"), "\u{1b}[33m…\u{1b}[0m and …"),
            (format!("'{pem}{token}{pem}': none"), "'…\n': none"),
            ("'-----BEGIN PRIVATE KEY-----\nS3CRET".to_owned(), "'…"),
            ("SHOP.evc keyJournal.of-the_day … -----END x".to_owned(), "SHOP.evc keyJournal.of-the_day … -----END x"),
        ] {
            assert_eq!(without_secrets_of([text.as_str()], &text), shown);
        }
    }
}
