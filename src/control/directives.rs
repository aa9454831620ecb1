//! The text of filter overrides: lists of directives, and the errors in such lists.

/// The beginning of a directive that names a domain.
pub(crate) const DOMAIN: &str = "domain:";

/// Returns the directives of a list. They are separated by commas, but not by commas in brackets or braces.
pub(super) fn directives(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let parts = list.split(move |c: char| {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|directive| !directive.is_empty())
}

/// Checks the form of a filter override, as far as it can be checked without the program that it is for.
///
/// # Errors
/// Returns what is wrong, and what is expected.
pub fn check_override(list: &str) -> Result<(), String> {
    if directives(list).next().is_none() {
        return Err("the directive is empty, expected for example my_crate=debug".into());
    }
    directives(list).try_for_each(check_directive)?;
    // In a list, `x=off` takes something out of what the others want. Alone, it wants nothing.
    let mut of_spans = directives(list).filter(|directive| !directive.starts_with(DOMAIN)).peekable();
    if let Some(first) = of_spans.peek().copied()
        && of_spans.all(is_off)
    {
        return Err(format!(
            "`{first}` switches nothing on: a filter override only adds to what the program records; to switch off what \
             was enabled, use `eventring disable`"
        ));
    }
    Ok(())
}

fn check_directive(directive: &str) -> Result<(), String> {
    if directive.starts_with('!') {
        return Err(format!(
            "`{directive}` begins with `!`: a filter override only adds to what the program records, and forbids nothing; only \
             the program's configuration does (EVENTRING_DOMAINS)"
        ));
    }
    if directive.starts_with(DOMAIN) {
        return Ok(());
    }
    let target = directive.split(['=', '[', '{']).next().unwrap_or_default();
    let is_single_colon = target.split("::").any(|part| part.contains(':'));
    if is_single_colon {
        return Err(format!(
            "`{directive}` has a single colon, expected a target with `::`, for example my_crate::db=debug, or a domain, \
             for example {DOMAIN}orderbook, in small letters"
        ));
    }
    Ok(())
}

/// Returns true if the directive enables nothing.
fn is_off(directive: &str) -> bool {
    let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level).trim();
    level.eq_ignore_ascii_case("off") || level == "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_brackets_do_not_separate_directives() {
        let of = |list| directives(list).collect::<Vec<_>>();
        assert_eq!(of("info, a[b{c=1,d=2}]=debug ,,e"), ["info", "a[b{c=1,d=2}]=debug", "e"]);
        assert_eq!(of("]]a,b[,"), ["]]a", "b[,"]);
        assert_eq!(of(" , "), [""; 0]);
    }

    #[test]
    fn an_override_that_can_add_nothing_or_that_is_no_directive_is_refused_with_the_reason() {
        let fault = |list: &str| check_override(list).unwrap_err();
        for nothing in ["off", "x=off", "x=0", "OFF", "x=off,y=OFF", "x=off,domain:a"] {
            assert!(fault(nothing).contains("a filter override only adds"), "{nothing}");
        }
        assert!(fault("!x").contains("forbids nothing"));
        assert!(fault("info,Domain:x").contains("in small letters"));
        assert!(fault("a:b=debug").contains("a single colon"));
        assert!(fault(" ,").contains("is empty"));
        for good in
            ["info,x=off", "a::b=debug", "a[b{c=\"x:y\"}]=info", "[s{a:b=1}]", "domain:orderbook", "{f=0}=debug"]
        {
            assert_eq!(check_override(good), Ok(()), "{good}");
        }
    }
}
