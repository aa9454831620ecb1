//! speedscope with its profile, as a document that lies inside the page.

use super::text::{base64, fill};

/// The program, its style and its licence, as in its npm package.
const SPEEDSCOPE: &str = include_str!("../../../assets/speedscope/speedscope.js");
const STYLE: &str = include_str!("../../../assets/speedscope/speedscope.css");
pub(super) const LICENSE: &str = include_str!("../../../assets/speedscope/LICENSE");
/// The script that gives the profile to speedscope.
const OPENER: &str = include_str!("opener.js");

/// The sums of the scripts, by which the page lets a browser run these scripts and no others.
const SPEEDSCOPE_SHA256: &str = "Erf8+pWx8HYziGVpkD4BFwQ9gQyDlRrJCE40xonvEEQ=";
const OPENER_SHA256: &str = "qBELpsFXyRT6s6gq/fmBW4aAfmJ85A2qJBM7cIoxrPQ=";

/// Returns what the page and everything in it may do: show their own style, and run these two scripts. speedscope
/// compiles WebAssembly that it brings with it. There is no network.
pub(super) fn policy() -> String {
    fill(include_str!("policy.txt").trim_end(), |name| match name {
        "opener" => OPENER_SHA256.into(),
        _ => SPEEDSCOPE_SHA256.into(),
    })
}

/// Returns the document. `gzip` is the compressed profile.
pub(super) fn document(gzip: &[u8]) -> String {
    // The style names a file with a font, which is not here.
    let style = STYLE.split("@font-face").next().unwrap_or_default();
    fill(include_str!("frame.html"), |name| match name {
        "license" => LICENSE.into(),
        "style" => style.into(),
        "profile" => base64(gzip),
        "opener" => OPENER.into(),
        _ => SPEEDSCOPE.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// Returns the sum of a text in base64, from coreutils.
    fn sha256(text: &str) -> String {
        let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        sum.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let hex = sum.wait_with_output().unwrap().stdout;
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        base64(&hex[..64].chunks(2).map(byte).collect::<Vec<u8>>())
    }

    #[test]
    fn the_policy_names_the_sums_of_the_scripts() {
        assert_eq!((SPEEDSCOPE_SHA256, OPENER_SHA256), (sha256(SPEEDSCOPE).as_str(), sha256(OPENER).as_str()));
        // A script with one of these would end early or have another sum in a browser.
        assert!(!SPEEDSCOPE.contains("</script") && !SPEEDSCOPE.contains('\r') && !SPEEDSCOPE.contains("<!--"));
    }
}
