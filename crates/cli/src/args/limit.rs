//! Answers of limited size: the first entries or lines, the count of the rest, and the point at which to continue.

use crate::exit::{Exit, Failure};
use crate::output::json_line;
use eventring_ask::BUDGET_MIN_BYTES;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// Which part of the list in the answer is wanted.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct LimitArgs {
    /// With --json: at most so many of the list; the answer then has `cut`, the number of those that were cut, and
    /// `next`, which is for --after
    #[arg(long, value_name = "N", requires = "json")]
    limit: Option<u64>,
    /// With --json: go on after the one with this id, which an earlier answer had as `next`
    #[arg(long, value_name = "ID", requires = "json", allow_hyphen_values = true)]
    after: Option<String>,
    /// With --json: at most so many bytes of answer; at least 1024
    #[arg(long, value_name = "BYTES", requires = "json", value_parser = clap::value_parser!(u32).range(BUDGET_MIN_BYTES as i64..))]
    budget: Option<u32>,
}

impl LimitArgs {
    fn is_given(&self) -> bool {
        self.limit.is_some() || self.after.is_some() || self.budget.is_some()
    }

    /// Writes an answer on a line: the wanted part of this list under this key, and the rest, an object. `id` names one
    /// of the list.
    ///
    /// # Errors
    /// The list has none with the id of `--after`, the answer has no room even without the list, or it cannot be
    /// written.
    pub(crate) fn write<T: Serialize>(
        &self,
        out: &mut impl Write,
        rest: &impl Serialize,
        key: &str,
        list: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> String,
    ) -> anyhow::Result<()> {
        let rest = serde_json::to_string(rest)?;
        let rest = match rest.strip_prefix('{') {
            Some("}") | None => "}".to_owned(),
            Some(more) => format!(",{more}"),
        };
        if !self.is_given() {
            write!(out, "{{\"{key}\":[")?;
            for (at, one) in list.into_iter().enumerate() {
                out.write_all(if at > 0 { b"," } else { b"" })?;
                serde_json::to_writer(&mut *out, &one).map_err(io::Error::from)?;
            }
            return Ok(writeln!(out, "]{rest}")?);
        }
        let mut part = Part::new(self.limit, self.after.clone(), self.budget);
        part.used = "{\"\":[]\n".len() + key.len() + rest.len();
        let mut kept = Vec::new();
        for one in list {
            if part.is_over() {
                part.cut += 1;
                continue;
            }
            let id = id(&one);
            if !part.awaits(&id) {
                let text = serde_json::to_string(&one)?;
                kept.extend(part.takes(text.len() + 1, &id).then_some(text));
            }
        }
        let end = serde_json::to_string(&part.end(false, &format!("`{key}` has none with this id"))?)?;
        writeln!(out, "{{\"{key}\":[{}],{}{rest}", kept.join(","), &end[1..end.len() - 1])?;
        Ok(())
    }

    /// Writes an answer as [`Self::write`] does; the list is in it.
    ///
    /// # Errors
    /// As those of [`Self::write`].
    pub(crate) fn write_whole(
        &self,
        answer: &impl Serialize,
        key: &str,
        id: impl Fn(&Value) -> String,
    ) -> anyhow::Result<()> {
        if self.is_given() {
            let mut answer = serde_json::to_value(answer)?;
            if let Some(Value::Array(list)) = answer.as_object_mut().and_then(|answer| answer.remove(key)) {
                return self.write(&mut std::io::stdout().lock(), &answer, key, list, id);
            }
        }
        Ok(json_line(answer)?)
    }
}

/// Which of the lines of an answer are wanted.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct LineLimitArgs {
    /// At most so many lines. With --json, a last line then has `cut` and `next`, which is for --after
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// With --json: go on after the line with this id, which an earlier answer had as `next`
    #[arg(long, value_name = "ID", requires = "json", allow_hyphen_values = true)]
    pub(crate) after: Option<String>,
    /// With --json: at most so many bytes of answer; at least 1024
    #[arg(long, value_name = "BYTES", requires = "json", value_parser = clap::value_parser!(u32).range(BUDGET_MIN_BYTES as i64..))]
    pub(crate) budget: Option<u32>,
}

impl LineLimitArgs {
    /// Returns the count of lines, from the first one on. `end_bytes` is what the last line has beside `cut` and
    /// `next`.
    pub(crate) fn part(&self, end_bytes: usize) -> Part {
        let mut part = Part::new(self.limit, self.after.clone(), self.budget);
        part.is_asked_for = self.limit.is_some() || self.after.is_some() || self.budget.is_some();
        part.used = end_bytes + "{}\n".len();
        part
    }
}

/// What a part of an answer says about the others.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Cut {
    /// How many are in no part yet; null if nobody knows.
    pub(crate) cut: Option<u64>,
    /// The id for `--after`.
    pub(crate) next: Option<String>,
}

/// The part of an answer that is wanted: what has been taken of it.
#[derive(Default)]
pub(crate) struct Part {
    limit: Option<u64>,
    budget: Option<usize>,
    /// True if the answer is to say what was cut.
    pub(crate) is_asked_for: bool,
    /// The id that must come first.
    awaited: Option<String>,
    /// The id of the last one that was taken, or after which the part begins.
    last: String,
    /// The bytes of the answer, without `cut` and `next`.
    pub(crate) used: usize,
    pub(crate) taken: u64,
    cut: u64,
    /// The bytes that the answer needs at least, if it has no room for one.
    needed: Option<usize>,
}

impl Part {
    fn new(limit: Option<u64>, after: Option<String>, budget: Option<u32>) -> Self {
        Self {
            limit,
            budget: budget.map(|budget| budget as usize),
            is_asked_for: true,
            // An empty id is that of the beginning.
            awaited: after.filter(|after| !after.is_empty()),
            ..Self::default()
        }
    }

    /// Returns true if the next one of the list, with so many bytes, is in the part.
    pub(crate) fn takes(&mut self, bytes: usize, id: &str) -> bool {
        if self.awaits(id) {
            return false;
        }
        let needed = self.budget.map(|_| self.used + bytes + end_bytes(id));
        let has_room = needed <= self.budget;
        if self.is_over() || !has_room {
            if self.taken == 0 && !self.is_over() {
                self.needed = needed;
            }
            self.cut += 1;
            return false;
        }
        self.used += bytes;
        self.taken += 1;
        self.last.clear();
        self.last.push_str(id);
        true
    }

    /// Returns true if the next one, with this id, is not behind the one to go on after.
    fn awaits(&mut self, id: &str) -> bool {
        let Some(awaited) = &self.awaited else { return false };
        if awaited == id {
            self.last = self.awaited.take().unwrap_or_default();
        }
        true
    }

    /// Returns true if the one to go on after has not come yet, and has another beginning.
    pub(crate) fn awaits_what_begins_otherwise(&self, beginning: &str) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| !awaited.starts_with(beginning))
    }

    /// Returns how many more are taken, if there is room.
    pub(crate) fn left(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.taken))
    }

    /// Returns true if nothing more is taken.
    pub(crate) fn is_over(&self) -> bool {
        self.awaited.is_none() && (self.cut > 0 || self.limit == Some(self.taken))
    }

    /// Ends the part. Returns `cut` and `next`. If it ends early, because not everything was looked at, nobody knows
    /// how many were cut.
    ///
    /// # Errors
    /// The one to go on after did not come, which `not_found` says in words; or there is no room.
    pub(crate) fn end(&self, is_early: bool, not_found: &str) -> Result<Cut, Failure> {
        if let Some(after) = &self.awaited {
            let message = format!("--after {after}: {not_found}; take `next` of an answer about the same input");
            return Exit::Usage.fail(message);
        }
        let least = self.used + end_bytes(&self.last);
        let needed = self.needed.or((self.taken == 0).then_some(least));
        if let Some((needed, budget)) = needed.zip(self.budget).filter(|(needed, budget)| needed > budget) {
            return Exit::Usage
                .fail(format!("--budget {budget}: there is no room for the first one; allow at least {needed} bytes"));
        }
        let next = Some(self.last.clone()).filter(|_| self.cut > 0 || is_early);
        Ok(Cut { cut: (!is_early).then_some(self.cut), next })
    }
}

/// Returns the largest number of bytes of `cut` and `next`, with a comma.
fn end_bytes(id: &str) -> usize {
    ",\"cut\":,\"next\":".len() + u64::MAX.to_string().len() + Value::from(id).to_string().len()
}

/// Returns the id of a span name: target and name.
pub(crate) fn full_name(one: &Value) -> String {
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    eventring_export::full_name(&text("name"), &text("target"))
}

/// Returns the id of a span or task: that of its process before it.
pub(crate) fn id(one: &Value) -> String {
    format!("{}:{}", one["pid"], one["id"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Serialize)]
    struct One {
        name: String,
        count: u64,
    }

    fn one(name: &str) -> One {
        One { name: name.to_owned(), count: 1 }
    }

    fn answer(args: &LimitArgs, whole: &[One]) -> anyhow::Result<(Value, usize)> {
        let mut out = Vec::new();
        args.write(&mut out, &BTreeMap::from([("lost", 0)]), "names", whole, |one| one.name.clone())?;
        Ok((serde_json::from_slice(&out).unwrap(), out.len()))
    }

    proptest! {
        #[test]
        fn the_pages_of_any_list_are_the_list_and_each_has_its_budget(
            names in prop::collection::btree_set(".{1,80}", 0..40),
            limit in prop::option::of(1..9_u64),
            budget in prop::option::of(2048..9000_u32),
        ) {
            let whole: Vec<One> = names.iter().map(|name| one(name)).collect();
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let args = LimitArgs { limit, after, budget };
                let (answer, bytes) = answer(&args, &whole).unwrap();
                let page = answer["names"].as_array().unwrap();
                prop_assert!(bytes <= budget.unwrap_or(u32::MAX) as usize && answer["lost"] == 0);
                prop_assert!(page.len() as u64 <= limit.unwrap_or(u64::MAX));
                seen.extend(page.iter().map(|one| one["name"].as_str().unwrap().to_owned()));
                if !args.is_given() {
                    break;
                }
                prop_assert_eq!(answer["cut"].as_u64().unwrap() as usize, whole.len() - seen.len());
                after = answer["next"].as_str().map(str::to_owned);
                if after.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen, names.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_answer_with_nothing_of_the_list_says_where_to_go_on() {
        let whole = ["a", "b", "c"].map(one);
        let ask = |limit, after: Option<&str>| {
            let args = LimitArgs { limit: Some(limit), after: after.map(str::to_owned), budget: None };
            let (answer, _) = answer(&args, &whole).unwrap();
            (answer["names"].as_array().unwrap().len(), answer["cut"].clone(), answer["next"].clone())
        };
        assert_eq!(ask(0, None), (0, 3.into(), "".into()));
        assert_eq!(ask(2, Some("")), (2, 1.into(), "b".into()));
        assert_eq!(ask(0, Some("b")), (0, 1.into(), "b".into()));
        assert_eq!(ask(2, Some("b")), (1, 0.into(), Value::Null));
    }

    #[test]
    fn an_unknown_id_and_a_list_that_has_no_room_are_told() {
        let told = |args: LimitArgs| answer(&args, &[one(&"x".repeat(2000))]).unwrap_err().to_string();
        assert!(told(LimitArgs { after: Some("y".into()), ..LimitArgs::default() }).contains("none with this id"));
        assert!(told(LimitArgs { budget: Some(1024), ..LimitArgs::default() }).contains("allow at least"));
    }
}
