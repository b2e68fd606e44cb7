//! What atoms and small integers stand for.
//!
//! Problem: an operation has one of forty names, a type one of twenty tuples, and comparing them
//! one after the other takes as long as an operation on one element. Technique: such terms are
//! hasher that stay the same while the VM runs, looked up in a hash table of linear probing.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use rustler::codegen_runtime::ErlNifTerm;
use rustler::{Atom, Env, NifResult, Term};

use crate::entry::bad_argument;

/// Two terms, or one term twice.
type Key = [ErlNifTerm; 2];

/// The number of slots of a table.
const ATOM_TABLE_SLOTS: usize = 128;

type Slots<T> = [Option<(Key, T)>; ATOM_TABLE_SLOTS];

/// A hash table whose keys are an atom, or an atom and a small integer.
pub struct AtomTable<T: 'static>(OnceLock<Box<Slots<T>>>);

impl<T: Copy> AtomTable<T> {
    pub const fn new() -> Self {
        AtomTable(OnceLock::new())
    }

    /// Puts in what is known, once: loading again, as an upgrade does, finds the same hasher.
    pub fn fill<'a>(&self, entries: impl ExactSizeIterator<Item = NifResult<([Term<'a>; 2], T)>>) -> bool {
        // At least half of the slots stay free: a search ends at a free slot, and is short.
        if entries.len() > ATOM_TABLE_SLOTS / 2 {
            return false;
        }
        let mut slots = Box::new([None; ATOM_TABLE_SLOTS]);
        for entry in entries {
            let Ok((terms, value)) = entry else { return false };
            let key = terms.map(|term| term.as_c_arg());
            let mut slot = first_slot(key);
            while slots[slot].is_some() {
                slot = (slot + 1) % ATOM_TABLE_SLOTS;
            }
            slots[slot] = Some((key, value));
        }
        self.0.get_or_init(|| slots);
        true
    }

    /// The value for two terms. Returns `None` if they are not in the table.
    #[inline(always)]
    pub fn find(&self, terms: [Term<'_>; 2]) -> Option<T> {
        let key = terms.map(|term| term.as_c_arg());
        let slots = self.0.get()?;
        let mut slot = first_slot(key);
        while let Some((known, value)) = slots[slot] {
            if known == key {
                return Some(value);
            }
            slot = (slot + 1) % ATOM_TABLE_SLOTS;
        }
        None
    }
}

/// The slot where the search for a key begins. The lowest six bits of the hash are left out: the
/// lowest bits of a term are the tag of its kind.
#[inline(always)]
fn first_slot([one, other]: Key) -> usize {
    let mut hasher = TermHasher(0);
    one.hash(&mut hasher);
    other.hash(&mut hasher);
    (hasher.0 >> 6) % ATOM_TABLE_SLOTS
}

/// What terms hash to, whose hasher rustler keeps to itself.
struct TermHasher(usize);

impl Hasher for TermHasher {
    #[inline(always)]
    fn write_usize(&mut self, word: usize) {
        self.0 = (self.0 << 3) ^ word;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_usize(byte.into()));
    }

    fn finish(&self) -> u64 {
        self.0 as u64
    }
}

/// A hash table from the atoms of names to operations.
pub struct NameTable<T: 'static> {
    all: &'static [T],
    name: fn(T) -> &'static str,
    known: AtomTable<T>,
}

impl<T: Copy> NameTable<T> {
    pub const fn new(all: &'static [T], name: fn(T) -> &'static str) -> Self {
        NameTable { all, name, known: AtomTable::new() }
    }

    pub fn fill(&self, env: Env<'_>) -> bool {
        let named = self.all.iter().zip(self.names());
        self.known.fill(named.map(|(&op, name)| {
            let atom = Atom::from_str(env, name)?.to_term(env);
            Ok(([atom, atom], op))
        }))
    }

    /// The names, in the order of the operations.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.all.iter().map(|&op| (self.name)(op))
    }

    #[inline(always)]
    pub fn decode(&self, term: Term<'_>) -> NifResult<T> {
        self.known.find([term, term]).ok_or_else(bad_argument)
    }
}
