//! Element types: the table of types, their Rust types, and the one dispatch from a type to its
//! Rust type.
//!
//! Types of 2 and 4 bits are computed as 8-bit types: `sub_byte` unpacks them before an operation
//! and packs the result, which is exact because integer arithmetic wraps.

mod element;
pub mod minifloat;
pub(crate) mod sub_byte;
mod table;

pub(crate) use self::element::bits_to_odd;
pub use self::element::{Class, Element, Exact, Lane, cast};
pub use self::table::{DType, Kind};

/// Runs an expression with `$T` bound to the Rust type of a `DType`.
///
/// `all` covers every type. `integer`, `real` and `float` cover some types, and give the value of
/// `else` for the others. `bits` binds integers to the unsigned type of their width, for code that
/// only depends on their bits. `width` binds `$N` to the number of bytes in an element, for code that
/// only moves elements. No other code matches on types to choose a Rust type.
#[macro_export]
macro_rules! dispatch {
    (all $dtype:expr, $T:ident => $body:expr) => {
        match $crate::DType::storage($dtype) {
            $crate::DType::C64 => { type $T = num_complex::Complex<f32>; $body }
            $crate::DType::C128 => { type $T = num_complex::Complex<f64>; $body }
            real => $crate::dispatch!(real real, $T => $body, else => unreachable!("{real} has no arm in dispatch!")),
        }
    };
    (real $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::dispatch!(float $dtype, $T => $body, else => $crate::dispatch!(integer $dtype, $T => $body, else => $other))
    };
    (float $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        match $crate::DType::storage($dtype) {
            $crate::DType::F8 => { type $T = $crate::dtype::minifloat::F8; $body }
            $crate::DType::F8E4M3FN => { type $T = $crate::dtype::minifloat::F8E4M3FN; $body }
            $crate::DType::F16 => { type $T = $crate::dtype::minifloat::F16; $body }
            $crate::DType::BF16 => { type $T = $crate::dtype::minifloat::BF16; $body }
            $crate::DType::F32 => { type $T = f32; $body }
            $crate::DType::F64 => { type $T = f64; $body }
            _ => $other,
        }
    };
    (integer $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        match $crate::DType::storage($dtype) {
            $crate::DType::U8 => { type $T = u8; $body }
            $crate::DType::U16 => { type $T = u16; $body }
            $crate::DType::U32 => { type $T = u32; $body }
            $crate::DType::U64 => { type $T = u64; $body }
            $crate::DType::S8 => { type $T = i8; $body }
            $crate::DType::S16 => { type $T = i16; $body }
            $crate::DType::S32 => { type $T = i32; $body }
            $crate::DType::S64 => { type $T = i64; $body }
            _ => $other,
        }
    };
    (bits $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        match $crate::DType::storage($dtype) {
            $crate::DType::U8 | $crate::DType::S8 => { type $T = u8; $body }
            $crate::DType::U16 | $crate::DType::S16 => { type $T = u16; $body }
            $crate::DType::U32 | $crate::DType::S32 => { type $T = u32; $body }
            $crate::DType::U64 | $crate::DType::S64 => { type $T = u64; $body }
            _ => $other,
        }
    };
    (width $width:expr, $N:ident => $body:expr) => {
        match $width {
            1 => { const $N: usize = 1; $body }
            2 => { const $N: usize = 2; $body }
            4 => { const $N: usize = 4; $body }
            8 => { const $N: usize = 8; $body }
            16 => { const $N: usize = 16; $body }
            width => unreachable!("no type is {width} bytes wide"),
        }
    };
}
