//! struct fi_info and its parts as safe values, in the layout of the newest ABI.
//!
//! Hints use the same types: there, a part that the program left NULL is `None`, which is not the same as a part full
//! of zeros. In an answer every part is `Some`.

use core::ffi::c_int;

/// An address of an object of the application or of a provider, carried through and never followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opaque(pub usize);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addr: Option<Vec<u8>>,
    pub dest_addr: Option<Vec<u8>>,
    pub handle: Opaque,
    pub tx: Option<TxAttr>,
    pub rx: Option<RxAttr>,
    pub ep: Option<EpAttr>,
    pub domain: Option<DomainAttr>,
    pub fabric: Option<FabricAttr>,
    pub nic: Option<NicAttr>,
}

/// The five attributes of an info that has them all.
pub struct Parts<'a> {
    pub tx: &'a TxAttr,
    pub rx: &'a RxAttr,
    pub ep: &'a EpAttr,
    pub domain: &'a DomainAttr,
    pub fabric: &'a FabricAttr,
}

impl Info {
    /// Every attribute there, all of it zero: what fi_allocinfo gives.
    pub fn blank() -> Info {
        Info {
            tx: Some(TxAttr::default()),
            rx: Some(RxAttr::default()),
            ep: Some(EpAttr::default()),
            domain: Some(DomainAttr::default()),
            fabric: Some(FabricAttr::default()),
            ..Info::default()
        }
    }

    /// `None` when one of the attributes is missing.
    pub fn parts(&self) -> Option<Parts<'_>> {
        Some(Parts {
            tx: self.tx.as_ref()?,
            rx: self.rx.as_ref()?,
            ep: self.ep.as_ref()?,
            domain: self.domain.as_ref()?,
            fabric: self.fabric.as_ref()?,
        })
    }

    pub fn ep_type(&self) -> u32 {
        self.ep.as_ref().map_or(0, |ep| ep.ep_type)
    }

    pub fn prov_name(&self) -> Option<&str> {
        self.fabric.as_ref()?.prov_name.as_deref()
    }

    pub fn fabric_name(&self) -> Option<&str> {
        self.fabric.as_ref()?.name.as_deref()
    }

    pub fn domain_name(&self) -> Option<&str> {
        self.domain.as_ref()?.name.as_deref()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
    pub rma_iov_limit: usize,
    pub tclass: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
    pub iov_limit: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpAttr {
    pub ep_type: u32,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
    pub max_order_raw_size: usize,
    pub max_order_war_size: usize,
    pub max_order_waw_size: usize,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub auth_key: AuthKey,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainAttr {
    pub domain: Opaque,
    pub name: Option<String>,
    pub threading: u32,
    pub control_progress: u32,
    pub progress: u32,
    pub resource_mgmt: u32,
    pub av_type: u32,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
    pub cq_cnt: usize,
    pub ep_cnt: usize,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub max_ep_tx_ctx: usize,
    pub max_ep_rx_ctx: usize,
    pub max_ep_stx_ctx: usize,
    pub max_ep_srx_ctx: usize,
    pub cntr_cnt: usize,
    pub mr_iov_limit: usize,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: AuthKey,
    pub max_err_data: usize,
    pub mr_cnt: usize,
    pub tclass: u32,
    pub max_ep_auth_key: usize,
    pub max_group_id: u32,
    pub max_cntr_value: u64,
    pub max_err_cntr_value: u64,
}

/// The size can be meant without a key being there (FI_AV_AUTH_KEY), so it stands beside the bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthKey {
    pub size: KeySize,
    pub bytes: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeySize {
    Is(usize),
    /// What a provider offers that takes keys of every size.
    Any,
}

impl Default for KeySize {
    fn default() -> KeySize {
        KeySize::Is(0)
    }
}

impl KeySize {
    /// As C sees it: any size is none before there is a key.
    pub fn in_c(self) -> usize {
        match self {
            KeySize::Is(size) => size,
            KeySize::Any => 0,
        }
    }
}

impl AuthKey {
    pub const OF_ANY_SIZE: AuthKey = AuthKey {
        size: KeySize::Any,
        bytes: None,
    };
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FabricAttr {
    pub fabric: Opaque,
    pub name: Option<String>,
    pub prov_name: Option<String>,
    pub prov_version: u32,
    pub api_version: u32,
}

/// The network card behind an info.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NicAttr {
    pub device: Option<DeviceAttr>,
    pub bus: Option<BusAttr>,
    pub link: Option<LinkAttr>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceAttr {
    pub name: Option<String>,
    pub device_id: Option<String>,
    pub device_version: Option<String>,
    pub vendor_id: Option<String>,
    pub driver: Option<String>,
    pub firmware: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusAttr {
    pub bus_type: u32,
    pub pci: PciAttr,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PciAttr {
    pub domain_id: u16,
    pub bus_id: u8,
    pub device_id: u8,
    pub function_id: u8,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkAttr {
    pub address: Option<String>,
    pub mtu: usize,
    pub speed: usize,
    pub state: u32,
    pub network_type: Option<String>,
}
