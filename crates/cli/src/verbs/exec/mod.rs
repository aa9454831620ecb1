//! The verbs of `eventring exec`: the execution events of a node.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod archive;
pub(crate) mod blocks;
#[cfg_attr(not(feature = "gateway"), path = "../left_out/gateway.rs")]
pub(crate) mod gateway;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod replay;
