//! Elements as plain values: integers in i128, real numbers in f64. Written apart from the kernels and in another way.

use std::sync::OnceLock;

use crate::mem::atomic::{Class, Datatype, Op};

#[derive(Clone, Copy, Debug)]
pub enum Value {
    Int(i128),
    Real(f64),
    Pair(f64, f64),
}

use Value::*;

/// Exponent and mantissa bits, and whether there is an infinity.
fn small(datatype: Datatype) -> Option<(u32, u32, bool)> {
    match datatype {
        Datatype::Float16 => Some((5, 10, true)),
        Datatype::Bfloat16 => Some((8, 7, true)),
        Datatype::Float8E4m3 => Some((4, 3, false)),
        Datatype::Float8E5m2 => Some((5, 2, true)),
        _ => None,
    }
}

/// All numbers of a small type that are not negative, infinity last if there is one; the place is the bits.
pub fn table(datatype: Datatype) -> &'static [f64] {
    static TABLES: [OnceLock<Vec<f64>>; 4] = [const { OnceLock::new() }; 4];
    TABLES[datatype as usize - Datatype::Float16 as usize].get_or_init(|| numbers(datatype))
}

fn numbers(datatype: Datatype) -> Vec<f64> {
    let (exponent, mantissa, infinite) = small(datatype).unwrap();
    let bias = (1 << (exponent - 1)) - 1;
    let last = if infinite {
        ((1 << exponent) - 1) << mantissa
    } else {
        (1 << (exponent + mantissa)) - 1
    };
    let number = |bits: u32| {
        let (power, part) = (
            (bits >> mantissa) as i32,
            f64::from(bits % (1 << mantissa)) / f64::from(1 << mantissa),
        );
        match power {
            0 => part * 2f64.powi(1 - bias),
            _ => (1.0 + part) * 2f64.powi(power - bias),
        }
    };
    let infinity = infinite.then_some(f64::INFINITY);
    (0..last).map(number).chain(infinity).collect()
}

/// The bits of the number of a small type that is nearest, as the table has them.
pub fn nearest(table: &[f64], infinite: bool, value: f64) -> u32 {
    let numbers = if infinite { &table[..table.len() - 1] } else { table };
    let size = value.abs();
    let above = numbers.partition_point(|number| *number < size);
    let last = numbers.len() - 1;
    let step = numbers[last] - numbers[last - 1];
    let too_large = size > numbers[last] + step / 2.0 || size == numbers[last] + step / 2.0 && last % 2 == 1;
    if too_large {
        return last as u32 + 1;
    }
    if above == 0 || above > last {
        return above.min(last) as u32;
    }
    let (down, up) = (size - numbers[above - 1], numbers[above] - size);
    let even = if above % 2 == 0 { above } else { above - 1 };
    (if down < up {
        above - 1
    } else if up < down {
        above
    } else {
        even
    }) as u32
}

fn small_encode(datatype: Datatype, value: f64) -> u32 {
    let (exponent, mantissa, infinite) = small(datatype).unwrap();
    let sign = u32::from(value.is_sign_negative()) << (exponent + mantissa);
    let size = match value.is_nan() {
        true => (1 << (exponent + mantissa)) - 1,
        false => nearest(table(datatype), infinite, value),
    };
    sign | size
}

fn small_decode(datatype: Datatype, bits: u32) -> f64 {
    let (exponent, mantissa, _) = small(datatype).unwrap();
    let sign = 1 << (exponent + mantissa);
    let size = table(datatype).get((bits & (sign - 1)) as usize).copied();
    size.unwrap_or(f64::NAN)
        .copysign(if bits & sign == 0 { 1.0 } else { -1.0 })
}

/// The ten bytes of x87 for an f64 that is zero, normal, infinite or NaN; and back when it is one of those.
#[cfg(target_arch = "x86_64")]
fn extended(value: f64) -> [u8; 16] {
    let bits = value.to_bits();
    let (exponent, part) = (bits >> 52 & 0x7ff, bits << 12 >> 12);
    let (exponent, mantissa) = match exponent {
        0 => (0, 0),
        0x7ff => (0x7fff, 1 << 63 | part << 11),
        _ => (exponent + 16383 - 1023, 1 << 63 | part << 11),
    };
    let all = u128::from(mantissa) | u128::from(exponent | bits >> 63 << 15) << 64;
    all.to_le_bytes()
}

#[cfg(target_arch = "x86_64")]
fn from_extended(bytes: &[u8]) -> f64 {
    let mantissa = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let top = u16::from_le_bytes(bytes[8..10].try_into().unwrap());
    let size = match top & 0x7fff {
        0x7fff if mantissa << 1 != 0 => f64::NAN,
        0x7fff => f64::INFINITY,
        exponent => mantissa as f64 * 2f64.powi(i32::from(exponent) - 16383 - 63),
    };
    size.copysign(if top >> 15 == 0 { 1.0 } else { -1.0 })
}

/// Which bytes of an element carry its value.
pub fn carries(datatype: Datatype, byte: usize) -> bool {
    let long = matches!(datatype, Datatype::LongDouble | Datatype::LongDoubleComplex);
    !(cfg!(target_arch = "x86_64") && long) || byte % 16 < 10
}

fn half(datatype: Datatype) -> Datatype {
    match datatype {
        Datatype::FloatComplex => Datatype::Float,
        Datatype::DoubleComplex => Datatype::Double,
        _ => Datatype::LongDouble,
    }
}

pub fn signed(datatype: Datatype) -> bool {
    use Datatype::*;
    matches!(datatype, Int8 | Int16 | Int32 | Int64 | Int128)
}

pub fn encode(datatype: Datatype, value: Value) -> Vec<u8> {
    let size = datatype.size();
    match (value, datatype) {
        (Int(x), _) if datatype.class() == Class::Int => x.to_ne_bytes()[..size].to_vec(),
        (Int(x), _) => encode(datatype, Real(x as f64)),
        (Real(x), Datatype::Float) => (x as f32).to_ne_bytes().to_vec(),
        (Real(x), Datatype::Double) => x.to_ne_bytes().to_vec(),
        (Real(x), Datatype::LongDouble) => extended(x).to_vec(),
        (Real(x), _) if datatype.class() == Class::Complex => encode(datatype, Pair(x, 0.0)),
        (Real(x), _) => small_encode(datatype, x).to_ne_bytes()[..size].to_vec(),
        (Pair(x, y), _) => [x, y].iter().flat_map(|x| encode(half(datatype), Real(*x))).collect(),
    }
}

pub fn decode(datatype: Datatype, bytes: &[u8]) -> Value {
    let mut wide = [if signed(datatype) && bytes[bytes.len() - 1] >> 7 == 1 {
        0xff
    } else {
        0
    }; 16];
    if bytes.len() <= 16 {
        wide[..bytes.len()].copy_from_slice(bytes);
    }
    match datatype {
        Datatype::Float => Real(f32::from_ne_bytes(bytes.try_into().unwrap()).into()),
        Datatype::Double => Real(f64::from_ne_bytes(bytes.try_into().unwrap())),
        Datatype::LongDouble => Real(from_extended(bytes)),
        _ if datatype.class() == Class::Complex => {
            let [x, y] = [0, bytes.len() / 2].map(|at| decode(half(datatype), &bytes[at..at + bytes.len() / 2]));
            let (Real(x), Real(y)) = (x, y) else {
                panic!("halves are real")
            };
            Pair(x, y)
        }
        _ if datatype.class() == Class::Int => Int(i128::from_ne_bytes(wide)),
        _ => Real(small_decode(datatype, u128::from_ne_bytes(wide) as u32)),
    }
}

/// Whether the bytes are this value: any NaN for NaN, otherwise the same bits where they count.
pub fn is(datatype: Datatype, bytes: &[u8], value: &[u8]) -> bool {
    let nan = |bytes: &[u8]| matches!(decode(datatype, bytes), Real(x) if x.is_nan());
    if datatype.class() == Class::Complex {
        let mut halves = bytes.chunks(bytes.len() / 2).zip(value.chunks(bytes.len() / 2));
        return halves.all(|(bytes, value)| is(half(datatype), bytes, value));
    }
    nan(bytes) && nan(value) || (0..bytes.len()).all(|byte| bytes[byte] == value[byte] || !carries(datatype, byte))
}

/// The element after the operation, by the expressions on the page.
pub fn after(op: Op, datatype: Datatype, old: &[u8], operand: &[u8], compare: &[u8]) -> Vec<u8> {
    let bits = |f: fn(u8, u8, u8) -> u8| (0..old.len()).map(|at| f(old[at], operand[at], compare[at])).collect();
    let [a, b, c] = [old, operand, compare].map(|bytes| decode(datatype, bytes));
    let choose = |yes: bool| if yes { operand.to_vec() } else { old.to_vec() };
    let truth = |yes: bool| encode(datatype, Int(yes.into()));
    match op {
        Op::Bor => bits(|a, b, _| a | b),
        Op::Band => bits(|a, b, _| a & b),
        Op::Bxor => bits(|a, b, _| a ^ b),
        Op::Mswap => bits(|a, b, c| b & c | a & !c),
        Op::Read => old.to_vec(),
        Op::Write => operand.to_vec(),
        Op::Min => choose(less(datatype, b, a)),
        Op::Max => choose(less(datatype, a, b)),
        Op::Cswap => choose(equal(c, a)),
        Op::CswapNe => choose(!equal(c, a)),
        Op::CswapLe => choose(less(datatype, c, a) || equal(c, a)),
        Op::CswapLt => choose(less(datatype, c, a)),
        Op::CswapGe => choose(less(datatype, a, c) || equal(c, a)),
        Op::CswapGt => choose(less(datatype, a, c)),
        Op::Lor => truth(holds(a) || holds(b)),
        Op::Land => truth(holds(a) && holds(b)),
        Op::Lxor => truth(holds(a) && !holds(b) || !holds(a) && holds(b)),
        Op::Sum | Op::Diff | Op::Prod => encode(datatype, sum(op, a, b)),
    }
}

fn sum(op: Op, a: Value, b: Value) -> Value {
    let real = |x: f64, y: f64| match op {
        Op::Sum => x + y,
        Op::Diff => x - y,
        _ => x * y,
    };
    match (a, b) {
        (Int(x), Int(y)) => Int(match op {
            Op::Sum => x.wrapping_add(y),
            Op::Diff => x.wrapping_sub(y),
            _ => x.wrapping_mul(y),
        }),
        (Real(x), Real(y)) => Real(real(x, y)),
        (Pair(x, y), Pair(u, v)) if op == Op::Prod => Pair(x * u - y * v, x * v + y * u),
        (Pair(x, y), Pair(u, v)) => Pair(real(x, u), real(y, v)),
        _ => panic!("two classes"),
    }
}

fn holds(value: Value) -> bool {
    !equal(value, Int(0)) && !equal(value, Real(0.0)) && !equal(value, Pair(0.0, 0.0))
}

fn equal(a: Value, b: Value) -> bool {
    match (a, b) {
        (Int(x), Int(y)) => x == y,
        (Real(x), Real(y)) => x == y,
        (Pair(x, y), Pair(u, v)) => x == u && y == v,
        _ => false,
    }
}

fn less(datatype: Datatype, a: Value, b: Value) -> bool {
    match (a, b) {
        (Int(x), Int(y)) if signed(datatype) => x < y,
        (Int(x), Int(y)) => (x as u128) < y as u128,
        (Real(x), Real(y)) => x < y,
        _ => panic!("no order"),
    }
}
