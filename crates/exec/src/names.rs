//! Names of the execution client's codes for why a block or transaction is invalid. Codes change between releases
//! without a new schema hash, so a code without a name is no error.

/// Returns the name of a code of BLOCK_REJECT.
#[must_use]
pub fn reject_reason(code: u32) -> Option<&'static str> {
    const NAMES: [&str; 21] = [
        "Success",
        "GasAboveLimit",
        "InvalidGasLimit",
        "ExtraDataTooLong",
        "WrongOmmersHash",
        "WrongParentHash",
        "FieldBeforeFork",
        "MissingField",
        "PowBlockAfterMerge",
        "InvalidNonce",
        "TooManyOmmers",
        "DuplicateOmmers",
        "InvalidOmmerHeader",
        "WrongLogsBloom",
        "InvalidGasUsed",
        "InvalidExcessBlobGas",
        "WrongMerkleRoot",
        "SystemCallMissingCode",
        "SystemCallFailed",
        "InvalidRequestsHash",
        "InvalidDepositLog",
    ];
    NAMES.get(code as usize).copied()
}

/// Returns the name of a code of TXN_REJECT.
#[must_use]
pub fn txn_reject_reason(code: u32) -> Option<&'static str> {
    const NAMES: [&str; 17] = [
        "Success",
        "InsufficientBalance",
        "IntrinsicGasGreaterThanLimit",
        "BadNonce",
        "SenderNotEoa",
        "TypeNotSupported",
        "MaxFeeLessThanBase",
        "PriorityFeeGreaterThanMax",
        "NonceExceedsMax",
        "InitCodeLimitExceeded",
        "GasLimitReached",
        "WrongChainId",
        "MissingSender",
        "GasLimitOverflow",
        "InvalidSignature",
        "InvalidBlobHash",
        "EmptyAuthorizationList",
    ];
    NAMES.get(code as usize).copied()
}
