//! Values that are easily got wrong.

use super::execute;
use super::values::{nearest, table};
use crate::mem::atomic::complex::Real;
use crate::mem::atomic::element::{Element, Number};
use crate::mem::atomic::long_double::LongDouble;
use crate::mem::atomic::small::{Brain, E4m3, E5m2, Format, Half, Small};
use crate::mem::atomic::*;

/// All pairs of an 8-bit type, against the nearest number by looking.
fn all_pairs<F: Format<Raw = u8>>(datatype: Datatype, infinite: bool) {
    let table = table(datatype);
    let number = |bits: u8| {
        let size = table.get(usize::from(bits & 0x7f)).copied().unwrap_or(f64::NAN);
        if bits >> 7 == 1 { -size } else { size }
    };
    for a in 0..=255u8 {
        for b in 0..=255u8 {
            let (x, y) = (Small::<F>::new(a), Small::<F>::new(b));
            for (got, value) in [
                (x.sum(y), number(a) + number(b)),
                (x.diff(y), number(a) - number(b)),
                (x.prod(y), number(a) * number(b)),
            ] {
                if value.is_nan() {
                    assert!(number(got.word()).is_nan(), "{a:x} {b:x}");
                } else {
                    let sign = u8::from(value.is_sign_negative()) << 7;
                    assert_eq!(got.word(), sign | nearest(table, infinite, value) as u8, "{a:x} {b:x}");
                }
            }
            assert_eq!(x == y, number(a) == number(b));
            assert_eq!(x < y, number(a) < number(b));
        }
    }
}

#[test]
fn eight_bits_whole() {
    all_pairs::<E4m3>(Datatype::Float8E4m3, false);
    all_pairs::<E5m2>(Datatype::Float8E5m2, true);
}

/// Each number, the middles between neighbours, and what lies just beside the middles.
fn all_roundings<F: Format<Raw = u16>>(datatype: Datatype) {
    let table = table(datatype);
    let round = |value: f32| Small::<F>::round(value).word();
    for (bits, pair) in table.windows(2).enumerate().filter(|(_, pair)| pair[1].is_finite()) {
        let middle = ((pair[0] + pair[1]) / 2.0) as f32;
        let (bits, even) = (bits as u16, (bits + bits % 2) as u16);
        assert_eq!((round(middle), round(-middle)), (even, even | 0x8000));
        assert_eq!((round(middle.next_down()), round(middle.next_up())), (bits, bits + 1));
    }
    for bits in 0..=u16::MAX {
        let value = Small::<F>::new(bits).value();
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        match table.get(usize::from(bits & 0x7fff)) {
            Some(number) => assert_eq!((f64::from(value), round(value)), (sign * number, bits)),
            None => assert!(value.is_nan() && round(value) & 0x7fff >= table.len() as u16),
        }
    }
}

#[test]
fn sixteen_bits_round_to_the_nearest() {
    all_roundings::<Half>(Datatype::Float16);
    all_roundings::<Brain>(Datatype::Bfloat16);
}

#[test]
fn too_large_is_infinite_or_nan() {
    assert_eq!(Small::<Half>::round(65519.0).word(), 0x7bff);
    assert_eq!(Small::<Half>::round(65520.0).word(), 0x7c00);
    assert_eq!(Small::<Half>::round(f32::NEG_INFINITY).word(), 0xfc00);
    assert_eq!(Small::<Brain>::round(f32::MAX).word(), 0x7f80);
    assert_eq!(Small::<E4m3>::round(464.0).word(), 0x7e);
    assert_eq!(Small::<E4m3>::round(464.1).word(), 0x7f);
    assert_eq!(Small::<E4m3>::round(f32::NEG_INFINITY).word(), 0xff);
    assert_eq!(Small::<E5m2>::round(61440.0).word(), 0x7c);
    assert_eq!(Small::<E5m2>::round(61439.0).word(), 0x7b);
}

/// What the C standard says of infinities in products (Annex G.5.1), for all three sizes.
#[test]
fn complex_products_know_infinity() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let infinite = [
        ([inf, nan], [1.0, 0.0]),
        ([nan, inf], [0.0, -2.0]),
        ([inf, inf], [1.0, 1.0]),
        ([2.0, 3.0], [inf, nan]),
        ([inf, 0.0], [nan, inf]),
    ];
    let long = |pair: [f64; 2]| {
        pair.map(|x| {
            let bytes = super::values::encode(Datatype::LongDouble, super::values::Value::Real(x));
            LongDouble::from_word(u128::from_ne_bytes(bytes.try_into().unwrap()))
        })
    };
    let long_infinite = |x: LongDouble| x == long([inf, -inf])[0] || x == long([inf, -inf])[1];
    for (a, b) in infinite {
        for (a, b) in [(a, b), (b, a)] {
            assert!(f64::complex_prod(a, b).iter().any(|x| x.is_infinite()), "{a:?} {b:?}");
            let (x, y) = (a.map(|x| x as f32), b.map(|x| x as f32));
            assert!(f32::complex_prod(x, y).iter().any(|x| x.is_infinite()), "{a:?} {b:?}");
            assert!(
                LongDouble::complex_prod(long(a), long(b))
                    .into_iter()
                    .any(long_infinite),
                "{a:?} {b:?}"
            );
        }
    }
    let finite = [1e200, 1e200];
    assert!(f64::complex_prod(finite, finite).iter().any(|x| x.is_infinite()));
    for (a, b) in [([nan, 1.0], [1.0, 1.0]), ([0.0, 0.0], [inf, nan])] {
        assert!(f64::complex_prod(a, b).iter().all(|x| x.is_nan()), "{a:?} {b:?}");
        assert!(
            LongDouble::complex_prod(long(a), long(b)).iter().all(|x| x != x),
            "{a:?} {b:?}"
        );
    }
    assert_eq!(f64::complex_prod([1.0, 2.0], [3.0, -4.0]), [11.0, 2.0]);
}

/// Bits beyond those of a double are kept: 2^63 + 1 is a long double.
#[cfg(target_arch = "x86_64")]
#[test]
fn long_doubles_are_long() {
    let number = |mantissa: u64, exponent: u128| LongDouble::from_word(u128::from(mantissa) | exponent << 64);
    let (one, large) = (number(1 << 63, 16383), number(1 << 63, 16383 + 63));
    assert_eq!(
        large.sum(one).word() & (u128::MAX >> 48),
        number(1 << 63 | 1, 16383 + 63).word()
    );
    assert!(large.sum(one) > large);
    // What is not part of the value stays as it was at the target.
    let padded = LongDouble::from_word(one.word() | 0xabcd << 112);
    assert!(padded == one);
    assert_eq!(padded.sum(one).word() >> 80, padded.word() >> 80);
}

/// A NaN that is only moved keeps its bits.
#[test]
fn bits_are_moved_unchanged() {
    for (datatype, bits) in [(Datatype::Float, 0xffa0_1234u32), (Datatype::Float16, 0xfdff_7c01)] {
        let operand = bits.to_ne_bytes();
        let (mut target, mut answer) = (super::Place::new(0, &[0; 4]), [0; 4]);
        let buf = target.buf();
        execute(Op::Write, datatype, Form::Base, buf, &operand, &[], &mut []).unwrap();
        assert_eq!(target.bytes(), operand);
        execute(Op::CswapNe, datatype, Form::Compare, buf, &[0; 4], &[0; 4], &mut answer).unwrap();
        assert_eq!((answer, target.bytes()), (operand, &[0; 4][..]));
        execute(
            Op::CswapNe,
            datatype,
            Form::Compare,
            buf,
            &operand,
            &[1; 4],
            &mut answer,
        )
        .unwrap();
        assert_eq!(target.bytes(), operand);
        execute(Op::Read, datatype, Form::Fetch, buf, &[], &[], &mut answer).unwrap();
        assert_eq!(answer, operand);
    }
}
