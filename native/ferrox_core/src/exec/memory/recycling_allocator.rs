//! An allocator that keeps what large intermediate results are freed from.
//!
//! Problem: the system takes back a large block when it is freed, and hands out the
//! next one page by page, as each is first touched: for a block of 256 KB that costs
//! several times what a Fourier transform of it does. Technique: blocks of some sizes,
//! a few to each power of two, are kept for the next that asks for such a size, up to
//! `MAX_KEPT_BYTES` bytes of them. Everything else, and whoever comes while another thread is at
//! the list, is served by the system.

#![allow(unsafe_code, reason = "allocators are unsafe to call")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;

/// Blocks below this size are the system's: those it keeps itself.
const MIN_KEPT_BLOCK_BYTES: usize = 1 << 16;

/// And those above this size: what they are used for takes longer than their pages.
const MAX_KEPT_BLOCK_BYTES: usize = MAX_KEPT_BYTES / 2;

/// So many bytes are kept.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// So many blocks are kept.
const MAX_KEPT_BLOCKS: usize = 64;

/// What every block that may be kept is aligned to, as gemm asks for.
const KEPT_BLOCK_ALIGN: usize = 128;

/// The allocator, for `#[global_allocator]`.
#[derive(Debug)]
pub struct Recycler {
    free: Mutex<FreeList>,
}

/// Blocks by address, the oldest first.
#[derive(Debug)]
struct FreeList {
    blocks: [(usize, usize); MAX_KEPT_BLOCKS],
    count: usize,
    bytes: usize,
}

impl FreeList {
    /// The latest block of a size.
    fn take(&mut self, size: usize) -> Option<usize> {
        let index = self.blocks[..self.count].iter().rposition(|block| block.1 == size)?;
        Some(self.remove(index))
    }

    fn remove(&mut self, index: usize) -> usize {
        let (address, size) = self.blocks[index];
        self.blocks.copy_within(index + 1..self.count, index);
        self.count -= 1;
        self.bytes -= size;
        address
    }

    /// Whether there is room for one more.
    fn has_room(&self, size: usize) -> bool {
        self.count < MAX_KEPT_BLOCKS && self.bytes + size <= MAX_KEPT_BYTES
    }

    fn push(&mut self, address: usize, size: usize) {
        self.blocks[self.count] = (address, size);
        self.count += 1;
        self.bytes += size;
    }
}

/// The block that a layout gets: of the next size of four to each power of two. `None`
/// if it is not one to keep.
fn block(layout: Layout) -> Option<Layout> {
    let size = layout.size();
    if !(MIN_KEPT_BLOCK_BYTES..=MAX_KEPT_BLOCK_BYTES).contains(&size) || layout.align() > KEPT_BLOCK_ALIGN {
        return None;
    }
    let step = size.next_power_of_two() / 8;
    Layout::from_size_align(size.next_multiple_of(step), KEPT_BLOCK_ALIGN).ok()
}

impl Default for Recycler {
    fn default() -> Self {
        Self::new()
    }
}

impl Recycler {
    /// One that keeps nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Recycler { free: Mutex::new(FreeList { blocks: [(0, 0); MAX_KEPT_BLOCKS], count: 0, bytes: 0 }) }
    }

    /// A kept block, or one of the system's; whether its bytes are zero.
    ///
    /// # Safety
    ///
    /// As of `GlobalAlloc::alloc`; `block` is of `block()`.
    unsafe fn obtain(&self, block: Layout, zeroed: bool) -> (*mut u8, bool) {
        if let Some(address) = self.free.try_lock().ok().and_then(|mut free| free.take(block.size())) {
            return (std::ptr::with_exposed_provenance_mut(address), false);
        }
        // SAFETY: the size of a block isn't zero.
        let system = || unsafe { if zeroed { System.alloc_zeroed(block) } else { System.alloc(block) } };
        let pointer = system();
        if !pointer.is_null() {
            return (pointer, zeroed);
        }
        self.release();
        (system(), zeroed)
    }

    /// Gives all back to the system.
    fn release(&self) {
        let Ok(mut free) = self.free.try_lock() else { return };
        while free.count > 0 {
            Self::free_oldest(&mut free);
        }
    }

    fn free_oldest(free: &mut FreeList) {
        let size = free.blocks[0].1;
        let address = free.remove(0);
        if let Ok(layout) = Layout::from_size_align(size, KEPT_BLOCK_ALIGN) {
            // SAFETY: the block came from the system with this layout, and the list was
            // its only owner.
            unsafe { System.dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
        }
    }
}

// SAFETY: a block is in the list only between `dealloc` and the one `alloc` that takes
// it out, so that it has one owner; it is as large and as aligned as its layout asks
// for, since `block` never gives less. It goes back to the system with the layout that
// it came with, since that depends on the layout asked for alone. Nothing here panics
// or allocates.
unsafe impl GlobalAlloc for Recycler {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match block(layout) {
            // SAFETY: as the caller's.
            Some(block) => unsafe { self.obtain(block, false).0 },
            // SAFETY: as the caller's.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(block) = block(layout) else {
            // SAFETY: as the caller's.
            return unsafe { System.alloc_zeroed(layout) };
        };
        // SAFETY: as the caller's.
        let (pointer, zeroed) = unsafe { self.obtain(block, true) };
        if !zeroed && !pointer.is_null() {
            // SAFETY: the block is at least this large, and the caller's alone.
            unsafe { pointer.write_bytes(0, layout.size()) };
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(block) = block(layout) else {
            // SAFETY: it came from the system with this layout.
            return unsafe { System.dealloc(pointer, layout) };
        };
        if let Ok(mut free) = self.free.try_lock() {
            while free.count > 0 && !free.has_room(block.size()) {
                Self::free_oldest(&mut free);
            }
            free.push(pointer.expose_provenance(), block.size());
        } else {
            // SAFETY: it came from the system with this layout.
            unsafe { System.dealloc(pointer, block) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(new) = Layout::from_size_align(size, layout.align()) else {
            return std::ptr::null_mut();
        };
        match (block(layout), block(new)) {
            // SAFETY: it came from the system with this layout.
            (None, None) => unsafe { System.realloc(pointer, layout, size) },
            (Some(old), Some(new)) if old == new => pointer,
            _ => {
                // SAFETY: as the caller's.
                let moved = unsafe { self.alloc(new) };
                if !moved.is_null() {
                    // SAFETY: both are at least this large and of different owners.
                    unsafe { moved.copy_from_nonoverlapping(pointer, layout.size().min(size)) };
                    // SAFETY: as the caller's.
                    unsafe { self.dealloc(pointer, layout) };
                }
                moved
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_never_smaller_and_wastes_little() {
        for size in (MIN_KEPT_BLOCK_BYTES..MIN_KEPT_BLOCK_BYTES * 70).step_by(997).chain([
            MIN_KEPT_BLOCK_BYTES,
            MAX_KEPT_BLOCK_BYTES,
            MAX_KEPT_BLOCK_BYTES - 1,
        ]) {
            let given = block(Layout::from_size_align(size, 8).expect("valid")).expect("kept");
            assert!(given.size() >= size && given.size() <= size + size / 4, "{size}: {given:?}");
        }
        for size in [0, 1, MIN_KEPT_BLOCK_BYTES - 1, MAX_KEPT_BLOCK_BYTES + 1] {
            assert_eq!(block(Layout::from_size_align(size, 8).expect("valid")), None);
        }
        assert_eq!(
            block(Layout::from_size_align(MIN_KEPT_BLOCK_BYTES, 2 * KEPT_BLOCK_ALIGN).expect("valid")),
            None
        );
    }
}
