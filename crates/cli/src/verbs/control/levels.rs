//! `eventring levels`.

use super::{Target, described};
use crate::exit::Exit;
use crate::output::json_line;
use crate::text::format::TimeFormat;
use crate::text::out::stdout;
use crate::text::paint::DIM;
use eventring::control::{ClientOverride, Domain, Process, ProcessState};
use schemars::JsonSchema;
use serde::Serialize;
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
    let mut out = stdout();
    if args.json {
        let [process] = &processes[..] else {
            let programs: Vec<String> = processes.iter().map(described).collect();
            return Exit::Usage.fail(format!(
                "{} means several processes: {}; name one of them by pid:N",
                args.target.name,
                programs.join(", ")
            ));
        };
        json_line(&Levels::new(process, &process.state()?))?;
        return Ok(Exit::Done);
    }
    for process in &processes {
        let state = process.state()?;
        writeln!(out, "{}", described(process))?;
        show(&mut out, &state)?;
    }
    Ok(Exit::Done)
}

/// What `levels --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Levels<'a> {
    /// What the program itself has set.
    configured: &'a str,
    /// What is in force.
    effective: &'a str,
    #[serde(rename = "wishes")]
    overrides: Vec<OverrideRow<'a>>,
    domains: Vec<DomainRow<'a>>,
    /// Null if it has none here.
    pid: Option<u32>,
    user: u32,
    program: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct OverrideRow<'a> {
    /// Null if it is of another namespace.
    pid: Option<u32>,
    user: u32,
    directive: &'a str,
    until_epoch_nanos: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct DomainRow<'a> {
    name: &'a str,
    enabled: bool,
    forbidden: bool,
}

impl<'a> Levels<'a> {
    fn new(process: &'a Process, state: &'a ProcessState) -> Self {
        let row = |filter_override: &'a ClientOverride| OverrideRow {
            pid: Some(filter_override.pid).filter(|pid| *pid != 0),
            user: filter_override.user,
            directive: &filter_override.directive,
            until_epoch_nanos: filter_override.until_epoch_nanos,
        };
        let domain = |domain: &'a Domain| DomainRow {
            name: &domain.name,
            enabled: domain.is_enabled,
            forbidden: domain.is_forbidden,
        };
        Self {
            configured: &state.configured,
            effective: &state.effective,
            overrides: state.overrides.iter().map(row).collect(),
            domains: state.domains.iter().map(domain).collect(),
            pid: Some(process.pid()).filter(|pid| *pid != 0),
            user: process.user(),
            program: process.program(),
        }
    }
}

fn show(out: &mut impl std::io::Write, state: &ProcessState) -> std::io::Result<()> {
    let or_nothing = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
    writeln!(out, "  {DIM}configured{DIM:#}  {}", or_nothing(&state.configured))?;
    writeln!(out, "  {DIM}in force{DIM:#}    {}", or_nothing(&state.effective))?;
    let times = TimeFormat::new(false);
    for ClientOverride { pid, directive, until_epoch_nanos, .. } in &state.overrides {
        let until = until_epoch_nanos.map_or_else(String::new, |nanos| format!(" until {}", times.moment(nanos)));
        let by = if *pid == 0 { "another namespace".to_owned() } else { format!("process {pid}") };
        writeln!(out, "  {DIM}override{DIM:#}    {directive} by {by}{until}")?;
    }
    for domain in &state.domains {
        let word = match (domain.is_enabled, domain.is_forbidden) {
            (true, _) => "on",
            (false, false) => "off",
            (false, true) => "off, forbidden",
        };
        writeln!(out, "  {DIM}domain{DIM:#}      {} {word}", domain.name)?;
    }
    Ok(())
}
