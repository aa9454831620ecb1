mod fork;
mod hostile;
mod hostile_wishes;
mod imports;
