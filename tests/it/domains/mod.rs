mod from_environment;
mod of_schemas;
mod that_are_off;
