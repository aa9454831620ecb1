//! Limiting an answer to a number of bytes.

/// A part of an answer, in one of its sections.
pub(crate) struct Part {
    pub(crate) section: usize,
    /// The text, without what stands between two parts of a section.
    pub(crate) text: String,
    /// A shorter text, for when there is no room for the text.
    pub(crate) shorter: Option<String>,
}

/// The parts that fit, by section, and how many of each section were left out.
pub(crate) struct Fitted<const N: usize> {
    pub(crate) kept: [Vec<String>; N],
    pub(crate) left_out: [u64; N],
}

/// Takes parts, the most important first, as long as there is room. A part takes `beside` bytes beside its text. What
/// comes later may fit where an earlier part did not.
pub(crate) fn fit<const N: usize>(parts: Vec<Part>, mut room_bytes: usize, beside: usize) -> Fitted<N> {
    let mut fitted = Fitted { kept: std::array::from_fn(|_| Vec::new()), left_out: [0; N] };
    for Part { section, text, shorter } in parts {
        let fits = |text: &String| text.len() + beside <= room_bytes;
        match [Some(text), shorter].into_iter().flatten().find(fits) {
            Some(text) => {
                room_bytes -= text.len() + beside;
                fitted.kept[section].push(text);
            }
            None => fitted.left_out[section] += 1,
        }
    }
    fitted
}
