//! A whole provider, to start from: what docs/adding.md tells in words. Its endpoints are those of one process, over
//! the transport `loopback`. The test below goes through the C ABI, from fi_getinfo to a message and its completions.
//!
//! A real one has its transport in `transport`, this part in `provider`, and a line in `built_in`.

use super::entry::{fi_fabric, fi_freeinfo, fi_getinfo, fi_version};
use super::types::*;
use super::wrappers::*;
use crate::api::av::string::{name, text};
use crate::api::av::{AddressKind, StringAddr};
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::info::query::Query;
use crate::engine::port::{Limits, PeerId};
use crate::provider::on_engine::{OnEngine, Rdm};
use crate::transport::tests::loopback::{Hub, LIMITS, Loopback};
use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

// ---- the provider ----

/// Where all endpoints of the process meet.
static HUB: LazyLock<Hub> = LazyLock::new(Hub::default);

pub struct Example;

impl OnEngine for Example {
    type Transport = Loopback;
    type Shared = ();

    const NAME: &'static str = "example";
    const VERSION: u32 = 1 << 16;

    fn start() -> Example {
        Example
    }

    fn offers(&self) -> Vec<Info> {
        let rdm = Rdm {
            fabric: "example".into(),
            domain: "example".into(),
            version: Self::VERSION,
            addr_format: FI_ADDR_STR,
            protocol: FI_PROTO_UNSPEC,
            protocol_version: 1,
            reach: FI_LOCAL_COMM,
            tx_size: 64,
            rx_size: 64,
            inject_size: 64,
            limits: LIMITS,
        };
        vec![rdm.offer()]
    }

    /// A node or service is the peer's name, unless FI_SOURCE says that it is our own.
    fn address(&self, answer: &mut Info, query: &Query) -> Result<()> {
        let named = query.node.or(query.service).map(|name| raw(name.as_bytes()));
        (answer.src_addr, answer.dest_addr) = match named {
            Some(own) if query.has_flag(FI_SOURCE) => (Some(own), None),
            peer => (Some(raw(b"")), peer),
        };
        answer.addr_format = FI_ADDR_STR;
        Ok(())
    }

    fn address_kind(_: u32) -> Arc<dyn AddressKind> {
        Arc::new(StringAddr::of("fi_example"))
    }

    fn limits() -> Limits {
        LIMITS
    }

    fn share(_: &Info) -> Result<()> {
        Ok(())
    }

    fn open(shared: &Arc<()>, info: &Info) -> Result<Loopback> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        match name(info.src_addr.as_deref().unwrap_or_default()) {
            [] => Self::open_context(shared, NEXT.fetch_add(1, Ordering::Relaxed).to_string().as_bytes()),
            own => Self::open_context(shared, own),
        }
    }

    fn open_context(_: &Arc<()>, address: &[u8]) -> Result<Loopback> {
        Loopback::open(&HUB, address).ok_or(Errno(FI_EADDRINUSE))
    }
}

/// A name as programs see it.
fn raw(name: &[u8]) -> Vec<u8> {
    [b"fi_example://", name, &[0]].concat()
}

/// What an endpoint asks of a transport besides carrying packets: addresses, and sleeping.
impl EndpointTransport for Loopback {
    fn local_address(&self) -> Vec<u8> {
        raw(self.address())
    }

    fn renamed(&self, address: &[u8]) -> Result<Renamed<Loopback>> {
        Ok(Renamed {
            transport: Some(Example::open_context(&Arc::default(), name(address))?),
            address: Some(raw(name(text(address)))),
        })
    }

    fn address_of(&self, _: PeerId) -> Option<&[u8]> {
        None
    }

    fn context_address(address: &[u8], index: usize) -> Vec<u8> {
        [name(address), format!("#{index}").as_bytes()].concat()
    }

    fn base_address(address: &[u8]) -> &[u8] {
        address.split(|byte| *byte == b'#').next().unwrap_or(address)
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        raw(address)
    }

    fn arm(&mut self) -> bool {
        !self.has_news()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }

    fn wake(&self) {}
}

// ---- a program that uses it ----

/// What a C program holds of an endpoint.
struct Program {
    info: *mut fi_info,
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
    av: *mut fid_av,
    cq: *mut fid_cq,
    ep: *mut fid_ep,
}

impl Program {
    fn new() -> Program {
        let mut new = Program {
            info: null_mut(),
            fabric: null_mut(),
            domain: null_mut(),
            av: null_mut(),
            cq: null_mut(),
            ep: null_mut(),
        };
        let mut cq_attr = fi_cq_attr {
            format: FI_CQ_FORMAT_TAGGED,
            // SAFETY: plain data, for which all zeros say that nothing is asked for.
            ..unsafe { core::mem::zeroed() }
        };
        // SAFETY: as above.
        let mut av_attr: fi_av_attr = unsafe { core::mem::zeroed() };
        // SAFETY: the calls of a C program that keeps to the manual pages.
        unsafe {
            let hints = fi_allocinfo();
            (*(*hints).fabric_attr).prov_name = libc::strdup(c"example".as_ptr());
            let found = fi_getinfo(fi_version(), null(), null(), 0, hints, &mut new.info);
            fi_freeinfo(hints);
            assert_eq!(found, FI_SUCCESS);
            assert_eq!(
                fi_fabric((*new.info).fabric_attr, &mut new.fabric, null_mut()),
                FI_SUCCESS
            );
            assert_eq!(fi_domain(new.fabric, new.info, &mut new.domain, null_mut()), FI_SUCCESS);
            assert_eq!(
                fi_av_open(new.domain, &mut av_attr, &mut new.av, null_mut()),
                FI_SUCCESS
            );
            assert_eq!(
                fi_cq_open(new.domain, &mut cq_attr, &mut new.cq, null_mut()),
                FI_SUCCESS
            );
            assert_eq!(fi_endpoint(new.domain, new.info, &mut new.ep, null_mut()), FI_SUCCESS);
            assert_eq!(fi_ep_bind(new.ep, new.av.cast(), 0), FI_SUCCESS);
            assert_eq!(fi_ep_bind(new.ep, new.cq.cast(), FI_TRANSMIT | FI_RECV), FI_SUCCESS);
            assert_eq!(fi_enable(new.ep), FI_SUCCESS);
        }
        new
    }

    fn address(&self) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        let mut len = bytes.len();
        // SAFETY: a live endpoint, and as much room as is said.
        let ret = unsafe { fi_getname(self.ep.cast(), bytes.as_mut_ptr().cast(), &mut len) };
        assert_eq!(ret, FI_SUCCESS);
        bytes.truncate(len);
        bytes
    }

    fn insert(&self, address: &[u8]) -> fi_addr_t {
        let mut found = FI_ADDR_NOTAVAIL;
        // SAFETY: one whole address of the vector's format.
        let done = unsafe { fi_av_insert(self.av, address.as_ptr().cast(), 1, &mut found, 0, null_mut()) };
        assert_eq!(done, 1);
        found
    }

    /// The next completion, if there is one.
    fn completion(&self) -> Option<fi_cq_tagged_entry> {
        // SAFETY: plain data.
        let mut entry: fi_cq_tagged_entry = unsafe { core::mem::zeroed() };
        // SAFETY: a live queue of this format, and room for one entry.
        match unsafe { fi_cq_read(self.cq, (&raw mut entry).cast(), 1) } {
            1 => Some(entry),
            error => {
                assert_eq!(error, -(FI_EAGAIN as isize));
                None
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: closes what was opened, in the order in which one uses the other.
        unsafe {
            let fids: [*mut fid; 5] = [
                self.ep.cast(),
                self.cq.cast(),
                self.av.cast(),
                self.domain.cast(),
                self.fabric.cast(),
            ];
            fids.into_iter().for_each(|fid| assert_eq!(fi_close(fid), FI_SUCCESS));
            fi_freeinfo(self.info);
        }
    }
}

fn exchange(from: &Program, to: &Program, len: usize) {
    let peer = from.insert(&to.address());
    let sent: Vec<u8> = (0..len).map(|at| at as u8).collect();
    let mut received = vec![0xff_u8; len];
    let mut contexts = [0_u8; 2];
    let [send_context, receive_context] = contexts.each_mut().map(|context| (&raw mut *context).cast::<c_void>());
    // SAFETY: both buffers live until both completions were read, below.
    unsafe {
        let into = received.as_mut_ptr().cast();
        assert_eq!(
            fi_recv(to.ep, into, len, null_mut(), FI_ADDR_UNSPEC, receive_context),
            0
        );
        assert_eq!(
            fi_send(from.ep, sent.as_ptr().cast(), len, null_mut(), peer, send_context),
            0
        );
    }
    let (mut send, mut receive) = (None, None);
    while send.is_none() || receive.is_none() {
        send = send.or_else(|| from.completion());
        receive = receive.or_else(|| to.completion());
    }
    let (send, receive) = (send.unwrap(), receive.unwrap());
    assert_eq!(
        (send.op_context, send.flags & (FI_SEND | FI_MSG)),
        (send_context, FI_SEND | FI_MSG)
    );
    assert_eq!((receive.op_context, receive.len), (receive_context, len));
    assert_eq!(received, sent);
}

#[test]
fn a_provider_is_used_through_the_c_abi() {
    let (a, b) = (Program::new(), Program::new());
    // SAFETY: an info of fi_getinfo's.
    let shown = unsafe { CStr::from_ptr((*(*a.info).fabric_attr).prov_name) };
    assert_eq!(shown, c"example");
    // One packet, several, and one that the receiver asks for.
    for len in [0, 8, 10_000, 100_000] {
        exchange(&a, &b, len);
        exchange(&b, &a, len);
    }
}
