mod documents;
mod embedding;
mod examples_run;
mod public_surface;
