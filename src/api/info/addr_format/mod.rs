//! Address formats and the families among them: FI_SOCKADDR is any socket address, FI_SOCKADDR_IP either IP.

use crate::abi::types::*;

const SOCKETS: &[u32] = &[
    FI_SOCKADDR,
    FI_SOCKADDR_IP,
    FI_SOCKADDR_IN,
    FI_SOCKADDR_IN6,
    FI_SOCKADDR_IB,
];
const IPS: &[u32] = &[FI_SOCKADDR, FI_SOCKADDR_IP, FI_SOCKADDR_IN, FI_SOCKADDR_IN6];

pub fn is_ip(format: u32) -> bool {
    IPS.contains(&format)
}

/// Whether what the application wants can be served by a provider of this format: families stretch both ways.
pub fn fits(asked: u32, offers: u32) -> bool {
    if asked == FI_FORMAT_UNSPEC || offers == FI_FORMAT_UNSPEC {
        return true;
    }
    match offers {
        FI_SOCKADDR => SOCKETS.contains(&asked),
        FI_SOCKADDR_IP => is_ip(asked),
        FI_SOCKADDR_IN | FI_SOCKADDR_IN6 => asked == offers || matches!(asked, FI_SOCKADDR | FI_SOCKADDR_IP),
        FI_SOCKADDR_IB => asked == offers || asked == FI_SOCKADDR,
        _ => asked == offers,
    }
}

/// Whether a concrete address, of an interface say, is of the format the application wants.
pub fn includes(asked: u32, concrete: u32) -> bool {
    if asked == FI_FORMAT_UNSPEC || concrete == FI_FORMAT_UNSPEC {
        return true;
    }
    match asked {
        FI_SOCKADDR => SOCKETS.contains(&concrete),
        FI_SOCKADDR_IP => is_ip(concrete),
        _ => asked == concrete,
    }
}

#[cfg(test)]
mod tests;
