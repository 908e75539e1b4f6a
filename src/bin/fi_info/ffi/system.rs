//! What the system only tells by a call: the room of a file system, whether the kernel copies between processes, and
//! the network interfaces. (/sys/class/net is of the network that was there when it was mounted.)
//!
//! Decides nothing. Called by `check::machine`.

use core::ffi::{c_int, c_void};
use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file system, as statvfs(3) and access(2) tell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    pub size: u64,
    pub free: u64,
    /// Files can be made there by this user.
    pub writable: bool,
    /// By nobody, as it is mounted so.
    pub read_only: bool,
}

pub fn room(path: &Path) -> io::Result<Room> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a structure of numbers, of zeroes; it is filled by the call.
    let mut told = unsafe { core::mem::zeroed::<libc::statvfs>() };
    // SAFETY: a string, and the structure.
    if unsafe { libc::statvfs(path.as_ptr(), &mut told) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a string.
    let writable = unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } == 0;
    Ok(Room {
        size: told.f_blocks * told.f_frsize,
        free: told.f_bavail * told.f_frsize,
        writable,
        read_only: told.f_flag & libc::ST_RDONLY != 0,
    })
}

/// A network interface, as getifaddrs(3) tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    pub name: String,
    pub up: bool,
    /// It has a carrier.
    pub running: bool,
    /// It has an IP address.
    pub addressed: bool,
}

/// All of this process's network, in the kernel's order.
pub fn links() -> io::Result<Vec<Link>> {
    let mut first: *mut libc::ifaddrs = core::ptr::null_mut();
    // SAFETY: the place is filled with a list of the call's own.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut links, mut next) = (Vec::<Link>::new(), first);
    // SAFETY: each entry of the list is whole, and the last one's next is NULL.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: a name is a C string, an address NULL or one that says its family.
        let (name, family) = unsafe {
            let family = entry.ifa_addr.as_ref().map(|address| i32::from(address.sa_family));
            (CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned(), family)
        };
        let has = |flag: c_int| entry.ifa_flags & flag as u32 != 0;
        let link = Link {
            name,
            up: has(libc::IFF_UP),
            running: has(libc::IFF_RUNNING),
            addressed: [Some(libc::AF_INET), Some(libc::AF_INET6)].contains(&family),
        };
        match links.iter_mut().find(|one| one.name == link.name) {
            Some(one) => one.addressed |= link.addressed,
            None => links.push(link),
        }
    }
    // SAFETY: the list is getifaddrs's, and freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(links)
}

/// What has been written into a pipe so far: a process that is not asked may keep it open, and its end never come.
pub fn written<P: Read + AsRawFd>(mut pipe: P) -> Vec<u8> {
    // SAFETY: a descriptor that is ours as long as the pipe lives.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    let mut bytes = Vec::new();
    // It ends by the pipe's end or by an error; what was read stays.
    let _ = pipe.read_to_end(&mut bytes);
    bytes
}

/// Whether a process may read and write another one's memory: a child does it to us. None: it may; else what the kernel
/// answered. We are no child of our child, so it is to us as another process of a job is.
pub fn copying_is_refused() -> Option<io::Error> {
    let mut word: u64 = 0x5eed;
    let place = libc::iovec {
        iov_base: (&raw mut word).cast::<c_void>(),
        iov_len: size_of::<u64>(),
    };
    // SAFETY: takes nothing and only answers.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child makes system calls alone, on its own stack, and leaves by _exit.
    match unsafe { libc::fork() } {
        // SAFETY: in the child, which an alarm ends if it hangs; what it does is one function, which returns.
        0 => unsafe {
            libc::alarm(10);
            libc::_exit(copy(parent, place))
        },
        -1 => Some(io::Error::last_os_error()),
        child => match waited(child) {
            // SAFETY: our own word, which the child may have written behind the compiler's back.
            _ if unsafe { (&raw const word).read_volatile() } == 0x5eee => None,
            Some(errno) if errno != 0 => Some(io::Error::from_raw_os_error(errno)),
            _ => Some(io::Error::other("the process that tried was ended")),
        },
    }
}

/// Reads a word of a process, and writes it back with one more. The errno of what was refused.
fn copy(pid: libc::pid_t, remote: libc::iovec) -> c_int {
    let mut word: u64 = 0;
    let own = &raw mut word;
    let local = libc::iovec {
        iov_base: own.cast::<c_void>(),
        iov_len: size_of::<u64>(),
    };
    // SAFETY: the local word is ours; the other process waits meanwhile, and lends its word.
    unsafe {
        if libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 {
            return *libc::__errno_location();
        }
        own.write(own.read() + 1);
        if libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) < 0 {
            return *libc::__errno_location();
        }
    }
    0
}

/// The exit status of a child; None: a signal ended it.
fn waited(child: libc::pid_t) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: a child of ours, and a place for its status.
    while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_told_of_folders_that_are_there() {
        let room = room(Path::new("/")).unwrap();
        assert!(room.size > 0 && room.free <= room.size);
        assert!(super::room(Path::new("/no such folder")).is_err());
    }

    #[test]
    fn loopback_is_a_link() {
        let links = links().unwrap();
        assert_eq!(links.iter().filter(|one| one.name == "lo").count(), 1);
    }

    /// What is refused to a process is told by its number, and memory that is not there is refused to all.
    #[test]
    fn a_refusal_has_a_number() {
        let nowhere = libc::iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 8,
        };
        let (errno, own) = (copy(i32::MAX, nowhere), copy(std::process::id() as i32, nowhere));
        assert!(errno != 0 && own != 0, "{errno} {own}");
    }
}
