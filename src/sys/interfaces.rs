//! The network interfaces of this machine and their addresses, as the kernel lists them.
//!
//! Knows nothing of who asks. Called by `provider`.

use super::resolve::from_bytes;
use core::ptr;
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// An IP address of an interface that is up and running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// With port 0; a link-local one with its scope.
    pub address: SocketAddr,
    /// How many leading bits of the address its subnet has.
    pub prefix: u32,
    pub loopback: bool,
    pub point_to_point: bool,
}

/// All that have an address, in the kernel's order.
pub fn list() -> io::Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: getifaddrs fills the place with a list of its own.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut next) = (Vec::new(), first);
    // SAFETY: each entry of the list is whole, and the last one's next is NULL.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let flags = entry.ifa_flags;
        let runs = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
        // SAFETY: an entry's addresses are NULL or socket addresses of the family they say.
        let (address, mask) = unsafe { (ip_of(entry.ifa_addr), ip_of(entry.ifa_netmask)) };
        let Some(address) = address.filter(|_| flags & runs == runs) else {
            continue;
        };
        found.push(Interface {
            // SAFETY: an interface's name is a C string.
            name: unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned(),
            prefix: mask.map_or(0, |mask| leading_ones(mask.ip())),
            address,
            loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
            point_to_point: flags & libc::IFF_POINTOPOINT as u32 != 0,
        });
    }
    // SAFETY: the list is getifaddrs's, and freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
/// NULL, or a socket address of the family that it says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: the caller's promise; every socket address has a family.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    let len = match family {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    // SAFETY: a socket address of this family is that long.
    from_bytes(unsafe { core::slice::from_raw_parts(address.cast(), len) })
}

fn leading_ones(mask: IpAddr) -> u32 {
    match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_always_there() {
        let all = list().unwrap();
        let found = all
            .iter()
            .find(|one| one.address.ip().to_string() == "127.0.0.1")
            .unwrap();
        assert_eq!((found.prefix, found.loopback, found.address.port()), (8, true, 0));
        assert!(!found.point_to_point);
    }
}
