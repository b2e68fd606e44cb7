//! How a system's data become a table: from a grid of text, or from the edges
//! of a lattice. Both are read by the compiler, which refuses mistakes in them.

use super::node::{NODES, Node};

/// The type that results from the row's, the left operand's, and the column's.
/// `None` where the system doesn't say.
pub type Table = [[Option<Node>; NODES]; NODES];

/// Nothing defined.
pub(super) const EMPTY: Table = [[None; NODES]; NODES];

/// Reads a grid: a line with the columns' codes, then the row's code and the
/// results, `--` where there is none.
pub(super) const fn grid(text: &str) -> Table {
    let text = text.as_bytes();
    let mut columns = [Node::Bool; NODES];
    let mut count = 0;
    let mut at = blanks(text, 0).0;
    loop {
        let end = word(text, at);
        columns[count] = node(text, at, end);
        count += 1;
        let (next, newline) = blanks(text, end);
        at = next;
        if newline {
            break;
        }
    }
    let mut table = EMPTY;
    while at < text.len() {
        let end = word(text, at);
        let row = node(text, at, end).index();
        at = end;
        let mut column = 0;
        while column < count {
            let (next, newline) = blanks(text, at);
            assert!(!newline, "a row has as many cells as there are columns");
            let end = word(text, next);
            if text[next] != b'-' {
                table[row][columns[column].index()] = Some(node(text, next, end));
            }
            at = end;
            column += 1;
        }
        let (next, newline) = blanks(text, at);
        assert!(newline, "a row has as many cells as there are columns");
        at = next;
    }
    table
}

/// Where the next word begins, and whether a line has ended before it.
const fn blanks(text: &[u8], mut at: usize) -> (usize, bool) {
    let mut newline = false;
    while at < text.len() && (text[at] == b' ' || text[at] == b'\n') {
        newline |= text[at] == b'\n';
        at += 1;
    }
    (at, newline)
}

/// Where the word ends that begins there.
const fn word(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b' ' && text[at] != b'\n' {
        at += 1;
    }
    at
}

const fn node(text: &[u8], start: usize, end: usize) -> Node {
    let code = text.split_at(end).0.split_at(start).1;
    match Node::from_code(code) {
        Some(node) => node,
        None => panic!("a code that no type has"),
    }
}

/// A lattice: each node with its immediate successors.
#[derive(Debug)]
pub struct Lattice {
    /// The nodes and the edges that leave them, upwards.
    pub edges: &'static [(Node, &'static [Node])],
    /// Where the document draws the nodes.
    pub positions: &'static [(Node, f64, f64)],
}

impl Lattice {
    /// Every pair's least upper bound, `None` where there is no upper bound.
    ///
    /// # Panics
    /// Where the edges run in a circle, or a pair has several least bounds.
    #[must_use]
    pub const fn joins(&self) -> Table {
        let above = self.closure();
        let mut table = EMPTY;
        let mut left = 0;
        while left < NODES {
            let mut right = 0;
            while right < NODES {
                let bounds = above[left] & above[right];
                if bounds != 0 {
                    table[left][right] = Some(least(&above, bounds));
                }
                right += 1;
            }
            left += 1;
        }
        table
    }

    /// For each node, the set of itself and all that can be reached from it.
    const fn closure(&self) -> [u32; NODES] {
        let mut above = [0; NODES];
        // A path is no longer than there are nodes.
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

/// The one of the bounds that all others are above.
const fn least(above: &[u32; NODES], bounds: u32) -> Node {
    let mut i = 0;
    while i < NODES {
        if bounds & (1 << i) != 0 && above[i] & bounds == bounds {
            return Node::ALL[i];
        }
        i += 1;
    }
    panic!("a pair without a least upper bound")
}
