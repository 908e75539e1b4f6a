//! Element types, operations and forms of call of fi_atomic(3), and which may be combined.
//!
//! The numbers are those of `fi_datatype` and `fi_op`. This room must not use the C types, so they are defined again
//! here; a test compares them.

/// The class of a type decides which operations it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Int,
    Float,
    Complex,
}

/// `fi_datatype`, without FI_VOID, which has no elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Datatype {
    Int8 = 0,
    Uint8 = 1,
    Int16 = 2,
    Uint16 = 3,
    Int32 = 4,
    Uint32 = 5,
    Int64 = 6,
    Uint64 = 7,
    Float = 8,
    Double = 9,
    FloatComplex = 10,
    DoubleComplex = 11,
    LongDouble = 12,
    LongDoubleComplex = 13,
    Int128 = 14,
    Uint128 = 15,
    Float16 = 16,
    Bfloat16 = 17,
    Float8E4m3 = 18,
    Float8E5m2 = 19,
}

/// The bytes of the largest element.
pub const SIZE_MAX: usize = 32;

impl Datatype {
    /// Each at the place of its number.
    pub const ALL: [Datatype; 20] = {
        use Datatype::*;
        [
            Int8,
            Uint8,
            Int16,
            Uint16,
            Int32,
            Uint32,
            Int64,
            Uint64,
            Float,
            Double,
            FloatComplex,
            DoubleComplex,
            LongDouble,
            LongDoubleComplex,
            Int128,
            Uint128,
            Float16,
            Bfloat16,
            Float8E4m3,
            Float8E5m2,
        ]
    };

    pub fn from_raw(raw: u32) -> Option<Datatype> {
        Self::ALL.get(usize::try_from(raw).ok()?).copied()
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        use Datatype::*;
        match self {
            Int8 | Uint8 | Float8E4m3 | Float8E5m2 => 1,
            Int16 | Uint16 | Float16 | Bfloat16 => 2,
            Int32 | Uint32 | Float => 4,
            Int64 | Uint64 | Double | FloatComplex => 8,
            Int128 | Uint128 | LongDouble | DoubleComplex => 16,
            LongDoubleComplex => 32,
        }
    }

    pub const fn class(self) -> Class {
        use Datatype::*;
        match self {
            Int8 | Uint8 | Int16 | Uint16 | Int32 | Uint32 | Int64 | Uint64 | Int128 | Uint128 => Class::Int,
            Float | Double | LongDouble | Float16 | Bfloat16 | Float8E4m3 | Float8E5m2 => Class::Float,
            FloatComplex | DoubleComplex | LongDoubleComplex => Class::Complex,
        }
    }
}

/// `fi_op`, without FI_NOOP, which is for triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    Min = 0,
    Max = 1,
    Sum = 2,
    Prod = 3,
    Lor = 4,
    Land = 5,
    Bor = 6,
    Band = 7,
    Lxor = 8,
    Bxor = 9,
    Read = 10,
    Write = 11,
    Cswap = 12,
    CswapNe = 13,
    CswapLe = 14,
    CswapLt = 15,
    CswapGe = 16,
    CswapGt = 17,
    Mswap = 18,
    Diff = 19,
}

impl Op {
    /// Each at the place of its number.
    pub const ALL: [Op; 20] = {
        use Op::*;
        [
            Min, Max, Sum, Prod, Lor, Land, Bor, Band, Lxor, Bxor, Read, Write, Cswap, CswapNe, CswapLe, CswapLt,
            CswapGe, CswapGt, Mswap, Diff,
        ]
    };

    pub fn from_raw(raw: u32) -> Option<Op> {
        Self::ALL.get(usize::try_from(raw).ok()?).copied()
    }
}

/// The three families of atomic calls, by what they return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// Nothing: fi_atomic.
    Base = 0,
    /// The old values: fi_fetch_atomic.
    Fetch = 1,
    /// The old values, and has a second operand to compare with: fi_compare_atomic.
    Compare = 2,
}

impl Form {
    pub const ALL: [Form; 3] = [Form::Base, Form::Fetch, Form::Compare];
}

/// By form and op: a bit for each type that `valid` allows with both.
const VALID: [[u32; Op::ALL.len()]; Form::ALL.len()] = {
    const TYPES: usize = Datatype::ALL.len();
    let mut table = [[0; Op::ALL.len()]; Form::ALL.len()];
    let mut at = 0;
    while at < Form::ALL.len() * Op::ALL.len() * TYPES {
        let (row, datatype) = (at / TYPES, at % TYPES);
        let (form, op) = (row / Op::ALL.len(), row % Op::ALL.len());
        if valid(Form::ALL[form], Op::ALL[op], Datatype::ALL[datatype]) {
            table[form][op] |= 1 << datatype;
        }
        at += 1;
    }
    table
};

/// Whether fi_atomic(3) allows the three together. Complex numbers have no order, and only integers have bitwise
/// operations.
pub(super) const fn valid(form: Form, op: Op, datatype: Datatype) -> bool {
    use Op::*;
    let fits_form = match op {
        Read => matches!(form, Form::Fetch),
        Cswap | CswapNe | CswapLe | CswapLt | CswapGe | CswapGt | Mswap => matches!(form, Form::Compare),
        _ => !matches!(form, Form::Compare),
    };
    let class = datatype.class();
    let fits_type = match op {
        Min | Max | CswapLe | CswapLt | CswapGe | CswapGt => !matches!(class, Class::Complex),
        Bor | Band | Bxor | Mswap => matches!(class, Class::Int),
        Sum | Prod | Diff | Lor | Land | Lxor | Read | Write | Cswap | CswapNe => true,
    };
    fits_form && fits_type
}

/// An operation on a type in a form of call. Only combinations that fi_atomic(3) allows can be made, so whoever has one
/// need not check again.
///
/// Form, op and datatype lie in one word, from the lowest byte on. As three fields they are written one by one and
/// copied together, and a processor that reads at once what was written in parts waits: 10 ns for each fi_fetch_atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicOp(u32);

impl AtomicOp {
    /// None if fi_atomic(3) does not allow the combination.
    #[inline(always)]
    pub const fn new(form: Form, op: Op, datatype: Datatype) -> Option<AtomicOp> {
        if VALID[form as usize][op as usize] & (1 << datatype as u32) != 0 {
            Some(AtomicOp(form as u32 | (op as u32) << 8 | (datatype as u32) << 16))
        } else {
            None
        }
    }

    /// The same from the numbers of `fi_op` and `fi_datatype`.
    #[inline(always)]
    pub fn from_raw(form: Form, op: u32, datatype: u32) -> Option<AtomicOp> {
        AtomicOp::new(form, Op::from_raw(op)?, Datatype::from_raw(datatype)?)
    }

    #[inline(always)]
    pub const fn form(self) -> Form {
        // SAFETY: `new` put the number of a form there.
        unsafe { core::mem::transmute::<u8, Form>(self.0 as u8) }
    }

    #[inline(always)]
    pub const fn op(self) -> Op {
        // SAFETY: `new` put the number of an op there.
        unsafe { core::mem::transmute::<u8, Op>((self.0 >> 8) as u8) }
    }

    #[inline(always)]
    pub const fn datatype(self) -> Datatype {
        // SAFETY: `new` put the number of a datatype there.
        unsafe { core::mem::transmute::<u8, Datatype>((self.0 >> 16) as u8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::*;

    #[test]
    fn numbers_are_those_of_the_abi() {
        let datatypes = [
            (Datatype::Int8, FI_INT8, 1),
            (Datatype::Uint8, FI_UINT8, 1),
            (Datatype::Int16, FI_INT16, 2),
            (Datatype::Uint16, FI_UINT16, 2),
            (Datatype::Int32, FI_INT32, 4),
            (Datatype::Uint32, FI_UINT32, 4),
            (Datatype::Int64, FI_INT64, 8),
            (Datatype::Uint64, FI_UINT64, 8),
            (Datatype::Float, FI_FLOAT, 4),
            (Datatype::Double, FI_DOUBLE, 8),
            (Datatype::FloatComplex, FI_FLOAT_COMPLEX, 8),
            (Datatype::DoubleComplex, FI_DOUBLE_COMPLEX, 16),
            (Datatype::LongDouble, FI_LONG_DOUBLE, 16),
            (Datatype::LongDoubleComplex, FI_LONG_DOUBLE_COMPLEX, 32),
            (Datatype::Int128, FI_INT128, 16),
            (Datatype::Uint128, FI_UINT128, 16),
            (Datatype::Float16, FI_FLOAT16, 2),
            (Datatype::Bfloat16, FI_BFLOAT16, 2),
            (Datatype::Float8E4m3, FI_FLOAT8_E4M3, 1),
            (Datatype::Float8E5m2, FI_FLOAT8_E5M2, 1),
        ];
        assert_eq!(datatypes.map(|(datatype, ..)| datatype), Datatype::ALL);
        for (datatype, raw, size) in datatypes {
            assert_eq!(datatype as u32, raw);
            assert_eq!(Datatype::from_raw(raw), Some(datatype));
            assert_eq!(datatype.size(), size);
            assert!(size <= SIZE_MAX);
        }
        let ops = [
            (Op::Min, FI_MIN),
            (Op::Max, FI_MAX),
            (Op::Sum, FI_SUM),
            (Op::Prod, FI_PROD),
            (Op::Lor, FI_LOR),
            (Op::Land, FI_LAND),
            (Op::Bor, FI_BOR),
            (Op::Band, FI_BAND),
            (Op::Lxor, FI_LXOR),
            (Op::Bxor, FI_BXOR),
            (Op::Read, FI_ATOMIC_READ),
            (Op::Write, FI_ATOMIC_WRITE),
            (Op::Cswap, FI_CSWAP),
            (Op::CswapNe, FI_CSWAP_NE),
            (Op::CswapLe, FI_CSWAP_LE),
            (Op::CswapLt, FI_CSWAP_LT),
            (Op::CswapGe, FI_CSWAP_GE),
            (Op::CswapGt, FI_CSWAP_GT),
            (Op::Mswap, FI_MSWAP),
            (Op::Diff, FI_DIFF),
        ];
        assert_eq!(ops.map(|(op, _)| op), Op::ALL);
        for (op, raw) in ops {
            assert_eq!(op as u32, raw);
            assert_eq!(Op::from_raw(raw), Some(op));
        }
        for raw in [20, FI_VOID, FI_NOOP, u32::MAX] {
            assert_eq!((Datatype::from_raw(raw), Op::from_raw(raw)), (None, None));
        }
    }

    #[test]
    fn each_op_has_its_kinds_and_types() {
        // By op: kinds, then how many of the twenty types.
        let rows = [
            (Op::Min, "BF", 17),
            (Op::Max, "BF", 17),
            (Op::Sum, "BF", 20),
            (Op::Prod, "BF", 20),
            (Op::Lor, "BF", 20),
            (Op::Land, "BF", 20),
            (Op::Bor, "BF", 10),
            (Op::Band, "BF", 10),
            (Op::Lxor, "BF", 20),
            (Op::Bxor, "BF", 10),
            (Op::Read, "F", 20),
            (Op::Write, "BF", 20),
            (Op::Cswap, "C", 20),
            (Op::CswapNe, "C", 20),
            (Op::CswapLe, "C", 17),
            (Op::CswapLt, "C", 17),
            (Op::CswapGe, "C", 17),
            (Op::CswapGt, "C", 17),
            (Op::Mswap, "C", 10),
            (Op::Diff, "BF", 20),
        ];
        for (op, kinds, types) in rows {
            for (form, letter) in [(Form::Base, 'B'), (Form::Fetch, 'F'), (Form::Compare, 'C')] {
                let count = Datatype::ALL
                    .iter()
                    .filter(|datatype| AtomicOp::new(form, op, **datatype).is_some())
                    .count();
                assert_eq!(count, if kinds.contains(letter) { types } else { 0 }, "{op:?} {form:?}");
            }
        }
        assert!(!valid(Form::Base, Op::Min, Datatype::FloatComplex));
        assert!(!valid(Form::Base, Op::Bor, Datatype::Float));
        assert!(valid(Form::Compare, Op::CswapLe, Datatype::LongDouble));
    }
}
