mod declared;
mod from_environment;
