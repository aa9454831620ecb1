//! Columns of call sites and of threads. Many rows share one call site or thread, so each row has an index into a
//! dictionary.

use crate::columns::Column;
use arrow_array::builder::Int32Builder;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field};
use arrow_select::take::take;
use eventring::tracing::{CallSite, IdMap, Thread};
use eventring_capture::recording::PerDescription;
use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::sync::Arc;

/// An estimate of the bytes that a description takes beside its texts.
const DESCRIPTION_BYTES: u64 = 128;

/// The columns `name`, `target`, `level`, `file`, `line`.
#[derive(Default)]
pub(crate) struct SiteColumns(Shared<CallSite>);

/// The columns `thread`, `thread_id`, `tid`.
#[derive(Default)]
pub(crate) struct ThreadColumns(Shared<Thread>);

/// A column of texts that repeat.
#[derive(Default)]
pub(crate) struct Words {
    keys: Int32Builder,
    words: Vec<Arc<str>>,
    /// The places of the words.
    places: IdMap<Arc<str>, i32>,
}

/// Rows that refer to descriptions.
struct Shared<D> {
    keys: Int32Builder,
    indices: PerDescription<D, i32>,
    /// The same descriptions, for those that come again at another address.
    by_content: HashMap<Arc<D>, i32>,
    descriptions: Vec<Arc<D>>,
}

impl<D> Default for Shared<D> {
    fn default() -> Self {
        Self {
            keys: Int32Builder::new(),
            indices: PerDescription::default(),
            by_content: HashMap::new(),
            descriptions: Vec::new(),
        }
    }
}

impl<D: Hash + Eq> Shared<D> {
    /// Appends a row. Returns true if the description is new among those of the waiting rows.
    fn push(&mut self, description: Option<&Arc<D>>) -> bool {
        let Some(description) = description else {
            self.keys.append_null();
            return false;
        };
        let (index, is_new) = match self.indices.get(description) {
            Some(index) => (*index, false),
            None => self.index_by_content(description),
        };
        self.keys.append_value(index);
        is_new
    }

    /// Returns the index of a description whose address is not known, and true if the description is new.
    fn index_by_content(&mut self, description: &Arc<D>) -> (i32, bool) {
        let known = self.by_content.get(description).copied();
        // A row group has fewer rows than 2^31.
        let index = known.unwrap_or(self.descriptions.len() as i32);
        if known.is_none() {
            self.descriptions.push(description.clone());
            self.by_content.insert(description.clone(), index);
        }
        // If nobody else keeps the description, it was made for this row and does not come again.
        if Arc::strong_count(description) > 1 + 2 * usize::from(known.is_none()) {
            self.indices.insert(description, index);
        }
        (index, known.is_none())
    }

    /// Takes the indices and the descriptions out.
    fn take(&mut self) -> (Int32Array, Vec<Arc<D>>) {
        self.indices = PerDescription::default();
        self.by_content.clear();
        (self.keys.finish(), std::mem::take(&mut self.descriptions))
    }
}

fn words(name: &str) -> Field {
    Field::new(name, DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true)
}

fn numbers(name: &str) -> Field {
    Field::new(name, DataType::UInt32, true)
}

/// Makes a column of texts. `texts` has one for each key. In the dictionary, each text is there once, and none is null:
/// pandas wants it so.
fn dictionary<'t>(keys: &Int32Array, texts: impl Iterator<Item = Option<&'t str>>) -> io::Result<ArrayRef> {
    let mut indices: HashMap<&str, i32> = HashMap::new();
    let mut values = Vec::new();
    let mut index_of = |text: &'t str| {
        *indices.entry(text).or_insert_with(|| {
            values.push(text);
            values.len() as i32 - 1
        })
    };
    let of_keys: Vec<Option<i32>> = texts.map(|text| text.map(&mut index_of)).collect();
    let keys: Int32Array = keys.iter().map(|key| key.and_then(|key| of_keys[key as usize])).collect();
    let values = Arc::new(StringArray::from(values));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).map_err(io::Error::other)?))
}

fn picked(keys: &Int32Array, values: impl Iterator<Item = Option<u32>>) -> io::Result<ArrayRef> {
    take(&values.collect::<UInt32Array>() as &dyn Array, keys, None).map_err(io::Error::other)
}

impl SiteColumns {
    /// Appends a row. Without a call site, all columns are null. Returns an estimate of the bytes that a new call site
    /// takes in the dictionaries.
    pub(crate) fn push(&mut self, site: Option<&Arc<CallSite>>) -> u64 {
        let is_new = self.0.push(site);
        let texts = |site: &CallSite| site.name.len() + site.target.len() + site.file.as_ref().map_or(0, String::len);
        site.filter(|_| is_new).map_or(0, |site| DESCRIPTION_BYTES + texts(site) as u64)
    }
}

impl Column for SiteColumns {
    fn fields(&mut self, _: &str) -> Vec<Field> {
        ["name", "target", "level", "file"].map(words).into_iter().chain([numbers("line")]).collect()
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        let (keys, sites) = self.0.take();
        let text = |of: fn(&CallSite) -> Option<&str>| dictionary(&keys, sites.iter().map(|site| of(site)));
        Ok(vec![
            text(|site| Some(&site.name))?,
            text(|site| Some(&*site.target).filter(|_| site.is_known))?,
            text(|site| site.level.name())?,
            text(|site| site.file.as_deref())?,
            picked(&keys, sites.iter().map(|site| site.line))?,
        ])
    }
}

impl ThreadColumns {
    /// Appends a row. Without a thread, all columns are null. Returns an estimate of the bytes that a new thread takes
    /// in the dictionaries.
    pub(crate) fn push(&mut self, thread: Option<&Arc<Thread>>) -> u64 {
        let is_new = self.0.push(thread);
        let text = |thread: &Thread| thread.name.as_ref().map_or(0, String::len) as u64;
        thread.filter(|_| is_new).map_or(0, |thread| DESCRIPTION_BYTES + text(thread))
    }
}

impl Column for ThreadColumns {
    fn fields(&mut self, _: &str) -> Vec<Field> {
        vec![words("thread"), numbers("thread_id"), numbers("tid")]
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        let (keys, threads) = self.0.take();
        Ok(vec![
            dictionary(&keys, threads.iter().map(|thread| thread.name.as_deref()))?,
            picked(&keys, threads.iter().map(|thread| Some(thread.id)))?,
            picked(&keys, threads.iter().map(|thread| thread.os_thread_id))?,
        ])
    }
}

impl Words {
    /// Appends a row. Returns an estimate of the bytes that a new word takes.
    pub(crate) fn push(&mut self, word: Option<&str>) -> u64 {
        let Some(word) = word else {
            self.keys.append_null();
            return 0;
        };
        if let Some(place) = self.places.get(word) {
            self.keys.append_value(*place);
            return 0;
        }
        let (word, place) = (Arc::<str>::from(word), self.words.len() as i32);
        self.keys.append_value(place);
        self.words.push(word.clone());
        let bytes = DESCRIPTION_BYTES + word.len() as u64;
        self.places.insert(word, place);
        bytes
    }
}

impl Column for Words {
    fn fields(&mut self, name: &str) -> Vec<Field> {
        vec![words(name)]
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        self.places.clear();
        let words = std::mem::take(&mut self.words);
        Ok(vec![dictionary(&self.keys.finish(), words.iter().map(|word| Some(&**word)))?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray as _;

    fn thread(name: &str) -> Arc<Thread> {
        Arc::new(Thread::named(7, name))
    }

    #[test]
    fn a_description_that_is_made_anew_for_each_row_is_kept_once() {
        let mut threads = ThreadColumns::default();
        let kept = thread("kept");
        for _ in 0..1000 {
            threads.push(Some(&thread("made anew")));
            threads.push(Some(&kept));
        }
        assert_eq!((threads.0.descriptions.len(), threads.0.by_content.len()), (2, 2));
        assert!(threads.0.indices.get(&kept).is_some());
        assert_eq!(threads.push(Some(&thread("made anew"))), 0);
        let names = &threads.take().unwrap()[0];
        assert_eq!((names.len(), names.as_any_dictionary().values().len()), (2001, 2));
    }
}
