//! Where a text is cut: at every size around a comma, a bracket and the last byte.

use super::*;

fn written(size: usize) -> String {
    let mut text = Text::new(size);
    write!(text, "[ ");
    text.add_list(["FI_MSG", "FI_RMA"].into_iter());
    writeln!(text, " ]");
    String::from_utf8(text.into_bytes()).unwrap_or_default()
}

#[test]
fn a_cut_at_a_comma_leaves_room_for_the_bracket() {
    let table = [
        (0, ""),
        (1, ""),
        (2, ""),
        (3, "["),
        (4, "[ "),
        (9, "[ FI_MS"),
        (10, "[ FI_MSG"),
        (11, "[ FI_MSG,"),
        (12, "[ FI_MSG ]"),
        (13, "[ FI_MSG, F"),
        (100, "[ FI_MSG, FI_RMA ]\n"),
    ];
    for (size, expected) in table {
        assert_eq!(written(size), expected, "size {size}");
    }
}

#[test]
fn a_piece_may_use_the_last_byte() {
    let mut text = Text::new(4);
    write!(text, "abcdef");
    assert_eq!(text.left(), 2);
    text.add_piece(b"xyz");
    write!(text, "never seen");
    assert_eq!(text.into_bytes(), b"abx");
}
