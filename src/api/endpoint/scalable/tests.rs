use super::super::state::Settings;
use super::*;

/// Whether a context sends messages, and whether it receives them.
fn messages(caps: u64, direction: Direction) -> (bool, bool) {
    let info = Info {
        caps,
        ..Info::default()
    };
    let settings = Settings::of(&only(&info, direction));
    (settings.can_send, settings.can_recv)
}

#[test]
fn contexts_have_the_messages_of_their_direction() {
    for (caps, transmit, receive) in [
        (FI_MSG, (true, false), (false, true)),
        (FI_TAGGED | FI_SEND | FI_RECV, (true, false), (false, true)),
        (FI_MSG | FI_RMA | FI_ATOMIC, (true, false), (false, true)),
        (FI_COLLECTIVE, (true, false), (false, true)),
        (FI_RMA, (false, false), (false, false)),
        (FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV, (false, false), (false, false)),
    ] {
        assert_eq!(messages(caps, Direction::Transmit), transmit, "{caps:#x}");
        assert_eq!(messages(caps, Direction::Receive), receive, "{caps:#x}");
    }
}

#[test]
fn contexts_for_memory_have_that_of_their_direction() {
    for direction in [Direction::Transmit, Direction::Receive] {
        let transmits = direction == Direction::Transmit;
        let info = Info {
            caps: FI_RMA | FI_ATOMIC,
            ..Info::default()
        };
        let settings = Settings::of(&only(&info, direction));
        let found = (settings.can_read, settings.can_write, settings.is_target);
        assert_eq!(found, (transmits, transmits, !transmits));
    }
}
