//! Plain data of `rdma/fi_errno.h`.

use core::ffi::{c_int, c_uint};
use libc::*;

c_text!(
    top,
    r#"
#include <errno.h>
"#
);

pub const FI_SUCCESS: c_int = 0;
pub const FI_EPERM: c_int = EPERM;
pub const FI_ENOENT: c_int = ENOENT;
pub const FI_EINTR: c_int = EINTR;
pub const FI_EIO: c_int = EIO;
pub const FI_E2BIG: c_int = E2BIG;
pub const FI_EBADF: c_int = EBADF;
pub const FI_EAGAIN: c_int = EAGAIN;
pub const FI_ENOMEM: c_int = ENOMEM;
pub const FI_EACCES: c_int = EACCES;
pub const FI_EFAULT: c_int = EFAULT;
pub const FI_EBUSY: c_int = EBUSY;
pub const FI_ENODEV: c_int = ENODEV;
pub const FI_EINVAL: c_int = EINVAL;
pub const FI_EMFILE: c_int = EMFILE;
pub const FI_ENOSPC: c_int = ENOSPC;
pub const FI_ENOSYS: c_int = ENOSYS;
pub const FI_EWOULDBLOCK: c_int = EWOULDBLOCK;
pub const FI_ENOMSG: c_int = ENOMSG;
pub const FI_ENODATA: c_int = ENODATA;
pub const FI_EPROTO: c_int = EPROTO;
pub const FI_EOVERFLOW: c_int = EOVERFLOW;
pub const FI_EMSGSIZE: c_int = EMSGSIZE;
pub const FI_ENOPROTOOPT: c_int = ENOPROTOOPT;
pub const FI_EOPNOTSUPP: c_int = EOPNOTSUPP;
pub const FI_EADDRINUSE: c_int = EADDRINUSE;
pub const FI_EADDRNOTAVAIL: c_int = EADDRNOTAVAIL;
pub const FI_ENETDOWN: c_int = ENETDOWN;
pub const FI_ENETUNREACH: c_int = ENETUNREACH;
pub const FI_ECONNABORTED: c_int = ECONNABORTED;
pub const FI_ECONNRESET: c_int = ECONNRESET;
pub const FI_ENOBUFS: c_int = ENOBUFS;
pub const FI_EISCONN: c_int = EISCONN;
pub const FI_ENOTCONN: c_int = ENOTCONN;
pub const FI_ESHUTDOWN: c_int = ESHUTDOWN;
pub const FI_ETIMEDOUT: c_int = ETIMEDOUT;
pub const FI_ECONNREFUSED: c_int = ECONNREFUSED;
pub const FI_EHOSTDOWN: c_int = EHOSTDOWN;
pub const FI_EHOSTUNREACH: c_int = EHOSTUNREACH;
pub const FI_EALREADY: c_int = EALREADY;
pub const FI_EINPROGRESS: c_int = EINPROGRESS;
pub const FI_EREMOTEIO: c_int = EREMOTEIO;
pub const FI_ECANCELED: c_int = ECANCELED;
pub const FI_EKEYREJECTED: c_int = EKEYREJECTED;
/// Codes from here on are not the system's.
pub const FI_ERRNO_OFFSET: c_int = 256;

c_enum! {
    pub enum anon_fi_eother: c_uint {
        FI_EOTHER = 256,
        FI_ETOOSMALL = 257,
        FI_EOPBADSTATE = 258,
        FI_EAVAIL = 259,
        FI_EBADFLAGS = 260,
        FI_ENOEQ = 261,
        FI_EDOMAIN = 262,
        FI_ENOCQ = 263,
        FI_ECRC = 264,
        FI_ETRUNC = 265,
        FI_ENOKEY = 266,
        FI_ENOAV = 267,
        FI_EOVERRUN = 268,
        FI_ENORX = 269,
        FI_ENOMR = 270,
        FI_EFIREWALLADDR = 271,
        FI_ERRNO_MAX = 272,
    }
}

c_decl! {
    fn fi_strerror(errnum: c_int) -> *const c_char;
}
