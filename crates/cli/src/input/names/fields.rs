//! The check of field names in conditions: a field that no event has is a mistake of the user.

use crate::text::paint::WARNING;
use crate::text::table::shortened_name;
use eventring::files::CONTENT_TYPE_PERF;
use eventring::internal::ext_words;
use eventring::reader::{Reader, RingState};
use eventring::schema::{ExtWords, SchemaModel, Shape};
use eventring::tracing::Catalog;
use eventring_capture::condition::{Condition, write_path};
use eventring_capture::{CaptureFile, CapturedRing};
use std::collections::BTreeSet;

/// The largest number of names that a message lists.
const NAMES_MAX: usize = 30;

/// The fields that the events of a ring have.
pub(crate) struct KnownFields {
    names: BTreeSet<String>,
    /// True if other fields may be there, because the schema is not known.
    has_others: bool,
    /// True if call sites with other fields may come.
    may_grow: bool,
}

impl KnownFields {
    /// Returns the fields of typed events, and their extension words by both of their names.
    pub(crate) fn of_typed(model: Option<&SchemaModel>, words: &ExtWords) -> Self {
        let mut names = BTreeSet::new();
        for (model, event) in model.into_iter().flat_map(|model| model.events().iter().map(move |event| (model, event)))
        {
            if let Some(shape) = model.payload_shape(event.code()) {
                add_paths(&shape, "", &mut names);
            }
        }
        names.extend(words.iter().flat_map(|(_, word)| [word.name().to_owned(), word.key().into_owned()]));
        Self { names, has_others: model.is_none(), may_grow: false }
    }

    /// Returns the fields that the events of each ring of a capture have.
    pub(crate) fn of_capture(capture: &CaptureFile) -> Vec<Self> {
        let of_ring = |(index, ring): (u32, &CapturedRing)| {
            if ring.is_perf() {
                // The call sites are those of shard 0.
                return Self::of_perf(&capture.catalog(index), false);
            }
            let model = ring.schema().ok();
            Self::of_typed(model.as_deref(), &ext_words(ring.content_type, model.as_deref()))
        };
        (0..).zip(capture.rings()).map(of_ring).collect()
    }

    /// Returns the fields of the events of a ring.
    pub(crate) fn of_reader(ring: &Reader) -> Self {
        if ring.info().content_type == CONTENT_TYPE_PERF {
            let mut catalog = Catalog::new();
            catalog.update(ring);
            return Self::of_perf(&catalog, ring.state() == RingState::Live);
        }
        Self::of_typed(ring.schema().ok().as_deref(), &ring.ext_words())
    }

    /// Says that only what has been recorded until now is asked for.
    pub(crate) fn until_now(self) -> Self {
        Self { may_grow: false, ..self }
    }

    /// Returns the fields of the call sites of a perf recorder.
    pub(crate) fn of_perf(catalog: &Catalog, may_grow: bool) -> Self {
        let names = catalog.call_sites().flat_map(|site| site.field_names.iter().map(ToString::to_string));
        Self { names: names.collect(), has_others: false, may_grow }
    }
}

/// Checks that each field of a condition is one of some event of the rings. As long as call sites may come that have
/// it, this is only said.
///
/// # Errors
/// No event has a field of this name.
pub(crate) fn check_fields(condition: &Condition, rings: &[KnownFields]) -> Result<(), String> {
    for path in condition.field_paths() {
        if rings.iter().any(|ring| ring.has_others || ring.names.contains(&path)) {
            continue;
        }
        let known: BTreeSet<&str> = rings.iter().flat_map(|ring| ring.names.iter().map(String::as_str)).collect();
        let listed: Vec<String> = known.iter().take(NAMES_MAX).map(|name| typed(name)).collect();
        let path = typed(&path);
        let more = if known.len() > NAMES_MAX { ", …" } else { "" };
        let message = match listed.is_empty() {
            true => format!("no event has a field `{path}`"),
            false => format!("no event has a field `{path}`; there are {}{more}", listed.join(", ")),
        };
        if !rings.iter().any(|ring| ring.may_grow) {
            return Err(message);
        }
        say!("{WARNING}warning:{WARNING:#} so far, {message}");
    }
    Ok(())
}

/// Returns a name as a condition has it, in quotation marks if it needs them.
fn typed(name: &str) -> String {
    let mut typed = String::new();
    // Writing to a text does not fail.
    _ = write_path(&mut typed, name);
    shortened_name(&typed)
}

fn add_paths(shape: &Shape<'_>, prefix: &str, names: &mut BTreeSet<String>) {
    let Shape::Struct(fields) = shape else { return };
    for (name, shape) in fields {
        let path = format!("{prefix}{name}");
        add_paths(shape, &format!("{path}."), names);
        names.insert(path);
    }
}
