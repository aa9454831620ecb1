//! Random schemas, and random changes of them.

use super::sketch::{Array, Event, Field, Names, Sketch, Type, Val};

/// A generator of random numbers (SplitMix64), and of names that were not used before.
pub struct Random {
    state: u64,
    names: usize,
}

/// Enough names for a schema and its changes, each once.
const NAMES: [&str; 26] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w",
    "x", "y", "z",
];

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed, names: 0 }
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn is_one_in(&mut self, end: usize) -> bool {
        self.below(end) == 0
    }

    fn names(&mut self) -> Names {
        self.names += 1;
        let (turn, index) = (self.names / NAMES.len(), self.names % NAMES.len());
        match turn {
            0 => Names::new(NAMES[index]),
            _ => Names::new(Box::leak(format!("{}{turn}", NAMES[index]).into_boxed_str())),
        }
    }

    pub fn sketch(&mut self) -> Sketch {
        let events = (0..1 + self.below(3)).map(|index| self.event(10 + index as u16)).collect();
        Sketch { version: 1, events }
    }

    fn event(&mut self, code: u16) -> Event {
        let fields = (0..1 + self.below(4)).map(|_| self.field(2)).collect();
        let mut event = Event { code, names: self.names(), fields, arrays: Vec::new() };
        (0..self.below(3)).for_each(|_| self.add_array(&mut event));
        event
    }

    fn field(&mut self, depth: usize) -> Field {
        let redacted = self.is_one_in(12);
        let default = [None, Some(0), Some(1)][self.below(3)].filter(|_| !redacted);
        Field { names: self.names(), ty: self.ty(depth), redacted, default }
    }

    fn ty(&mut self, depth: usize) -> Type {
        match self.below(if depth > 0 { 8 } else { 5 }) {
            0..3 => Type::Uint(1 << self.below(4)),
            3 => Type::Bytes(1 + self.below(5)),
            4 | 5 => {
                let values = (0..1 + self.below(3)).map(|number| (number as u8, self.names())).collect();
                Type::Enum(values)
            }
            6 => Type::Struct((0..1 + self.below(3)).map(|_| self.field(depth - 1)).collect()),
            _ => Type::Array(Box::new(self.element(depth - 1)), 1 + self.below(3)),
        }
    }

    /// Makes the type of an element. A list of bytes is a byte string, which is another type.
    fn element(&mut self, depth: usize) -> Type {
        match self.ty(depth) {
            Type::Uint(1) => Type::Uint(2),
            other => other,
        }
    }

    fn add_array(&mut self, event: &mut Event) {
        let counts = event.fields.iter().filter(|field| matches!(field.ty, Type::Uint(_)) && !field.redacted);
        let counts: Vec<&'static str> = counts.map(|field| field.names.name).collect();
        // Only the last array may take the rest.
        let has_rest = event.arrays.last().is_some_and(|last| last.count.is_none());
        let count = match counts.len() {
            0 => None,
            _ if !has_rest && self.is_one_in(3) => None,
            fields => Some(counts[self.below(fields)]),
        };
        if count.is_none() && has_rest {
            return;
        }
        let element = if self.is_one_in(2) { Type::Uint(1) } else { self.element(1) };
        let array = Array { names: self.names(), element, count, has_default: !self.is_one_in(3) };
        event.arrays.insert(event.arrays.len() - usize::from(has_rest), array);
    }

    /// Changes a schema in one to four places.
    pub fn edited(&mut self, old: &Sketch) -> Sketch {
        let mut new = old.clone();
        for _ in 0..1 + self.below(4) {
            self.edit(&mut new);
            new.events.iter_mut().for_each(repair);
            new.events.sort_by_key(|event| event.code);
        }
        new
    }

    fn edit(&mut self, sketch: &mut Sketch) {
        let index = self.below(sketch.events.len());
        let free_code = 1 + sketch.events.iter().map(|event| event.code).max().unwrap_or(9);
        match self.below(40) {
            0 => sketch.version += 1,
            1 => {
                let event = self.event(free_code);
                sketch.events.push(event);
            }
            2 if sketch.events.len() > 1 => drop(sketch.events.remove(index)),
            3 => sketch.events[index].code = free_code,
            4 => self.rename(&mut sketch.events[index].names),
            5 => {
                let other = self.below(sketch.events.len());
                let code = sketch.events[other].code;
                sketch.events[other].code = sketch.events[index].code;
                sketch.events[index].code = code;
            }
            6..12 => self.edit_arrays(&mut sketch.events[index]),
            _ => {
                let event = &mut sketch.events[index];
                let old: Vec<Names> = event.fields.iter().map(|field| field.names.clone()).collect();
                self.edit_fields(&mut event.fields);
                follow_renames(event, &old);
            }
        }
    }

    fn rename(&mut self, names: &mut Names) {
        let old = std::mem::replace(&mut names.name, self.names().name);
        if !self.is_one_in(4) {
            names.aliases.push(old);
        }
    }

    fn edit_arrays(&mut self, event: &mut Event) {
        if event.arrays.is_empty() || self.is_one_in(4) {
            return self.add_array(event);
        }
        let index = self.below(event.arrays.len());
        match self.below(5) {
            0 => drop(event.arrays.remove(index)),
            1 => self.rename(&mut event.arrays[index].names),
            2 => {
                // It is counted in another way from now on.
                let array = event.arrays.remove(index);
                self.add_array(event);
                if let Some(last) = event.arrays.iter_mut().find(|new| new.names.aliases.is_empty()) {
                    (last.names, last.element) = (array.names, array.element);
                }
            }
            3 => event.arrays[index].element = self.element(1),
            _ => self.edit_type(&mut event.arrays[index].element),
        }
    }

    fn edit_type(&mut self, ty: &mut Type) {
        match ty {
            Type::Struct(fields) => self.edit_fields(fields),
            Type::Array(element, _) if self.is_one_in(2) => {
                self.edit_type(element);
                if **element == Type::Uint(1) {
                    **element = Type::Uint(2);
                }
            }
            Type::Array(_, len) => *len += 1,
            Type::Enum(values) => self.edit_enum(values),
            other => *other = self.ty(0),
        }
    }

    fn edit_fields(&mut self, fields: &mut Vec<Field>) {
        let (index, other) = (self.below(fields.len()), self.below(fields.len()));
        match self.below(10) {
            0 | 1 => fields.push(self.field(1)),
            2 => fields.insert(index, self.field(1)),
            3 if fields.len() > 1 => drop(fields.remove(index)),
            4 => fields.swap(index, other),
            5 => self.rename(&mut fields[index].names),
            6 => fields[index].redacted ^= true,
            7 => fields[index].ty = self.ty(1),
            _ => self.edit_type(&mut fields[index].ty),
        }
        fields.iter_mut().filter(|field| field.redacted).for_each(|field| field.default = None);
    }

    fn edit_enum(&mut self, values: &mut Vec<(u8, Names)>) {
        let index = self.below(values.len());
        let free = 1 + values.iter().map(|(number, _)| *number).max().unwrap_or(0);
        match self.below(4) {
            0 => values.push((free, self.names())),
            1 if values.len() > 1 => drop(values.remove(index)),
            2 => values[index].0 = free,
            _ => self.rename(&mut values[index].1),
        }
    }

    /// Makes a value of a type.
    pub fn value(&mut self, ty: &Type) -> Val {
        match ty {
            Type::Uint(bytes) => Val::Number(self.below(usize::MAX) as u64 >> (64 - 8 * bytes)),
            Type::Bytes(len) => Val::Bytes((0..*len).map(|_| self.below(256) as u8).collect()),
            Type::Enum(values) => Val::Number(values[self.below(values.len())].0.into()),
            Type::Array(element, len) => Val::List((0..*len).map(|_| self.value(element)).collect()),
            Type::Struct(fields) => {
                Val::Struct(fields.iter().map(|field| (field.names.name, self.field_value(field))).collect())
            }
        }
    }

    pub fn field_value(&mut self, field: &Field) -> Val {
        if field.redacted { Val::Redacted } else { self.value(&field.ty) }
    }
}

/// Gives the counts of arrays the new names of their fields.
fn follow_renames(event: &mut Event, old: &[Names]) {
    for array in &mut event.arrays {
        let Some(name) = array.count.filter(|name| old.iter().any(|names| names.name == *name)) else { continue };
        let now =
            event.fields.iter().find(|field| field.names.name == name || field.names.aliases.last() == Some(&name));
        array.count = now.map_or(Some(name), |field| Some(field.names.name));
    }
}

/// Removes the arrays whose count is no number of the event any more.
fn repair(event: &mut Event) {
    let counts = event.fields.iter().filter(|field| matches!(field.ty, Type::Uint(_)) && !field.redacted);
    let counts: Vec<&str> = counts.map(|field| field.names.name).collect();
    let last = event.arrays.len().saturating_sub(1);
    let mut index = 0;
    event.arrays.retain(|array| {
        index += 1;
        array.count.map_or(index > last, |count| counts.contains(&count))
    });
}
