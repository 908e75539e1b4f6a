//! Op tables of data calls, one row per C call: the arguments that the call has, and the request that they make.
//!
//! A row `send (buf, len, desc, dest, context) = buffer(send_to(dest, context), buf, len);` is the slot `send`. C
//! passes the endpoint and then these arguments, in this order; what stands on the right is put to the endpoint by
//! `posting::Post`. Descriptors are on no right side: they are shown to who wants them before (`descriptors`). An
//! argument's name says its C type (`c_type`), and the compiler holds each row against the slot.
//! Every row becomes a function of its own with all of its work inlined, for the fast path begins here.
//! Used by `messaging`, `rma`, `atomic` and `collective`; knows nothing of their requests.

/// The C type of an argument, by its name.
macro_rules! c_type {
    (buf) => { *const c_void };
    (into) => { *mut c_void }; // what the headers call buf where it is written to
    (compare) => { *const c_void };
    (result) => { *mut c_void };
    (iov) => { *const libc::iovec };
    (ioc) => { *const fi_ioc };
    (compare_ioc) => { *const fi_ioc };
    (result_ioc) => { *mut fi_ioc };
    (len) => { usize };
    (count) => { usize };
    (compare_count) => { usize };
    (result_count) => { usize };
    (desc) => { *mut c_void };
    (compare_desc) => { *mut c_void };
    (result_desc) => { *mut c_void };
    (descs) => { *mut *mut c_void };
    (compare_descs) => { *mut *mut c_void };
    (result_descs) => { *mut *mut c_void };
    (source) => { fi_addr_t };
    (dest) => { fi_addr_t };
    (coll_addr) => { fi_addr_t };
    (root_addr) => { fi_addr_t };
    (tag) => { u64 };
    (ignore) => { u64 };
    (data) => { u64 };
    (addr) => { u64 };
    (key) => { u64 };
    (flags) => { u64 };
    (datatype) => { fi_datatype };
    (op) => { fi_op };
    (context) => { *mut c_void };
    (msg) => { *const fi_msg };
    (msg_tagged) => { *const fi_msg_tagged };
    (msg_rma) => { *const fi_msg_rma };
    (msg_atomic) => { *const fi_msg_atomic };
    (msg_collective) => { *const fi_msg_collective };
}

/// The op table of an endpoint `V`: its rows, and after them the slots that are no data calls.
macro_rules! op_table {
    ($table:ident {
        $($slot:ident ($($arg:ident),*) = $request:expr;)*
    } $({ $($rest:tt)* })?) => {{
        $(
            unsafe extern "C" fn $slot<V: EndpointOps>(ep: *mut fid_ep, $($arg: c_type!($arg)),*) -> ssize_t {
                // SAFETY: the manual pages ask of a program that the endpoint is live, that arrays are as long as their
                // counts say, and that buffers are the operation's until it has ended.
                unsafe {
                    let endpoint = crate::abi::object::endpoint::of::<V>(ep.cast());
                    if endpoint.shows_descriptors() {
                        #[allow(unused_mut, reason = "a barrier has no buffers")]
                        let mut given = Given::NONE;
                        $(note!($arg, given, $arg);)*
                        if let Err(error) = given.lend(endpoint.domain()) {
                            return error.code() as ssize_t;
                        }
                    }
                    Post::post::<V>($request, ep)
                }
            }
        )*
        $table {
            size: size_of::<$table>(),
            $($slot: Some($slot::<V>),)*
            $($($rest)*)?
        }
    }};
}

pub(super) use {c_type, op_table};
