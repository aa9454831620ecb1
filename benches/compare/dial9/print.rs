//! Prints each event of a segment of dial9 as one line of JSON.
//!
//!     print SEGMENT...

use dial9::format::Decoder;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file)?;
        let mut decoder = Decoder::new(&bytes).ok_or_else(|| format!("{file} does not begin as a segment of dial9"))?;
        decoder
            .for_each_event(|event| match event.deserialize::<serde_json::Value>() {
                Ok(value) => println!("{value}"),
                Err(error) => eprintln!("{file}: {error:?}"),
            })
            .map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}
