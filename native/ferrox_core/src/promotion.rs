//! Which type results from two types, or from a type and a plain number.
//!
//! A system is data: a file in `promotion/` that describes it and an entry in
//! [`SYSTEMS`]. The description is expanded into a plain [`Table`] at compile
//! time, whatever it looks like: a table is also what the systems need that are
//! no lattice, where the order of the operands may matter. No code outside its
//! file knows a system by name. What a system leaves open is [`Undefined`].

mod nx;

use crate::DType;

/// The number of types, and so of rows and columns of a table.
const TYPES: usize = DType::ALL.len();

/// The type that results from the row's, the left operand's, and the column's.
/// `None` where the system doesn't say.
pub type Table = [[Option<DType>; TYPES]; TYPES];

/// Every promotion system, the default one first.
pub static SYSTEMS: &[System] = &[nx::NX, nx::NX_0_9];

/// One way to promote.
#[derive(Debug)]
pub struct System {
    /// The name that users give.
    pub name: &'static str,
    table: Table,
    numbers: fn(DType, Number) -> Option<DType>,
}

/// A plain number, as far as promotion looks at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer. One that no type holds may be given as the nearest that one
    /// does.
    Integer(i128),
    /// A float, whatever its value.
    Float,
    /// A complex number.
    Complex,
}

/// What a system leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{system} does not define the promotion of {left} with {}", self.rest())]
pub struct Undefined {
    /// The system's name.
    pub system: &'static str,
    /// The left type.
    pub left: DType,
    /// The right type, or `None` for a number.
    pub right: Option<DType>,
}

impl Undefined {
    fn rest(&self) -> String {
        let lacks = |&dtype: &DType| System::named(self.system).is_some_and(|system| !system.knows(dtype));
        let unknown = [Some(self.left), self.right].into_iter().flatten().find(lacks);
        match (self.right, unknown) {
            (Some(right), Some(unknown)) => format!("{right}: it has no type {unknown}"),
            (Some(right), None) => right.to_string(),
            (None, Some(unknown)) => format!("a number: it has no type {unknown}"),
            (None, None) => "a number that is not real".to_string(),
        }
    }
}

impl System {
    /// The system of that name.
    ///
    /// ```
    /// use ferrox_core::promotion::System;
    /// assert!(System::named("nx").is_some());
    /// assert!(System::named("nearest").is_none());
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SYSTEMS.iter().find(|system| system.name == name)
    }

    /// Whether the system has the type at all.
    #[inline]
    #[must_use]
    pub const fn knows(&self, dtype: DType) -> bool {
        self.table[dtype as usize][dtype as usize].is_some()
    }

    /// The types that the system has, in the order of [`DType::ALL`].
    pub fn types(&self) -> impl Iterator<Item = DType> {
        DType::ALL.iter().copied().filter(|&dtype| self.knows(dtype))
    }

    /// The type of an operation on a `left` and a `right` operand.
    ///
    /// ```
    /// use ferrox_core::{DType, promotion::System};
    /// let nx = System::named("nx").unwrap();
    /// assert_eq!(nx.merge(DType::U8, DType::S8), Ok(DType::S16));
    /// ```
    ///
    /// # Errors
    /// Where the system doesn't define the pair.
    #[inline]
    pub const fn merge(&self, left: DType, right: DType) -> Result<DType, Undefined> {
        match self.table[left as usize][right as usize] {
            Some(dtype) => Ok(dtype),
            None => Err(Undefined { system: self.name, left, right: Some(right) }),
        }
    }

    /// The type of an operation on an operand of type `dtype` and a number.
    ///
    /// ```
    /// use ferrox_core::{DType, promotion::{Number, System}};
    /// let nx = System::named("nx").unwrap();
    /// assert_eq!(nx.merge_number(DType::U8, Number::Integer(256)), Ok(DType::U16));
    /// ```
    ///
    /// # Errors
    /// Where the system doesn't define it.
    #[inline]
    pub fn merge_number(&self, dtype: DType, number: Number) -> Result<DType, Undefined> {
        (self.numbers)(dtype, number).ok_or(Undefined { system: self.name, left: dtype, right: None })
    }
}
