//! Promotion tables, made of a grid of text or of the edges of a lattice. Both are read at compile
//! time, so that a mistake in them is a compilation error.

use super::node::{NODES, Node};

/// The result type for a left operand, the row, and a right operand, the column. `None` where the
/// system does not define the result.
pub type Table = [[Option<Node>; NODES]; NODES];

/// A table without results.
pub(super) const EMPTY_TABLE: Table = [[None; NODES]; NODES];

/// The table whose results are those of another table for nodes that a const function replaces.
macro_rules! replace_nodes {
    ($table:expr, $replace:path) => {{
        let (given, mut table) = ($table, super::table::EMPTY_TABLE);
        let mut left = 0;
        while left < Node::ALL.len() {
            let mut right = 0;
            while right < Node::ALL.len() {
                table[left][right] =
                    given[$replace(Node::ALL[left]).index()][$replace(Node::ALL[right]).index()];
                right += 1;
            }
            left += 1;
        }
        table
    }};
}
pub(super) use replace_nodes;

/// Reads a grid: a line with the codes of the columns; then for each row a line with its code and
/// its results, `--` where there is none.
pub(super) const fn grid(text: &str) -> Table {
    let text = text.as_bytes();
    let mut columns = [Node::Bool; NODES];
    let mut count = 0;
    let mut at = skip_blanks(text, 0).0;
    loop {
        let end = word_end(text, at);
        columns[count] = parse_node(text, at, end);
        count += 1;
        let (next, newline) = skip_blanks(text, end);
        at = next;
        if newline {
            break;
        }
    }
    let mut table = EMPTY_TABLE;
    while at < text.len() {
        let end = word_end(text, at);
        let row = parse_node(text, at, end).index();
        at = end;
        let mut column = 0;
        while column < count {
            let (next, newline) = skip_blanks(text, at);
            assert!(!newline, "a row has as many cells as there are columns");
            let end = word_end(text, next);
            if text[next] != b'-' {
                table[row][columns[column].index()] = Some(parse_node(text, next, end));
            }
            at = end;
            column += 1;
        }
        let (next, newline) = skip_blanks(text, at);
        assert!(newline, "a row has as many cells as there are columns");
        at = next;
    }
    table
}

/// The position of the next word, and whether a line ends before it.
const fn skip_blanks(text: &[u8], mut at: usize) -> (usize, bool) {
    let mut newline = false;
    while at < text.len() && (text[at] == b' ' || text[at] == b'\n') {
        newline |= text[at] == b'\n';
        at += 1;
    }
    (at, newline)
}

/// The end of the word that begins at a position.
const fn word_end(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b' ' && text[at] != b'\n' {
        at += 1;
    }
    at
}

const fn parse_node(text: &[u8], start: usize, end: usize) -> Node {
    let code = text.split_at(end).0.split_at(start).1;
    match Node::from_code(code) {
        Some(node) => node,
        None => panic!("a code that no type has"),
    }
}

/// A lattice, given as a graph from each node to its immediate successors.
#[derive(Debug)]
pub struct Lattice {
    /// The nodes, each with the nodes immediately above it.
    pub edges: &'static [(Node, &'static [Node])],
    /// The positions of the nodes in the documentation's drawing.
    pub positions: &'static [(Node, f64, f64)],
}

impl Lattice {
    /// The least upper bound of every pair, or `None` for pairs without an upper bound.
    ///
    /// # Panics
    /// If the edges form a cycle, or a pair has upper bounds but no least one.
    #[must_use]
    pub const fn joins(&self) -> Table {
        let above = self.closure();
        let mut table = EMPTY_TABLE;
        let mut left = 0;
        while left < NODES {
            let mut right = 0;
            while right < NODES {
                let bounds = above[left] & above[right];
                if bounds != 0 {
                    table[left][right] = Some(least_bound(&above, bounds));
                }
                right += 1;
            }
            left += 1;
        }
        table
    }

    /// For each node, the set of the node itself and all nodes above it, as bits.
    const fn closure(&self) -> [u32; NODES] {
        let mut above = [0; NODES];
        // No path has more edges than there are nodes.
        let mut pass = 0;
        while pass < NODES {
            let mut i = 0;
            while i < self.edges.len() {
                let (from, successors) = self.edges[i];
                above[from.index()] |= 1 << from.index();
                let mut j = 0;
                while j < successors.len() {
                    above[from.index()] |= above[successors[j].index()];
                    j += 1;
                }
                i += 1;
            }
            pass += 1;
        }
        let mut i = 0;
        while i < NODES {
            let mut j = 0;
            while j < i {
                assert!(above[i] & (1 << j) == 0 || above[j] & (1 << i) == 0, "the edges run in a circle");
                j += 1;
            }
            i += 1;
        }
        above
    }
}

/// The least of the upper bounds: all others are above it.
const fn least_bound(above: &[u32; NODES], bounds: u32) -> Node {
    let mut i = 0;
    while i < NODES {
        if bounds & (1 << i) != 0 && above[i] & bounds == bounds {
            return Node::ALL[i];
        }
        i += 1;
    }
    panic!("a pair without a least upper bound")
}
