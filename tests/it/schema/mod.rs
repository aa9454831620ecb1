mod describes_the_ring;
mod hostile_text;
mod text;
mod values;
