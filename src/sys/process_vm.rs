//! Memory of other processes, copied by the kernel (process_vm_readv, process_vm_writev).
//!
//! Knows nothing of who the processes are. Called by `transport`, and by `abi` for memory of its own that may not be
//! there.

use std::io;

/// A range of addresses, of this process or another, as an iovec has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    pub addr: u64,
    pub len: u64,
}

const _: () = assert!(size_of::<Range>() == size_of::<libc::iovec>());
const _: () = assert!(core::mem::offset_of!(Range, addr) == core::mem::offset_of!(libc::iovec, iov_base));

/// The ranges, and how many.
fn vector(ranges: &[Range]) -> (*const libc::iovec, libc::c_ulong) {
    (ranges.as_ptr().cast(), ranges.len() as libc::c_ulong)
}

/// The distance from an address of this process to the first zero byte, which is looked for in `most` bytes at least.
/// None: there is none before those bytes or readable memory end. The kernel reads the memory for us, so that memory
/// which is not readable is an error and no SIGSEGV.
pub fn distance_to_zero(addr: usize, most: usize) -> Option<usize> {
    const CHUNK: usize = 256;
    let (pid, mut bytes, mut at) = (std::process::id() as i32, [0u8; CHUNK], 0);
    while at < most {
        // Up to the next multiple of `CHUNK`: as no page boundary cuts it, it is readable as a whole or not at all.
        let len = CHUNK - (addr + at) % CHUNK;
        let [from, to] = [addr + at, bytes.as_mut_ptr() as usize].map(|addr| Range {
            addr: addr as u64,
            len: len as u64,
        });
        // SAFETY: the local range is the first `len` bytes of `bytes`.
        unsafe { read(pid, &[from], &[to]) }.ok().filter(|read| *read == len)?;
        if let Some(zero) = bytes.get(..len)?.iter().position(|byte| *byte == 0) {
            return Some(at + zero);
        }
        at += len;
    }
    None
}

/// Copies from another process. Returns how many bytes, which may be fewer than asked for.
///
/// # Safety
/// The local ranges are writable memory that nobody else uses during the call.
pub unsafe fn read(pid: i32, remote: &[Range], local: &[Range]) -> io::Result<usize> {
    let ((theirs, their_count), (ours, our_count)) = (vector(remote), vector(local));
    // SAFETY: both vectors have as many pieces as told; the caller promised the local ones, the kernel checks the rest.
    let copied = unsafe { libc::process_vm_readv(pid, ours, our_count, theirs, their_count, 0) };
    usize::try_from(copied).map_err(|_| io::Error::last_os_error())
}

/// Copies to another process. Returns how many bytes, which may be fewer than asked for. The kernel checks both sides.
///
/// # Safety
/// The remote ranges are memory that their owner wants written, and nobody else uses during the call.
pub unsafe fn write(pid: i32, remote: &[Range], local: &[Range]) -> io::Result<usize> {
    let ((theirs, their_count), (ours, our_count)) = (vector(remote), vector(local));
    // SAFETY: both vectors have as many pieces as told; the caller promised the remote ones.
    let copied = unsafe { libc::process_vm_writev(pid, ours, our_count, theirs, their_count, 0) };
    usize::try_from(copied).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read_in_pieces() {
        let from: Vec<u8> = (0..100).collect();
        let mut to = [0u8; 50];
        let at = |bytes: &[u8], start: usize, len: usize| Range {
            addr: bytes[start..].as_ptr() as u64,
            len: len as u64,
        };
        let remote = [at(&from, 10, 20), at(&from, 70, 30)];
        let base = to.as_mut_ptr() as u64;
        let local = [
            Range { addr: base, len: 5 },
            Range {
                addr: base + 5,
                len: 45,
            },
        ];
        // SAFETY: `local` is `to`.
        let read = unsafe { read(std::process::id() as i32, &remote, &local) }.unwrap();
        assert_eq!(read, 50);
        assert!(to.iter().copied().eq((10..30).chain(70..100)));
    }

    /// A string at the end of readable memory is read to its zero; one without a zero is read no further.
    #[test]
    fn a_string_is_read_up_to_the_end_of_memory() {
        let page = crate::sys::shared::page_size();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), 2 * page, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: the mapping made above, of which the second page is taken away and the first is filled.
        unsafe {
            assert_eq!(libc::munmap(base.byte_add(page), page), 0);
            libc::memset(base, 1, page);
        }
        let end = base as usize + page;
        for len in [1, 5, 255, 256, 257, 700] {
            assert_eq!(distance_to_zero(end - len, 10_000), None, "{len}");
        }
        // SAFETY: the last byte of the first page.
        unsafe { base.cast::<u8>().add(page - 1).write(0) };
        for len in [1, 5, 255, 256, 257, 700] {
            assert_eq!(distance_to_zero(end - len, 10_000), Some(len - 1), "{len}");
        }
        assert_eq!((distance_to_zero(end, 10), distance_to_zero(end - 1, 0)), (None, None));
        // SAFETY: what is left of the mapping.
        unsafe { libc::munmap(base, page) };
    }

    #[test]
    fn a_bad_address_is_an_error() {
        let mut to = [0u8; 8];
        let local = [Range {
            addr: to.as_mut_ptr() as u64,
            len: 8,
        }];
        // SAFETY: `local` is `to`.
        let read = unsafe { read(std::process::id() as i32, &[Range { addr: 8, len: 8 }], &local) };
        assert_eq!(read.unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
