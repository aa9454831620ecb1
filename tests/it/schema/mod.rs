mod describes_the_ring;
mod hostile_text;
mod serialized;
mod text;
mod values;
mod versions;
