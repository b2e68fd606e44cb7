//! A program as text: its instructions, the clusters and what they read and write, and where values
//! die.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use super::cluster::{AssembledInput, Call, Cluster, Input, Register};
use super::kernel::Kernel;
use super::operand::{Memory, Operand, Place, Slot};
use super::operation::Operation;
use super::program::{ClusterCall, Code, Instruction, Program};
use super::reverse_loop::Reversal;
use super::rows::Extent;
use super::times::Times;
use crate::DType;
use crate::ops::math::Math;
use crate::ops::unary::{UnaryOp, is_fast};
use crate::tensor::byte_size;

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Text { program: self, times: None }.fmt(f)
    }
}

impl Program {
    /// The program as text, with the time of each instruction in a run, in microseconds and as a part of
    /// the whole.
    #[must_use]
    pub fn with_times(&self, times: &Times) -> String {
        let (runs, total) = (times.runs().max(1), times.total());
        Text { program: self, times: Some(RunTimes { times, runs, total }) }.to_string()
    }
}

/// A program as text.
struct Text<'a> {
    program: &'a Program,
    times: Option<RunTimes<'a>>,
}

/// The times of some runs.
struct RunTimes<'a> {
    times: &'a Times,
    runs: u64,
    total: Duration,
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Program { regions, literals, .. } = self.program;
        let bytes: usize = literals.iter().map(Vec::len).sum();
        writeln!(f, "regions: {}; literals: {}, {}", regions.len(), literals.len(), Bytes(bytes))?;
        if let Some(RunTimes { runs, total, .. }) = self.times {
            let us = total.as_secs_f64() * 1e6 / runs as f64;
            writeln!(f, "a run: {us:.1} us, the mean of {runs}")?;
        }
        for (number, code) in regions.iter().enumerate() {
            let name = if number == 0 { "program".to_string() } else { format!("region {number}") };
            let parameters: Vec<String> = (0..code.parameters.len()).map(|slot| format!("%{slot}")).collect();
            writeln!(f, "\n{name}({}):", parameters.join(", "))?;
            for (index, instruction) in code.instructions.iter().enumerate() {
                self.write_time(f, number, index)?;
                write_instruction(f, index, instruction)?;
            }
            let results: Vec<String> = code.results.iter().map(|result| place(result.place)).collect();
            self.write_time(f, number, code.instructions.len())?;
            writeln!(f, "        return {}", results.join(", "))?;
            let (read, written) = traffic(code);
            writeln!(f, "        # reads {}, writes {}", Bytes(read), Bytes(written))?;
        }
        Ok(())
    }
}

impl Text<'_> {
    /// Writes what goes before an instruction where times are asked for: how long it takes in a run,
    /// its part of the whole, and how often it runs.
    fn write_time(&self, f: &mut Formatter<'_>, region: usize, instruction: usize) -> fmt::Result {
        let Some(RunTimes { times, runs, total }) = self.times else { return Ok(()) };
        let time = times.of(region, instruction);
        let (us, count) = (time.total.as_secs_f64() * 1e6 / runs as f64, time.count / runs);
        let part = time.total.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        match count {
            0 => write!(f, "{:29}", ""),
            1 => write!(f, "{us:10.1} us {:3.0} %{:10}", part * 100.0, ""),
            _ => write!(f, "{us:10.1} us {:3.0} % x {count:<7}", part * 100.0),
        }
    }
}

/// A number of bytes, in the unit that fits.
struct Bytes(usize);

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes @ 0..10_000 => write!(f, "{bytes} bytes"),
            bytes @ 10_000..10_000_000 => write!(f, "{} KB", bytes / 1_000),
            bytes => write!(f, "{} MB", bytes / 1_000_000),
        }
    }
}

fn place(place: Place) -> String {
    match place {
        Place::Slot(slot) => format!("%{slot}"),
        Place::Literal(index) => format!("literal {index}"),
    }
}

fn places(list: &[Place]) -> String {
    list.iter().map(|&at| place(at)).collect::<Vec<_>>().join(", ")
}

fn slots(list: &[Slot]) -> String {
    list.iter().map(|slot| format!("%{slot}")).collect::<Vec<_>>().join(", ")
}

fn typed(dtype: DType, shape: &[usize]) -> String {
    let dims: Vec<String> = shape.iter().map(|size| format!("[{size}]")).collect();
    format!("{dtype}{}", dims.concat())
}

fn operand(operand: &Operand) -> String {
    format!("{} {}", place(operand.place), typed(operand.dtype, &operand.shape))
}

fn memory(memory: &Memory) -> String {
    format!("%{} {}", memory.slot, typed(memory.dtype, &memory.shape))
}

fn memories(list: &[Memory]) -> String {
    list.iter().map(memory).collect::<Vec<_>>().join(", ")
}

fn write_instruction(f: &mut Formatter<'_>, index: usize, instruction: &Instruction) -> fmt::Result {
    write!(f, "{index:6}  ")?;
    match instruction {
        Instruction::Kernel(kernel) => {
            let inputs: Vec<String> = kernel.inputs.iter().map(operand).collect();
            let (name, results) = (kernel.operation.name(), memories(&kernel.outputs));
            let fast = match (&kernel.operation, &kernel.inputs[..], &kernel.outputs[..]) {
                (Operation::Unary(op, math), [input], [result]) => {
                    fast(*op, *math, result.dtype, input.dtype)
                }
                _ => "",
            };
            write!(f, "{results} = {fast}{name}({})", inputs.join(", "))?;
            match kernel.over {
                Some(slot) => writeln!(f, ", over %{slot} if nothing else has it"),
                None => writeln!(f),
            }
        }
        Instruction::Cluster(call) => write_cluster(f, call),
        Instruction::Jump(target) => writeln!(f, "jump to {target}"),
        Instruction::JumpIfZero { predicate, target, .. } => {
            writeln!(f, "if {} is zero, jump to {target}", place(*predicate))
        }
        Instruction::JumpIfComputed { slot, target } => {
            writeln!(f, "if %{slot} has a value, jump to {target}")
        }
        Instruction::Copy { from, to } => writeln!(f, "%{to} = {}", place(*from)),
        Instruction::While { condition, body, initial, outputs } => writeln!(
            f,
            "{} = while region {condition} do region {body}, from {}",
            slots(outputs),
            places(initial)
        ),
        Instruction::Reverse(reversal) => {
            let Reversal { forward, backward, trips, initial, gradients, invariants, .. } = &**reversal;
            write!(
                f,
                "{} = gradient of {} trips of region {forward} by region {backward}, from {}; {}",
                slots(&reversal.outputs),
                place(trips.place),
                places(initial),
                places(gradients)
            )?;
            if invariants.is_empty() { writeln!(f) } else { writeln!(f, "; {}", places(invariants)) }
        }
        Instruction::Small(small) => {
            let replaced = small.replaced.iter().map(|array| array.1.slot);
            let outputs: Vec<Slot> = small.outputs.iter().map(|output| output.0).chain(replaced).collect();
            let [condition, body] = small.regions;
            write!(
                f,
                "{} = while region {condition} do region {body}, {} instructions on registers",
                slots(&outputs),
                small.len()
            )?;
            match small.small_bytes() {
                0 => writeln!(f),
                bytes => writeln!(f, " and small arrays, {}", Bytes(bytes)),
            }
        }
        Instruction::Rows(rows) => {
            let arrays = rows.arrays.iter().map(|array| array.memory.slot);
            let outputs: Vec<Slot> =
                rows.numbers.outputs.iter().map(|output| output.0).chain(arrays).collect();
            let [condition, body] = rows.numbers.regions;
            let (trips, block) = (rows.trips, rows.cluster.block_rows());
            writeln!(
                f,
                "{} = while region {condition} do region {body}, {trips} trips at a time for {block} rows",
                slots(&outputs)
            )
        }
        Instruction::Fold(fold) => writeln!(
            f,
            "{} = fold {} from {} with region {}",
            memory(&fold.output),
            place(fold.input),
            place(fold.initial),
            fold.body
        ),
        Instruction::Call { callback, inputs, outputs } => {
            let outputs: Vec<Slot> = outputs.iter().map(|output| output.0).collect();
            writeln!(f, "{} = call of Elixir {callback}({})", slots(&outputs), places(inputs))
        }
        Instruction::Free(dead) => writeln!(f, "free {}", slots(dead)),
    }
}

fn write_cluster(f: &mut Formatter<'_>, call: &ClusterCall) -> fmt::Result {
    let ClusterCall { cluster, outputs, overwritten, .. } = call;
    let mut inputs: Vec<String> = Vec::new();
    for input in cluster.inputs.iter().filter(|input| input.assembled.is_none()) {
        let text = operand(&input.operand);
        if !inputs.contains(&text) {
            inputs.push(text);
        }
    }
    let (rows, block) = (cluster.rows, cluster.block_rows());
    writeln!(f, "{} = together({}), {rows} rows, {block} at a time:", memories(outputs), inputs.join(", "))?;
    let product_rows = cluster.product_rows().unwrap_or(rows);
    for (index, input) in cluster.inputs.iter().enumerate() {
        if let Some(product) = &input.product {
            let (left, right) =
                (place(input.operand.place), place(cluster.inputs[product.right].operand.place));
            let dtype = input.operand.dtype;
            writeln!(
                f,
                "          product {index} = {dtype} dot({left}, {right}), {product_rows} rows at a time"
            )?;
        }
    }
    for (at, member) in cluster.members.iter().enumerate() {
        let kernel = cluster.kernel(at);
        if kernel.is_some_and(|kernel| kernel.members().start == at) {
            writeln!(f, "          in one loop of machine code:")?;
        }
        let operands = member.operands.iter().map(|operand| {
            let mut text = register(operand.register, cluster, outputs);
            match operand.extent {
                Extent::Row => {}
                Extent::Element => text.push_str(" (one element a row)"),
                Extent::SameRow | Extent::BlockRow => text.push_str(" (the same for all rows)"),
                Extent::SameElement => text.push_str(" (one element)"),
            }
            if let Register::Input(index) = operand.register
                && let Some(Input { rows: Some(rows), .. }) = cluster.inputs.get(index)
                && let Some(note) = rows.note()
            {
                text.push_str(&format!(" ({note})"));
            }
            text
        });
        let operands: Vec<String> = operands.collect();
        let name = member.call.name();
        let fast = match (&member.call, &member.operands[..]) {
            (Call::Unary(op, math, _), [input]) => fast(*op, *math, member.dtype, input.dtype),
            _ => "",
        };
        let to = register(member.to, cluster, outputs);
        let indentation = if kernel.is_some() { "  " } else { "" };
        writeln!(f, "          {indentation}{to} = {} {fast}{name}({})", member.dtype, operands.join(", "))?;
    }
    if let Some((result, product)) = &cluster.product {
        let (to, right) = (&outputs[*result], place(cluster.inputs[product.right].operand.place));
        writeln!(
            f,
            "          %{} = {} dot(rows, {right}), {product_rows} rows at a time",
            to.slot, to.dtype
        )?;
    }
    for (fold, target) in cluster.folds.iter().zip(&outputs[cluster.outputs.len()..]) {
        let (name, from) = (fold.accumulation.op().name(), register(fold.operand, cluster, outputs));
        writeln!(
            f,
            "          %{} = {} {name}({from}) of {} rows each",
            target.slot, target.dtype, fold.rows
        )?;
    }
    for pair in overwritten {
        let (to, over) = (&outputs[pair.output], place(cluster.inputs[pair.input].operand.place));
        writeln!(f, "          %{} is written over {over} if nothing else has it", to.slot)?;
    }
    Ok(())
}

/// What goes before the name of an operation that is evaluated by its fast form.
fn fast(op: UnaryOp, math: Math, out: DType, input: DType) -> &'static str {
    if is_fast(op, math, out, input) { "fast " } else { "" }
}

fn register(register: Register, cluster: &Cluster, outputs: &[Memory]) -> String {
    let mut text = String::new();
    let written = match register {
        Register::Input(index) => match cluster.inputs.get(index) {
            Some(Input { product: Some(_), .. }) => write!(text, "product {index}"),
            Some(Input { assembled: Some(AssembledInput { sources, .. }), .. }) => {
                let sources = sources.iter().filter_map(|&source| cluster.inputs.get(source));
                let sources: Vec<String> = sources.map(|source| place(source.operand.place)).collect();
                write!(text, "[{}]", sources.join(" | "))
            }
            Some(input) => write!(text, "{}", place(input.operand.place)),
            None => write!(text, "input {index}"),
        },
        Register::Buffer(index) => write!(text, "buffer {index}"),
        Register::Output(index) if cluster.product.as_ref().is_some_and(|(result, _)| *result == index) => {
            write!(text, "rows")
        }
        Register::Output(index) => match outputs.get(index) {
            Some(output) => write!(text, "%{}", output.slot),
            None => write!(text, "output {index}"),
        },
    };
    debug_assert!(written.is_ok(), "strings take all text");
    text
}

/// The bytes that the instructions of a region read and write, those of all branches and of one trip of
/// a loop counted.
fn traffic(code: &Code) -> (usize, usize) {
    let operand_bytes =
        |operand: &Operand| byte_size("program", operand.dtype, &operand.shape).unwrap_or(usize::MAX);
    let written = |outputs: &[Memory]| outputs.iter().map(|output| output.bytes).sum::<usize>();
    let mut total = (0_usize, 0_usize);
    for instruction in &code.instructions {
        let (read, wrote) = match instruction {
            Instruction::Kernel(kernel) => {
                let Kernel { inputs, outputs, .. } = &**kernel;
                (inputs.iter().map(operand_bytes).sum(), written(outputs))
            }
            Instruction::Cluster(call) => {
                let Cluster { inputs, rows: count, .. } = &call.cluster;
                // Of sources the cluster reads what it assembles.
                let assembled = inputs.iter().filter_map(|input| input.assembled.as_ref());
                let sources: HashSet<usize> = assembled.flat_map(|input| &input.sources).copied().collect();
                let inputs = inputs.iter().enumerate().map(|(index, input)| {
                    let of_rows = input.rows.as_ref().map(|rows| rows.width * count);
                    match of_rows {
                        Some(bytes) if input.assembled.is_some() => bytes,
                        None if sources.contains(&index) => 0,
                        _ => operand_bytes(&input.operand).min(of_rows.unwrap_or(usize::MAX)),
                    }
                });
                (inputs.sum::<usize>(), written(&call.outputs))
            }
            _ => (0, 0),
        };
        total = (total.0.saturating_add(read), total.1.saturating_add(wrote));
    }
    total
}
