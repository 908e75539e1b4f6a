//! The fi_atomic op table of any endpoint that is `Atomics`, and fi_query_atomic: ten C calls folded into one request.
//!
//! Opens vectors and message structs, counts bytes where C counts elements, nothing more.

use super::posting::{Opened, counted, elements, one, try_post};
use super::status;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Flags;
use crate::api::one_sided::{AtomicCall, AtomicKind};
use crate::engine::op::{AtomicTarget, Form, RemoteIov, RemotePart};
use crate::util::user::{IOV_LIMIT, UserIov};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use libc::ssize_t;

/// The table of one kind of endpoint.
pub struct Table<O>(PhantomData<O>);

impl<O: Opened> Table<O> {
    pub const ATOMIC: fi_ops_atomic = fi_ops_atomic {
        size: size_of::<fi_ops_atomic>(),
        write: Some(write::<O>),
        writev: Some(writev::<O>),
        writemsg: Some(writemsg::<O>),
        inject: Some(inject::<O>),
        readwrite: Some(readwrite::<O>),
        readwritev: Some(readwritev::<O>),
        readwritemsg: Some(readwritemsg::<O>),
        compwrite: Some(compwrite::<O>),
        compwritev: Some(compwritev::<O>),
        compwritemsg: Some(compwritemsg::<O>),
        writevalid: Some(writevalid),
        readwritevalid: Some(readwritevalid),
        compwritevalid: Some(compwritevalid),
    };
}

/// The arrays of one operation, as C names them.
#[derive(Clone, Copy)]
struct Arrays {
    operand: Vector,
    compare: Vector,
    result: Vector,
}

impl Arrays {
    fn new(operand: Vector, compare: Vector, result: Vector) -> Arrays {
        Arrays {
            operand,
            compare,
            result,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Vector {
    iov: *const fi_ioc,
    count: usize,
}

/// An array that an operation does not have.
pub(super) const NONE: Vector = Vector {
    iov: core::ptr::null(),
    count: 0,
};

impl Vector {
    pub(super) fn new(iov: *const fi_ioc, count: usize) -> Vector {
        Vector { iov, count }
    }

    /// # Safety
    /// There are as many pieces as it says, each the operation's until it has ended.
    unsafe fn open(&self, kind: &AtomicKind) -> Result<UserIov> {
        // SAFETY: by contract.
        unsafe { counted(self.iov, self.count, |count| kind.bytes(count)) }
    }
}

/// The same of the calls that name one buffer for each, of so many elements.
#[derive(Clone, Copy)]
struct Buffers {
    count: usize,
    operand: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
}

impl Buffers {
    fn new(count: usize, operand: *const c_void) -> Buffers {
        Buffers {
            count,
            operand,
            compare: core::ptr::null(),
            result: core::ptr::null_mut(),
        }
    }
}

/// What and where to, of the calls that name one piece of the target.
#[derive(Clone, Copy)]
struct What {
    form: Form,
    datatype: fi_datatype,
    op: fi_op,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
}

impl What {
    #[inline]
    fn new(form: Form, datatype: fi_datatype, op: fi_op, dest: fi_addr_t, addr: u64, key: u64) -> What {
        What {
            form,
            datatype,
            op,
            dest,
            addr,
            key,
        }
    }
}

/// Operand, compare operand and result; of an operation that has no such array, nothing.
type Memory = (UserIov, UserIov, UserIov);

/// Opens the arrays that an operation of this kind has; the others are not looked at.
///
/// # Safety
/// The arrays are the operation's until it has ended.
#[inline]
unsafe fn open(kind: &AtomicKind, arrays: &Arrays) -> Result<Memory> {
    let opened = |there: bool, vector: &Vector| match there {
        // SAFETY: by contract.
        true => unsafe { vector.open(kind) },
        false => Ok(UserIov::default()),
    };
    Ok((
        opened(!kind.reads, &arrays.operand)?,
        opened(kind.form == Form::Compare, &arrays.compare)?,
        opened(kind.form != Form::Base, &arrays.result)?,
    ))
}

/// # Safety
/// As `open`.
#[inline(always)]
unsafe fn open_one(kind: &AtomicKind, buffers: &Buffers) -> Result<Memory> {
    let len = kind.bytes(buffers.count)?;
    let opened = |there: bool, buffer: *const c_void| match there {
        // SAFETY: by contract.
        true => unsafe { one(buffer, len) },
        false => UserIov::default(),
    };
    Ok((
        opened(!kind.reads, buffers.operand),
        opened(kind.form == Form::Compare, buffers.compare),
        opened(kind.form != Form::Base, buffers.result),
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

/// # Safety
/// `ep` is a live endpoint of this kind, and the arrays are the operation's until it has ended.
#[inline(never)]
unsafe fn run<O: Opened>(ep: *mut fid_ep, what: What, arrays: Arrays, flags: Flags, context: *mut c_void) -> ssize_t {
    // SAFETY: by contract.
    unsafe { try_post::<O>(ep, call(what, |kind| open(kind, &arrays), flags, context)) }
}

/// # Safety
/// As `run`.
#[inline(always)]
unsafe fn run_one<O: Opened>(
    ep: *mut fid_ep,
    what: What,
    buffers: Buffers,
    flags: Flags,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: by contract.
    unsafe { try_post::<O>(ep, call(what, |kind| open_one(kind, &buffers), flags, context)) }
}

/// # Safety
/// `iov` has `count` pieces.
unsafe fn remote(kind: &AtomicKind, iov: *const fi_rma_ioc, count: usize) -> Result<RemoteIov> {
    let mut parts = [RemotePart::default(); IOV_LIMIT];
    // SAFETY: by contract.
    let pieces = unsafe { elements(iov, count)? };
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

/// FI_TAGGED: the address is an offset in the buffer that the tag, given as the key, leads to. It is one piece.
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
/// As the manual page asks for.
pub(super) unsafe fn by_msg(
    form: Form,
    msg: *const fi_msg_atomic,
    compare: Vector,
    result: Vector,
    flags: u64,
) -> Result<AtomicCall> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let arrays = Arrays::new(Vector::new(msg.msg_iov, msg.iov_count), compare, result);
        let kind = AtomicKind::new(form, msg.datatype, msg.op)?;
        let (operand, compare, result) = open(&kind, &arrays)?;
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

/// # Safety
/// As `run` and `by_msg`.
unsafe fn run_msg<O: Opened>(
    ep: *mut fid_ep,
    form: Form,
    msg: *const fi_msg_atomic,
    compare: Vector,
    result: Vector,
    flags: u64,
) -> ssize_t {
    // SAFETY: by contract.
    unsafe { try_post::<O>(ep, by_msg(form, msg, compare, result, flags)) }
}

// SAFETY of every shim below: C calls it with a live endpoint and with buffers that are the operation's until it ends;
// that is what the manual pages ask of a program.

unsafe extern "C" fn write<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> ssize_t {
    let what = What::new(Form::Base, datatype, op, dest, addr, key);
    let buffers = Buffers::new(count, buf);
    // SAFETY: see above.
    unsafe { run_one::<O>(ep, what, buffers, Flags::Endpoint, context) }
}

unsafe extern "C" fn writev<O: Opened>(
    ep: *mut fid_ep,
    iov: *const fi_ioc,
    _desc: *mut *mut c_void,
    count: usize,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> ssize_t {
    let what = What::new(Form::Base, datatype, op, dest, addr, key);
    let arrays = Arrays::new(Vector::new(iov, count), NONE, NONE);
    // SAFETY: see above.
    unsafe { run::<O>(ep, what, arrays, Flags::Endpoint, context) }
}

unsafe extern "C" fn writemsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg_atomic, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { run_msg::<O>(ep, Form::Base, msg, NONE, NONE, flags) }
}

unsafe extern "C" fn inject<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
) -> ssize_t {
    let what = What::new(Form::Base, datatype, op, dest, addr, key);
    let buffers = Buffers::new(count, buf);
    // SAFETY: see above.
    unsafe { run_one::<O>(ep, what, buffers, Flags::Inject, core::ptr::null_mut()) }
}

unsafe extern "C" fn readwrite<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> ssize_t {
    let what = What::new(Form::Fetch, datatype, op, dest, addr, key);
    let buffers = Buffers {
        result,
        ..Buffers::new(count, buf)
    };
    // SAFETY: see above.
    unsafe { run_one::<O>(ep, what, buffers, Flags::Endpoint, context) }
}

unsafe extern "C" fn readwritev<O: Opened>(
    ep: *mut fid_ep,
    iov: *const fi_ioc,
    _desc: *mut *mut c_void,
    count: usize,
    resultv: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> ssize_t {
    let what = What::new(Form::Fetch, datatype, op, dest, addr, key);
    let arrays = Arrays::new(Vector::new(iov, count), NONE, Vector::new(resultv, result_count));
    // SAFETY: see above.
    unsafe { run::<O>(ep, what, arrays, Flags::Endpoint, context) }
}

unsafe extern "C" fn readwritemsg<O: Opened>(
    ep: *mut fid_ep,
    msg: *const fi_msg_atomic,
    resultv: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> ssize_t {
    let result = Vector::new(resultv, result_count);
    // SAFETY: see above.
    unsafe { run_msg::<O>(ep, Form::Fetch, msg, NONE, result, flags) }
}

unsafe extern "C" fn compwrite<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    compare: *const c_void,
    _compare_desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> ssize_t {
    let what = What::new(Form::Compare, datatype, op, dest, addr, key);
    let buffers = Buffers {
        compare,
        result,
        ..Buffers::new(count, buf)
    };
    // SAFETY: see above.
    unsafe { run_one::<O>(ep, what, buffers, Flags::Endpoint, context) }
}

unsafe extern "C" fn compwritev<O: Opened>(
    ep: *mut fid_ep,
    iov: *const fi_ioc,
    _desc: *mut *mut c_void,
    count: usize,
    comparev: *const fi_ioc,
    _compare_desc: *mut *mut c_void,
    compare_count: usize,
    resultv: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> ssize_t {
    let what = What::new(Form::Compare, datatype, op, dest, addr, key);
    let arrays = Arrays::new(
        Vector::new(iov, count),
        Vector::new(comparev, compare_count),
        Vector::new(resultv, result_count),
    );
    // SAFETY: see above.
    unsafe { run::<O>(ep, what, arrays, Flags::Endpoint, context) }
}

unsafe extern "C" fn compwritemsg<O: Opened>(
    ep: *mut fid_ep,
    msg: *const fi_msg_atomic,
    comparev: *const fi_ioc,
    _compare_desc: *mut *mut c_void,
    compare_count: usize,
    resultv: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> ssize_t {
    let (compare, result) = (Vector::new(comparev, compare_count), Vector::new(resultv, result_count));
    // SAFETY: see above.
    unsafe { run_msg::<O>(ep, Form::Compare, msg, compare, result, flags) }
}

/// # Safety
/// `count` is NULL or a place for a number.
unsafe fn tell_most(form: Form, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    let told = AtomicKind::new(form, datatype, op).map(|kind| {
        if !count.is_null() {
            // SAFETY: by contract.
            unsafe { count.write(kind.most()) };
        }
    });
    status(told)
}

unsafe extern "C" fn writevalid(_ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    // SAFETY: see above.
    unsafe { tell_most(Form::Base, datatype, op, count) }
}

unsafe extern "C" fn readwritevalid(_ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    // SAFETY: see above.
    unsafe { tell_most(Form::Fetch, datatype, op, count) }
}

unsafe extern "C" fn compwritevalid(_ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    // SAFETY: see above.
    unsafe { tell_most(Form::Compare, datatype, op, count) }
}

/// fi_query_atomic. Tagged receive buffers can be targets of whatever memory can be.
///
/// # Safety
/// `attr` is NULL or a place for attributes.
pub unsafe extern "C" fn query(
    _domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    const FORMS: u64 = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
    if flags & !(FORMS | FI_TAGGED) != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    let form = match flags & FORMS {
        0 => Form::Base,
        FI_FETCH_ATOMIC => Form::Fetch,
        FI_COMPARE_ATOMIC => Form::Compare,
        _ => return -FI_EINVAL,
    };
    if attr.is_null() {
        return -FI_EINVAL;
    }
    let told = AtomicKind::new(form, datatype, op).map(|kind| {
        let found = fi_atomic_attr {
            count: kind.most(),
            size: kind.size,
        };
        // SAFETY: a place for attributes, by the manual page.
        unsafe { attr.write(found) };
    });
    status(told)
}
