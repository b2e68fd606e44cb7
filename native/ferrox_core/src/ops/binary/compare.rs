//! Comparisons. They are exact for every pair of types, whatever the type of the result.

use super::Binary;
use crate::exec::convert::Compute;
use crate::{DType, Kind};

/// Returns the lanes in which two operands are compared, so that no value is rounded: a type that
/// represents all values of both, or a wider lane if there is no such type.
pub(super) fn compute(left: DType, right: DType) -> Compute {
    if left.is_complex() || right.is_complex() {
        return Compute::As(DType::C128);
    }
    match (left.is_integer(), right.is_integer()) {
        (true, true) => common_integer(left, right),
        (false, false) if left.width().max(right.width()) <= 4 => Compute::As(DType::F32),
        (false, false) => Compute::As(DType::F64),
        _ => {
            let precision = left.precision().max(right.precision());
            match precision {
                0..=24 => Compute::As(DType::F32),
                25..=53 => Compute::As(DType::F64),
                _ => Compute::Exact,
            }
        }
    }
}

/// Returns the smallest integer type that represents all values of both, or 128-bit lanes if there
/// is no such type.
fn common_integer(left: DType, right: DType) -> Compute {
    let holds = |dtype: &DType| left.embeds_in(*dtype) && right.embeds_in(*dtype);
    let same_sign = left.kind() == right.kind();
    let candidates = DType::ALL.iter().copied().filter(|d| !d.is_packed() && d.is_integer());
    let mut candidates =
        candidates.filter(|d| !same_sign || d.kind() == left.kind() || left.kind() == Kind::Signed);
    candidates.find(holds).map_or(Compute::Wide, Compute::As)
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident) => $test:expr, $bound:ident;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl<T: crate::Lane + $bound> Binary<T> for $name {
            type Out = u8;

            #[inline(always)]
            fn apply($a: T, $b: T) -> u8 {
                u8::from($test)
            }
        }
    )*};
}

comparisons! {
    Equal(a, b) => a == b, PartialEq;
    NotEqual(a, b) => a != b, PartialEq;
    Greater(a, b) => a > b, PartialOrd;
    Less(a, b) => a < b, PartialOrd;
    GreaterEqual(a, b) => a >= b, PartialOrd;
    LessEqual(a, b) => a <= b, PartialOrd;
}
