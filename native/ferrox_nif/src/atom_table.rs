//! Hash tables whose keys are atoms.
//!
//! Problem: an operation has one of forty names, a type is one of twenty tuples, and comparing a term
//! with all of them takes as long as an operation on one element. Technique: atoms and small integers
//! are words that stay the same while the VM runs, which are looked up in a hash table with linear
//! probing.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use rustler::codegen_runtime::ErlNifTerm;
use rustler::{Atom, Env, NifResult, Term};

/// An atom and another term, or one atom twice.
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

    /// Inserts all entries, once: when the library is loaded again, as in an upgrade, the table stays
    /// as it is. Returns whether the table has room for the entries.
    pub fn fill<'a>(&self, entries: impl IntoIterator<Item = NifResult<([Term<'a>; 2], T)>>) -> bool {
        let mut slots = Box::new([None; ATOM_TABLE_SLOTS]);
        for (count, entry) in entries.into_iter().enumerate() {
            // At least half of the slots stay free: a search ends at a free slot, and is short.
            let (Ok((terms, value)), true) = (entry, count < ATOM_TABLE_SLOTS / 2) else { return false };
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

    /// `fill` with the atoms of names as keys.
    pub fn fill_named(&self, env: Env<'_>, entries: impl IntoIterator<Item = (&'static str, T)>) -> bool {
        self.fill(entries.into_iter().map(|(name, value)| {
            let atom = Atom::from_str(env, name)?.to_term(env);
            Ok(([atom, atom], value))
        }))
    }

    /// The value for a key. Returns `None` if it is not in the table.
    #[inline(always)]
    pub fn find(&self, key: [Term<'_>; 2]) -> Option<T> {
        let key = key.map(|term| term.as_c_arg());
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

/// The hash of terms. A hasher is the only way to the word of a term, which rustler keeps private.
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
