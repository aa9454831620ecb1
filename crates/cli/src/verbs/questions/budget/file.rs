//! The budget file.

use super::FiguresByName;
use crate::exit::{Exit, Failure};
use eventring::internal::shm;
use eventring::internal::shm::NotAFile;
use eventring_ask::command_line;
use eventring_report::compare::{ChangeAmount, Measure};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

/// The first lines of a new file. The tolerance keeps the comment at the beginning, whatever the first span is.
const HEAD: &str = "\
# What the spans of the program may cost. `eventring budget check` compares a capture with these numbers, and
# `eventring budget update` writes those of a capture. A span may have a tolerance of its own, such as \"0.5%\".
tolerance = 0
";
/// The largest size of a file.
const BYTES_MAX: u64 = 16 << 20;
/// The key of a tolerance.
const TOLERANCE: &str = "tolerance";
/// The key of the table of spans.
const SPANS: &str = "spans";
/// The key of a number that has a tolerance of its own: `{ budget = 1000, tolerance = "5%" }`.
const NUMBER: &str = "budget";

/// A budget file, with its comments.
pub(super) struct BudgetFile {
    path: PathBuf,
    document: DocumentMut,
}

/// A number of the file.
pub(super) struct Budget {
    /// The name of the span, with its target.
    pub(super) span: String,
    pub(super) measure: Measure,
    pub(super) number: u64,
    pub(super) tolerance: ChangeAmount,
}

/// The effects of an update.
pub(super) struct BudgetUpdate {
    /// The number of spans in the file.
    pub(super) written: usize,
    /// The spans that the file has no more.
    pub(super) removed: Vec<String>,
}

impl BudgetFile {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let wrong = |found: &str| {
            Exit::Failed.failure(format!(
                "{}: it {found}, expected a file of TOML; name one that `eventring budget update` has made",
                path.display()
            ))
        };
        let mut text = String::new();
        let read = shm::open_file(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text));
        if text.len() as u64 > BYTES_MAX {
            return Err(wrong("is larger than 16 MiB"));
        }
        read.map_err(|error| match error.kind() {
            _ if NotAFile::is_cause(&error) => wrong("is no regular file"),
            ErrorKind::InvalidData => wrong("is no text in UTF-8"),
            ErrorKind::NotFound => Exit::NotFound.failure(format!(
                "there is no budget file {}; `{}` makes it",
                path.display(),
                command_line("budget update", &[path, "CAPTURE".as_ref()], &[])
            )),
            _ => Failure::io(format_args!("cannot read {}", path.display()), &error),
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            let message = format!("{}: expected TOML: {}", path.display(), error.message());
            let line = error.span().map(|span| 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count());
            Exit::Failed.failure(line.map_or(message.clone(), |line| format!("{message}, in line {line}")))
        })?;
        Ok(Self { path: path.to_owned(), document })
    }

    /// Opens a file. If it does not exist, makes one without spans.
    pub(super) fn open_or_new(path: &Path) -> Result<Self, Failure> {
        match path.try_exists() {
            Ok(false) => Self::parse(path, HEAD),
            _ => Self::open(path),
        }
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> String {
        self.document.to_string()
    }

    fn wrong(&self, what: &str) -> Failure {
        Exit::Failed.failure(format!("{}: {what}", self.path.display()))
    }

    /// Returns all numbers, in the order of the file.
    pub(super) fn budgets(&self) -> Result<Vec<Budget>, Failure> {
        let mut budgets = Vec::new();
        let of_file = self.document.get(TOLERANCE);
        if let Some((key, _)) = self.document.iter().find(|(key, _)| ![TOLERANCE, SPANS].contains(key)) {
            return Err(self.wrong(&format!("found `{key}`, expected `{SPANS}` or `{TOLERANCE}`")));
        }
        let Some(spans) = self.document.get(SPANS) else { return Ok(budgets) };
        let spans =
            spans.as_table_like().ok_or_else(|| self.wrong("`spans` is no table, expected [spans.\"NAME\"]"))?;
        for (span, numbers) in spans.iter() {
            let wrong = || self.wrong(&format!("`spans.{span}` is no table, expected numbers"));
            let numbers = numbers.as_table_like().ok_or_else(wrong)?;
            let of_span = numbers.get(TOLERANCE).or(of_file);
            for (key, item) in numbers.iter().filter(|(key, _)| *key != TOLERANCE) {
                let budget = budget(span, key, item, of_span);
                budgets.push(budget.map_err(|problem| self.wrong(&format!("{span}: found {problem}")))?);
            }
        }
        Ok(budgets)
    }

    /// Writes the numbers of spans into the file. A span that the file has keeps its measures. Others get `measures`,
    /// as far as they were counted.
    pub(super) fn update(&mut self, figures: &FiguresByName, measures: &[Measure]) -> Result<BudgetUpdate, Failure> {
        // An error in the file must not be replaced by a number.
        self.budgets()?;
        let mut removed = Vec::new();
        if !self.document.contains_key(SPANS) {
            let mut spans = Table::new();
            spans.set_implicit(true);
            self.document.insert(SPANS, Item::Table(spans));
        }
        let wrong = || Exit::Failed.failure("`spans` is no table, expected [spans.\"NAME\"]");
        let spans = self.document.get_mut(SPANS).and_then(Item::as_table_like_mut).ok_or_else(wrong)?;
        let known: Vec<String> = spans.iter().map(|(name, _)| name.to_owned()).collect();
        for name in known.iter().filter(|name| !figures.contains_key(*name)) {
            spans.remove(name);
            removed.push(name.clone());
        }
        for (name, figures) in figures {
            let known = spans.get(name).and_then(Item::as_table_like);
            let measures: Vec<Measure> = match known {
                Some(numbers) => numbers.iter().filter_map(|(key, _)| measure_of(key)).collect(),
                None => measures.iter().copied().filter(|measure| figures.get(*measure).is_some()).collect(),
            };
            if measures.is_empty() {
                continue;
            }
            let numbers =
                spans.entry(name).or_insert(Item::Table(Table::new())).as_table_like_mut().ok_or_else(wrong)?;
            for measure in measures {
                let number = figures.get(measure).ok_or_else(|| {
                    Exit::Failed.failure(format!(
                        "{}: it has {} of {name}, which the capture does not have; make the capture with `eventring icount`",
                        self.path.display(),
                        measure.key()
                    ))
                })?;
                write_number(numbers, measure, number);
            }
        }
        let written = spans.len();
        if written == 0 {
            let message = "no instructions were counted, expected those of at least one span; make the capture with `eventring \
                           icount`, or name other measures: --measure busy";
            return Exit::Failed.fail(message);
        }
        self.sort();
        Ok(BudgetUpdate { written, removed })
    }

    /// Puts the spans into the order of their names. The comments before a span stay with it.
    fn sort(&mut self) {
        let Some(spans) = self.document.get_mut(SPANS).and_then(Item::as_table_mut) else { return };
        spans.sort_values_by(|a, _, b, _| a.get().cmp(b.get()));
        for (position, (_, item)) in spans.iter_mut().enumerate() {
            if let Some(table) = item.as_table_mut() {
                table.set_position(isize::try_from(position + 1).ok());
            }
        }
    }
}

/// Reads a number. An error says what was found.
fn budget(span: &str, key: &str, item: &Item, of_span: Option<&Item>) -> Result<Budget, String> {
    let measure = measure_of(key).ok_or_else(|| {
        let keys = Measure::ALL.map(Measure::key).join(", ");
        format!("`{key}`, expected `{TOLERANCE}` or one of {keys}")
    })?;
    let table = item.as_table_like();
    let unknown = table.and_then(|table| table.iter().find(|(key, _)| ![NUMBER, TOLERANCE].contains(key)));
    if let Some((unknown, _)) = unknown {
        return Err(format!("`{unknown}` in {key}, expected `{NUMBER}` or `{TOLERANCE}`"));
    }
    let number = table.map_or(Some(item), |table| table.get(NUMBER)).and_then(Item::as_integer);
    let number = number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| {
        let expected = format!("a whole number, or {{ {NUMBER} = NUMBER, {TOLERANCE} = \"5%\" }}");
        format!("{key} = {}, expected {expected}", item.to_string().trim())
    })?;
    let tolerance = match table.and_then(|table| table.get(TOLERANCE)).or(of_span) {
        None => ChangeAmount::Relative(0),
        Some(item) => tolerance_of(item, measure).ok_or_else(|| {
            let expected = if measure.is_time() { "\"20%\" or \"2ms\"" } else { "\"0.5%\" or \"100\"" };
            format!("the tolerance {} of {key}, expected one like {expected}", item.to_string().trim())
        })?,
    };
    Ok(Budget { span: span.to_owned(), measure, number, tolerance })
}

fn measure_of(key: &str) -> Option<Measure> {
    Measure::ALL.into_iter().find(|measure| measure.key() == key)
}

fn tolerance_of(item: &Item, measure: Measure) -> Option<ChangeAmount> {
    match item.as_integer() {
        Some(number) => ChangeAmount::parse(&number.to_string(), measure),
        None => ChangeAmount::parse(item.as_str()?, measure),
    }
}

/// Writes a number. Comments beside it, and a tolerance of its own, stay.
fn write_number(numbers: &mut dyn TableLike, measure: Measure, number: u64) {
    // TOML has no larger numbers.
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let place = match numbers.get_mut(measure.key()) {
        Some(item) if item.is_table_like() => item.as_table_like_mut().and_then(|table| table.get_mut(NUMBER)),
        place => place,
    };
    match place {
        Some(item) => {
            let decor = item.as_value().map(|value| value.decor().clone());
            *item = value(number);
            if let (Some(decor), Some(written)) = (decor, item.as_value_mut()) {
                *written.decor_mut() = decor;
            }
        }
        None => _ = numbers.insert(measure.key(), value(number)),
    }
}
