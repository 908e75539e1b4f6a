//! The card behind a network interface, as /sys/class/net shows it: its link, its driver, its place on the PCI bus.
//!
//! What an interface does not have, or the system does not show, is absent. Called by `provider`.

use std::fs;
use std::path::{Path, PathBuf};

const CLASS: &str = "/sys/class/net";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// The hardware address.
    pub address: Option<String>,
    pub mtu: usize,
    /// In megabits a second.
    pub speed: Option<u64>,
    /// None: the driver does not tell, as with interfaces that have no link.
    pub is_up: Option<bool>,
    /// ARPHRD_*
    pub kind: Option<u16>,
    pub driver: Option<String>,
    pub pci: Option<PciDevice>,
}

/// Domain, bus, device and function, and what the device says it is, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciDevice {
    pub domain: u16,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
    pub vendor_id: Option<String>,
    pub device_id: Option<String>,
    pub revision: Option<String>,
}

pub fn of(interface: &str) -> Card {
    within(Path::new(CLASS), interface).map_or_else(Card::default, |at| read(&at))
}

/// The speed alone; None: it has none, or does not tell.
pub fn speed(interface: &str) -> Option<u64> {
    number(&within(Path::new(CLASS), interface)?, "speed")
}

/// A name is one part of a path.
fn within(class: &Path, interface: &str) -> Option<PathBuf> {
    let plain = !interface.contains('/') && !interface.starts_with('.');
    plain.then(|| class.join(interface))
}

fn read(at: &Path) -> Card {
    Card {
        address: text(at, "address"),
        mtu: number(at, "mtu").unwrap_or(0),
        speed: number(at, "speed").filter(|speed| *speed > 0),
        is_up: match text(at, "operstate").as_deref() {
            Some("up") => Some(true),
            Some("down" | "lowerlayerdown" | "notpresent" | "dormant") => Some(false),
            _ => None,
        },
        kind: number(at, "type"),
        driver: fs::read_link(at.join("device/driver"))
            .ok()
            .and_then(|driver| Some(driver.file_name()?.to_str()?.to_owned())),
        pci: at.join("device").canonicalize().ok().and_then(|device| pci(&device)),
    }
}

/// The nearest PCI device that the interface's own device hangs on: a virtio device, for one, is behind one.
fn pci(device: &Path) -> Option<PciDevice> {
    let found = device
        .ancestors()
        .find_map(|at| Some((at, place(at.file_name()?.to_str()?)?)));
    let (at, (domain, bus, device, function)) = found?;
    Some(PciDevice {
        domain,
        bus,
        device,
        function,
        vendor_id: text(at, "vendor"),
        device_id: text(at, "device"),
        revision: text(at, "revision"),
    })
}

/// `0000:00:1f.6`
fn place(name: &str) -> Option<(u16, u8, u8, u8)> {
    let (domain, rest) = name.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let byte = |text: &str| u8::from_str_radix(text, 16).ok();
    Some((
        u16::from_str_radix(domain, 16).ok()?,
        byte(bus)?,
        byte(device)?,
        byte(function)?,
    ))
}

fn text(at: &Path, file: &str) -> Option<String> {
    let text = fs::read_to_string(at.join(file)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number<T: core::str::FromStr>(at: &Path, file: &str) -> Option<T> {
    text(at, file)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A tree as the kernel's, removed at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Tree {
            let at = std::env::temp_dir().join(format!("card-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&at);
            fs::create_dir_all(&at).unwrap();
            Tree(at.canonicalize().unwrap())
        }

        fn put(&self, path: &str, content: &str) {
            let file = self.0.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }

        fn link(&self, path: &str, to: &str) {
            let file = self.0.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            symlink(self.0.join(to), file).unwrap();
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_card_behind_virtio() {
        let tree = Tree::new("virtio");
        let slot = "devices/pci0000:00/0001:3b:1f.6";
        for (file, content) in [("vendor", "0x1af4\n"), ("device", "0x1041\n"), ("revision", "0x01\n")] {
            tree.put(&format!("{slot}/{file}"), content);
        }
        let net = format!("{slot}/virtio2/net/eth0");
        for (file, content) in [
            ("address", "02:fc:00:00:00:01\n"),
            ("mtu", "1400\n"),
            ("speed", "25000\n"),
            ("operstate", "up\n"),
            ("type", "1\n"),
        ] {
            tree.put(&format!("{net}/{file}"), content);
        }
        tree.link(&format!("{net}/device"), &format!("{slot}/virtio2"));
        tree.link(&format!("{slot}/virtio2/driver"), "bus/virtio/drivers/virtio_net");
        tree.link("class/eth0", &net);
        let card = read(&within(&tree.0.join("class"), "eth0").unwrap());
        let expected = Card {
            address: Some("02:fc:00:00:00:01".into()),
            mtu: 1400,
            speed: Some(25000),
            is_up: Some(true),
            kind: Some(1),
            driver: Some("virtio_net".into()),
            pci: Some(PciDevice {
                domain: 1,
                bus: 0x3b,
                device: 0x1f,
                function: 6,
                vendor_id: Some("0x1af4".into()),
                device_id: Some("0x1041".into()),
                revision: Some("0x01".into()),
            }),
        };
        assert_eq!(card, expected);
    }

    #[test]
    fn an_interface_without_a_card() {
        let tree = Tree::new("virtual");
        for (file, content) in [
            ("mtu", "65536"),
            ("speed", "-1"),
            ("operstate", "unknown"),
            ("type", "772"),
        ] {
            tree.put(&format!("devices/virtual/net/lo/{file}"), content);
        }
        let card = read(&tree.0.join("devices/virtual/net/lo"));
        let expected = Card {
            mtu: 65536,
            kind: Some(772),
            ..Card::default()
        };
        assert_eq!(card, expected);
        tree.put("devices/virtual/net/lo/operstate", "down");
        assert_eq!(read(&tree.0.join("devices/virtual/net/lo")).is_up, Some(false));
        for name in ["no such", "../../etc", "lo/..", ".."] {
            assert_eq!((of(name), speed(name)), (Card::default(), None), "{name}");
        }
    }

    #[test]
    fn places_on_the_bus() {
        assert_eq!(place("ffff:ff:1f.7"), Some((0xffff, 0xff, 0x1f, 7)));
        for odd in ["pci0000:00", "virtio2", "10000:e1:00.0", "0000:00", "0000:zz:00.0", ""] {
            assert_eq!(place(odd), None, "{odd}");
        }
    }
}
