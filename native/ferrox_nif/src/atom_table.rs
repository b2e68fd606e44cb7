//! What atoms and small integers stand for.
//!
//! Problem: an operation has one of forty names, a type one of twenty tuples, and comparing them
//! one after the other takes as long as an operation on one element. Technique: such terms are
//! words that stay the same while the VM runs, looked up in a hash table of linear probing.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use rustler::codegen_runtime::ErlNifTerm;
use rustler::{Atom, Env, NifResult, Term};

use crate::entry::bad_argument;

/// Two terms, or one twice.
type Key = [ErlNifTerm; 2];

const SLOTS: usize = 128;

type Slots<T> = [Option<(Key, T)>; SLOTS];

/// Values by atoms, or by an atom and a small integer.
pub struct Known<T: 'static>(OnceLock<Box<Slots<T>>>);

impl<T: Copy> Known<T> {
    pub const fn new() -> Self {
        Known(OnceLock::new())
    }

    /// Puts in what is known, once: loading again, as an upgrade does, finds the same words.
    pub fn fill<'a>(&self, entries: impl ExactSizeIterator<Item = NifResult<([Term<'a>; 2], T)>>) -> bool {
        // Half of them stay free, so that there is always one to end a search.
        if entries.len() > SLOTS / 2 {
            return false;
        }
        let mut slots = Box::new([None; SLOTS]);
        for entry in entries {
            let Ok((terms, value)) = entry else { return false };
            let key = terms.map(|term| term.as_c_arg());
            let mut place = first(key);
            while slots[place].is_some() {
                place = (place + 1) % SLOTS;
            }
            slots[place] = Some((key, value));
        }
        self.0.get_or_init(|| slots);
        true
    }

    /// What the terms stand for.
    #[inline(always)]
    pub fn find(&self, terms: [Term<'_>; 2]) -> Option<T> {
        let key = terms.map(|term| term.as_c_arg());
        let slots = self.0.get()?;
        let mut place = first(key);
        while let Some((known, value)) = slots[place] {
            if known == key {
                return Some(value);
            }
            place = (place + 1) % SLOTS;
        }
        None
    }
}

/// Where a search begins. The lowest bits of a word tell what kind of term it is.
#[inline(always)]
fn first([one, other]: Key) -> usize {
    let mut words = Words(0);
    one.hash(&mut words);
    other.hash(&mut words);
    (words.0 >> 6) % SLOTS
}

/// What terms hash to, whose words rustler keeps to itself.
struct Words(usize);

impl Hasher for Words {
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

/// Operations by the atoms of their names.
pub struct Names<T: 'static> {
    all: &'static [T],
    name: fn(T) -> &'static str,
    known: Known<T>,
}

impl<T: Copy> Names<T> {
    pub const fn new(all: &'static [T], name: fn(T) -> &'static str) -> Self {
        Names { all, name, known: Known::new() }
    }

    pub fn fill(&self, env: Env<'_>) -> bool {
        let named = self.all.iter().zip(self.names());
        self.known.fill(named.map(|(&op, name)| {
            let atom = Atom::from_str(env, name)?.to_term(env);
            Ok(([atom, atom], op))
        }))
    }

    /// The names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.all.iter().map(|&op| (self.name)(op))
    }

    #[inline(always)]
    pub fn decode(&self, term: Term<'_>) -> NifResult<T> {
        self.known.find([term, term]).ok_or_else(bad_argument)
    }
}
