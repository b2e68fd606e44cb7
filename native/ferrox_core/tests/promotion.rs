//! Every cell of the golden tables, and the laws that the tables keep.

use ferrox_core::DType;
use ferrox_core::promotion::{Mode, Node, Number, PromotionOperand, Refusal, SYSTEMS, System};

/// A system, its options, and the golden table of its pairs.
const GOLDEN: &[(&str, usize, &str)] = &[
    ("nx", 0, "nx_merge_0.13.1.csv"),
    ("nx_0_9", 0, "nx_merge_0.9.2.csv"),
    ("jax", 0, "jax_promotion.csv"),
    ("jax", 1, "jax_strict.csv"),
    ("jax", 2, "jax_promotion_x32_result.csv"),
    ("numpy", 0, "numpy_promotion.csv"),
    ("numpy", 1, "numpy_promotion.csv"),
    ("array_api", 0, "array_api_promotion.csv"),
    ("ivy", 0, "ivy_promotion_precise.csv"),
    ("ivy", 1, "ivy_promotion_nonprecise.csv"),
    ("ivy", 2, "ivy_promotion_array_api_only.csv"),
    ("ivy", 3, "ivy_promotion_array_api_only.csv"),
    ("ivy_torch", 0, "torch_promotion_from_ivy_frontend.csv"),
];

fn mode(name: &str, options: usize) -> &'static Mode {
    System::named(name).and_then(|system| system.mode(options)).unwrap_or_else(|| panic!("{name}, {options}"))
}

fn nx(name: &str) -> &'static Mode {
    mode(name, 0)
}

/// The node of that name, in whichever way the golden files write it.
fn node(name: &str) -> Option<Node> {
    const NUMPY: &[(&str, Node)] = &[
        ("bool", Node::Bool),
        ("uint8", Node::Type(DType::U8)),
        ("uint16", Node::Type(DType::U16)),
        ("uint32", Node::Type(DType::U32)),
        ("uint64", Node::Type(DType::U64)),
        ("int8", Node::Type(DType::S8)),
        ("int16", Node::Type(DType::S16)),
        ("int32", Node::Type(DType::S32)),
        ("int64", Node::Type(DType::S64)),
        ("bfloat16", Node::Type(DType::BF16)),
        ("float16", Node::Type(DType::F16)),
        ("float32", Node::Type(DType::F32)),
        ("float64", Node::Type(DType::F64)),
        ("complex64", Node::Type(DType::C64)),
        ("complex128", Node::Type(DType::C128)),
    ];
    NUMPY
        .iter()
        .find(|(numpy, _)| *numpy == name)
        .map(|&(_, node)| node)
        .or_else(|| Node::from_code(name.as_bytes()))
}

fn nx_node(name: &str) -> Option<Node> {
    DType::ALL.iter().find(|d| d.name() == name).map(|&d| Node::Type(d))
}

fn text(file: &str) -> String {
    let path = format!("{}/../../test/fixtures/promotion/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Calls `check(row, column, cell)` for every cell and returns their number.
fn each_cell(file: &str, mut check: impl FnMut(&str, &str, &str)) -> usize {
    let text = text(file);
    let mut lines = text.lines().map(|line| line.split(','));
    let header: Vec<&str> = lines.next().expect("a header").skip(1).collect();
    let mut cells = 0;
    for mut line in lines {
        let row = line.next().expect("the row's name");
        let values: Vec<&str> = line.collect();
        assert_eq!(values.len(), header.len(), "{file}, row {row}");
        for (column, cell) in header.iter().zip(values) {
            check(row, column, cell);
            cells += 1;
        }
    }
    cells
}

/// How the golden files write a number, with bignums clamped as Elixir does.
fn number(text: &str) -> Option<Number> {
    if let Ok(integer) = text.parse::<i128>() {
        return Some(Number::Integer(integer.clamp(i64::MIN.into(), u64::MAX.into())));
    }
    if let Ok(float) = text.parse::<f64>() {
        return Some(Number::Float(float));
    }
    text.starts_with("complex").then_some(Number::Complex(1.0, 2.0))
}

#[test]
fn every_system_has_golden_files() {
    for system in SYSTEMS {
        let golden = GOLDEN.iter().any(|(name, _, _)| *name == system.name);
        let frontend = text("ivy_frontend_promotion.csv").contains(system.name.trim_start_matches("ivy_"));
        assert!(golden || frontend || system.name == "ivy_tensorflow", "{}", system.name);
        let modes = 1 << system.options.len();
        assert!(system.mode(modes - 1).is_some(), "{}", system.name);
        assert!(system.mode(modes).is_none(), "{}", system.name);
    }
}

#[test]
fn merges_are_golden() {
    for &(name, options, file) in GOLDEN {
        let mode = mode(name, options);
        let parse = if name.starts_with("nx") { nx_node } else { node };
        let cells = each_cell(file, |left, right, expected| {
            let merged = mode.merge(parse(left).expect(left), parse(right).expect(right)).ok();
            assert_eq!(merged, parse(expected), "{name} {options}: {left} with {right}");
        });
        let types = mode.types().filter(|node| name == "jax" || !node.is_weak()).count();
        // Under the array API alone bf16, c64 and c128 have no pair at all.
        let unknown = if name == "ivy" && options >= 2 { 3 } else { 0 };
        assert_eq!(cells, (types + unknown).pow(2), "{name} {options}");
    }
}

#[test]
fn the_lattice_itself_is_golden_without_64_bits() {
    let joins = mode("jax", 2).lattice().expect("a lattice").joins();
    let cells = each_cell("jax_promotion_x32_lattice.csv", |left, right, expected| {
        let (left, right) = (node(left).expect(left), node(right).expect(right));
        assert_eq!(joins[left.index()][right.index()], node(expected), "{left} with {right}");
    });
    assert_eq!(cells, 324);
}

/// 24 edges, none of which follows from others.
#[test]
fn the_lattice_is_its_own_transitive_reduction() {
    let lattice = mode("jax", 0).lattice().expect("a lattice");
    assert_eq!((lattice.edges.len(), lattice.positions.len()), (18, 18));
    let edges: Vec<(Node, Node)> =
        lattice.edges.iter().flat_map(|&(from, to)| to.iter().map(move |&to| (from, to))).collect();
    assert_eq!(edges.len(), 24);
    let joins = lattice.joins();
    let below = |a: Node, b: Node| a != b && joins[a.index()][b.index()] == Some(b);
    for &(from, to) in &edges {
        assert!(!Node::ALL.iter().any(|&via| below(from, via) && below(via, to)), "{from} to {to}");
    }
    for &(node, _, _) in lattice.positions {
        assert!(lattice.edges.iter().any(|&(from, _)| from == node), "{node}");
    }
}

#[test]
fn frontends_are_golden() {
    let text = text("ivy_frontend_promotion.csv");
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 916);
    let mut defined = 0;
    for name in ["torch", "paddle", "numpy", "jax", "onnx", "mxnet"] {
        let mode = mode(&format!("ivy_{name}"), 0);
        let types: Vec<Node> = mode.types().filter(|node| !node.is_weak()).collect();
        for &left in &types {
            for &right in &types {
                let row = rows
                    .iter()
                    .find(|row| row[0] == name && node(row[1]) == Some(left) && node(row[2]) == Some(right));
                let expected = row.and_then(|row| node(row[3]));
                assert_eq!(mode.merge(left, right).ok(), expected, "{name}: {left} with {right}");
                defined += usize::from(expected.is_some());
            }
        }
    }
    assert_eq!(defined, rows.len());
    let tensorflow = mode("ivy_tensorflow", 0);
    for left in tensorflow.types().filter(|node| !node.is_weak()) {
        for right in tensorflow.types().filter(|node| !node.is_weak()) {
            assert_eq!(tensorflow.merge(left, right).is_ok(), left == right);
        }
    }
}

#[test]
fn merges_with_numbers_are_golden() {
    for (name, version) in [("nx", "0.13.1"), ("nx_0_9", "0.9.2")] {
        let nx = nx(name);
        let mut skipped = 0;
        let cells = each_cell(&format!("nx_merge_number_{version}.csv"), |value, left, expected| {
            // Atoms are Elixir's to judge.
            let Some(number) = number(value) else {
                skipped += 1;
                return;
            };
            let left = nx_node(left).expect(left);
            // Nx's own operations give a complex number a type first.
            let expected = if expected.starts_with("ERR") {
                nx.merge(left, DType::C64.into()).ok()
            } else {
                nx_node(expected)
            };
            assert_eq!(nx.merge_number(left, number).ok(), expected, "{name}: {left} with {value}");
        });
        assert_eq!(skipped, 6 * nx.types().count(), "{name}");
        assert_eq!(cells, 80 * nx.types().count(), "{name}");
    }
}

/// Integers beyond 64 bits change nothing, clamped or not.
#[test]
fn numbers_never_overflow() {
    for nx in [nx("nx"), nx("nx_0_9")] {
        for node in nx.types() {
            for (clamped, beyond) in [(i128::from(u64::MAX), i128::MAX), (i64::MIN.into(), i128::MIN)] {
                assert_eq!(
                    nx.merge_number(node, Number::Integer(clamped)),
                    nx.merge_number(node, Number::Integer(beyond)),
                    "{node} with {beyond}",
                );
            }
        }
    }
}

/// Every variant of every system, with its name for messages.
fn modes() -> impl Iterator<Item = (String, &'static Mode)> {
    SYSTEMS.iter().flat_map(|system| {
        (0..1 << system.options.len())
            .map(move |options| (format!("{} {options}", system.name), system.mode(options).expect("a mode")))
    })
}

#[test]
fn merging_a_type_with_itself_keeps_it() {
    for (name, mode) in modes() {
        // Weak types become strong under most systems, wide ones narrow under x32.
        let narrows = name == "jax 2" || name == "jax 3";
        for node in mode.types().filter(|node| !node.is_weak() && !narrows) {
            assert_eq!(mode.merge(node, node), Ok(node), "{name}");
        }
    }
}

/// Operands commute, but for `f8_e4m3fn` with another float in Nx, where the
/// left one wins, and for `bool` with `bf16` in two of Ivy's frontends.
#[test]
fn merge_commutes() {
    for (name, mode) in modes() {
        let exceptions: usize = match name.as_str() {
            "nx 0" => 4,
            "ivy_numpy 0" | "ivy_mxnet 0" => 1,
            _ => 0,
        };
        let mut found = 0;
        for a in mode.types() {
            for b in mode.types().filter(|&b| b.index() < a.index()) {
                let (left, right) = (mode.merge(a, b).ok(), mode.merge(b, a).ok());
                if left != right {
                    let special = [Node::Type(DType::F8E4M3FN), Node::Type(DType::BF16)];
                    assert!(special.contains(&a) || special.contains(&b), "{name}: {a} with {b}");
                    found += 1;
                }
            }
        }
        assert_eq!(found, exceptions, "{name}");
    }
}

/// Grouping doesn't matter in a lattice. Where it does, the triples are counted.
#[test]
fn merge_associates() {
    for (name, exceptions) in [
        ("nx 0", 8),
        ("nx_0_9 0", 0),
        ("jax 0", 0),
        ("jax 1", 0),
        ("jax 2", 0),
        ("jax 3", 0),
        ("ivy 0", 40),
        ("ivy 1", 64),
        ("ivy_torch 0", 0),
        ("ivy_tensorflow 0", 0),
    ] {
        let (_, mode) = modes().find(|(found, _)| found == name).expect(name);
        // The numbers of the others have a type only beside another.
        let nodes: Vec<Node> =
            mode.types().filter(|node| name.starts_with("jax") || !node.is_weak()).collect();
        let mut found = 0;
        for &a in &nodes {
            for &b in &nodes {
                for &c in &nodes {
                    let left = mode.merge(a, b).and_then(|ab| mode.merge(ab, c)).ok();
                    let right = mode.merge(b, c).and_then(|bc| mode.merge(a, bc)).ok();
                    found += usize::from(left != right);
                }
            }
        }
        assert_eq!(found, exceptions, "{name}");
    }
}

/// Under NumPy the order of types doesn't matter although pairs don't associate.
#[test]
fn numpy_sees_no_order() {
    let numpy = mode("numpy", 0);
    let nodes: Vec<Node> = numpy.types().filter(|node| !node.is_weak()).collect();
    let mut differ = 0;
    for &a in &nodes {
        for &b in &nodes {
            for &c in &nodes {
                let all = |nodes: [Node; 3]| numpy.result_type(nodes.map(PromotionOperand::Type));
                assert_eq!(all([a, b, c]), all([c, a, b]), "{a}, {b}, {c}");
                assert_eq!(all([a, b, c]), all([b, a, c]), "{a}, {b}, {c}");
                let folded = numpy.merge(a, b).and_then(|ab| numpy.merge(ab, c));
                differ += usize::from(all([a, b, c]) != folded);
            }
        }
    }
    assert_eq!(differ, 14);
}

#[test]
fn strict_promotion_wants_one_common_bound() {
    let strict = mode("jax", 1);
    let result = |nodes: &[Node]| strict.result_type(nodes.iter().copied().map(PromotionOperand::Type)).ok();
    let (s32, f32) = (Node::Type(DType::S32), Node::Type(DType::F32));
    assert_eq!(result(&[Node::Int, Node::Float, f32]), Some(f32));
    assert_eq!(result(&[f32, Node::Float, Node::Int]), Some(f32));
    assert_eq!(result(&[s32, Node::Int, Node::Float]), None);
    assert_eq!(result(&[Node::Int, Node::Float, s32]), None);
}

#[test]
fn what_a_system_leaves_open_is_an_error() {
    let old = nx("nx_0_9");
    let (e4m3fn, f32) = (Node::Type(DType::F8E4M3FN), Node::Type(DType::F32));
    assert!(!old.knows(e4m3fn));
    assert_eq!(old.merge(e4m3fn, f32), Err(Refusal::Unknown(e4m3fn)));
    assert_eq!(old.merge(f32, e4m3fn), Err(Refusal::Unknown(e4m3fn)));
    assert_eq!(old.merge_number(e4m3fn, Number::Float(1.0)), Err(Refusal::Unknown(e4m3fn)));
    assert_eq!(old.result_type([]), Err(Refusal::Empty));
    let api = mode("array_api", 0);
    let s64 = Node::Type(DType::S64);
    let pair = Refusal::Pair(PromotionOperand::Type(s64), PromotionOperand::Type(f32));
    assert_eq!(api.merge(s64, f32), Err(pair));
    let one = Number::Integer(1);
    assert_eq!(api.result_type([PromotionOperand::Number(one)]), Err(Refusal::Alone(one)));
    // The default type of a number alone is a type that the system may not have.
    let large = PromotionOperand::Number(Number::Integer(1 << 63));
    assert_eq!(mode("ivy", 0).result_type([large]), Ok(DType::U64.into()));
    assert_eq!(mode("ivy_torch", 0).result_type([large]), Err(Refusal::Unknown(DType::U64.into())));
}

#[test]
fn integers_must_fit_where_the_system_says_so() {
    let u8 = Node::Type(DType::U8);
    let at = |integer: i128| Number::Integer(integer);
    for name in ["numpy", "array_api", "ivy"] {
        assert_eq!(mode(name, 0).merge_number(u8, at(255)), Ok(u8), "{name}");
        assert_eq!(mode(name, 0).merge_number(u8, at(256)), Err(Refusal::Range(256, u8)), "{name}");
        assert_eq!(mode(name, 0).merge_number(u8, at(-1)), Err(Refusal::Range(-1, u8)), "{name}");
    }
    assert_eq!(mode("jax", 0).merge_number(u8, at(256)), Ok(u8));
    assert_eq!(mode("jax", 0).merge_number(u8, at(1 << 31)), Ok(u8));
    let s32 = Node::Type(DType::S32);
    assert_eq!(mode("jax", 2).merge_number(u8, at(1 << 31)), Err(Refusal::Range(1 << 31, s32)));
}

/// NumPy 1.26 with arrays, by the values of numbers.
#[test]
fn legacy_numpy_looks_at_values() {
    let legacy = mode("numpy", 1);
    let with = |dtype: DType, number| {
        legacy.result_type([PromotionOperand::Array(dtype.into()), PromotionOperand::Number(number)])
    };
    assert_eq!(with(DType::S8, Number::Integer(127)), Ok(DType::S8.into()));
    assert_eq!(with(DType::S8, Number::Integer(128)), Ok(DType::S16.into()));
    assert_eq!(with(DType::U8, Number::Integer(-1)), Ok(DType::S16.into()));
    assert_eq!(with(DType::U8, Number::Float(1.0)), Ok(DType::F64.into()));
    assert_eq!(with(DType::F16, Number::Float(1e6)), Ok(DType::F32.into()));
    assert_eq!(with(DType::F16, Number::Complex(0.0, 1.0)), Ok(DType::C64.into()));
    let scalar = PromotionOperand::Type(DType::S16.into());
    assert_eq!(
        legacy.result_type([scalar, PromotionOperand::Number(Number::Integer(1))]),
        Ok(DType::S64.into())
    );
}
