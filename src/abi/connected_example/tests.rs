//! Connected and passive endpoints, through the C ABI, as a program uses them.

use super::super::entry::{fi_dupinfo, fi_fabric, fi_freeinfo, fi_getinfo, fi_version};
use super::super::object::domain::opened as domain_of;
use super::*;
use crate::abi::wrappers::*;
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

mod events;
mod ready;
mod transfers;

/// What a C program opens before it connects.
struct Program {
    info: *mut fi_info,
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
    eq: *mut fid_eq,
    cq: *mut fid_cq,
}

/// An event as fi_eq_read gives it.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    event: u32,
    fid: usize,
    data: Vec<u8>,
    info: *mut fi_info,
}

#[repr(C, align(8))]
struct Room([u8; 256]);

impl Program {
    fn new() -> Program {
        let mut new = Program {
            info: null_mut(),
            fabric: null_mut(),
            domain: null_mut(),
            eq: null_mut(),
            cq: null_mut(),
        };
        let mut cq_attr = fi_cq_attr {
            format: FI_CQ_FORMAT_TAGGED,
            // SAFETY: plain data, for which all zeros say that nothing is asked for.
            ..unsafe { core::mem::zeroed() }
        };
        // SAFETY: as above.
        let mut eq_attr: fi_eq_attr = unsafe { core::mem::zeroed() };
        // SAFETY: the calls of a C program that keeps to the manual pages.
        unsafe {
            let hints = fi_allocinfo();
            (*(*hints).fabric_attr).prov_name = libc::strdup(c"calls".as_ptr());
            (*(*hints).ep_attr).r#type = FI_EP_MSG;
            assert_eq!(fi_getinfo(fi_version(), null(), null(), 0, hints, &mut new.info), 0);
            fi_freeinfo(hints);
            assert_eq!(fi_fabric((*new.info).fabric_attr, &mut new.fabric, null_mut()), 0);
            assert_eq!(fi_domain(new.fabric, new.info, &mut new.domain, null_mut()), 0);
            assert_eq!(fi_eq_open(new.fabric, &mut eq_attr, &mut new.eq, null_mut()), 0);
            assert_eq!(fi_cq_open(new.domain, &mut cq_attr, &mut new.cq, null_mut()), 0);
        }
        new
    }

    fn exchange(&self) -> Arc<Exchange> {
        // SAFETY: a live domain of ours.
        unsafe { domain_of(self.domain.cast()) }.shared().ok().unwrap()
    }

    fn passive(&self) -> *mut fid_pep {
        let mut pep = null_mut();
        // SAFETY: a live fabric, an info of fi_getinfo's, a live queue.
        unsafe {
            assert_eq!(fi_passive_ep(self.fabric, self.info, &mut pep, null_mut()), 0);
            assert_eq!(fi_pep_bind(pep, self.eq.cast(), 0), 0);
        }
        pep
    }

    fn listening(&self) -> *mut fid_pep {
        let pep = self.passive();
        // SAFETY: a live passive endpoint.
        assert_eq!(unsafe { fi_listen(pep) }, 0);
        pep
    }

    /// An endpoint with all its queues.
    fn endpoint(&self, info: *mut fi_info) -> *mut fid_ep {
        let mut ep = null_mut();
        // SAFETY: a live domain, an info of fi_getinfo's or an event's, live queues.
        unsafe {
            assert_eq!(fi_endpoint(self.domain, info, &mut ep, 0x11 as *mut c_void), 0);
            assert_eq!(fi_ep_bind(ep, self.eq.cast(), 0), 0);
            assert_eq!(fi_ep_bind(ep, self.cq.cast(), FI_TRANSMIT | FI_RECV), 0);
        }
        ep
    }

    fn event(&self) -> Result<Heard, isize> {
        let (mut room, mut event) = (Room([0; 256]), 0);
        let entry = (&raw mut room).cast::<fi_eq_cm_entry>();
        // SAFETY: a live queue, and as much room as is said.
        unsafe {
            let len = fi_eq_read(self.eq, &mut event, entry.cast(), 256, 0);
            if len < 0 {
                return Err(len);
            }
            let head = core::mem::offset_of!(fi_eq_cm_entry, data);
            Ok(Heard {
                event,
                fid: (*entry).fid as usize,
                data: room.0[head..len as usize].to_vec(),
                info: (*entry).info,
            })
        }
    }

    fn next(&self) -> Heard {
        for _ in 0..1000 {
            match self.event() {
                Ok(heard) => return heard,
                Err(error) => assert_eq!(error, -(FI_EAGAIN as isize)),
            }
        }
        panic!("no event");
    }

    fn silence(&self) {
        for _ in 0..10 {
            assert_eq!(self.event(), Err(-(FI_EAGAIN as isize)));
        }
    }

    /// The error that is next: fid, context, errno, data.
    fn error(&self) -> (usize, usize, c_int, Vec<u8>) {
        let refused = (0..1000)
            .map(|_| self.event())
            .find(|event| *event != Err(-(FI_EAGAIN as isize)));
        assert_eq!(refused, Some(Err(-(FI_EAVAIL as isize))));
        // SAFETY: plain data; a live queue; the data is the queue's until the next call.
        unsafe {
            let mut entry: fi_eq_err_entry = core::mem::zeroed();
            assert_eq!(
                fi_eq_readerr(self.eq, &mut entry, 0),
                size_of::<fi_eq_err_entry>() as isize
            );
            let data = match entry.err_data_size {
                0 => Vec::new(),
                size => core::slice::from_raw_parts(entry.err_data.cast::<u8>(), size).to_vec(),
            };
            (entry.fid as usize, entry.context as usize, entry.err, data)
        }
    }

    /// Two endpoints of this program that are connected, the one that asked first.
    fn pair(&self, pep: *mut fid_pep) -> [*mut fid_ep; 2] {
        let asks = self.endpoint(self.info);
        assert_eq!(connect(asks, &name_of(pep.cast()), b"hello"), 0);
        let request = self.next();
        assert_eq!((request.event, request.fid), (FI_CONNREQ, pep as usize));
        let answers = self.endpoint(request.info);
        // SAFETY: the event's, which is ours.
        unsafe { fi_freeinfo(request.info) };
        assert_eq!(accept(answers, b"welcome"), 0);
        let mut heard = [self.next(), self.next()].map(|heard| (heard.event, heard.fid, heard.data));
        heard.sort_by_key(|(_, fid, _)| *fid != asks as usize);
        let want = [(asks, b"welcome".to_vec()), (answers, Vec::new())];
        assert_eq!(heard, want.map(|(ep, data)| (FI_CONNECTED, ep as usize, data)));
        [asks, answers]
    }

    /// All completions there are: context and errno.
    fn completions(&self) -> Vec<(usize, c_int)> {
        let mut found = Vec::new();
        let mut quiet = 0;
        while quiet < 20 {
            // SAFETY: plain data; a live queue of this format.
            unsafe {
                let mut entry: fi_cq_tagged_entry = core::mem::zeroed();
                let mut error: fi_cq_err_entry = core::mem::zeroed();
                match fi_cq_read(self.cq, (&raw mut entry).cast(), 1) {
                    1 => found.push((entry.op_context as usize, 0)),
                    no if no == -(FI_EAGAIN as isize) => quiet += 1,
                    _ => {
                        assert_eq!(fi_cq_readerr(self.cq, &mut error, 0), 1);
                        found.push((error.op_context as usize, error.err));
                    }
                }
            }
        }
        found.sort_unstable();
        found
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        close_all(&[self.cq.cast(), self.eq.cast()]);
        assert_eq!(
            self.exchange().endpoints.load(Ordering::Relaxed),
            0,
            "every transport is gone"
        );
        let exchange = Arc::downgrade(&self.exchange());
        close_all(&[self.domain.cast()]);
        assert!(
            exchange.upgrade().is_none(),
            "what they shared is closed with the domain"
        );
        close_all(&[self.fabric.cast()]);
        // SAFETY: ours, and not used again.
        unsafe { fi_freeinfo(self.info) };
    }
}

fn close_all(fids: &[*mut fid]) {
    // SAFETY: live objects, which are not used again.
    fids.iter().for_each(|fid| assert_eq!(unsafe { fi_close(*fid) }, 0));
}

fn name_of(fid: *mut fid) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let mut len = bytes.len();
    // SAFETY: a live endpoint, and as much room as is said.
    assert_eq!(unsafe { fi_getname(fid, bytes.as_mut_ptr().cast(), &mut len) }, 0);
    bytes.truncate(len);
    bytes
}

fn peer_of(ep: *mut fid_ep) -> Result<Vec<u8>, c_int> {
    let mut bytes = vec![0; 64];
    let mut len = bytes.len();
    // SAFETY: a live endpoint, and as much room as is said.
    match unsafe { fi_getpeer(ep, bytes.as_mut_ptr().cast(), &mut len) } {
        0 => {
            bytes.truncate(len);
            Ok(bytes)
        }
        error => Err(error),
    }
}

fn connect(ep: *mut fid_ep, address: &[u8], data: &[u8]) -> c_int {
    // SAFETY: a live endpoint, an address with its NUL, and as much data as is said.
    unsafe { fi_connect(ep, address.as_ptr().cast(), data.as_ptr().cast(), data.len()) }
}

fn accept(ep: *mut fid_ep, data: &[u8]) -> c_int {
    // SAFETY: a live endpoint, and as much data as is said.
    unsafe { fi_accept(ep, data.as_ptr().cast(), data.len()) }
}

fn reject(pep: *mut fid_pep, handle: fid_t, data: &[u8]) -> c_int {
    // SAFETY: a live passive endpoint, and as much data as is said.
    unsafe { fi_reject(pep, handle, data.as_ptr().cast(), data.len()) }
}

fn size_option(fid: *mut fid, option: u32) -> Result<usize, c_int> {
    let (mut size, mut len) = (0_usize, size_of::<usize>());
    // SAFETY: a live endpoint, and room for a size_t.
    match unsafe {
        fi_getopt(
            fid,
            FI_OPT_ENDPOINT as c_int,
            option as c_int,
            (&raw mut size).cast(),
            &mut len,
        )
    } {
        0 => Ok(size),
        error => Err(error),
    }
}

fn send(ep: *mut fid_ep, bytes: &[u8], context: usize) -> isize {
    // SAFETY: a live endpoint; the bytes outlive the test's transfers. The address has no meaning.
    unsafe {
        fi_send(
            ep,
            bytes.as_ptr().cast(),
            bytes.len(),
            null_mut(),
            77,
            context as *mut c_void,
        )
    }
}

fn recv(ep: *mut fid_ep, bytes: &mut [u8], context: usize) -> isize {
    // SAFETY: as above.
    unsafe {
        fi_recv(
            ep,
            bytes.as_mut_ptr().cast(),
            bytes.len(),
            null_mut(),
            FI_ADDR_UNSPEC,
            context as *mut c_void,
        )
    }
}
