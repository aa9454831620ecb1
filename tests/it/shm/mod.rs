mod create;
mod exit;
mod huge_pages;
mod no_space;
mod race;
mod strangers;
mod truncated;
mod who_may;
