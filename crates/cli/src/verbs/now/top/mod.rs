//! `eventring top`.
//!
//! | file | idea |
//! |---|---|
//! | `stats` | the windows, and what is counted in them |
//! | `model` | the screen as plain data, made from the engine's state |
//! | `names` | the names of closed spans |
//! | `open_spans` | the open spans |
//! | `typed` | the typed events, by type |
//! | `threads` | the threads with the spans that they are in |
//! | `kernel` | the kernel's data about threads in spans |
//! | `list` | a list that the user can sort and filter, and in which the user selects an entry |
//! | `view` | the shown list, its sort order, its filter, and the keys that change them |
//! | `draw`, `draw_threads` | drawing the model with the view into any area |
//! | `style` | the styles of what is drawn |
//! | `json` | the same data as JSON |
//! | `rings` | the rings, and the time span of their events |
//! | `terminal` | the terminal, which is restored at the end |

mod draw;
mod draw_threads;
mod json;
mod kernel;
mod list;
mod model;
mod names;
mod open_spans;
mod rings;
mod stats;
mod style;
mod terminal;
#[cfg(test)]
mod tests;
mod threads;
mod typed;
mod view;

pub(crate) use json::TopAnswer;

use crate::args::limit::{self, LimitArgs};
use crate::args::selection::Time;
use crate::exit::Exit;
use crate::input::programs::processes::ProcessArgs;
use crate::input::saved;
use crate::interrupt::Interrupt;
use crate::text::format::columns;
use crate::text::out::stdout;
use crate::verbs::now::open::{check_whole, open_rings, report_unreadable_tables, rows, set_of};
use eventring_live::{Live, LiveOptions, LiveProgress};
use kernel::TopKernel;
use model::{TopExtra, TopScreen};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::Event;
use ratatui::layout::Rect;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use terminal::TopTerminal;
use view::{TopRequest, TopView};

/// The longest time between two looks at the keys and at Ctrl-C.
const TIMEOUT: Duration = Duration::from_millis(50);
/// The shortest time between two frames, unless a key is pressed.
const FRAME: Duration = Duration::from_millis(500);
/// The longest time between two frames.
const FRAME_MAX: Duration = Duration::from_secs(3);
/// The time that `--once` watches.
const ONCE: Duration = Duration::from_secs(1);
/// The size of the frame that `--once` prints if stdout is no terminal.
const PLAIN_SIZE: (u16, u16) = (120, 40);

/// Show what programs do now, or did at a time of a capture
///
/// Rates, durations, open spans, threads, and the past that their rings hold.
#[derive(clap::Args)]
pub(crate) struct TopArgs {
    /// Names or paths of rings; or capture files
    #[arg(value_name = "NAME")]
    names: Vec<PathBuf>,
    #[command(flatten)]
    process: ProcessArgs,
    /// In a capture: what the programs did at this time, as for --to of `export` [default: its end]
    #[arg(long, value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    at: Option<Time>,
    /// Watch for one second, print one frame, and end
    #[arg(long)]
    once: bool,
    /// With --once: print one JSON object
    #[arg(long, requires = "once")]
    json: bool,
    #[command(flatten)]
    limit: LimitArgs,
    /// Keep at most this many open spans of each program; further ones are counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_spans: usize,
}

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<Exit> {
    if !args.once && !io::stdout().is_terminal() {
        return Exit::Usage.fail("stdout is no terminal; use --once, which prints one frame");
    }
    let interrupt = Interrupt::listen()?;
    let options = LiveOptions::new().open_spans_max(args.max_spans).windows(stats::WINDOWS);
    if saved::has_capture(&args.names) {
        args.process.refuse_enable("a capture")?;
        let saved = saved::open(&args.names, false)?;
        let at = args.at.map(|at| at.as_seen(false).look_nanos(&saved.capture));
        let live = Live::of_capture(&saved.capture, at, &options)?;
        let present =
            if at.is_none() { Live::of_captured_present(&saved.capture, &present_options(args))? } else { None };
        let mut watched = TopWatch { live, present, progress: LiveProgress::Ended, kernel: TopKernel::default() };
        watched.show(args, &interrupt)?;
        return Ok(saved.report(&args.names, watched.live.problems(), &[]));
    }
    if args.at.is_some() {
        return Exit::Usage.fail("--at needs a capture; of rings, `top` shows the present");
    }
    let names = args.process.rings(&args.names)?;
    let _enabled = args.process.enable(&names)?;
    let rings = open_rings(&names)?;
    let present = Live::of_present(set_of(rings.clone()), &present_options(args));
    if present.is_none() {
        report_unreadable_tables(&rings);
    }
    let live = Live::new(set_of(rings), &options);
    let mut watched = TopWatch { live, present, progress: LiveProgress::Behind, kernel: TopKernel::default() };
    watched.show(args, &interrupt)?;
    check_whole(watched.live.rings())?;
    Ok(Exit::Done)
}

fn present_options(args: &TopArgs) -> LiveOptions {
    LiveOptions::new().open_spans_max(args.max_spans).windows([]).without_self_times()
}

/// The programs that are watched.
struct TopWatch {
    live: Live,
    /// What tables of the present show, if the programs have some.
    present: Option<Live>,
    progress: LiveProgress,
    kernel: TopKernel,
}

impl TopWatch {
    fn show(&mut self, args: &TopArgs, interrupt: &Interrupt) -> anyhow::Result<()> {
        if args.once { once(self, interrupt, args) } else { watch(self, interrupt, args) }
    }

    /// Reads events for this time, or until the programs have ended.
    fn read(&mut self, time: Duration) {
        // Nobody writes, so nothing fails.
        self.progress = self.live.drive(time, &mut self.kernel).unwrap_or(LiveProgress::Ended);
    }

    fn has_ended(&self) -> bool {
        self.progress == LiveProgress::Ended
    }

    fn screen(&mut self, args: &TopArgs, view: &TopView) -> TopScreen {
        // What a capture has does not change.
        if !self.live.rings().rings().is_empty() {
            self.present = self.present.take().and_then(|present| present.present_again(&present_options(args)));
        }
        let moment = TopExtra {
            rings: rings::look(self.live.rings()),
            has_ended: self.has_ended() && self.live.state().have_ended(),
            is_behind: !self.live.has_reached_present(),
            detail: view.detail.clone(),
            kernel: self.kernel.times(self.live.state().now_epoch_nanos()),
        };
        TopScreen::new(self.live.state(), self.present.as_ref().map(Live::state), moment)
    }
}

/// Prints one frame.
fn once(watched: &mut TopWatch, interrupt: &Interrupt, args: &TopArgs) -> anyhow::Result<()> {
    let mut until = None;
    while !watched.has_ended() && until.is_none_or(|until| Instant::now() < until) {
        if interrupt.came() {
            return Ok(());
        }
        if until.is_none() && watched.live.has_reached_present() {
            until = Some(Instant::now() + ONCE);
        }
        watched.read(TIMEOUT);
    }
    let view = TopView::default();
    let screen = watched.screen(args, &view);
    let mut out = stdout();
    if args.json {
        args.limit.write_whole(&TopAnswer::from(&screen), "open", limit::id)?;
        return Ok(out.flush()?);
    }
    let size = columns(&io::stdout()).zip(rows());
    let narrow = |cells: usize| u16::try_from(cells).unwrap_or(u16::MAX);
    let (width, height) = size.map_or(PLAIN_SIZE, |(width, rows)| (narrow(width), narrow(rows.saturating_sub(1))));
    let mut frame = Buffer::empty(Rect::new(0, 0, width, height.saturating_add(1)));
    draw::draw(&screen, &view, frame.area, &mut frame);
    // The last line is that of the keys.
    let mut lines: Vec<String> = draw::lines(&frame).take(usize::from(height)).collect();
    // Outside of a terminal nothing has to be filled.
    if size.is_none() {
        lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    }
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(out.flush()?)
}

/// Shows frames until the user ends it.
fn watch(watched: &mut TopWatch, interrupt: &Interrupt, args: &TopArgs) -> anyhow::Result<()> {
    let has_colours = !crate::text::out::stdout().is_plain;
    let mut view = TopView { has_colours, ..TopView::default() };
    let mut terminal = TopTerminal::start()?;
    let mut screen = watched.screen(args, &view);
    let mut next_frame = Instant::now();
    while !interrupt.came() && !terminal.is_gone() {
        if !view.is_paused && Instant::now() >= next_frame {
            let began = Instant::now();
            screen = watched.screen(args, &view);
            terminal.draw(&screen, &view)?;
            // With a million open spans, a frame takes long. Most of the time is for reading nonetheless.
            next_frame = Instant::now() + (began.elapsed() * 10).clamp(FRAME, FRAME_MAX);
        }
        let mut wait = TIMEOUT;
        if !watched.has_ended() {
            watched.read(TIMEOUT);
            wait = Duration::ZERO;
        }
        while let Some(event) = terminal.next_event(wait)? {
            wait = Duration::ZERO;
            let request = match event {
                Event::Key(key) => view.press(key, &screen),
                _ => TopRequest::Draw,
            };
            match request {
                TopRequest::Quit => return Ok(()),
                TopRequest::Look => screen = watched.screen(args, &view),
                TopRequest::Draw => {}
            }
            terminal.draw(&screen, &view)?;
        }
    }
    Ok(())
}
