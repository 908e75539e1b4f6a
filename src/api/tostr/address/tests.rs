//! The text of each address format as the C library writes it, and none for an address that is too short.

use super::*;

/// Bytes 1, 2, 3 ... with the family in front where the format wants one.
fn counted(family: u16) -> [u8; LONGEST] {
    let mut bytes: [u8; LONGEST] = core::array::from_fn(|i| i as u8 + 1);
    if family != 0 {
        bytes[..2].copy_from_slice(&family.to_ne_bytes());
    }
    bytes
}

#[test]
#[cfg(target_endian = "little")]
fn formats_have_the_texts_of_the_c_library() {
    let table = [
        (FI_SOCKADDR, AF_INET, "fi_sockaddr_in://5.6.7.8:772"),
        (
            FI_SOCKADDR,
            AF_INET6,
            "fi_sockaddr_in6://[90a:b0c:d0e:f10:1112:1314:1516:1718]:772",
        ),
        (
            FI_SOCKADDR,
            AF_IB,
            "fi_sockaddr_ib://[90a:b0c:d0e:f10:1112:1314:1516:1718]:0x304:0xd1e:0x30",
        ),
        (FI_SOCKADDR_IP, AF_INET, "fi_sockaddr_in://5.6.7.8:772"),
        (FI_SOCKADDR_IP, AF_IB, ""),
        (
            FI_SOCKADDR_IN,
            AF_INET6,
            "fi_sockaddr_in://506:708:90a:b0c:d0e:f10:1112:1314:772",
        ),
        (FI_SOCKADDR_IN6, AF_INET, "fi_sockaddr_in6://[9.10.11.12]:772"),
        (FI_SOCKADDR_IN6, 1, ""),
        (
            FI_ADDR_EFA,
            0,
            "fi_addr_efa://[102:304:506:708:90a:b0c:d0e:f10]:4625:404166165",
        ),
        (
            FI_ADDR_IB_UD,
            0,
            "fi_addr_ib_ud://102:304:506:708:90a:b0c:d0e:f10:14131211/1615/1817/1b",
        ),
        (FI_ADDR_PSMX2, 0, "fi_addr_psmx2://807060504030201:100f0e0d0c0b0a09"),
        (
            FI_ADDR_PSMX3,
            0,
            "fi_addr_psmx3://807060504030201:100f0e0d0c0b0a09:1817161514131211:201f1e1d1c1b1a19",
        ),
        (FI_ADDR_OPX, 0, "fi_addr_opx://0807060504030201"),
        (FI_ADDR_CXI, 0, "fi_addr_cxi://0x04030201"),
        (FI_ADDR_MLX, 0, "fi_addr_mlx://0x1000"),
        (FI_ADDR_UCX, 0, "fi_addr_ucx://0x1000"),
        (FI_ADDR_PSMX, 0, ""),
        (FI_FORMAT_UNSPEC, AF_INET, ""),
    ];
    for (format, family, expected) in table {
        let text = straddr(format, Pointer(0x1000), &counted(family)).unwrap_or_default();
        assert_eq!(
            String::from_utf8_lossy(&text),
            expected,
            "format {format} family {family}"
        );
    }
}

#[test]
fn short_addresses_have_no_text() {
    let table = [
        (FI_SOCKADDR_IN, AF_INET, 8),
        (FI_SOCKADDR_IN6, AF_INET6, 24),
        (FI_SOCKADDR_IB, AF_IB, 48),
        (FI_ADDR_EFA, 0, 24),
        (FI_ADDR_IB_UD, 0, 27),
        (FI_ADDR_PSMX2, 0, 16),
        (FI_ADDR_PSMX3, 0, 32),
        (FI_ADDR_OPX, 0, 8),
        (FI_ADDR_CXI, 0, 4),
    ];
    for (format, family, need) in table {
        let bytes = counted(family);
        assert!(straddr(format, Pointer(0), &bytes[..need]).is_some(), "format {format}");
        for short in 0..need {
            assert_eq!(
                straddr(format, Pointer(0), &bytes[..short]),
                None,
                "format {format} of {short} bytes"
            );
        }
    }
}

#[test]
fn ipv6_is_written_as_inet_ntop_does() {
    let table: [([u16; 8], &str); 8] = [
        ([0, 0, 0, 0, 0, 0, 0, 0], "::"),
        ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
        ([0, 0, 0, 0, 0, 0, 0x102, 0x304], "::1.2.3.4"),
        ([0, 0, 0, 0, 0, 0, 1, 0], "::0.1.0.0"),
        ([0, 0, 0, 0, 0, 0xffff, 0x102, 0x304], "::ffff:1.2.3.4"),
        ([0, 0, 0, 0, 1, 0, 0, 0], "::1:0:0:0"),
        ([0xfe80, 0, 1, 0, 0, 2, 0, 3], "fe80:0:1::2:0:3"),
        ([1, 0, 2, 3, 4, 5, 6, 7], "1:0:2:3:4:5:6:7"),
    ];
    for (words, expected) in table {
        assert_eq!(ipv6(&Ipv6Addr::from(words).octets()).as_deref(), Some(expected));
    }
}

#[test]
fn string_addresses_end_at_their_nul() {
    assert_eq!(
        straddr(FI_ADDR_STR, Pointer(1), b"fi_shm://7\0\0x"),
        Some(b"fi_shm://7".to_vec())
    );
    assert_eq!(
        straddr(FI_ADDR_STR, Pointer(1), b"no end \xff"),
        Some(b"no end \xff".to_vec())
    );
}
