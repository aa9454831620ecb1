//! The share of a thread's time that measuring its times may take, as users write it.

/// The default: 0.5 %.
pub(in crate::tracing) const DEFAULT_SHARE: f64 = 0.005;

/// Reads `off`, or a number with a percent sign. Returns the share: 0 for `off`.
pub(in crate::tracing::record) fn share_from_text(text: &str) -> Option<f64> {
    if text == "off" {
        return Some(0.0);
    }
    let percent: f64 = text.strip_suffix('%')?.trim_end().parse().ok()?;
    (percent > 0.0 && percent <= 100.0).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_off_or_a_percentage() {
        let of = |text: &str| share_from_text(text).map(|share| (share * 1e6).round());
        assert_eq!([of("off"), of("0.2%"), of("100%"), of("0.01 %")], [0.0, 2e3, 1e6, 100.0].map(Some));
        for wrong in ["", "0.2", "%", "-1%", "0%", "101%", "on", "NaN%", "inf%"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
