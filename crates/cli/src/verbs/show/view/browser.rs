//! Opening the browser.

use crate::exit::Failure;
use crate::text::paint::WARNING;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;

/// Leads the user's browser to the server, and does not wait for it. Returns a file that must stay meanwhile; there is
/// none if no browser is to be had.
///
/// Every user of the machine can read the command lines of all processes, and so also the address that a browser was
/// started with. The address has the token. So the browser gets the path of a file that only this user can read.
pub(super) fn open(url: &str) -> Result<Option<NamedTempFile>, Failure> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    if OPENER == "xdg-open" && !["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"].iter().any(is_set) {
        return Ok(None);
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("eventring-view-").suffix(".html");
    let made = runtime.and_then(|runtime| builder.tempfile_in(runtime).ok()).map_or_else(|| builder.tempfile(), Ok);
    // The address has no character that HTML knows.
    let html = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><title>eventring</title><a href=\"{url}\">the trace</a>\n"
    );
    let written = made.and_then(|mut page| page.write_all(html.as_bytes()).map(|()| page));
    let page =
        written.map_err(|error| Failure::io("cannot write the file that leads the browser to the trace", &error))?;
    let mut command = command(std::env::var("BROWSER").ok().as_deref(), page.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C in this terminal does not end a browser that was started from here.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let warn = |what: &str| say!("{WARNING}warning:{WARNING:#} {what}; open the address above yourself");
    match command.spawn() {
        Ok(mut child) => {
            _ = std::thread::spawn(move || {
                if child.wait().is_ok_and(|status| !status.success()) {
                    warn("the browser could not be opened");
                }
            })
        }
        Err(error) => warn(&format!("cannot start a browser: {error}")),
    }
    Ok(Some(page))
}

/// The program that opens a page with the user's browser.
const OPENER: &str = match () {
    () if cfg!(target_os = "macos") => "open",
    () if cfg!(windows) => "explorer",
    () => "xdg-open",
};

/// Makes the command: the first one of `BROWSER`, in which `%s` stands for the page, or [`OPENER`].
fn command(browser: Option<&str>, page: &Path) -> Command {
    let first = browser.unwrap_or_default().split(':').next().unwrap_or_default();
    let mut words = first.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(OPENER));
    let has_page = words.clone().any(|word| word == "%s");
    command.args(words.map(|word| if word == "%s" { page.as_os_str() } else { word.as_ref() }));
    command.args((!has_page).then_some(page));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_of_the_environment_is_used() {
        let words = |browser| {
            let command = command(browser, Path::new("/page"));
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words(None), [OPENER, "/page"]);
        assert_eq!(words(Some("")), [OPENER, "/page"]);
        assert_eq!(words(Some("firefox:lynx")), ["firefox", "/page"]);
        assert_eq!(words(Some("firefox -P %s --new-window")), ["firefox", "-P", "/page", "--new-window"]);
    }
}
