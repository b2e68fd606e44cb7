//! Values and the bits of elements, converted in the slow and obvious way: integers in `i128`,
//! floats in `f64`, with one rounding, and without bit tricks of the crate.

use ferrox_core::{DType, Kind};

/// The value of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Integer(i128),
    Real(f64),
    Complex(f64, f64),
}

impl Number {
    /// The real part as an `f64`.
    pub fn re(self) -> f64 {
        match self {
            Number::Integer(i) => i as f64,
            Number::Real(x) | Number::Complex(x, _) => x,
        }
    }

    pub fn im(self) -> f64 {
        if let Number::Complex(_, im) = self { im } else { 0.0 }
    }

    pub fn integer(self) -> i128 {
        let Number::Integer(i) = self else { panic!("{self:?} is not an integer") };
        i
    }

    pub fn negated(self) -> Self {
        match self {
            Number::Integer(i) => Number::Integer(-i),
            Number::Real(x) => Number::Real(-x),
            Number::Complex(re, im) => Number::Complex(-re, -im),
        }
    }

    pub fn is_nan(self) -> bool {
        self.re().is_nan() || self.im().is_nan()
    }

    pub fn is_zero(self) -> bool {
        self.re() == 0.0 && self.im() == 0.0
    }
}

/// The smallest and the largest value of an integer type.
pub fn bounds(dtype: DType) -> (i128, i128) {
    let bits = dtype.bits();
    match dtype.kind() {
        Kind::Unsigned => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

/// A binary float format: the number of significand bits including the implicit one, the exponent
/// of the smallest normal value, and the largest value.
struct Format {
    precision: i32,
    smallest: i32,
    largest: f64,
}

fn format(dtype: DType) -> Format {
    let (precision, smallest, largest) = match dtype {
        DType::F8 => (3, -14, 57344.0),
        DType::F8E4M3FN => (4, -6, 448.0),
        DType::F16 => (11, -14, 65504.0),
        DType::BF16 => (8, -126, 255.0 * 2f64.powi(120)),
        DType::F32 | DType::C64 => (24, -126, f64::from(f32::MAX)),
        DType::F64 | DType::C128 => (53, -1022, f64::MAX),
        integer => unreachable!("{integer} is no float"),
    };
    Format { precision, smallest, largest }
}

/// The type of the parts of a complex type. Other types are returned unchanged.
fn part(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    }
}

/// Returns the largest finite value of a float type, the smallest normal value and the smallest
/// positive value.
pub fn landmarks(dtype: DType) -> [f64; 3] {
    let Format { precision, smallest, largest } = format(dtype);
    [largest, 2f64.powi(smallest), 2f64.powi(smallest) * 2f64.powi(1 - precision)]
}

/// The exponent of a positive value: that of the greatest power of two that isn't larger.
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52) as i32 - 1023).max(-1023)
}

/// Rounds to a float type, ties to even.
fn round(x: f64, dtype: DType) -> f64 {
    let Format { precision, smallest, largest } = format(dtype);
    let saturates = dtype == DType::F8E4M3FN;
    if x.is_nan() || precision == 53 || x.is_infinite() && !saturates {
        return x;
    }
    let rounded = if x.is_infinite() {
        f64::INFINITY
    } else {
        let place = exponent(x.abs()).max(smallest) - (precision - 1);
        (x.abs() * 2f64.powi(-place)).round_ties_even() * 2f64.powi(place)
    };
    let past = if saturates { largest } else { f64::INFINITY };
    (if rounded > largest { past } else { rounded }).copysign(x)
}

/// Rounds an integer to a float type, ties to even.
fn round_integer(i: i128, dtype: DType) -> f64 {
    let magnitude = i.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros() as i32 - format(dtype).precision).max(0);
    let (kept, rest) = (magnitude >> excess, magnitude & ((1 << excess) - 1));
    let half = if excess == 0 { u128::MAX } else { 1 << (excess - 1) };
    let up = rest > half || rest == half && kept & 1 == 1;
    let exact = (kept + u128::from(up)) as f64 * 2f64.powi(excess);
    round(if i < 0 { -exact } else { exact }, dtype)
}

/// The bits of a value of a float type.
fn float_bits(x: f64, dtype: DType) -> u128 {
    match dtype {
        DType::F64 => return u128::from(x.to_bits()),
        DType::F32 => return u128::from((x as f32).to_bits()),
        _ => {}
    }
    let Format { precision, smallest, .. } = format(dtype);
    let (top, fraction_bits) = (dtype.bits() - 1, precision - 1);
    let magnitude = if x.is_nan() {
        (1 << top) - 1
    } else if x.is_infinite() {
        ((1 << top) - 1) >> fraction_bits << fraction_bits
    } else if x == 0.0 {
        0
    } else {
        let e = exponent(x.abs()).max(smallest);
        let significand = (x.abs() * 2f64.powi(fraction_bits - e)) as u128;
        // The implicit bit of a normal value adds one to the exponent field.
        (((e - smallest) as u128) << fraction_bits) + significand
    };
    magnitude | u128::from(x.is_sign_negative()) << top
}

/// The value of the bits of a float type.
fn float_value(bits: u128, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => return f64::from_bits(bits as u64),
        DType::F32 => return f64::from(f32::from_bits(bits as u32)),
        _ => {}
    }
    let Format { precision, smallest, largest } = format(dtype);
    let (top, fraction_bits) = (dtype.bits() - 1, precision - 1);
    let magnitude = bits & ((1 << top) - 1);
    let (field, fraction) = (magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1));
    let implicit = u128::from(field > 0) << fraction_bits;
    let place = smallest - fraction_bits + (field as i32 - 1).max(0);
    let x = (fraction + implicit) as f64 * 2f64.powi(place);
    let x = match dtype {
        _ if x <= largest => x,
        DType::F8E4M3FN => f64::NAN,
        _ if fraction == 0 => f64::INFINITY,
        _ => f64::NAN,
    };
    if bits >> top == 1 { -x } else { x }
}

/// The bits of a value that is cast to a type as `Nx.as_type/2` does: integers wrap around, floats
/// round once, and are truncated when they are cast to integers.
pub fn cast(number: Number, dtype: DType) -> u128 {
    if dtype.is_complex() {
        let half = dtype.bits() / 2;
        let re =
            cast(if let Number::Complex(re, _) = number { Number::Real(re) } else { number }, part(dtype));
        return re | cast(Number::Real(number.im()), part(dtype)) << half;
    }
    if !dtype.is_integer() {
        let rounded = match number {
            Number::Integer(i) => round_integer(i, dtype),
            other => round(other.re(), dtype),
        };
        return float_bits(rounded, dtype);
    }
    let (min, max) = bounds(dtype);
    let integer = match number {
        Number::Integer(i) => i,
        other => match other.re().trunc() {
            x if x.is_nan() => 0,
            f64::INFINITY => max,
            f64::NEG_INFINITY => min,
            // From 2^117 on, every f64 is a multiple of 2^64.
            x if x.abs() >= 2f64.powi(117) => 0,
            x => x as i128,
        },
    };
    integer as u128 & ((1 << dtype.bits()) - 1)
}

/// The sum of products for a result of type `out`. The products and sums of integers wrap around.
pub fn sum_of_products(factors: impl Iterator<Item = (Number, Number)>, out: DType) -> Number {
    if out.is_integer() {
        let product = |(a, b): (Number, Number)| a.integer().wrapping_mul(b.integer());
        return Number::Integer(factors.map(product).fold(0, i128::wrapping_add));
    }
    let (re, im) = factors.fold((0.0, 0.0), |(re, im), (a, b)| {
        (re + (a.re() * b.re() - a.im() * b.im()), im + (a.re() * b.im() + a.im() * b.re()))
    });
    if out.is_complex() { Number::Complex(re, im) } else { Number::Real(re) }
}

/// The value of the bits of an element.
pub fn value(bits: u128, dtype: DType) -> Number {
    match dtype.kind() {
        Kind::Unsigned => Number::Integer(bits as i128),
        Kind::Signed => {
            let unused = 128 - dtype.bits();
            Number::Integer((bits << unused) as i128 >> unused)
        }
        Kind::BFloat | Kind::Float => Number::Real(float_value(bits, dtype)),
        Kind::Complex => {
            let half = dtype.bits() / 2;
            let mask = (1 << half) - 1;
            Number::Complex(float_value(bits & mask, part(dtype)), float_value(bits >> half, part(dtype)))
        }
    }
}

/// The bytes of a tensor with these elements: native-endian, or packed from the high bits of each
/// byte to the low ones.
pub fn to_bytes(elements: &[u128], dtype: DType) -> Vec<u8> {
    if dtype.is_packed() {
        let mut bytes = vec![0u8; (elements.len() * dtype.bits()).div_ceil(8)];
        for (i, &element) in elements.iter().enumerate() {
            let end = (i + 1) * dtype.bits();
            bytes[(end - 1) / 8] |= (element as u8) << (8 - ((end - 1) % 8 + 1));
        }
        return bytes;
    }
    let width = part(dtype).bits() / 8;
    let mut bytes = Vec::with_capacity(elements.len() * dtype.bits() / 8);
    for element in elements {
        let little = element.to_le_bytes();
        for part in little[..dtype.bits() / 8].chunks(width) {
            if cfg!(target_endian = "little") {
                bytes.extend(part);
            } else {
                bytes.extend(part.iter().rev());
            }
        }
    }
    bytes
}

/// The elements of a tensor with these bytes.
pub fn from_bytes(bytes: &[u8], dtype: DType, size: usize) -> Vec<u128> {
    if dtype.is_packed() {
        let bit = |i: usize| u128::from(bytes[i / 8] >> (7 - i % 8) & 1);
        let element = |i: usize| (0..dtype.bits()).fold(0, |e, b| e << 1 | bit(i * dtype.bits() + b));
        return (0..size).map(element).collect();
    }
    let (width, count) = (part(dtype).bits() / 8, dtype.bits() / 8);
    let element = |bytes: &[u8]| {
        let mut little = [0; 16];
        for (to, from) in little.chunks_mut(width).zip(bytes.chunks(width)) {
            to.copy_from_slice(from);
            if cfg!(target_endian = "big") {
                to.reverse();
            }
        }
        u128::from_le_bytes(little)
    };
    bytes.chunks(count).map(element).collect()
}

/// Returns whether two elements have the same bits, or NaN in the same parts.
pub fn same(a: u128, b: u128, dtype: DType) -> bool {
    let alike = |a: f64, b: f64| a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits();
    let (x, y) = (value(a, dtype), value(b, dtype));
    a == b || !dtype.is_integer() && alike(x.re(), y.re()) && alike(x.im(), y.im())
}

/// Returns whether two elements of a real float type are at most `ulps` values of the type apart,
/// or both NaN.
pub fn within(ulps: u128, a: u128, b: u128, dtype: DType) -> bool {
    let sign = 1i128 << (dtype.bits() - 1);
    let place = |bits: u128| if bits as i128 & sign == 0 { bits as i128 } else { sign - bits as i128 };
    let nan = |bits: u128| float_value(bits, dtype).is_nan();
    if nan(a) || nan(b) { nan(a) && nan(b) } else { place(a).abs_diff(place(b)) <= ulps }
}

/// Returns whether the difference of two elements is at most `bound`, relative to the magnitude of
/// the expected one. Parts that aren't finite don't count for the magnitude.
pub fn near(bound: f64, got: u128, expected: u128, dtype: DType) -> bool {
    let (x, y) = (value(got, dtype), value(expected, dtype));
    let finite = |part: f64| if part.is_finite() { part } else { 0.0 };
    let slack = bound * finite(y.re()).hypot(finite(y.im())) + landmarks(dtype)[2];
    let close = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= slack;
    close(x.re(), y.re()) && close(x.im(), y.im())
}

/// The result type of functions such as `divide`: integers become `f32`.
pub fn to_floating(dtype: DType) -> DType {
    if dtype.is_integer() { DType::F32 } else { dtype }
}
