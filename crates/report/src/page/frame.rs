//! The scripts of a page: that of its flame graphs, and speedscope with its profile, as a document inside the page.

use super::text::{base64, escape, fill};

/// The program, its style and its licence, as in its npm package.
const SPEEDSCOPE: &str = include_str!("../../assets/speedscope/speedscope.js");
const STYLE: &str = include_str!("../../assets/speedscope/speedscope.css");
const LICENSE: &str = include_str!("../../assets/speedscope/LICENSE");
/// The script that gives the profile to speedscope.
const OPENER: &str = include_str!("opener.js");
/// The script that makes frames of flame graphs wider.
pub(super) const ZOOM: &str = include_str!("zoom.js");

/// The sums of the scripts, by which the page lets a browser run these scripts and no others.
const SPEEDSCOPE_SHA256: &str = "Erf8+pWx8HYziGVpkD4BFwQ9gQyDlRrJCE40xonvEEQ=";
const OPENER_SHA256: &str = "qBELpsFXyRT6s6gq/fmBW4aAfmJ85A2qJBM7cIoxrPQ=";
const ZOOM_SHA256: &str = "C8BbmaHkeo80JrE76YVB9tjbQdp08y8oBxenLVG1Etw=";

/// Returns the script that a page with flame graphs may run, for its policy.
pub(crate) fn scripts() -> String {
    format!("'sha256-{ZOOM_SHA256}'")
}

/// Returns the scripts that a page about one capture, and the document inside it, may run. speedscope compiles
/// WebAssembly that it brings with it.
pub(super) fn scripts_of_capture() -> String {
    format!("'wasm-unsafe-eval' 'sha256-{SPEEDSCOPE_SHA256}' 'sha256-{OPENER_SHA256}' {}", scripts())
}

/// Returns what stands below a page about one capture. `has_profile` is true if speedscope is a part of the page.
pub(super) fn credits(has_profile: bool) -> String {
    if !has_profile {
        return "<p>Written by eventring.</p>".into();
    }
    let license = escape(LICENSE);
    format!(
        "<p>Written by eventring. The profile is shown by speedscope 1.25.0.</p>\n\
         <details><summary>Licence of speedscope</summary><pre>{license}</pre></details>"
    )
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
        assert_eq!(ZOOM_SHA256, sha256(ZOOM));
        // A script with one of these would end early or have another sum in a browser.
        assert!(!SPEEDSCOPE.contains("</script") && !SPEEDSCOPE.contains('\r') && !SPEEDSCOPE.contains("<!--"));
    }
}
