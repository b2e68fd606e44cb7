//! Which type results from several types and plain numbers.
//!
//! A system is data: a file in `promotion/` that describes it and an entry in
//! [`SYSTEMS`]. The description is expanded into a plain [`Table`] at compile
//! time, whatever it looks like: a table is also what the systems need that are
//! no lattice, where the order of the operands may matter. Options that change
//! the rules choose among the system's [`Mode`]s. No code outside its file
//! knows a system by name. What a system leaves open is a [`Refusal`].

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

/// One way to promote, with its variants.
#[derive(Debug)]
pub struct System {
    /// The name that users give.
    pub name: &'static str,
    /// What can be switched.
    pub options: &'static [Switch],
    /// The rules for each choice: bit `n` of the index is option `n`.
    modes: &'static [Mode],
}

/// An option of a system that is off by default.
#[derive(Debug)]
pub struct Switch {
    /// What it is called where it is on.
    pub flag: &'static str,
    /// The option in Elixir.
    pub key: &'static str,
    /// Its values, off and on: `"true"`, `"false"` or the name of an atom.
    pub values: [&'static str; 2],
}

/// The rules of a system under some choice of its options.
#[derive(Debug)]
pub struct Mode {
    table: Table,
    lattice: Option<&'static Lattice>,
    fold: Fold,
    /// What a number makes of a type.
    numbers: fn(&Mode, Node, Number) -> Option<Node>,
    /// What a number is without a partner.
    alone: fn(Number) -> Option<Node>,
    /// The sizes that weak types have in the end.
    defaults: [DType; 3],
    fit: Fit,
    absent: Absent,
}

/// In which order more than two operands meet.
#[derive(Clone, Copy, Debug)]
enum Fold {
    /// From left to right.
    Left,
    /// Types first, those of the highest kind before the others, then numbers.
    KindsDown,
    /// As `KindsDown`, but where an array is of a kind as high as the scalars',
    /// from left to right, and a number is of the smallest type that holds it.
    Values(fn(Number) -> Option<Smallest>),
}

/// The smallest type that holds a number.
#[derive(Clone, Copy, Debug)]
struct Smallest {
    node: Node,
    /// The signed type of the same size, where that holds it too.
    signed: Option<Node>,
}

/// Which integers are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// None is.
    Any,
    /// Those that the default integer type can't hold.
    Default,
    /// Those that the resulting integer type can't hold.
    Result,
}

/// What `nil` stands for.
#[derive(Clone, Copy, Debug)]
enum Absent {
    /// Nothing sensible.
    Refused,
    /// The default float, not weak.
    Float,
    /// No operand.
    Nothing,
}

/// What an operation is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A type, of a scalar where that makes a difference.
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
    /// The system doesn't have the type.
    Unknown(Node),
    /// The two don't go together.
    Pair(Operand, Operand),
    /// Nothing says which type the number has.
    Alone(Number),
    /// The type doesn't hold the number.
    Range(i128, Node),
    /// `nil` stands for nothing here.
    Absent,
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

    /// The rules under the options whose bits are set, none by default.
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

    /// The type of an operation on two tensors without options: what
    /// [`Mode::merge`] answers, for types that tensors have.
    ///
    /// ```
    /// use ferrox_core::{DType, promotion::System};
    /// let nx = System::named("nx").unwrap();
    /// assert_eq!(nx.merge(DType::U8, DType::S8), Ok(DType::S16));
    /// ```
    ///
    /// # Errors
    /// Where the system doesn't define the pair.
    pub fn merge(&self, left: DType, right: DType) -> Result<DType, Refusal> {
        let mode = &self.modes[0];
        match mode.concrete(mode.merge(left.into(), right.into())?) {
            Node::Type(dtype) => Ok(dtype),
            other => Err(Refusal::Unknown(other)),
        }
    }
}

impl Mode {
    /// Whether the system has the type at all.
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

    /// The types that the system has, in the order of [`Node::ALL`].
    pub fn types(&self) -> impl Iterator<Item = Node> {
        Node::ALL.into_iter().filter(|&node| self.knows(node))
    }

    /// The lattice whose joins the results are, if they are that.
    #[must_use]
    pub const fn lattice(&self) -> Option<&'static Lattice> {
        self.lattice
    }

    /// The type that a result has in the end: a weak one gets the default size
    /// of its kind.
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

    /// The type of an operation on a `left` and a `right` operand.
    ///
    /// ```
    /// use ferrox_core::{DType::{S8, S16, U8}, promotion::System};
    /// let nx = System::named("nx").unwrap().mode(0).unwrap();
    /// assert_eq!(nx.merge(U8.into(), S8.into()), Ok(S16.into()));
    /// ```
    ///
    /// # Errors
    /// Where the system doesn't define the pair.
    #[inline]
    pub fn merge(&self, left: Node, right: Node) -> Result<Node, Refusal> {
        match self.table[left.index()][right.index()] {
            Some(node) => Ok(node),
            None => Err(self.refuse(Operand::Type(left), Operand::Type(right))),
        }
    }

    /// The type of an operation on an operand of type `node` and a number.
    ///
    /// ```
    /// use ferrox_core::{DType::{U8, U16}, promotion::{Number, System}};
    /// let nx = System::named("nx").unwrap().mode(0).unwrap();
    /// assert_eq!(nx.merge_number(U8.into(), Number::Integer(256)), Ok(U16.into()));
    /// ```
    ///
    /// # Errors
    /// Where the system doesn't define it, or the result doesn't hold the number.
    #[inline]
    pub fn merge_number(&self, node: Node, number: Number) -> Result<Node, Refusal> {
        let Some(merged) = (self.numbers)(self, node, number) else {
            return Err(self.refuse(Operand::Type(node), Operand::Number(number)));
        };
        self.check(number, merged)?;
        Ok(merged)
    }

    /// The type of an operation on any number of operands.
    ///
    /// ```
    /// use ferrox_core::DType::{F16, S8, U8};
    /// use ferrox_core::promotion::{Operand, System};
    /// let jax = System::named("jax").unwrap().mode(0).unwrap();
    /// let types = [U8, S8, F16].map(|dtype| Operand::Type(dtype.into()));
    /// assert_eq!(jax.result_type(types), Ok(F16.into()));
    /// ```
    ///
    /// # Errors
    /// Where there is no operand, the system doesn't define the promotion, or
    /// the result doesn't hold an integer among them.
    pub fn result_type<I>(&self, operands: I) -> Result<Node, Refusal>
    where
        I: IntoIterator<Item = Operand>,
        I::IntoIter: Clone,
    {
        let operands = operands.into_iter();
        let float = Operand::Type(Node::Type(self.defaults[1]));
        if matches!(self.absent, Absent::Refused)
            && operands.clone().any(|operand| operand == Operand::Absent)
        {
            return Err(Refusal::Absent);
        }
        let nothing = matches!(self.absent, Absent::Nothing);
        let operands = operands.filter_map(|operand| match operand {
            Operand::Absent => (!nothing).then_some(float),
            operand => Some(operand),
        });
        let result = match self.fold {
            Fold::Left => self.fold_left(operands.clone())?,
            Fold::KindsDown => self.kinds_down(operands.clone())?,
            Fold::Values(smallest) => self.values(operands.clone(), smallest)?,
        };
        for operand in operands {
            if let Operand::Number(number) = operand {
                self.check(number, result)?;
            }
        }
        Ok(result)
    }

    fn fold_left(&self, operands: impl Iterator<Item = Operand>) -> Result<Node, Refusal> {
        let folded = operands.map(Ok).reduce(|left, right| self.meet(left?, right?).map(Operand::Type));
        match folded.ok_or(Refusal::Empty)?? {
            Operand::Number(number) => (self.alone)(number).ok_or(Refusal::Alone(number)),
            Operand::Type(node) | Operand::Array(node) => self.known(node),
            Operand::Absent => Err(Refusal::Absent),
        }
    }

    fn meet(&self, left: Operand, right: Operand) -> Result<Node, Refusal> {
        let met = match (left, right) {
            (Operand::Number(left), Operand::Number(right)) => (self.alone)(left)
                .zip((self.alone)(right))
                .and_then(|(left, right)| self.table[left.index()][right.index()]),
            (Operand::Type(node) | Operand::Array(node), Operand::Number(number))
            | (Operand::Number(number), Operand::Type(node) | Operand::Array(node)) => {
                (self.numbers)(self, node, number)
            }
            (Operand::Type(left) | Operand::Array(left), Operand::Type(right) | Operand::Array(right)) => {
                self.table[left.index()][right.index()]
            }
            (Operand::Absent, _) | (_, Operand::Absent) => return Err(Refusal::Absent),
        };
        met.ok_or_else(|| self.refuse(left, right))
    }

    /// NumPy's order: one type of the highest kind meets each of the others,
    /// and the results meet one another, so that integers of several types
    /// don't widen each other before they meet a float.
    fn kinds_down(&self, operands: impl Iterator<Item = Operand> + Clone) -> Result<Node, Refusal> {
        let types = operands.clone().filter_map(|operand| match operand {
            Operand::Type(node) | Operand::Array(node) if !node.is_weak() => Some(node),
            _ => None,
        });
        let weak = operands.filter_map(|operand| match operand {
            Operand::Type(node) | Operand::Array(node) if node.is_weak() => Some((node, None)),
            Operand::Number(number) => Some((number.weak(), Some(number))),
            _ => None,
        });
        let weakest = weak.reduce(|a, b| if b.0.index() > a.0.index() { b } else { a });
        let strong = self.strong(types)?;
        match (strong, weakest) {
            (Some(node), None) => Ok(node),
            (Some(node), Some((_, Some(number)))) => self.meet(Operand::Type(node), Operand::Number(number)),
            (Some(node), Some((weak, None))) => self.merge(node, weak),
            (None, Some((_, Some(number)))) => (self.alone)(number).ok_or(Refusal::Alone(number)),
            (None, Some((weak, None))) => self.merge(weak, weak),
            (None, None) => Err(Refusal::Empty),
        }
    }

    fn strong(&self, types: impl Iterator<Item = Node> + Clone) -> Result<Option<Node>, Refusal> {
        let mut highest = None;
        for node in types.clone() {
            if highest.is_none_or(|highest| level(node) > level(highest)) {
                highest = Some(node);
            }
        }
        let Some(highest) = highest else { return Ok(None) };
        let mut result = self.known(highest)?;
        for node in types {
            result = self.merge(result, self.merge(highest, node)?)?;
        }
        Ok(Some(result))
    }

    /// Before NumPy 2. The value of a scalar of which only the type is known is
    /// taken for one that fits.
    fn values(
        &self,
        operands: impl Iterator<Item = Operand> + Clone,
        smallest: fn(Number) -> Option<Smallest>,
    ) -> Result<Node, Refusal> {
        // Floats and complex numbers count as one kind here.
        let kind = |node: Node| level(node).min(2);
        let (mut array, mut scalar) = (None, None);
        for operand in operands.clone() {
            match operand {
                Operand::Array(node) => array = array.max(Some(kind(node))),
                Operand::Type(node) => scalar = scalar.max(Some(kind(node))),
                Operand::Number(number) => scalar = scalar.max(Some(kind(number.weak()))),
                Operand::Absent => {}
            }
        }
        let by_value = scalar.is_some() && array >= scalar;
        if let Some(Operand::Number(number)) = operands
            .clone()
            .find(|operand| matches!(operand, Operand::Number(number) if (self.alone)(*number).is_none()))
        {
            return Err(Refusal::Alone(number));
        }
        if !by_value {
            let types = operands.filter_map(|operand| match operand {
                Operand::Array(node) | Operand::Type(node) => Some(self.concrete(node)),
                Operand::Number(number) => (self.alone)(number),
                Operand::Absent => None,
            });
            return self.strong(types)?.ok_or(Refusal::Empty);
        }
        let types = operands.filter_map(|operand| match operand {
            Operand::Array(node) | Operand::Type(node @ Node::Bool) => {
                Some(Ok(Smallest { node, signed: None }))
            }
            Operand::Number(number) => smallest(number).map(Ok),
            Operand::Type(_) | Operand::Absent => None,
        });
        let folded = types.reduce(|left, right| {
            let (left, right) = (left?, right?);
            let (l, r) = match (left.signed, right.signed) {
                (Some(signed), _) if !unsigned(right.node) => (signed, right.node),
                (None, Some(signed)) if !unsigned(left.node) => (left.node, signed),
                _ => (left.node, right.node),
            };
            let node = self.merge(l, r)?;
            let signed = match (left.signed, right.signed) {
                (Some(left), Some(right)) => Some(self.merge(left, right)?),
                _ => None,
            };
            Ok(Smallest { node, signed })
        });
        self.known(folded.ok_or(Refusal::Empty)??.node)
    }

    /// A number has its weak type: the default for `numbers`.
    fn weak(&self, node: Node, number: Number) -> Option<Node> {
        self.table[node.index()][number.weak().index()]
    }

    fn known(&self, node: Node) -> Result<Node, Refusal> {
        match self.table[node.index()][node.index()] {
            Some(node) => Ok(node),
            None if self.knows(node) => Err(Refusal::Pair(Operand::Type(node), Operand::Type(node))),
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

    /// Says which of the operands is the reason.
    #[cold]
    fn refuse(&self, left: Operand, right: Operand) -> Refusal {
        let unknown = [left, right].into_iter().find_map(|operand| match operand {
            Operand::Type(node) | Operand::Array(node) if !self.knows(node) => Some(node),
            _ => None,
        });
        unknown.map_or(Refusal::Pair(left, right), Refusal::Unknown)
    }
}

/// Kinds from low to high.
fn level(node: Node) -> u8 {
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

/// Whether it leaves a number beside it unsigned.
fn unsigned(node: Node) -> bool {
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
