//! What a program sees of registrations, keys and descriptors, through the C ABI.

use super::super::entry::{fi_fabric, fi_freeinfo, fi_getinfo, fi_version};
use super::*;
use crate::abi::wrappers::*;
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

struct Program {
    info: *mut fi_info,
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
    av: *mut fid_av,
    cq: *mut fid_cq,
    ep: *mut fid_ep,
    /// Its own address.
    peer: fi_addr_t,
    other: *mut fid_ep,
}

fn good(code: c_int) {
    assert_eq!(code, FI_SUCCESS);
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
            peer: 0,
            other: null_mut(),
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
            (*(*hints).fabric_attr).prov_name = libc::strdup(c"stand_in".as_ptr());
            (*(*hints).domain_attr).mr_mode = MR_MODE;
            (*hints).caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_TRIGGER;
            let found = fi_getinfo(fi_version(), null(), null(), 0, hints, &mut new.info);
            fi_freeinfo(hints);
            good(found);
            good(fi_fabric((*new.info).fabric_attr, &mut new.fabric, null_mut()));
            good(fi_domain(new.fabric, new.info, &mut new.domain, null_mut()));
            good(fi_av_open(new.domain, &mut av_attr, &mut new.av, null_mut()));
            good(fi_cq_open(new.domain, &mut cq_attr, &mut new.cq, null_mut()));
            for ep in [&mut new.ep, &mut new.other] {
                good(fi_endpoint(new.domain, new.info, ep, null_mut()));
                good(fi_ep_bind(*ep, new.av.cast(), 0));
                good(fi_ep_bind(*ep, new.cq.cast(), FI_TRANSMIT | FI_RECV));
                good(fi_enable(*ep));
            }
            let mut bytes = [0u8; 64];
            let mut len = bytes.len();
            good(fi_getname(new.other.cast(), bytes.as_mut_ptr().cast(), &mut len));
            let done = fi_av_insert(new.av, bytes.as_ptr().cast(), 1, &mut new.peer, 0, null_mut());
            assert_eq!(done, 1);
        }
        new
    }

    fn register(&self, memory: &mut [u8], access: u64) -> *mut fid_mr {
        let mut mr = null_mut();
        // SAFETY: memory that lives until the region is closed.
        good(unsafe { self.try_register(memory, access, &mut mr) });
        mr
    }

    unsafe fn try_register(&self, memory: &mut [u8], access: u64, mr: *mut *mut fid_mr) -> c_int {
        let (buf, len) = (memory.as_mut_ptr().cast(), memory.len());
        // SAFETY: the caller's memory lives until the region is closed.
        unsafe { fi_mr_reg(self.domain, buf, len, access, 0, 0, 0, mr, null_mut()) }
    }

    /// Writes all of `from` to the start of a region; what the call says.
    fn write(&self, from: &mut [u8], desc: *mut c_void, addr: u64, key: u64) -> isize {
        // SAFETY: memory that lives until the completion was read.
        unsafe {
            fi_write(
                self.ep,
                from.as_ptr().cast(),
                from.len(),
                desc,
                self.peer,
                addr,
                key,
                null_mut(),
            )
        }
    }

    /// The next completion: its length, or its error.
    fn completion(&self) -> core::result::Result<u64, c_int> {
        loop {
            // SAFETY: plain data, and a live queue of this format.
            unsafe {
                let mut entry: fi_cq_tagged_entry = core::mem::zeroed();
                match fi_cq_read(self.cq, (&raw mut entry).cast(), 1) {
                    1 => return Ok(entry.flags),
                    code if code == -(FI_EAVAIL as isize) => {
                        let mut error: fi_cq_err_entry = core::mem::zeroed();
                        assert_eq!(fi_cq_readerr(self.cq, &mut error, 0), 1);
                        return Err(error.err);
                    }
                    code => assert_eq!(code, -(FI_EAGAIN as isize)),
                }
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: closes what was opened, in the order in which one uses the other.
        unsafe {
            let fids: [*mut fid; 6] = [
                self.ep.cast(),
                self.other.cast(),
                self.cq.cast(),
                self.av.cast(),
                self.domain.cast(),
                self.fabric.cast(),
            ];
            fids.into_iter().for_each(|fid| good(fi_close(fid)));
            fi_freeinfo(self.info);
        }
    }
}

fn close(mr: *mut fid_mr) {
    // SAFETY: a live region, which nobody uses after this.
    good(unsafe { fi_close(mr.cast()) });
}

#[test]
fn a_descriptor_reaches_the_transport() {
    let program = Program::new();
    let (mut local, mut remote) = (vec![7u8; 5000], vec![0u8; 5000]);
    let ours = program.register(&mut local, FI_WRITE);
    let theirs = program.register(&mut remote, FI_REMOTE_WRITE);
    // SAFETY: live regions.
    let (desc, key) = unsafe { (fi_mr_desc(ours), fi_mr_key(theirs)) };
    assert!(key < 1 << 32, "the card's key, and not one of the library");
    let addr = remote.as_ptr() as u64;

    // Without a descriptor the card does not know the memory.
    assert_eq!(program.write(&mut local, null_mut(), addr, key), 0);
    assert_eq!(program.completion(), Err(FI_EFAULT));
    assert!(remote.iter().all(|byte| *byte == 0));

    assert_eq!(program.write(&mut local, desc, addr, key), 0);
    assert!(program.completion().is_ok());
    assert_eq!(remote, local);

    // Pieces have one each.
    remote.fill(0);
    let iov = [0, 3000].map(|at| libc::iovec {
        iov_base: local[at..].as_mut_ptr().cast(),
        iov_len: 2000,
    });
    let mut descs = [desc; 2];
    let msg = fi_rma_iov { addr, len: 4000, key };
    let msg = fi_msg_rma {
        msg_iov: iov.as_ptr(),
        desc: descs.as_mut_ptr(),
        iov_count: 2,
        addr: program.peer,
        rma_iov: &msg,
        rma_iov_count: 1,
        context: null_mut(),
        data: 0,
    };
    // SAFETY: a message whose memory lives until its completion was read.
    assert_eq!(unsafe { fi_writemsg(program.ep, &msg, FI_COMPLETION) }, 0);
    assert!(program.completion().is_ok());
    assert!(remote[..4000].iter().all(|byte| *byte == 7));

    // Another's descriptor is refused at once.
    let wrong = program.write(&mut remote, desc, addr, key);
    assert_eq!(wrong, -(FI_EINVAL as isize));

    // No bytes need no memory.
    // SAFETY: nothing is read.
    let none = unsafe {
        fi_write(
            program.ep,
            core::ptr::null(),
            0,
            desc,
            program.peer,
            addr,
            key,
            null_mut(),
        )
    };
    assert_eq!(none, 0);
    assert!(program.completion().is_ok());

    // One that is closed is none any more, and neither is a key.
    close(ours);
    assert_eq!(program.write(&mut local, desc, addr, key), -(FI_EINVAL as isize));
    let ours = program.register(&mut local, FI_WRITE);
    close(theirs);
    // SAFETY: a live region.
    let desc = unsafe { fi_mr_desc(ours) };
    remote.fill(3);
    assert_eq!(program.write(&mut local, desc, addr, key), 0);
    assert_eq!(program.completion(), Err(FI_EKEYREJECTED));
    assert!(remote.iter().all(|byte| *byte == 3));
    close(ours);
}

#[test]
fn a_registration_that_fails_gives_its_errno() {
    let program = Program::new();
    let mut memory = vec![0; TOO_LONG + 1];
    let mut mr = null_mut();
    // SAFETY: memory that outlives the call, which makes no region.
    let code = unsafe { program.try_register(&mut memory, FI_REMOTE_READ, &mut mr) };
    assert_eq!((code, mr), (-FI_ENOMEM, null_mut()));
    // What fits the card goes.
    close(program.register(&mut memory[1..], FI_REMOTE_READ));
}

#[test]
fn a_counter_is_not_promised_for_what_a_card_does() {
    let program = Program::new();
    let mut memory = vec![0; 100];
    let mr = program.register(&mut memory, FI_REMOTE_WRITE);
    // SAFETY: plain data, and live objects.
    unsafe {
        let mut attr: fi_cntr_attr = core::mem::zeroed();
        let mut cntr = null_mut();
        good(fi_cntr_open(program.domain, &mut attr, &mut cntr, null_mut()));
        assert_eq!(fi_mr_bind(mr, cntr.cast(), FI_REMOTE_WRITE), -FI_EOPNOTSUPP);
        good(fi_close(cntr.cast()));
    }
    close(mr);
}

#[test]
fn an_atomic_that_the_card_lacks_is_refused() {
    let program = Program::new();
    let (mut local, mut remote) = ([1u8; 16], 5u64.to_le_bytes());
    let ours = program.register(&mut local, FI_WRITE | FI_READ);
    let theirs = program.register(&mut remote, FI_REMOTE_WRITE | FI_REMOTE_READ);
    // SAFETY: live regions, and memory that lives until the completion was read.
    unsafe {
        let (desc, key, addr) = (fi_mr_desc(ours), fi_mr_key(theirs), remote.as_ptr() as u64);
        let atomic = |op, count| {
            let buf = local.as_ptr().cast();
            fi_atomic(
                program.ep,
                buf,
                count,
                desc,
                program.peer,
                addr,
                key,
                FI_UINT64,
                op,
                null_mut(),
            )
        };
        assert_eq!(atomic(FI_PROD, 1), -(FI_EOPNOTSUPP as isize));
        assert_eq!(
            atomic(FI_SUM, 2),
            -(FI_EMSGSIZE as isize),
            "the card adds one at a time"
        );
        let mut most = 0;
        let valid = |op, most| fi_atomicvalid(program.ep, FI_UINT64, op, most);
        assert_eq!((valid(FI_PROD, &mut most), most), (-FI_EOPNOTSUPP, 0));
        assert_eq!((valid(FI_SUM, &mut most), most), (0, 1));
        let mut attr: fi_atomic_attr = core::mem::zeroed();
        let mut query = |op, flags| {
            (
                fi_query_atomic(program.domain, FI_UINT64, op, &mut attr, flags),
                attr.count,
            )
        };
        assert_eq!((query(FI_PROD, 0), query(FI_SUM, 0)), ((-FI_EOPNOTSUPP, 0), (0, 1)));
        let (code, most) = query(FI_PROD, FI_TAGGED);
        assert!(code == 0 && most > 1, "the engine's, in the buffer of a tagged receive");
        assert_eq!(atomic(FI_SUM, 1), 0);
    }
    assert!(program.completion().is_ok());
    assert_eq!(
        u64::from_le_bytes(remote),
        5 + u64::from_le_bytes(local[..8].try_into().unwrap())
    );
    close(ours);
    close(theirs);
}

/// Of an operation on no bytes the card reads none, so wherever they are said to be, it is not outside the region.
#[test]
fn no_bytes_may_lie_anywhere() {
    let program = Program::new();
    let (mut local, mut remote) = ([7u8; 100], [0u8; 100]);
    let ours = program.register(&mut local, FI_WRITE);
    let theirs = program.register(&mut remote, FI_REMOTE_WRITE);
    let mut elsewhere = [0u8; 8];
    // SAFETY: live regions, and memory that lives until the completion was read.
    unsafe {
        let (mut desc, key, addr) = (fi_mr_desc(ours), fi_mr_key(theirs), remote.as_ptr() as u64);
        assert_eq!(
            program.write(&mut elsewhere, desc, addr, key),
            -(FI_EINVAL as isize),
            "bytes"
        );
        assert_eq!(program.write(&mut elsewhere[..0], desc, addr, key), 0);
        assert!(program.completion().is_ok());
        let mut writev = |len| {
            let iov = libc::iovec {
                iov_base: elsewhere.as_mut_ptr().cast(),
                iov_len: len,
            };
            let (ep, context) = (program.ep, null_mut());
            fi_writev(ep, &iov, &mut desc, 1, program.peer, addr, key, context)
        };
        assert_eq!((writev(8), writev(0)), (-(FI_EINVAL as isize), 0));
    }
    assert!(program.completion().is_ok());
    close(ours);
    close(theirs);
}

/// Deferred work names its memory when it is queued, as the arrays are the program's again after that.
#[test]
fn descriptors_of_deferred_work_reach_the_transport() {
    let program = Program::new();
    let (mut local, mut remote) = (vec![7u8; 100], vec![0u8; 100]);
    let ours = program.register(&mut local, FI_WRITE);
    let theirs = program.register(&mut remote, FI_REMOTE_WRITE);
    // SAFETY: the calls of a C program that keeps to the manual pages; all memory lives until the work is done.
    unsafe {
        let (mut attr, mut cntr): (fi_cntr_attr, _) = (core::mem::zeroed(), null_mut());
        good(fi_cntr_open(program.domain, &mut attr, &mut cntr, null_mut()));
        let iov = libc::iovec {
            iov_base: local.as_mut_ptr().cast(),
            iov_len: local.len(),
        };
        let target = fi_rma_iov {
            addr: remote.as_ptr() as u64,
            len: remote.len(),
            key: fi_mr_key(theirs),
        };
        let mut descs = [fi_mr_desc(theirs)];
        let desc = descs.as_mut_ptr();
        let mut op = fi_op_rma {
            ep: program.ep,
            msg: fi_msg_rma {
                msg_iov: &iov,
                desc,
                iov_count: 1,
                addr: program.peer,
                rma_iov: &target,
                rma_iov_count: 1,
                context: null_mut(),
                data: 0,
            },
            flags: FI_COMPLETION,
        };
        let mut work: fi_deferred_work = core::mem::zeroed();
        (work.threshold, work.triggering_cntr) = (1, cntr);
        (work.op_type, work.op.rma) = (FI_OP_WRITE, &mut op);
        let mut queue = || fi_control(program.domain.cast(), FI_QUEUE_WORK as c_int, (&raw mut work).cast());
        assert_eq!(queue(), -FI_EINVAL, "another's descriptor");
        desc.write(fi_mr_desc(ours));
        assert_eq!(queue(), 0);
        desc.write(null_mut());
        good(fi_cntr_add(cntr, 1));
        assert!(program.completion().is_ok());
        assert_eq!(remote, local);
        good(fi_close(cntr.cast()));
    }
    close(ours);
    close(theirs);
}
