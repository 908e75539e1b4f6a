//! The fi_atomic op table of every endpoint, and fi_query_atomic: ten C calls, which make one request.
//!
//! Opens vectors and message structs, counts bytes where C counts elements, nothing more: what a call may ask for is
//! checked by `api`. `op_table` says how a row reads. Deferred work opens its message structs here too.

mod valid;

use crate::abi::object::descriptors::{Given, note};
use crate::abi::object::endpoint::OpTables;
use crate::abi::object::op_table::{c_type, op_table};
use crate::abi::object::posting::{NULL, Post, counted, elements, one};
use crate::abi::types::*;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Flags;
use crate::api::one_sided::{AtomicCall, AtomicKind};
use crate::engine::op::{AtomicTarget, Form, RemoteIov, RemotePart};
use crate::util::user::{IOV_LIMIT, UserIov};
use core::ffi::c_void;
use libc::ssize_t;
use valid::{compwritevalid, readwritevalid, writevalid};
pub use valid::{query, query_card};

impl<V: EndpointOps> OpTables<V> {
    pub const ATOMIC: fi_ops_atomic = op_table! { fi_ops_atomic {
        write (buf, count, desc, dest, addr, key, datatype, op, context)
            = atomic(dest, addr, key, datatype, op).buffers(count, buf, NULL, NULL, context);
        writev (ioc, descs, count, dest, addr, key, datatype, op, context)
            = atomic(dest, addr, key, datatype, op).vectors(vector(ioc, count), NONE, NONE, context);
        writemsg (msg_atomic, flags)
            = message(Form::Base, msg_atomic, NONE, NONE, flags);
        inject (buf, count, dest, addr, key, datatype, op)
            = atomic(dest, addr, key, datatype, op).buffers(count, buf, NULL, NULL, NULL).inject();
        readwrite (buf, count, desc, result, result_desc, dest, addr, key, datatype, op, context)
            = fetch_atomic(dest, addr, key, datatype, op).buffers(count, buf, NULL, result, context);
        readwritev (ioc, descs, count, result_ioc, result_descs, result_count,
                    dest, addr, key, datatype, op, context)
            = fetch_atomic(dest, addr, key, datatype, op)
                .vectors(vector(ioc, count), NONE, vector(result_ioc, result_count), context);
        readwritemsg (msg_atomic, result_ioc, result_descs, result_count, flags)
            = message(Form::Fetch, msg_atomic, NONE, vector(result_ioc, result_count), flags);
        compwrite (buf, count, desc, compare, compare_desc, result, result_desc,
                   dest, addr, key, datatype, op, context)
            = compare_atomic(dest, addr, key, datatype, op).buffers(count, buf, compare, result, context);
        compwritev (ioc, descs, count, compare_ioc, compare_descs, compare_count, result_ioc, result_descs,
                    result_count, dest, addr, key, datatype, op, context)
            = compare_atomic(dest, addr, key, datatype, op)
                .vectors(vector(ioc, count), vector(compare_ioc, compare_count), vector(result_ioc, result_count),
                         context);
        compwritemsg (msg_atomic, compare_ioc, compare_descs, compare_count, result_ioc, result_descs, result_count,
                      flags)
            = message(Form::Compare, msg_atomic, vector(compare_ioc, compare_count),
                      vector(result_ioc, result_count), flags);
    } {
        writevalid: Some(writevalid),
        readwritevalid: Some(readwritevalid),
        compwritevalid: Some(compwritevalid),
    }};
}

// ---- the words of the rows ----

/// What is done, and where: of the calls that name one piece of the target.
#[derive(Clone, Copy)]
struct What {
    form: Form,
    datatype: fi_datatype,
    op: fi_op,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
}

#[inline(always)]
fn atomic(dest: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op) -> What {
    What {
        form: Form::Base,
        datatype,
        op,
        dest,
        addr,
        key,
    }
}

#[inline(always)]
fn fetch_atomic(dest: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op) -> What {
    What {
        form: Form::Fetch,
        ..atomic(dest, addr, key, datatype, op)
    }
}

#[inline(always)]
fn compare_atomic(dest: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op) -> What {
    What {
        form: Form::Compare,
        ..atomic(dest, addr, key, datatype, op)
    }
}

impl What {
    /// On one buffer of each kind, of `count` elements.
    #[inline(always)]
    fn buffers(
        self,
        count: usize,
        operand: *const c_void,
        compare: *const c_void,
        result: *mut c_void,
        context: *mut c_void,
    ) -> OnBuffers {
        let buffers = Buffers {
            count,
            operand,
            compare,
            result,
        };
        OnBuffers {
            what: self,
            buffers,
            flags: Flags::Endpoint,
            context,
        }
    }

    /// On an array of each kind.
    #[inline(always)]
    fn vectors(self, operand: Vector, compare: Vector, result: Vector, context: *mut c_void) -> OnVectors {
        let vectors = Vectors {
            operand,
            compare,
            result,
        };
        OnVectors {
            what: self,
            vectors,
            context,
        }
    }
}

struct OnBuffers {
    what: What,
    buffers: Buffers,
    flags: Flags,
    context: *mut c_void,
}

impl OnBuffers {
    #[inline(always)]
    fn inject(self) -> OnBuffers {
        OnBuffers {
            flags: Flags::Inject,
            ..self
        }
    }
}

impl Post for OnBuffers {
    #[inline(always)]
    unsafe fn post<V: EndpointOps>(self, ep: *mut fid_ep) -> ssize_t {
        let OnBuffers {
            what,
            buffers,
            flags,
            context,
        } = self;
        // SAFETY: the same contract.
        unsafe { call(what, |kind| open_buffers(kind, &buffers), flags, context).post::<V>(ep) }
    }
}

struct OnVectors {
    what: What,
    vectors: Vectors,
    context: *mut c_void,
}

impl Post for OnVectors {
    #[inline(always)]
    unsafe fn post<V: EndpointOps>(self, ep: *mut fid_ep) -> ssize_t {
        // SAFETY: the same contract.
        unsafe { post_vectors::<V>(ep, self.what, self.vectors, self.context) }
    }
}

/// Not inlined: the calls by vectors are rare, and share one copy.
///
/// # Safety
/// As `Post::post`.
#[inline(never)]
unsafe fn post_vectors<V: EndpointOps>(ep: *mut fid_ep, what: What, vectors: Vectors, context: *mut c_void) -> ssize_t {
    // SAFETY: the same contract.
    unsafe { call(what, |kind| open_vectors(kind, &vectors), Flags::Endpoint, context).post::<V>(ep) }
}

/// A call by a message struct.
struct Message {
    form: Form,
    msg: *const fi_msg_atomic,
    compare: Vector,
    result: Vector,
    flags: u64,
}

#[inline(always)]
fn message(form: Form, msg: *const fi_msg_atomic, compare: Vector, result: Vector, flags: u64) -> Message {
    Message {
        form,
        msg,
        compare,
        result,
        flags,
    }
}

impl Post for Message {
    #[inline(always)]
    unsafe fn post<V: EndpointOps>(self, ep: *mut fid_ep) -> ssize_t {
        // SAFETY: the same contract.
        unsafe { post_message::<V>(ep, self.form, self.msg, self.compare, self.result, self.flags) }
    }
}

/// # Safety
/// As `Post::post`.
unsafe fn post_message<V: EndpointOps>(
    ep: *mut fid_ep,
    form: Form,
    msg: *const fi_msg_atomic,
    compare: Vector,
    result: Vector,
    flags: u64,
) -> ssize_t {
    // SAFETY: the same contract.
    unsafe { by_msg(form, msg, compare, result, flags).post::<V>(ep) }
}

// ---- the memory of a call ----

/// Operand, compare operand and result; of an operation that has no such memory, nothing.
type Memory = (UserIov, UserIov, UserIov);

/// The buffers of a call, each of `count` elements.
struct Buffers {
    count: usize,
    operand: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
}

/// Opens the buffers that an operation of this kind has; the others are not looked at.
///
/// # Safety
/// The buffers are the operation's until it has ended.
#[inline(always)]
unsafe fn open_buffers(kind: &AtomicKind, buffers: &Buffers) -> Result<Memory> {
    let len = kind.bytes(buffers.count)?;
    let opened = |there: bool, buffer: *const c_void| match there {
        // SAFETY: the caller lends the buffer, of so many elements, to the operation.
        true => unsafe { one(buffer, len) },
        false => UserIov::default(),
    };
    Ok((
        opened(!kind.reads, buffers.operand),
        opened(kind.form == Form::Compare, buffers.compare),
        opened(kind.form != Form::Base, buffers.result),
    ))
}

/// The arrays of a call, each of pieces.
#[derive(Clone, Copy)]
struct Vectors {
    operand: Vector,
    compare: Vector,
    result: Vector,
}

#[derive(Clone, Copy)]
pub(super) struct Vector {
    ioc: *const fi_ioc,
    count: usize,
}

/// An array that an operation does not have.
pub(super) const NONE: Vector = Vector {
    ioc: core::ptr::null(),
    count: 0,
};

#[inline(always)]
pub(super) fn vector(ioc: *const fi_ioc, count: usize) -> Vector {
    Vector { ioc, count }
}

/// As `open_buffers`, of arrays.
///
/// # Safety
/// The arrays have as many pieces as they say, each the operation's until it has ended.
#[inline]
unsafe fn open_vectors(kind: &AtomicKind, vectors: &Vectors) -> Result<Memory> {
    let opened = |there: bool, vector: &Vector| match there {
        // SAFETY: the same contract.
        true => unsafe { counted(vector.ioc, vector.count, |count| kind.bytes(count)) },
        false => Ok(UserIov::default()),
    };
    Ok((
        opened(!kind.reads, &vectors.operand)?,
        opened(kind.form == Form::Compare, &vectors.compare)?,
        opened(kind.form != Form::Base, &vectors.result)?,
    ))
}

/// A call that names one piece of the target.
#[inline(always)]
fn call(
    what: What,
    open: impl FnOnce(&AtomicKind) -> Result<Memory>,
    flags: Flags,
    context: *mut c_void,
) -> Result<AtomicCall> {
    let kind = AtomicKind::new(what.form, what.datatype, what.op)?;
    let (operand, compare, result) = open(&kind)?;
    let len = if kind.reads { result.len() } else { operand.len() };
    let target = RemotePart {
        addr: what.addr,
        len,
        key: what.key,
    };
    Ok(AtomicCall {
        kind,
        dest: what.dest,
        target: AtomicTarget::Memory(RemoteIov::one(target)),
        len,
        operand,
        compare,
        result,
        data: None,
        flags,
        context: context as usize,
    })
}

// ---- the calls by message structs, which deferred work has too ----

/// # Safety
/// `ioc` has `count` pieces.
unsafe fn remote(kind: &AtomicKind, ioc: *const fi_rma_ioc, count: usize) -> Result<RemoteIov> {
    let mut parts = [RemotePart::default(); IOV_LIMIT];
    // SAFETY: the caller's array has as many pieces as it says.
    let pieces = unsafe { elements(ioc, count)? };
    if pieces.is_empty() {
        return Err(Errno(FI_EINVAL));
    }
    for (place, piece) in parts.iter_mut().zip(pieces) {
        *place = RemotePart {
            addr: piece.addr,
            len: kind.bytes(piece.count)?,
            key: piece.key,
        };
    }
    RemoteIov::new(parts.into_iter().take(count)).ok_or(Errno(FI_EINVAL))
}

/// FI_TAGGED: the address is an offset in the buffer of the tagged receive that the key, as a tag, matches. It is one
/// piece.
fn target(remote: RemoteIov, flags: u64) -> Result<AtomicTarget> {
    match remote.parts() {
        _ if flags & FI_TAGGED == 0 => Ok(AtomicTarget::Memory(remote)),
        [part] => Ok(AtomicTarget::Tagged {
            tag: part.key,
            at: part.addr,
        }),
        _ => Err(Errno(FI_EINVAL)),
    }
}

/// # Safety
/// `msg` is NULL or a message; it and the arrays have as many pieces as they say, whose memory is the operation's until
/// it has ended.
pub(super) unsafe fn by_msg(
    form: Form,
    msg: *const fi_msg_atomic,
    compare: Vector,
    result: Vector,
    flags: u64,
) -> Result<AtomicCall> {
    // SAFETY: the caller passes NULL or a message, and arrays as long as they say.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let vectors = Vectors {
            operand: vector(msg.msg_iov, msg.iov_count),
            compare,
            result,
        };
        let kind = AtomicKind::new(form, msg.datatype, msg.op)?;
        let (operand, compare, result) = open_vectors(&kind, &vectors)?;
        let remote = remote(&kind, msg.rma_iov, msg.rma_iov_count)?;
        Ok(AtomicCall {
            kind,
            dest: msg.addr,
            target: target(remote, flags)?,
            len: remote.len(),
            operand,
            compare,
            result,
            data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            context: msg.context as usize,
        })
    }
}
