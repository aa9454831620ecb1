//! `eventring levels`.

use super::{Target, described};
use crate::exit::Exit;
use crate::text::format::{TimeFormat, one_line};
use crate::text::paint::DIM;
use eventring::control::ProcessState;
use serde_json::json;
use std::io::Write as _;

/// Show what a running program records, and who wants it
#[derive(clap::Args)]
pub(crate) struct LevelsArgs {
    #[command(flatten)]
    target: Target,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &LevelsArgs) -> anyhow::Result<Exit> {
    let processes = args.target.find()?;
    let mut out = anstream::stdout().lock();
    if args.json {
        let [process] = &processes[..] else {
            let programs: Vec<String> = processes.iter().map(described).collect();
            return Exit::Usage.fail(format!(
                "{} means several processes: {}; name one of them by pid:N",
                args.target.name,
                programs.join(", ")
            ));
        };
        let state = process.state()?;
        let mut object = object(&state);
        object["pid"] = Some(process.pid()).filter(|pid| *pid != 0).into();
        object["user"] = process.user().into();
        object["program"] = process.program().into();
        writeln!(out, "{object}")?;
        return Ok(Exit::Done);
    }
    for process in &processes {
        let state = process.state()?;
        writeln!(out, "{}", described(process))?;
        show(&mut out, &state)?;
    }
    Ok(Exit::Done)
}

fn object(state: &ProcessState) -> serde_json::Value {
    let wishes = state.wishes.iter().map(|wish| {
        json!({
            "pid": (wish.pid != 0).then_some(wish.pid), "user": wish.user, "directive": wish.directive,
            "until_epoch_nanos": wish.until_epoch_nanos,
        })
    });
    let domains = state
        .domains
        .iter()
        .map(|domain| json!({ "name": domain.name, "enabled": domain.is_enabled, "forbidden": domain.is_forbidden }));
    json!({
        "configured": state.configured, "effective": state.effective, "wishes": wishes.collect::<Vec<_>>(),
        "domains": domains.collect::<Vec<_>>(),
    })
}

fn show(out: &mut impl std::io::Write, state: &ProcessState) -> std::io::Result<()> {
    let or_nothing = |text: &str| if text.is_empty() { "–".to_owned() } else { one_line(text) };
    writeln!(out, "  {DIM}configured{DIM:#}  {}", or_nothing(&state.configured))?;
    writeln!(out, "  {DIM}in force{DIM:#}    {}", or_nothing(&state.effective))?;
    let times = TimeFormat::new(false);
    for wish in &state.wishes {
        let until = wish.until_epoch_nanos.map_or_else(String::new, |nanos| format!(" until {}", times.moment(nanos)));
        let by = if wish.pid == 0 { "another namespace".to_owned() } else { format!("process {}", wish.pid) };
        writeln!(out, "  {DIM}wish{DIM:#}        {} by {by}{until}", one_line(&wish.directive))?;
    }
    for domain in &state.domains {
        let word = match (domain.is_enabled, domain.is_forbidden) {
            (true, _) => "on",
            (false, false) => "off",
            (false, true) => "off, forbidden",
        };
        writeln!(out, "  {DIM}domain{DIM:#}      {} {word}", one_line(&domain.name))?;
    }
    Ok(())
}
