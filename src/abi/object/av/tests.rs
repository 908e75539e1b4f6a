//! How far a program's array of addresses is read: never past the last one. Behind each array lies memory that may not
//! be touched.

use super::*;
use crate::api::av::socket::SocketAddr;
use crate::api::av::string::StringAddr;
use core::ptr::null_mut;

const PAGE: usize = 65536;

/// These bytes, and after the last one memory that may not be touched.
fn guarded(bytes: &[u8]) -> *const u8 {
    let (access, private) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: memory of our own, which stays mapped until the test is over.
    unsafe {
        let base = libc::mmap(null_mut(), 2 * PAGE, access, private, -1, 0).cast::<u8>();
        assert_ne!(base.cast(), libc::MAP_FAILED);
        assert_eq!(libc::mprotect(base.add(PAGE).cast(), PAGE, libc::PROT_NONE), 0);
        let start = base.add(PAGE - bytes.len());
        start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        start
    }
}

fn reads(kind: &dyn AddressKind, bytes: &[u8], count: usize) -> Option<usize> {
    // SAFETY: the bytes are there, and one too far is a crash.
    unsafe { extent(kind, guarded(bytes), count) }
}

#[test]
fn nothing_is_read_behind_the_last_address() {
    let (strings, longest) = (&StringAddr::of("fi_shm"), StringAddr::LONGEST);
    let endless = vec![b'x'; longest];
    let rows: [(&[u8], usize, usize); 9] = [
        (b"", 0, 0),
        (b"fi_shm://1\0", 1, 11),
        (b"fi_shm://1\0fi_shm://22\0", 2, 23),
        (b"\0\0", 2, 2),
        // Of three there are two, and one that has no end.
        (&[&b"a\0"[..], b"b\0", &endless].concat(), 3, 4 + longest),
        (&endless, 1, longest),
        (&endless, 5, longest),
        // One that is too long and has an end; the next lies behind it.
        (&[&endless[..], &[b'y'; 700], b"\0b\0"].concat(), 2, longest + 703),
        (&[&endless[..], &[b'y'; 700]].concat(), 2, longest),
    ];
    for (bytes, count, expected) in rows {
        assert_eq!(reads(strings, bytes, count), Some(expected), "{count} in {bytes:?}");
    }
}

#[test]
fn an_array_of_no_socket_addresses_is_not_looked_at() {
    let sockets = SocketAddr::new(FI_SOCKADDR);
    let v4 = [&(libc::AF_INET as u16).to_ne_bytes()[..], &[7; 14]].concat();
    assert_eq!(reads(&sockets, &[], 0), Some(0));
    assert_eq!(reads(&sockets, &v4, 1), Some(16));
    assert_eq!(reads(&sockets, &[&v4[..], &v4].concat(), 2), Some(32));
}
