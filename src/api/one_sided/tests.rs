//! Which form, type and operation go together by fi_atomic(3), and how many elements one call may have.

use super::*;
use crate::abi::types::*;

#[test]
fn only_what_the_page_allows() {
    let rows = [
        (Form::Base, FI_INT32, FI_SUM, true),
        (Form::Base, FI_INT32, FI_ATOMIC_READ, false),
        (Form::Base, FI_INT32, FI_CSWAP, false),
        (Form::Fetch, FI_INT32, FI_ATOMIC_READ, true),
        (Form::Fetch, FI_DOUBLE, FI_BOR, false),
        (Form::Compare, FI_LONG_DOUBLE, FI_CSWAP_LE, true),
        (Form::Compare, FI_INT32, FI_SUM, false),
        (Form::Base, FI_VOID, FI_SUM, false),
        (Form::Base, FI_INT32, FI_NOOP, false),
        (Form::Base, 9999, FI_SUM, false),
        (Form::Base, FI_INT32, u32::MAX, false),
    ];
    for (form, datatype, op, there) in rows {
        assert_eq!(
            AtomicKind::new(form, datatype, op).is_ok(),
            there,
            "{form:?} {datatype} {op}"
        );
    }
}

#[test]
fn counts_have_a_limit() {
    let kind = AtomicKind::new(Form::Fetch, FI_UINT64, FI_ATOMIC_READ).unwrap();
    assert!(kind.reads);
    assert_eq!((kind.most(), kind.bytes(512)), (512, Ok(4096)));
    let compare = AtomicKind::new(Form::Compare, FI_UINT64, FI_CSWAP).unwrap();
    assert_eq!(compare.most(), 256);
    assert_eq!(kind.bytes(513), Err(Errno(FI_EMSGSIZE)));
    assert_eq!(kind.bytes(usize::MAX), Err(Errno(FI_EMSGSIZE)));
}
