//! A format string and its arguments are checked as `format!` checks them.

use eventring::log;

struct Silent;

fn main() {
    log::info!("{} and {}", 1);
    log::info!("{}", 1, 2);
    log::info!("{missing}");
    log::info!("{:x}", "text");
    log::info!("{}", Silent);
    log::info!(field = Silent, "text");
    log::info!(name: "a name", "text");
    log::info!("{", 1);
    log::info!("{r#type}");
    let mut inferred = Vec::new();
    log::info!("{inferred:?}");
    inferred.push(std::time::Duration::ZERO);
}
