//! Attributes to change, and templates that the samples do not have.

use super::*;
use crate::api::info::model::KeySize;

pub(super) fn ep(info: &mut Info) -> &mut EpAttr {
    info.ep.as_mut().unwrap()
}

pub(super) fn domain(info: &mut Info) -> &mut DomainAttr {
    info.domain.as_mut().unwrap()
}

pub(super) fn tx(info: &mut Info) -> &mut TxAttr {
    info.tx.as_mut().unwrap()
}

pub(super) fn rx(info: &mut Info) -> &mut RxAttr {
    info.rx.as_mut().unwrap()
}

pub(super) fn fabric(info: &mut Info) -> &mut FabricAttr {
    info.fabric.as_mut().unwrap()
}

pub(super) fn key(bytes: &[u8]) -> AuthKey {
    AuthKey {
        size: KeySize::Is(bytes.len()),
        bytes: Some(bytes.to_vec()),
    }
}

pub(super) const AV_KEYS: AuthKey = AuthKey {
    size: KeySize::Is(FI_AV_AUTH_KEY),
    bytes: None,
};

/// A verbs template that demands more of the application than most.
pub(super) fn demanding() -> Info {
    let mut info = verbs_msg();
    info.mode = FI_CONTEXT;
    domain(&mut info).mode = FI_CONTEXT2;
    tx(&mut info).mode = FI_ASYNC_IOV;
    domain(&mut info).auth_key = key(&[1, 2, 3, 4]);
    ep(&mut info).auth_key = key(&[1, 2]);
    domain(&mut info).max_ep_auth_key = 4;
    domain(&mut info).max_cntr_value = 1000;
    info
}

pub(super) fn demanding_hints(hints: &mut Info) {
    hints.mode = FI_CONTEXT | FI_RX_CQ_DATA | FI_ASYNC_IOV;
    domain(hints).mode = FI_CONTEXT2;
    domain(hints).mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
}

/// A layer whose template is for tcp alone.
pub(super) fn over_tcp() -> Info {
    let mut info = rxm();
    fabric(&mut info).prov_name = Some("tcp".into());
    fabric(&mut info).api_version = fi_version(1, 5);
    info
}

pub(super) fn lax() -> Info {
    let mut info = tcp_rdm();
    domain(&mut info).resource_mgmt = FI_RM_DISABLED;
    domain(&mut info).av_type = FI_AV_TABLE;
    info
}

pub(super) fn narrow() -> Info {
    let mut info = shm();
    ep(&mut info).max_order_raw_size = 0;
    ep(&mut info).max_order_waw_size = 0;
    ep(&mut info).mem_tag_format = 0xaaaa_aaaa;
    info
}
