//! The colours of losses and of log records in the Perfetto UI.
//!
//! A trace cannot name a colour. The UI (v52) computes a slice's colour from a hash of its correlation id, or, without
//! this id, of its name without digits. So losses and log records get ids whose hash gives a suitable colour. Only
//! losses, errors and warnings get bright colours.

use crate::formats::trace_writer::Alert;

/// Returns the correlation id of a slice or instant with this alert. Losses and errors are red, warnings are orange,
/// and other log records are blue.
pub(super) fn correlation_id(alert: Alert) -> &'static str {
    match alert {
        Alert::Loss => "eventring_loss",
        Alert::Error => "ERROR log record",
        Alert::Warning => "WARN record",
        Alert::Notice => "log_record",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the hash as the UI computes it, in numbers of JavaScript: the product is a double, which is rounded, and
    /// the `&` takes its lowest 32 bits.
    fn hash(text: &str, end: u32) -> u32 {
        let step = |hash: i32, c: u16| {
            let product = 16_777_619.0 * f64::from(hash ^ i32::from(c));
            (product as i64) as i32
        };
        text.encode_utf16().fold(18_652_613, step).unsigned_abs() % end
    }

    /// Returns the hue in degrees and the lightness in percent of a colour in HSLuv, whose red is at 12 degrees.
    fn colour(correlation_id: &str) -> (u32, u32) {
        (hash(correlation_id, 360), hash(&format!("{correlation_id}x"), 40) + 40)
    }

    #[test]
    fn losses_and_errors_are_red_warnings_are_orange_and_other_log_records_are_blue() {
        // The first two are what the UI itself computes for these texts.
        assert_eq!((colour("loss of events"), colour("WARN")), ((352, 56), (134, 74)));
        assert_eq!(colour(correlation_id(Alert::Loss)), (8, 48));
        assert_eq!(colour(correlation_id(Alert::Error)), (4, 52));
        assert_eq!(colour(correlation_id(Alert::Warning)), (40, 64));
        assert_eq!(colour(correlation_id(Alert::Notice)), (196, 60));
    }
}
