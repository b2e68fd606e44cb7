//! Type promotion: the type of the result of an operation on several types and plain numbers.
//!
//! A promotion system is data: a file in `promotion/` that describes it, and an entry in
//! [`SYSTEMS`]. Every description is expanded into a plain [`Table`] at compile time: some systems
//! are not lattices, and in some the order of the operands matters. Options that change the rules
//! select one of the system's [`Mode`]s. No code outside of its file knows a system by name. Where
//! a system does not define a result, the answer is a [`Refusal`].

mod array_api;
mod ivy;
mod jax;
mod node;
mod numpy;
mod nx;
mod table;

pub use node::{NODES, Node, Number};
pub use table::{Lattice, Table};

use crate::{DType, Kind};

/// Every promotion system, the default one first.
pub static SYSTEMS: &[System] = &[
    nx::NX,
    nx::NX_0_9,
    jax::JAX,
    numpy::NUMPY,
    array_api::ARRAY_API,
    ivy::IVY,
    ivy::IVY_TORCH,
    ivy::IVY_PADDLE,
    ivy::IVY_NUMPY,
    ivy::IVY_JAX,
    ivy::IVY_ONNX,
    ivy::IVY_MXNET,
    ivy::IVY_TENSORFLOW,
];

/// A promotion system with its variants.
#[derive(Debug)]
pub struct System {
    /// The name by which users choose the system.
    pub name: &'static str,
    /// The options of the system.
    pub options: &'static [Switch],
    /// The rules for each choice of options: bit `n` of the index is set if option `n` is on.
    modes: &'static [Mode],
}

/// An option of a system that is off by default.
#[derive(Debug)]
pub struct Switch {
    /// The name of the variant in which the option is on.
    pub flag: &'static str,
    /// The name of the option in Elixir.
    pub key: &'static str,
    /// The values of the option in Elixir for off and on: `"true"`, `"false"` or the name of an
    /// atom.
    pub values: [&'static str; 2],
}

/// The rules of a system under one choice of its options.
#[derive(Debug)]
pub struct Mode {
    table: Table,
    lattice: Option<&'static Lattice>,
    fold: FoldOrder,
    /// The result of a type and a number.
    with_number: fn(&Mode, Node, Number) -> Option<Node>,
    /// The type of a number without other operands.
    alone: fn(Number) -> Option<Node>,
    /// The types that weak integers, floats and complex numbers become at the end.
    defaults: [DType; 3],
    fit: Fit,
    absent: Absent,
    rules: Rules,
    scalars: Scalars,
}

/// What operations make of the type that their operands have together; `ops::result_type` has the
/// rules. Those of Ivy's frontends are Ivy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Nx.
    Nx,
    /// JAX.
    Jax,
    /// NumPy.
    NumPy,
    /// The array API standard.
    ArrayApi,
    /// Ivy.
    Ivy,
}

/// What a tensor without axes counts as beside other operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalars {
    /// Its type, as any tensor.
    Types,
    /// Its value.
    Values,
    /// Nothing, if there is an array of its kind.
    Adopt,
}

/// The order in which more than two operands are combined.
#[derive(Clone, Copy, Debug)]
enum FoldOrder {
    /// From left to right.
    Left,
    /// Types before numbers, and types of the highest kind before other types.
    HighestKindFirst,
    /// As `HighestKindFirst`; but if the kind of an array is at least as high as the kinds of the
    /// scalars, from left to right, and a number has the smallest type that holds it.
    ByValue(fn(Number) -> Option<SmallestType>),
}

/// The smallest type that holds a number.
#[derive(Clone, Copy, Debug)]
struct SmallestType {
    node: Node,
    /// The signed type of the same size, if it also holds the number.
    signed: Option<Node>,
}

/// The type that an integer operand must fit into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// None: every integer is accepted.
    Any,
    /// The default integer type.
    Default,
    /// The type of the result, if it is an integer type.
    Result,
}

/// The meaning of the operand `nil`.
#[derive(Clone, Copy, Debug)]
enum Absent {
    /// The operand is an error.
    Refused,
    /// The operand is of the default float type, not of the weak one.
    Float,
    /// The operand is ignored.
    Nothing,
}

/// An operand, as promotion sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PromotionOperand {
    /// A type; the type of a scalar in systems that distinguish scalars from arrays.
    Type(Node),
    /// The type of an array of one axis or more.
    Array(Node),
    /// A plain number.
    Number(Number),
    /// `nil`.
    Absent,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// There are no operands.
    Empty,
    /// The system does not have the type.
    Unknown(Node),
    /// The system does not define a result for the two operands.
    Pair(PromotionOperand, PromotionOperand),
    /// No other operand determines the type of the number.
    Alone(Number),
    /// The type does not hold the integer.
    Range(i128, Node),
    /// The system does not accept `nil` as an operand.
    Absent,
}

impl System {
    /// Finds a system by its name.
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

    /// The rules with the options whose bits are set in `options`; 0 is the default. Returns `None`
    /// if there are no such options.
    ///
    /// ```
    /// use ferrox_core::promotion::{Node, System};
    /// let jax = System::named("jax").unwrap();
    /// let strict = jax.mode(1).unwrap();
    /// assert!(strict.merge(Node::Bool, Node::Int).is_err());
    /// assert!(jax.mode(4).is_none());
    /// ```
    #[inline]
    #[must_use]
    pub fn mode(&self, options: usize) -> Option<&'static Mode> {
        self.modes.get(options)
    }

    /// The result type of an operation on two tensors, without options: [`Mode::merge`] for the
    /// types of tensors.
    ///
    /// ```
    /// use ferrox_core::{DType, promotion::System};
    /// let nx = System::named("nx").unwrap();
    /// assert_eq!(nx.merge(DType::U8, DType::S8), Ok(DType::S16));
    /// ```
    ///
    /// # Errors
    /// If the system does not define the pair.
    pub fn merge(&self, left: DType, right: DType) -> Result<DType, Refusal> {
        let mode = &self.modes[0];
        match mode.concrete(mode.merge(left.into(), right.into())?) {
            Node::Type(dtype) => Ok(dtype),
            other => Err(Refusal::Unknown(other)),
        }
    }
}

impl Mode {
    /// The rules of Nx, the default.
    #[inline]
    #[must_use]
    pub const fn nx() -> &'static Self {
        &nx::NX.modes[0]
    }

    /// Whether the system has the type.
    #[inline]
    #[must_use]
    pub const fn knows(&self, node: Node) -> bool {
        let row = node.index();
        let mut column = 0;
        while column < NODES {
            if self.table[row][column].is_some() {
                return true;
            }
            column += 1;
        }
        false
    }

    /// The types of the system, in the order of [`Node::ALL`].
    pub fn types(&self) -> impl Iterator<Item = Node> {
        Node::ALL.into_iter().filter(|&node| self.knows(node))
    }

    /// The lattice whose joins are the results. Returns `None` if the system is not a lattice.
    #[must_use]
    pub const fn lattice(&self) -> Option<&'static Lattice> {
        self.lattice
    }

    /// What operations make of the type of their operands.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// What a tensor without axes counts as.
    #[must_use]
    pub const fn scalars(&self) -> Scalars {
        self.scalars
    }

    /// Whether results of weak operands are weak themselves.
    #[must_use]
    pub const fn keeps_weak(&self) -> bool {
        matches!(self.rules, Rules::Jax)
    }

    /// The type of truth values.
    #[must_use]
    pub const fn predicate(&self) -> Node {
        match self.rules {
            Rules::Nx => Node::Type(DType::U8),
            _ => Node::Bool,
        }
    }

    /// The type of an index.
    #[must_use]
    pub const fn index(&self) -> Node {
        match self.rules {
            Rules::Nx | Rules::Jax => Node::Type(self.defaults[0]),
            _ => Node::Type(DType::S64),
        }
    }

    /// The final type of a result: a weak type becomes the default type of its kind.
    ///
    /// ```
    /// use ferrox_core::{DType, promotion::{Node, System}};
    /// let x32 = System::named("jax").unwrap().mode(2).unwrap();
    /// assert_eq!(x32.concrete(Node::Float), Node::Type(DType::F32));
    /// ```
    #[must_use]
    pub const fn concrete(&self, node: Node) -> Node {
        match node {
            Node::Int => Node::Type(self.defaults[0]),
            Node::Float => Node::Type(self.defaults[1]),
            Node::Complex => Node::Type(self.defaults[2]),
            strong => strong,
        }
    }

    /// The result type of an operation on a left and a right operand.
    ///
    /// ```
    /// use ferrox_core::{DType::{S8, S16, U8}, promotion::System};
    /// let nx = System::named("nx").unwrap().mode(0).unwrap();
    /// assert_eq!(nx.merge(U8.into(), S8.into()), Ok(S16.into()));
    /// ```
    ///
    /// # Errors
    /// If the system does not define the pair.
    #[inline]
    pub fn merge(&self, left: Node, right: Node) -> Result<Node, Refusal> {
        match self.table[left.index()][right.index()] {
            Some(node) => Ok(node),
            None => Err(self.refuse(PromotionOperand::Type(left), PromotionOperand::Type(right))),
        }
    }

    /// The result type of an operation on an operand of type `node` and a number.
    ///
    /// ```
    /// use ferrox_core::{DType::{U8, U16}, promotion::{Number, System}};
    /// let nx = System::named("nx").unwrap().mode(0).unwrap();
    /// assert_eq!(nx.merge_number(U8.into(), Number::Integer(256)), Ok(U16.into()));
    /// ```
    ///
    /// # Errors
    /// If the system does not define the result, or an integer is out of range.
    #[inline]
    pub fn merge_number(&self, node: Node, number: Number) -> Result<Node, Refusal> {
        let Some(merged) = (self.with_number)(self, node, number) else {
            return Err(self.refuse(PromotionOperand::Type(node), PromotionOperand::Number(number)));
        };
        self.check(number, merged)?;
        Ok(merged)
    }

    /// The result type of an operation on any number of operands.
    ///
    /// ```
    /// use ferrox_core::DType::{F16, S8, U8};
    /// use ferrox_core::promotion::{PromotionOperand, System};
    /// let jax = System::named("jax").unwrap().mode(0).unwrap();
    /// let types = [U8, S8, F16].map(|dtype| PromotionOperand::Type(dtype.into()));
    /// assert_eq!(jax.result_type(types), Ok(F16.into()));
    /// ```
    ///
    /// # Errors
    /// If there is no operand, the system does not define the result, or an integer is out of
    /// range.
    pub fn result_type<I>(&self, operands: I) -> Result<Node, Refusal>
    where
        I: IntoIterator<Item = PromotionOperand>,
        I::IntoIter: Clone,
    {
        let operands = operands.into_iter();
        let float = PromotionOperand::Type(Node::Type(self.defaults[1]));
        if matches!(self.absent, Absent::Refused)
            && operands.clone().any(|operand| operand == PromotionOperand::Absent)
        {
            return Err(Refusal::Absent);
        }
        let nothing = matches!(self.absent, Absent::Nothing);
        let operands = operands.filter_map(|operand| match operand {
            PromotionOperand::Absent => (!nothing).then_some(float),
            operand => Some(operand),
        });
        let result = match self.fold {
            FoldOrder::Left => self.fold_left(operands.clone())?,
            FoldOrder::HighestKindFirst => self.fold_highest_kind_first(operands.clone())?,
            FoldOrder::ByValue(smallest) => self.fold_by_value(operands.clone(), smallest)?,
        };
        for operand in operands {
            if let PromotionOperand::Number(number) = operand {
                self.check(number, result)?;
            }
        }
        Ok(result)
    }

    fn fold_left(&self, operands: impl Iterator<Item = PromotionOperand>) -> Result<Node, Refusal> {
        let folded = operands
            .map(Ok)
            .reduce(|left, right| self.merge_operands(left?, right?).map(PromotionOperand::Type));
        match folded.ok_or(Refusal::Empty)?? {
            PromotionOperand::Number(number) => {
                self.defined((self.alone)(number).ok_or(Refusal::Alone(number))?)
            }
            PromotionOperand::Type(node) | PromotionOperand::Array(node) => self.defined(node),
            PromotionOperand::Absent => Err(Refusal::Absent),
        }
    }

    fn merge_operands(&self, left: PromotionOperand, right: PromotionOperand) -> Result<Node, Refusal> {
        let combined = match (left, right) {
            (PromotionOperand::Number(left), PromotionOperand::Number(right)) => (self.alone)(left)
                .zip((self.alone)(right))
                .and_then(|(left, right)| self.table[left.index()][right.index()]),
            (
                PromotionOperand::Type(node) | PromotionOperand::Array(node),
                PromotionOperand::Number(number),
            )
            | (
                PromotionOperand::Number(number),
                PromotionOperand::Type(node) | PromotionOperand::Array(node),
            ) => (self.with_number)(self, node, number),
            (
                PromotionOperand::Type(left) | PromotionOperand::Array(left),
                PromotionOperand::Type(right) | PromotionOperand::Array(right),
            ) => self.table[left.index()][right.index()],
            (PromotionOperand::Absent, _) | (_, PromotionOperand::Absent) => return Err(Refusal::Absent),
        };
        combined.ok_or_else(|| self.refuse(left, right))
    }

    /// NumPy's order: combines one type of the highest kind with each of the other types, and then
    /// the results with each other. So integers of several types do not widen each other before
    /// they are combined with a float.
    fn fold_highest_kind_first(
        &self,
        operands: impl Iterator<Item = PromotionOperand> + Clone,
    ) -> Result<Node, Refusal> {
        let types = operands.clone().filter_map(|operand| match operand {
            PromotionOperand::Type(node) | PromotionOperand::Array(node) if !node.is_weak() => Some(node),
            _ => None,
        });
        let weak = operands.filter_map(|operand| match operand {
            PromotionOperand::Type(node) | PromotionOperand::Array(node) if node.is_weak() => {
                Some((node, None))
            }
            PromotionOperand::Number(number) => Some((number.weak(), Some(number))),
            _ => None,
        });
        let weakest = weak.reduce(|a, b| if b.0.index() > a.0.index() { b } else { a });
        let strong = self.merge_strong(types)?;
        match (strong, weakest) {
            (Some(node), None) => Ok(node),
            (Some(node), Some((_, Some(number)))) => {
                self.merge_operands(PromotionOperand::Type(node), PromotionOperand::Number(number))
            }
            (Some(node), Some((weak, None))) => self.merge(node, weak),
            (None, Some((_, Some(number)))) => (self.alone)(number).ok_or(Refusal::Alone(number)),
            (None, Some((weak, None))) => self.merge(weak, weak),
            (None, None) => Err(Refusal::Empty),
        }
    }

    fn merge_strong(&self, types: impl Iterator<Item = Node> + Clone) -> Result<Option<Node>, Refusal> {
        let mut highest = None;
        for node in types.clone() {
            if highest.is_none_or(|highest| kind_rank(node) > kind_rank(highest)) {
                highest = Some(node);
            }
        }
        let Some(highest) = highest else { return Ok(None) };
        let mut result = self.defined(highest)?;
        for node in types {
            result = self.merge(result, self.merge(highest, node)?)?;
        }
        Ok(Some(result))
    }

    /// The rules before NumPy 2, where the values of scalars matter. A scalar of which only the
    /// type is known is assumed to fit.
    fn fold_by_value(
        &self,
        operands: impl Iterator<Item = PromotionOperand> + Clone,
        smallest: fn(Number) -> Option<SmallestType>,
    ) -> Result<Node, Refusal> {
        // Floats and complex numbers count as one kind here.
        let kind = |node: Node| kind_rank(node).min(2);
        let (mut array, mut scalar) = (None, None);
        for operand in operands.clone() {
            match operand {
                PromotionOperand::Array(node) => array = array.max(Some(kind(node))),
                PromotionOperand::Type(node) => scalar = scalar.max(Some(kind(node))),
                PromotionOperand::Number(number) => scalar = scalar.max(Some(kind(number.weak()))),
                PromotionOperand::Absent => {}
            }
        }
        let by_value = scalar.is_some() && array >= scalar;
        if let Some(PromotionOperand::Number(number)) = operands.clone().find(
            |operand| matches!(operand, PromotionOperand::Number(number) if (self.alone)(*number).is_none()),
        ) {
            return Err(Refusal::Alone(number));
        }
        if !by_value {
            let types = operands.filter_map(|operand| match operand {
                PromotionOperand::Array(node) | PromotionOperand::Type(node) => Some(self.concrete(node)),
                PromotionOperand::Number(number) => (self.alone)(number),
                PromotionOperand::Absent => None,
            });
            return self.merge_strong(types)?.ok_or(Refusal::Empty);
        }
        let types = operands.filter_map(|operand| match operand {
            PromotionOperand::Array(node) | PromotionOperand::Type(node @ Node::Bool) => {
                Some(Ok(SmallestType { node, signed: None }))
            }
            PromotionOperand::Number(number) => smallest(number).map(Ok),
            PromotionOperand::Type(_) | PromotionOperand::Absent => None,
        });
        let folded = types.reduce(|left, right| {
            let (left, right) = (left?, right?);
            let (l, r) = match (left.signed, right.signed) {
                (Some(signed), _) if !is_unsigned(right.node) => (signed, right.node),
                (None, Some(signed)) if !is_unsigned(left.node) => (left.node, signed),
                _ => (left.node, right.node),
            };
            let node = self.merge(l, r)?;
            let signed = match (left.signed, right.signed) {
                (Some(left), Some(right)) => Some(self.merge(left, right)?),
                _ => None,
            };
            Ok(SmallestType { node, signed })
        });
        self.defined(folded.ok_or(Refusal::Empty)??.node)
    }

    /// `with_number` of most systems: a number has the weak type of its kind.
    fn weak(&self, node: Node, number: Number) -> Option<Node> {
        self.table[node.index()][number.weak().index()]
    }

    fn defined(&self, node: Node) -> Result<Node, Refusal> {
        match self.table[node.index()][node.index()] {
            Some(node) => Ok(node),
            None if self.knows(node) => {
                Err(Refusal::Pair(PromotionOperand::Type(node), PromotionOperand::Type(node)))
            }
            None => Err(Refusal::Unknown(node)),
        }
    }

    #[inline]
    fn check(&self, number: Number, result: Node) -> Result<(), Refusal> {
        let Number::Integer(integer) = number else { return Ok(()) };
        let holder = match self.fit {
            Fit::Any => return Ok(()),
            Fit::Default => Node::Type(self.defaults[0]),
            Fit::Result => result,
        };
        if holds(holder, integer) { Ok(()) } else { Err(Refusal::Range(integer, holder)) }
    }

    /// The reason why two operands have no result.
    #[cold]
    fn refuse(&self, left: PromotionOperand, right: PromotionOperand) -> Refusal {
        let unknown = [left, right].into_iter().find_map(|operand| match operand {
            PromotionOperand::Type(node) | PromotionOperand::Array(node) if !self.knows(node) => Some(node),
            _ => None,
        });
        unknown.map_or(Refusal::Pair(left, right), Refusal::Unknown)
    }
}

/// The position of a type's kind in the order of kinds, from bool to complex.
fn kind_rank(node: Node) -> u8 {
    match node {
        Node::Bool => 0,
        Node::Int => 1,
        Node::Float => 2,
        Node::Complex => 3,
        Node::Type(dtype) => match dtype.kind() {
            Kind::Unsigned | Kind::Signed => 1,
            Kind::BFloat | Kind::Float => 2,
            Kind::Complex => 3,
        },
    }
}

/// Whether a non-negative number keeps its unsigned type beside this type.
fn is_unsigned(node: Node) -> bool {
    match node {
        Node::Bool => true,
        Node::Type(dtype) => dtype.kind() == Kind::Unsigned,
        _ => false,
    }
}

fn holds(node: Node, integer: i128) -> bool {
    let Node::Type(dtype) = node else { return true };
    match dtype.kind() {
        Kind::Unsigned => (0..1 << dtype.bits()).contains(&integer),
        Kind::Signed => (-(1 << (dtype.bits() - 1))..1 << (dtype.bits() - 1)).contains(&integer),
        _ => true,
    }
}
