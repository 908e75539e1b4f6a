//! Holds a candidate's transmit and receive attributes against the hints.

use super::caps::{NOT_FOR_RX, NOT_FOR_TX};
use super::model::{RxAttr, TxAttr};
use super::refusal::{Check, Refusal, granted, size_at_most, subset};
use crate::abi::types::*;

/// `mode` is the application's for the whole info; it counts where the context names none of its own.
pub(super) fn check_rx(asked: &RxAttr, most: &RxAttr, mode: u64) -> Check {
    subset("rx_attr.caps", FI_TYPE_CAPS, asked.caps & !NOT_FOR_RX, most.caps)?;
    granted("rx_attr.mode", FI_TYPE_MODE, most.mode, own_or(asked.mode, mode))?;
    subset("rx_attr.op_flags", FI_TYPE_OP_FLAGS, asked.op_flags, most.op_flags)?;
    subset("rx_attr.msg_order", FI_TYPE_MSG_ORDER, asked.msg_order, most.msg_order)?;
    check_zero("rx_attr.comp_order", asked.comp_order)?;
    check_zero("rx_attr.total_buffered_recv", asked.total_buffered_recv as u64)?;
    size_at_most("rx_attr.size", asked.size, most.size)?;
    size_at_most("rx_attr.iov_limit", asked.iov_limit, most.iov_limit)
}

pub(super) fn check_tx(asked: &TxAttr, most: &TxAttr, mode: u64) -> Check {
    subset("tx_attr.caps", FI_TYPE_CAPS, asked.caps & !NOT_FOR_TX, most.caps)?;
    granted("tx_attr.mode", FI_TYPE_MODE, most.mode, own_or(asked.mode, mode))?;
    subset("tx_attr.op_flags", FI_TYPE_OP_FLAGS, asked.op_flags, most.op_flags)?;
    subset("tx_attr.msg_order", FI_TYPE_MSG_ORDER, asked.msg_order, most.msg_order)?;
    check_zero("tx_attr.comp_order", asked.comp_order)?;
    size_at_most("tx_attr.inject_size", asked.inject_size, most.inject_size)?;
    size_at_most("tx_attr.size", asked.size, most.size)?;
    size_at_most("tx_attr.iov_limit", asked.iov_limit, most.iov_limit)?;
    size_at_most("tx_attr.rma_iov_limit", asked.rma_iov_limit, most.rma_iov_limit)
}

fn own_or(own: u64, general: u64) -> u64 {
    if own != 0 { own } else { general }
}

/// Kept from API 1 for the layout only; the man page wants zero.
fn check_zero(attr: &'static str, asked: u64) -> Check {
    if asked == 0 {
        Ok(())
    } else {
        Err(Refusal::says(attr, "no longer supported, must be 0"))
    }
}
