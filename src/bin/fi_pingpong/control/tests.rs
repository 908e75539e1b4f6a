//! The bytes of the control connection, against a raw socket on the other side: those of the C library's program, and
//! refused where they are wrong.

use super::*;

/// A `Control` and the raw stream of its other side.
fn pair(role: Role) -> (Control, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    let control = Control {
        stream,
        role,
        closed_since: None,
    };
    (control, other)
}

fn received(mut other: TcpStream, control: Control) -> Vec<u8> {
    drop(control);
    let mut bytes = Vec::new();
    other.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn client_sends_what_the_original_sends() {
    let (mut control, mut other) = pair(Role::Client);
    other.write_all(b"a\0cnt ok\0").unwrap();
    let name = Name {
        format: 2,
        bytes: b"xyz".to_vec(),
    };
    control.send_name(&name).unwrap();
    control.sync().unwrap();
    assert_eq!(control.share_count(1234).unwrap(), 1234);
    let expected = [
        &[0, 0, 0, 3][..],
        &2u32.to_ne_bytes(),
        b"xyz",
        b"q\0",
        b"1234\0\0\0\0\0\0",
    ]
    .concat();
    assert_eq!(received(other, control), expected);
}

#[test]
fn server_answers_as_the_original_answers() {
    let (mut control, mut other) = pair(Role::Server);
    other
        .write_all(&[&[0, 0, 0, 2][..], &3u32.to_ne_bytes(), b"ab"].concat())
        .unwrap();
    other.write_all(b"q\x001000\0\0\0\0\0\0").unwrap();
    let name = control.recv_name().unwrap();
    assert_eq!((name.format, name.bytes), (3, b"ab".to_vec()));
    control.sync().unwrap();
    assert_eq!(control.share_count(0).unwrap(), 1000);
    assert_eq!(received(other, control), b"a\0cnt ok\0");
}

#[test]
fn what_arrives_is_checked() {
    let (mut control, mut other) = pair(Role::Server);
    other.write_all(b"x\0").unwrap();
    assert_eq!(control.sync(), Err(Fail(-libc::EBADMSG)));
    other.write_all(b"12x4\0\0\0\0\0\0").unwrap();
    assert_eq!(control.share_count(0), Err(Fail(-libc::EBADMSG)));
    other.write_all(&2000u32.to_be_bytes()).unwrap();
    assert!(control.recv_name().is_err_and(|fail| fail == Fail(-libc::EINVAL)));
    other.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(control.sync(), Err(Fail(-libc::ECONNABORTED)));
}

#[test]
fn a_peer_that_ends_is_noticed_after_a_while() {
    let (mut control, other) = pair(Role::Server);
    assert_eq!(control.check_peer(), Ok(()));
    drop(other);
    while control.closed_since.is_none() {
        assert_eq!(control.check_peer(), Ok(()));
    }
    control.closed_since = Instant::now().checked_sub(GRACE * 2);
    assert_eq!(control.check_peer(), Err(Fail(-libc::ECONNABORTED)));
}
