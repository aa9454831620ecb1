//! Placeholders in the names of new rings: `{pid}` and `{exe}`.

use std::ffi::{OsStr, OsString};

/// Returns the name of this program's file, or an empty name if the system does not show it.
#[must_use]
pub(crate) fn program_name() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(std::path::Path::file_name).unwrap_or_default().to_string_lossy();
    // The system adds this to the name of a file that was removed or replaced while its program runs.
    name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
}

/// Replaces the placeholders in a name. Returns a description of the fault if the name has another word in braces, or
/// a brace without its partner.
pub(super) fn expand(name: &OsStr) -> Result<OsString, String> {
    let bytes = name.as_encoded_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'{' | b'}')) {
        return Ok(name.to_os_string());
    }
    let fault = |found: &str| format!("has {found}, expected {{pid}} or {{exe}}");
    let Some(mut rest) = name.to_str() else { return Err(fault("braces and is not UTF-8")) };
    let mut expanded = String::new();
    while let Some(brace) = rest.find(['{', '}']) {
        expanded.push_str(&rest[..brace]);
        let word = rest[brace..].find('}').map_or(&rest[brace..], |end| &rest[brace..=brace + end]);
        match word {
            "{pid}" => expanded.push_str(&std::process::id().to_string()),
            "{exe}" => expanded.push_str(&program_name()),
            other => return Err(fault(other)),
        }
        rest = &rest[brace + word.len()..];
    }
    Ok((expanded + rest).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(name: &str) -> Result<String, String> {
        expand(name.as_ref()).map(|name| name.into_string().unwrap())
    }

    #[test]
    fn known_words_are_replaced_and_others_are_refused() {
        let (pid, exe) = (std::process::id(), program_name());
        assert!(!exe.is_empty());
        assert_eq!(expanded("shop"), Ok("shop".to_owned()));
        assert_eq!(expanded("/a/{exe}-{pid}.x"), Ok(format!("/a/{exe}-{pid}.x")));
        assert_eq!(expanded("{pid}{pid}"), Ok(format!("{pid}{pid}")));
        for (name, found) in
            [("a{host}", "{host}"), ("{pid", "{pid"), ("pid}", "}"), ("{{pid}}", "{{pid}"), ("{}", "{}"), ("ä{ö", "{ö")]
        {
            assert_eq!(expanded(name), Err(format!("has {found}, expected {{pid}} or {{exe}}")));
        }
    }
}
