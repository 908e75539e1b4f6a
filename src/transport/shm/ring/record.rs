//! How a record lies in a ring: its forms, the control word that tells of it, and how many cells it takes.
//!
//! Knows neither of the two sides, nor what a header means. Used by the ring, and by `lane`, which has the memory.

/// A cache line.
pub(in super::super) const LINE: usize = 64;
/// What positions count: half a line.
pub(in super::super) const CELL: usize = LINE / 2;
/// Where the header is in a record.
pub(in super::super) const HEADER_AT: usize = 8;

// A control word, from the top: the lap, counted from 1; what it stands for; the length of a record's body, or the
// cells that are skipped, with this one.
pub(super) const LEN: u64 = (1 << 16) - 1;
pub(super) const RECORD: u64 = 1 << 16;
pub(super) const SKIP: u64 = 2 << 16;
/// The producer goes on in another ring.
pub(super) const MOVED: u64 = 3 << 16;
/// A record of form `HalfLine`.
pub(super) const HALF_LINE: u64 = 4 << 16;
/// With a record: a turn of the dialogue was written since the record before.
pub(super) const AFTER_TURN: u64 = 8 << 16;
pub(super) const LAP_SHIFT: u32 = 20;

/// The consumer polls the first line of a record, so that is written at once, at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Form {
    /// One cell, so that two of a flood share a line: two words of the header and the body, or in place of an empty
    /// body the header's last word.
    HalfLine,
    /// One line, header and body.
    OneLine,
    /// The body begins with the second line.
    Lines,
}

impl Form {
    const HALF_LINE_MOST: usize = CELL - Form::HalfLine.body_at();
    const ONE_LINE_MOST: usize = LINE - Form::OneLine.body_at();

    /// The least that a record can take, which is a line if it may not share one.
    #[inline(always)]
    pub(in super::super) fn of(header: &[u64; 4], len: usize, may_share: bool) -> Form {
        let fits_half =
            may_share && len <= Form::HALF_LINE_MOST && header[2] == 0 && (len == 0 || header[3] == len as u64);
        match len {
            _ if fits_half => Form::HalfLine,
            _ if len <= Form::ONE_LINE_MOST => Form::OneLine,
            _ => Form::Lines,
        }
    }

    #[inline(always)]
    pub(in super::super) const fn body_at(self) -> usize {
        match self {
            Form::HalfLine => 24,
            Form::OneLine => 40,
            Form::Lines => LINE,
        }
    }

    /// Records of more than a cell take whole lines.
    #[inline(always)]
    pub(super) const fn cells(self, len: usize) -> u64 {
        match self {
            Form::HalfLine => 1,
            Form::OneLine => 2,
            Form::Lines => 2 * (Form::Lines.body_at() + len).div_ceil(LINE) as u64,
        }
    }
}

/// How many cells a ring has: a power of two, at most `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Size {
    mask: u64,
    shift: u32,
    /// So many cells are enough for short records. Where the processors share a cache, 1 KiB takes a sixth less in a
    /// front of 8 KiB than in one of 16, and 4 KiB take a sixth less in one of 16 than in 64.
    pub(super) front: u64,
}

/// The least cells of a front, and of a ring that has one; and the most.
const SMALLEST_FRONT: u64 = 32;
const LARGEST_FRONT: u64 = 256;
/// The most cells of a ring.
const MOST: u64 = 1 << 16;

impl Size {
    pub(in super::super) const fn of(cells: u64) -> Size {
        assert!(cells.is_power_of_two() && cells <= MOST);
        Size {
            mask: cells - 1,
            shift: cells.trailing_zeros(),
            front: match cells {
                0..SMALLEST_FRONT => cells,
                _ if cells < 8 * SMALLEST_FRONT => SMALLEST_FRONT,
                _ if cells < 8 * LARGEST_FRONT => cells / 8,
                _ => LARGEST_FRONT,
            },
        }
    }

    #[inline(always)]
    pub(in super::super) const fn cells(self) -> u64 {
        self.mask + 1
    }

    #[inline(always)]
    pub(in super::super) const fn bytes(self) -> usize {
        self.cells() as usize * CELL
    }

    /// Where records of so many cells end: at the front, or if they are long, where three of them have room. With two,
    /// 16 KiB in two records take a tenth longer; with four, 4 KiB do.
    #[inline(always)]
    pub(super) fn end_for(self, need: u64) -> u64 {
        (3 * need).max(self.front).min(self.cells())
    }

    /// The cells to skip before a record, so that it begins where it may and ends no further than `end`, or begins at
    /// cell 0.
    #[inline(always)]
    pub(super) fn skip(self, start: u64, need: u64, end: u64) -> u64 {
        let pad = pad(start, need);
        if start + pad + need > end {
            self.cells() - start
        } else {
            pad
        }
    }

    /// The cell of a position, which counts all cells since the ring began.
    #[inline(always)]
    pub(in super::super) fn cell(self, position: u64) -> u64 {
        position & self.mask
    }

    /// The lap of a position, shifted to its place in a control word: control words of earlier laps are less than this.
    #[inline(always)]
    pub(super) fn lap(self, position: u64) -> u64 {
        ((position >> self.shift) + 1) << LAP_SHIFT
    }
}

/// The cells to skip so that a record of more than one begins with a line.
#[inline(always)]
pub(super) fn pad(start: u64, need: u64) -> u64 {
    if need > 1 { start & 1 } else { 0 }
}

/// The longest body for which there is always room once the consumer has taken everything; a longer one fits only where
/// it needs no skip. At least three quarters are free then, as up to a quarter (of the front) is not given back yet,
/// and a record, a skip before it and a free cell behind it must fit there. No control word tells of one above `LEN`.
pub(in super::super) const fn longest(cells: u64) -> usize {
    let lines = (cells / 4 * 3 - 1) / 4;
    let bytes = lines.saturating_sub(1) * LINE as u64;
    (if bytes < LEN { bytes } else { LEN }) as usize
}

const _: () = assert!(MOST - 1 <= LEN);

/// Room for one record, which the consumer cannot read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Slot {
    pub record: Record,
    /// The cells that are skipped before it.
    pub(super) skip: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Record {
    /// Its first cell.
    pub cell: u64,
    pub form: Form,
    pub len: usize,
    pub(super) cells: u64,
}

/// The other side wrote a word that the protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Broken;

/// The control word of a record, without its lap.
#[inline(always)]
pub(super) fn encode(record: Record) -> u64 {
    let kind = if record.form == Form::HalfLine {
        HALF_LINE
    } else {
        RECORD
    };
    kind | record.len as u64
}

/// The record that a control word of this lap tells of.
#[inline(always)]
pub(super) fn decode(size: Size, cell: u64, word: u64, lap: u64) -> Result<Record, Broken> {
    // If the word is no record of this lap, bits above the length are left.
    let len_if_half = (word ^ (lap | HALF_LINE)) as usize;
    let len = (word ^ (lap | RECORD)) as usize;
    let (form, len) = match (len_if_half, len) {
        (..=Form::HALF_LINE_MOST, _) => (Form::HalfLine, len_if_half),
        _ if cell % 2 != 0 => return Err(Broken),
        (_, ..=Form::ONE_LINE_MOST) => (Form::OneLine, len),
        _ if len > LEN as usize || cell + Form::Lines.cells(len) > size.cells() => return Err(Broken),
        _ => (Form::Lines, len),
    };
    let cells = form.cells(len);
    Ok(Record { cell, form, len, cells })
}

/// The same, if it is one of a line or less.
#[inline(always)]
pub(super) fn decode_short(cell: u64, word: u64, lap: u64) -> Option<Record> {
    let len_if_half = (word ^ (lap | HALF_LINE)) as usize;
    if len_if_half <= Form::HALF_LINE_MOST {
        return Some(Record {
            cell,
            form: Form::HalfLine,
            len: len_if_half,
            cells: 1,
        });
    }
    let len = (word ^ (lap | RECORD)) as usize;
    (len <= Form::ONE_LINE_MOST && cell % 2 == 0).then_some(Record {
        cell,
        form: Form::OneLine,
        len,
        cells: 2,
    })
}
