//! Operations of Nx, with a file for each family. Each operation takes tensors, and writes to memory that
//! the caller allocates.

/// Declares the operations of a family and their names in Nx.
macro_rules! named {
    ($(#[$doc:meta])* pub enum $Op:ident { $($variant:ident, $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Op {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl $Op {
            /// Every operation.
            pub const ALL: &'static [$Op] = &[$($Op::$variant,)*];

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($Op::$variant => $name,)* }
            }
        }
    };
}

pub mod all_close;
pub mod binary;
pub mod cast;
pub mod conv;
pub mod create;
pub mod cumulative;
pub mod dot;
pub mod fft;
pub mod indexed;
pub mod linalg;
pub mod math;
pub mod pad;
pub mod plan;
pub mod reduce;
pub mod result_type;
pub mod scalar;
pub mod shape;
pub mod sort;
pub mod supports;
pub mod ternary;
pub mod unary;
pub mod window;
pub mod window_elements;
pub mod window_scatter;
