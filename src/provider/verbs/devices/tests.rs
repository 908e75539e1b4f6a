//! Offers of devices that do not exist, by what the C library's provider says of such.

use super::*;
use crate::api::info::query::LIBRARY_VERSION;

pub(in super::super) fn told() -> Told {
    Told {
        name: "mlx5_0".into(),
        transport: Transport::InfiniBand,
        attributes: Attributes {
            firmware: "22.1".into(),
            vendor_id: 0x2c9,
            part_id: 0x101d,
            version: 0,
            queue_pairs: 1000,
            completion_queues: 2000,
            completions: 4000,
            requests: 100,
            pieces: 2,
            shared_queues: 500,
            shared_receives: 1000,
            regions: 3000,
            atomics: true,
            ports: 1,
        },
        port: Port {
            up: Some(true),
            mtu: 4096,
            max_message: 1 << 30,
            link: LinkLayer::InfiniBand,
            speed: 100_000_000_000,
            lid: 3,
            service_level: 0,
        },
        subnet: 0xfe80_0000_0000_0001,
        inline: 220,
        datagram_inline: Some(180),
    }
}

#[test]
fn an_offer_is_what_the_device_says() {
    let address: SocketAddr = "10.0.0.1:0".parse().unwrap();
    let info = offer(&told(), &address);
    assert_eq!(
        (info.domain_name(), info.fabric_name()),
        (Some("mlx5_0"), Some("IB-0xfe80000000000001"))
    );
    assert_eq!(
        (info.addr_format, info.src_addr.clone()),
        (FI_SOCKADDR_IN, Some(to_bytes(&address)))
    );
    assert_eq!(info.caps & FI_ATOMIC, FI_ATOMIC);
    let parts = info.parts().unwrap();
    // The device has room for less than is usual.
    assert_eq!((parts.tx.size, parts.tx.iov_limit, parts.tx.inject_size), (99, 2, 220));
    assert_eq!((parts.rx.size, parts.ep.max_msg_size), (100, 1 << 30));
    assert_eq!(
        (parts.domain.ep_cnt, parts.domain.tx_ctx_cnt, parts.domain.mr_cnt),
        (1000, 1000, 3000)
    );
    assert_eq!(parts.domain.max_ep_srx_ctx, 500);
    let nic = info.nic.unwrap();
    assert_eq!(nic.device.unwrap().device_id.as_deref(), Some("0x101d"));
    assert_eq!(nic.link.unwrap().network_type.as_deref(), Some("InfiniBand"));

    let mut plain = told();
    plain.attributes.atomics = false;
    assert_eq!(offer(&plain, &address).caps & FI_ATOMIC, 0);

    let iwarp = Told {
        transport: Transport::Iwarp,
        ..told()
    };
    let info = offer(&iwarp, &"[2001:db8::1]:0".parse().unwrap());
    assert_eq!(
        (info.addr_format, info.fabric_name()),
        (FI_SOCKADDR_IN6, Some("Ethernet-iWARP"))
    );
    assert_eq!(info.domain.unwrap().cq_data_size, 0);
}

#[test]
fn a_device_without_an_address_is_no_offer() {
    assert!(at_addresses(&told(), std::iter::empty()).is_empty());
}

#[test]
fn who_wants_no_data_need_not_say_that_data_takes_a_receive() {
    let asked = |hints: &Info| {
        let mut info = offer(&told(), &"10.0.0.1:0".parse().unwrap());
        let query = Query {
            version: LIBRARY_VERSION,
            node: None,
            service: None,
            flags: 0,
            hints: Some(hints),
            found: None,
            raw: None,
        };
        drop_unasked_mode(&mut info, &query);
        (info.mode, info.rx.unwrap().mode, info.domain.unwrap().cq_data_size)
    };
    let mut hints = Info::default();
    assert_eq!(asked(&hints), (0, 0, 0));
    hints.mode = FI_RX_CQ_DATA;
    assert_eq!(asked(&hints), (FI_RX_CQ_DATA, FI_RX_CQ_DATA, 4));
    hints.mode = 0;
    hints.domain = Some(DomainAttr {
        cq_data_size: 4,
        ..DomainAttr::default()
    });
    assert_eq!(asked(&hints), (FI_RX_CQ_DATA, FI_RX_CQ_DATA, 4));
}

#[test]
fn a_place_on_the_bus() {
    let at = pci("0000:5e:00.1").unwrap();
    assert_eq!((at.domain_id, at.bus_id, at.device_id, at.function_id), (0, 0x5e, 0, 1));
    for odd in ["", "virtio2", "0000:5e:00", "0:1:2:3.x", "1:fff:0.0"] {
        assert_eq!(pci(odd), None, "{odd}");
    }
}

#[test]
fn the_first_port_that_is_up_is_told_of() {
    let port = |up, mtu| Port { up, mtu, ..told().port };
    let ports = || {
        [
            (1, port(Some(false), 256)),
            (3, port(None, 512)),
            (4, port(Some(true), 1024)),
        ]
    };
    let up = first_up(ports().into_iter()).map(|(number, port)| (number, port.mtu));
    assert_eq!(up.ok(), Some((4, 1024)));
    assert!(first_up(ports().into_iter().take(2)).is_err());
}

#[test]
fn devices_and_interfaces_are_chosen_by_name() {
    let names = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let rows = [
        ("mlx5_0", "", true),
        ("mlx5_0", "rxe mlx5", true),
        ("mlx5_0", "MLX", true),
        ("mlx5_0", "mlx5_01", false),
        ("mlx5_0", "lx", false),
    ];
    for (name, wanted, expected) in rows {
        assert_eq!(begins_with_one(name, &names(wanted)), expected, "{name} {wanted}");
    }
    let all = names("eth1 eth10 eth11 ib0");
    let rows = [
        ("eth1", "", true),
        ("eth1", "eth1", true),
        ("eth10", "eth1", false),
        ("eth10", "eth", true),
        ("eth10", "eth1 eth10", true),
        ("ib0", "eth ib", true),
        ("ib0", "IB", false),
    ];
    for (name, wanted, expected) in rows {
        assert_eq!(is_wanted(name, &names(wanted), &all), expected, "{name} {wanted}");
    }
}
