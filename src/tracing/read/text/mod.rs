//! The texts of log records whose call site has a format string. The reader formats the arguments like `format!`.
//!
//! | file | idea |
//! |---|---|
//! | `spec` | parsing the format string |
//! | `value` | decoding the arguments |
//! | `apply` | formatting one argument |

mod apply;
mod spec;
#[cfg(test)]
mod tests;
mod value;

use spec::{Count, Piece, Pieces};
use value::Args;

/// The largest text, in bytes. A call site and arguments that were made to harm could stand for a much larger one.
const TEXT_BYTES_MAX: usize = 1 << 16;

/// What stands for an argument that is missing or damaged.
const DAMAGED: &str = "<damaged>";

/// Returns the text that a format string and its encoded arguments stand for. For each placeholder there are: the width
/// and the precision, if they are arguments, and the value. The text of a value that has failed or panicked is cut, and
/// ends with what the value had written. Returns true with a text that was cut at [`TEXT_BYTES_MAX`].
pub(super) fn text(format: &str, args: &[u8], is_cut: bool) -> (String, bool) {
    let (mut out, mut args) = (String::new(), Args::new(args));
    for piece in Pieces::new(format) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Placeholder(mut spec) => {
                let mut count = |count: Count| match count {
                    Count::None => None,
                    Count::Is(count) => Some(count),
                    Count::Argument => args.next().and_then(|count| count.as_count()),
                };
                spec.width = count(spec.width).into();
                spec.precision = count(spec.precision).into();
                match args.next() {
                    Some(value) => apply::apply(&mut out, &spec, &value),
                    None if is_cut => break,
                    None => out.push_str(DAMAGED),
                }
                if is_cut && args.has_ended() {
                    break;
                }
            }
        }
        if out.len() > TEXT_BYTES_MAX {
            out.truncate(out.floor_char_boundary(TEXT_BYTES_MAX));
            return (out, true);
        }
    }
    (out, false)
}
