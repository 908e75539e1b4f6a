//! What programs give fi_connect, fi_accept and fi_reject, as it stands on the wire: behind a hello or an answer,
//! always of the same size. Called by `introduction`.

/// The most bytes.
pub const MOST: usize = 256;

/// What it takes on the wire: its length, and room for the most.
pub(super) const SIZE: usize = size_of::<u16>() + MOST;

/// Longer data is cut off.
pub(super) fn encode(data: &[u8]) -> [u8; SIZE] {
    let data = data.get(..MOST).unwrap_or(data);
    let mut bytes = [0; SIZE];
    let len = (data.len() as u16).to_le_bytes();
    let all = len.iter().chain(data);
    bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
    bytes
}

/// None: more than there may be.
pub(super) fn decode(bytes: &[u8]) -> Option<&[u8]> {
    let (len, data) = bytes.split_first_chunk()?;
    data.get(..usize::from(u16::from_le_bytes(*len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_comes_back_and_nothing_more() {
        let data: Vec<u8> = (0..=255).chain([7]).collect();
        for len in [0, 1, MOST] {
            assert_eq!(decode(&encode(&data[..len])), Some(&data[..len]));
        }
        assert_eq!(decode(&encode(&data)), Some(&data[..MOST]));
        let mut lie = encode(b"x");
        lie[..2].copy_from_slice(&(MOST as u16 + 1).to_le_bytes());
        assert_eq!((decode(&lie), decode(&[])), (None, None));
    }
}
