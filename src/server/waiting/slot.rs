//! Hash tags for the slots of a cluster.
//!
//! A client that waits is blocked on a key that no command makes, in the slot of the call's keys. A key's own hash tag is not
//! always at hand: `a}b` and the empty key have none, and as a tag of another name they would end early or not count. So each
//! slot has a tag of two bytes here.
//!
//! Source: <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model>.

use std::sync::LazyLock;

const SLOTS: usize = 16_384;

/// The polynomial of CRC-16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;

/// Two bytes for each slot, which have that slot. CRC-16 gives each pair of bytes another number, so four pairs have the
/// same slot, and one of them is free of `}`.
static TAGS: LazyLock<Box<[[u8; 2]]>> = LazyLock::new(|| {
    let mut tags = vec![[0; 2]; SLOTS];
    let pairs = (0..=u16::MAX).map(u16::to_be_bytes).filter(|pair| !pair.contains(&b'}'));
    for pair in pairs {
        tags.get_mut(crc(&pair)).into_iter().for_each(|tag| *tag = pair);
    }
    tags.into()
});

/// A hash tag for the slot of a key.
pub(super) fn tag(key: &[u8]) -> [u8; 2] {
    TAGS.get(of(key)).copied().unwrap_or_default()
}

/// The slot of a key: that of its hash tag, if it has one.
fn of(key: &[u8]) -> usize {
    let after = key.iter().position(|byte| *byte == b'{').and_then(|open| key.get(open + 1..));
    let own = after.and_then(|after| after.get(..after.iter().position(|byte| *byte == b'}')?));
    crc(own.filter(|tag| !tag.is_empty()).unwrap_or(key))
}

/// The CRC-16/XMODEM of some bytes, reduced to a slot.
fn crc(bytes: &[u8]) -> usize {
    let shift = |crc: u16| if crc >> 15 == 1 { crc << 1 ^ POLYNOMIAL } else { crc << 1 };
    let sum = bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| shift(crc)));
    usize::from(sum) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // `CLUSTER KEYSLOT` of Redis 7.0.
        for (key, slot) in [
            (&b"123456789"[..], 0x31c3),
            (b"", 0),
            (b"foo", 12182),
            (b"{foo}bar", 12182),
            (b"a}b", 7866),
            (b"{}a", 10875),
            (b"{", 4092),
            (b"foo{}{bar}", 8363),
            (b"foo{{bar}}zap", 4015),
            (b"foo{bar}{zap}", 5061),
        ] {
            assert_eq!(of(key), slot, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn each_slot_has_a_tag() {
        for (slot, tag) in TAGS.iter().enumerate() {
            assert_eq!(of(&[b"{", &tag[..], b"}any"].concat()), slot);
        }
    }
}
