//! The problems of a block.

use super::parts::Number;
use crate::names::{reject_reason, txn_reject_reason};
use crate::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;

/// Something wrong with a block, in words and numbers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemJson {
    kind: &'static str,
    text: String,
    #[serde(flatten)]
    numbers: Numbers,
}

/// Makes the numbers of problems. Each kind has some of them.
macro_rules! numbers {
    ($($name:ident: $type:ty,)*) => {
        #[derive(Clone, Debug, Default, Serialize, JsonSchema)]
        struct Numbers {
            $(#[serde(skip_serializing_if = "Option::is_none")] $name: Option<$type>,)*
        }
    };
}

numbers! {
    first_seqno: Number,
    count: Number,
    seqno: Number,
    what: &'static str,
    // Null if the problem is not in a transaction.
    txn: Option<Number>,
    index: Number,
    expected: Number,
    found: Number,
    dropped_type: u16,
    reason: u32,
    // Null if the reason has none.
    name: Option<&'static str>,
    domain: Number,
    status: i64,
    first_number: Number,
    last_number: Number,
    earlier_seqno: Number,
    code: u16,
    block_seqno: Number,
}

impl ProblemJson {
    pub(super) fn new(problem: &Problem) -> Self {
        let some = |number: u64| Some(Number::from(number));
        let of = |txn: Option<u64>| Some(txn.map(Number::from));
        let none = Numbers::default();
        let numbers = match *problem {
            Problem::Gap { first_seqno, count } => {
                Numbers { first_seqno: some(first_seqno), count: some(count), ..none }
            }
            Problem::Expired { seqno }
            | Problem::Malformed { seqno }
            | Problem::Duplicate { seqno }
            | Problem::TooLarge { seqno } => Numbers { seqno: some(seqno), ..none },
            Problem::OutOfRange { seqno, what, index } => {
                Numbers { seqno: some(seqno), what: Some(what.name()), index: some(index), ..none }
            }
            Problem::Missing { what, txn, expected, found } => {
                Numbers { what: Some(what.name()), txn: of(txn), expected: some(expected), found: some(found), ..none }
            }
            Problem::RecordError { seqno, txn, dropped_type } => {
                Numbers { seqno: some(seqno), txn: of(txn), dropped_type: Some(dropped_type), ..none }
            }
            Problem::Rejected { txn, reason } => {
                let name = if txn.is_some() { txn_reject_reason(reason) } else { reject_reason(reason) };
                Numbers { txn: of(txn), reason: Some(reason), name: Some(name), ..none }
            }
            Problem::Failed { txn, domain, status } => {
                Numbers { txn: of(txn), domain: some(domain), status: Some(status), ..none }
            }
            Problem::Unfilled { first_number, last_number } => {
                Numbers { first_number: some(first_number), last_number: some(last_number), ..none }
            }
            Problem::Reexecuted { earlier_seqno } => Numbers { earlier_seqno: some(earlier_seqno), ..none },
            Problem::Unknown { seqno, code } => Numbers { seqno: some(seqno), code: Some(code), ..none },
            Problem::NoStart { seqno, block_seqno } => {
                Numbers { seqno: some(seqno), block_seqno: some(block_seqno), ..none }
            }
        };
        Self { kind: problem.kind(), text: problem.to_string(), numbers }
    }
}
