//! Whole programs: many operations, conditions and loops that one call runs.
//!
//! A program is built from regions ([`source`]), whose steps read and write numbered slots, and runs
//! without the VM. Each operation runs as the kernel that it is elsewhere, so that a program gives the
//! bits that its operations give one by one.
//!
//! * `operand`: slots, and the values that steps read and write;
//! * `operation`: the operations with their options, and how each calls the kernel;
//! * `source`: what a program is built from: steps, conditions and loops;
//! * `well_formed`: what must hold of it before anything else;
//! * `program`: the checked program, flat instructions;
//! * `constants`: small values that depend on no argument, computed when the program is made;
//! * `unrolling`: loops of a few trips that become the steps of these;
//! * `vector_products`: matrices of loops that are multiplied with vectors, transposed before these;
//! * `repetition`: small operands whose elements are repeated before an operation;
//! * `slices`: slices before elementwise operations instead of after them;
//! * `reductions`: folds along axes that have others between them, in steps;
//! * `products`: transposes that become axes of products of matrices;
//! * `views`: values that only have elements of others, `assembled` from them or one layout of one of them;
//! * `fusion`: which operations are computed together, as a `cluster`, some rows at a time;
//! * `joined_products`: products of matrices that clusters compute with their rows;
//! * `kernel`, with `elementwise` and `moves`: operations that are prepared for their types and shapes;
//! * `liveness`: where in a program a value dies;
//! * `small_loop`: loops over numbers and small arrays, as code for a register machine;
//! * `row_loop`: loops that are computed some rows at a time;
//! * `explain`: a program as text;
//! * `times`: how long the instructions of a program take;
//! * `value`: the values of slots;
//! * `execution`: a run, which can pause and go on.

mod assembled;
mod branch_slots;
mod cluster;
mod constants;
mod elementwise;
mod execution;
mod explain;
mod fusion;
mod joined_products;
mod kernel;
mod liveness;
mod machine_code;
mod moves;
mod operand;
mod operation;
mod products;
mod program;
mod reductions;
mod repetition;
mod reverse_loop;
mod row_loop;
mod rows;
mod slices;
mod small_loop;
pub mod source;
mod times;
mod unrolling;
mod unused;
mod value;
mod vector_products;
mod views;
mod well_formed;

pub use self::execution::{Execution, Host, Outcome, Wish};
pub use self::machine_code::{machine_code, set_machine_code};
pub use self::operation::{ConvOptions, Operation, Start, WindowOptions};
pub use self::program::Program;
pub use self::times::Times;
pub use self::value::Value;
