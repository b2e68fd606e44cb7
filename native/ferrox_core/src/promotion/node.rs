//! The types that promotion combines: the types of tensors, bool, and the weak types of plain
//! numbers.

use crate::DType;

/// The number of nodes, and so the number of rows and of columns of a table.
pub const NODES: usize = DType::ALL.len() + 4;

/// A type as promotion sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A type of tensors.
    Type(DType),
    /// Booleans, which are not numbers in three of the systems.
    Bool,
    /// The weak integer type, whose size is open.
    Int,
    /// The weak float type, whose size is open.
    Float,
    /// The weak complex type, whose size is open.
    Complex,
}

impl Node {
    /// Every node, in the order of a table's rows.
    pub const ALL: [Node; NODES] = {
        let mut all = [Node::Bool; NODES];
        let mut i = 0;
        while i < DType::ALL.len() {
            all[i] = Node::Type(DType::ALL[i]);
            i += 1;
        }
        all[i + 1] = Node::Int;
        all[i + 2] = Node::Float;
        all[i + 3] = Node::Complex;
        all
    };

    /// The node's row.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Node::Type(dtype) => dtype as usize,
            Node::Bool => DType::ALL.len(),
            Node::Int => DType::ALL.len() + 1,
            Node::Float => DType::ALL.len() + 2,
            Node::Complex => DType::ALL.len() + 3,
        }
    }

    /// Whether the type is weak: its size is open.
    #[inline]
    #[must_use]
    pub const fn is_weak(self) -> bool {
        matches!(self, Node::Int | Node::Float | Node::Complex)
    }

    /// The short name. Names of weak types end in a star.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Node::Type(dtype) => dtype.name(),
            Node::Bool => "bool",
            Node::Int => "int*",
            Node::Float => "float*",
            Node::Complex => "complex*",
        }
    }

    /// The node with this code in JAX's documentation, whose codes count bytes: `u8` is
    /// [`DType::U64`]. Returns `None` for an unknown code.
    #[must_use]
    pub const fn from_code(code: &[u8]) -> Option<Self> {
        Some(match code {
            b"b1" => Node::Bool,
            b"u1" => Node::Type(DType::U8),
            b"u2" => Node::Type(DType::U16),
            b"u4" => Node::Type(DType::U32),
            b"u8" => Node::Type(DType::U64),
            b"i1" => Node::Type(DType::S8),
            b"i2" => Node::Type(DType::S16),
            b"i4" => Node::Type(DType::S32),
            b"i8" => Node::Type(DType::S64),
            b"bf" => Node::Type(DType::BF16),
            b"f2" => Node::Type(DType::F16),
            b"f4" => Node::Type(DType::F32),
            b"f8" => Node::Type(DType::F64),
            b"c8" => Node::Type(DType::C64),
            b"c16" => Node::Type(DType::C128),
            b"i*" => Node::Int,
            b"f*" => Node::Float,
            b"c*" => Node::Complex,
            _ => return None,
        })
    }
}

impl From<DType> for Node {
    fn from(dtype: DType) -> Self {
        Node::Type(dtype)
    }
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A plain number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer. For the integers of any size that Elixir has, some `i128` beyond all types stands for
    /// those of more than 64 bits.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
}

impl Number {
    /// The weak type of the number's kind.
    #[must_use]
    pub const fn weak(self) -> Node {
        match self {
            Number::Integer(_) => Node::Int,
            Number::Float(_) => Node::Float,
            Number::Complex(..) => Node::Complex,
        }
    }
}
