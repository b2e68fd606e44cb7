//! The table of types.

/// The kind of values that a type represents, which decides how it is computed and promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Unsigned integers.
    Unsigned,
    /// Signed integers in two's complement.
    Signed,
    /// Floats with the exponent of f32, but less precision.
    BFloat,
    /// All other floats.
    Float,
    /// Pairs of floats.
    Complex,
}

macro_rules! dtypes {
    ($($variant:ident, $name:literal, $kind:ident, $bits:literal;)*) => {
        /// A tensor's element type, named as Nx names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl DType {
            /// Every type, in the order of the table.
            pub const ALL: &'static [DType] = &[$(DType::$variant,)*];

            /// The short name: `"f32"`.
            ///
            /// ```
            /// assert_eq!(ferrox_core::DType::BF16.name(), "bf16");
            /// ```
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// The kind of values.
            #[must_use]
            #[inline]
            pub const fn kind(self) -> Kind {
                match self { $(DType::$variant => Kind::$kind,)* }
            }

            /// The size of one element in bits.
            #[must_use]
            #[inline(always)]
            pub const fn bits(self) -> usize {
                match self { $(DType::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    U2, "u2", Unsigned, 2;
    U4, "u4", Unsigned, 4;
    U8, "u8", Unsigned, 8;
    U16, "u16", Unsigned, 16;
    U32, "u32", Unsigned, 32;
    U64, "u64", Unsigned, 64;
    S2, "s2", Signed, 2;
    S4, "s4", Signed, 4;
    S8, "s8", Signed, 8;
    S16, "s16", Signed, 16;
    S32, "s32", Signed, 32;
    S64, "s64", Signed, 64;
    F8, "f8", Float, 8;
    F8E4M3FN, "f8_e4m3fn", Float, 8;
    F16, "f16", Float, 16;
    BF16, "bf16", BFloat, 16;
    F32, "f32", Float, 32;
    F64, "f64", Float, 64;
    C64, "c64", Complex, 64;
    C128, "c128", Complex, 128;
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl DType {
    /// The type that elements of this type are computed in: the type itself, or the 8-bit type for
    /// types that pack several elements into a byte.
    #[must_use]
    #[inline]
    pub const fn storage(self) -> Self {
        match self {
            DType::U2 | DType::U4 => DType::U8,
            DType::S2 | DType::S4 => DType::S8,
            other => other,
        }
    }

    /// Returns whether several elements share a byte.
    #[must_use]
    #[inline]
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// The number of bytes in an element of `storage()`.
    #[must_use]
    #[inline]
    pub const fn width(self) -> usize {
        self.storage().bits() / 8
    }

    /// Returns whether the type is a signed or unsigned integer.
    #[must_use]
    #[inline]
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Unsigned | Kind::Signed)
    }

    /// Returns whether the type is a real float.
    #[must_use]
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::BFloat)
    }

    /// Returns whether the type is complex.
    #[must_use]
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// The number of bits of precision: of the significand with its implicit bit for floats, of the
    /// magnitude for integers.
    #[must_use]
    #[inline]
    pub const fn precision(self) -> usize {
        match self {
            DType::F8 => 3,
            DType::F8E4M3FN => 4,
            DType::F16 => 11,
            DType::BF16 => 8,
            DType::F32 | DType::C64 => 24,
            DType::F64 | DType::C128 => 53,
            integer => match integer.kind() {
                Kind::Signed => integer.bits() - 1,
                _ => integer.bits(),
            },
        }
    }

    /// The number of exponent bits of a float; zero for an integer.
    #[inline]
    const fn exponent_bits(self) -> usize {
        match self {
            DType::F8E4M3FN => 4,
            DType::F8 | DType::F16 => 5,
            DType::BF16 | DType::F32 | DType::C64 => 8,
            DType::F64 | DType::C128 => 11,
            _ => 0,
        }
    }

    /// Returns whether every value of `self`, a real type, is a value of `other`.
    #[must_use]
    #[inline]
    pub const fn embeds_in(self, other: DType) -> bool {
        match (self.kind(), other.kind()) {
            (Kind::Unsigned, Kind::Unsigned) | (Kind::Signed, Kind::Signed) => self.bits() <= other.bits(),
            (Kind::Unsigned, Kind::Signed) => self.bits() < other.bits(),
            (Kind::Complex, _) | (_, Kind::Unsigned | Kind::Signed | Kind::Complex) => false,
            _ => self.precision() <= other.precision() && self.exponent_bits() <= other.exponent_bits(),
        }
    }
}
