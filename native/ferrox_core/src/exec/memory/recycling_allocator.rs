//! An allocator that keeps freed large blocks and reuses them.
//!
//! Problem: the system takes back a large block when it is freed, and provides the next one page by
//! page at the first write: for a block of 256 KB, this takes several times as long as a Fourier
//! transform of its contents.
//! Technique: size classes, four for each power of two. Freed blocks are kept in a list, up to
//! `MAX_KEPT_BYTES` in total, for later allocations of the same size class. The system allocator
//! serves all other sizes, and all threads that find the list locked.
//!
//! The bytes of large blocks that are in use are counted, and the most that there have been at one
//! time: two atomic operations for a block, beside those of the lock.

#![allow(unsafe_code, reason = "allocators are unsafe to call")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::cost::{MAX_KEPT_BLOCK_BYTES, MAX_KEPT_BLOCKS, MAX_KEPT_BYTES, MIN_KEPT_BLOCK_BYTES};

/// The alignment of all blocks that may be kept: the alignment that the gemm crate asks for.
const KEPT_BLOCK_ALIGN: usize = 128;

/// The allocator, for `#[global_allocator]`.
#[derive(Debug)]
pub struct Recycler {
    free: Mutex<FreeList>,
    /// The bytes that were asked for in blocks of at least `MIN_KEPT_BLOCK_BYTES`, and not freed yet.
    in_use: AtomicUsize,
    most_in_use: AtomicUsize,
}

/// Kept blocks as (address, size), the oldest first.
#[derive(Debug)]
struct FreeList {
    blocks: [(usize, usize); MAX_KEPT_BLOCKS],
    count: usize,
    bytes: usize,
}

impl FreeList {
    /// Removes and returns the newest block of a size.
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

    /// Returns whether a block of this size can be kept without freeing another.
    fn has_room(&self, size: usize) -> bool {
        self.count < MAX_KEPT_BLOCKS && self.bytes + size <= MAX_KEPT_BYTES
    }

    fn push(&mut self, address: usize, size: usize) {
        self.blocks[self.count] = (address, size);
        self.count += 1;
        self.bytes += size;
    }
}

/// The layout of the block that serves an allocation: its size is rounded up to the next of the
/// four size classes of a power of two. Returns `None` if such blocks aren't kept.
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
    /// An allocator with no kept blocks.
    #[must_use]
    pub const fn new() -> Self {
        Recycler {
            free: Mutex::new(FreeList { blocks: [(0, 0); MAX_KEPT_BLOCKS], count: 0, bytes: 0 }),
            in_use: AtomicUsize::new(0),
            most_in_use: AtomicUsize::new(0),
        }
    }

    /// The most bytes that were in use at one time in blocks of at least 64 KB, since the start or since
    /// `forget_most_in_use`.
    #[must_use]
    pub fn most_in_use(&self) -> usize {
        self.most_in_use.load(Relaxed)
    }

    /// From now on, `most_in_use` begins with what is in use now.
    pub fn forget_most_in_use(&self) {
        self.most_in_use.store(self.in_use.load(Relaxed), Relaxed);
    }

    /// Counts an allocation, if it has not failed.
    fn count(&self, pointer: *mut u8, size: usize) -> *mut u8 {
        if size >= MIN_KEPT_BLOCK_BYTES && !pointer.is_null() {
            let in_use = self.in_use.fetch_add(size, Relaxed) + size;
            if in_use > self.most_in_use.load(Relaxed) {
                self.most_in_use.fetch_max(in_use, Relaxed);
            }
        }
        pointer
    }

    /// Calls `allocate`, and once more without kept blocks if it has failed.
    fn try_twice(&self, allocate: impl Fn() -> *mut u8) -> *mut u8 {
        let pointer = allocate();
        if !pointer.is_null() {
            return pointer;
        }
        self.release();
        allocate()
    }

    /// Counts that an allocation is not in use any more.
    fn uncount(&self, size: usize) {
        if size >= MIN_KEPT_BLOCK_BYTES {
            self.in_use.fetch_sub(size, Relaxed);
        }
    }

    /// Returns a kept block or a new one of the system, and whether its bytes are known to be zero.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::alloc`; `block` must come from `block()`.
    unsafe fn obtain(&self, block: Layout, zeroed: bool) -> (*mut u8, bool) {
        if let Some(address) = self.free.try_lock().ok().and_then(|mut free| free.take(block.size())) {
            return (std::ptr::with_exposed_provenance_mut(address), false);
        }
        // SAFETY: the size of a block isn't zero.
        let system = || unsafe { if zeroed { System.alloc_zeroed(block) } else { System.alloc(block) } };
        (self.try_twice(system), zeroed)
    }

    /// Returns all kept blocks to the system.
    pub fn release(&self) {
        let Ok(mut free) = self.free.try_lock() else { return };
        while free.count > 0 {
            Self::free_oldest(&mut free);
        }
    }

    fn free_oldest(free: &mut FreeList) {
        let size = free.blocks[0].1;
        let address = free.remove(0);
        if let Ok(layout) = Layout::from_size_align(size, KEPT_BLOCK_ALIGN) {
            // SAFETY: the system has allocated the block with this layout, and the list was its
            // only owner.
            unsafe { System.dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
        }
    }
}

// SAFETY: a block is in the list only between `dealloc` and the one `alloc` that takes it out, so
// that it has one owner. It is at least as large and as aligned as the requested layout, since
// `block` never returns less. It is returned to the system with the layout that it was allocated
// with, since that layout only depends on the requested one. No code here panics or allocates.
unsafe impl GlobalAlloc for Recycler {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let pointer = match block(layout) {
            // SAFETY: the caller's contract is the same.
            Some(block) => unsafe { self.obtain(block, false).0 },
            None => self.try_twice(|| {
                // SAFETY: the caller's contract is the same.
                unsafe { System.alloc(layout) }
            }),
        };
        self.count(pointer, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(block) = block(layout) else {
            let pointer = self.try_twice(|| {
                // SAFETY: the caller's contract is the same.
                unsafe { System.alloc_zeroed(layout) }
            });
            return self.count(pointer, layout.size());
        };
        // SAFETY: the caller's contract is the same.
        let (pointer, zeroed) = unsafe { self.obtain(block, true) };
        if !zeroed && !pointer.is_null() {
            // SAFETY: the block is at least this large, and no other code refers to it.
            unsafe { pointer.write_bytes(0, layout.size()) };
        }
        self.count(pointer, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.uncount(layout.size());
        let Some(block) = block(layout) else {
            // SAFETY: the system has allocated it with this layout.
            return unsafe { System.dealloc(pointer, layout) };
        };
        if let Ok(mut free) = self.free.try_lock() {
            while free.count > 0 && !free.has_room(block.size()) {
                Self::free_oldest(&mut free);
            }
            free.push(pointer.expose_provenance(), block.size());
        } else {
            // SAFETY: the system has allocated it with this layout.
            unsafe { System.dealloc(pointer, block) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(new) = Layout::from_size_align(size, layout.align()) else {
            return std::ptr::null_mut();
        };
        let grown = match (block(layout), block(new)) {
            (None, None) => self.try_twice(|| {
                // SAFETY: the system has allocated it with this layout, and it stays where it can't grow.
                unsafe { System.realloc(pointer, layout, size) }
            }),
            (Some(old), Some(new)) if old == new => pointer,
            _ => {
                // SAFETY: the caller's contract is the same.
                let moved = unsafe { self.alloc(new) };
                if !moved.is_null() {
                    // SAFETY: both blocks are at least this large, and they don't overlap.
                    unsafe { moved.copy_from_nonoverlapping(pointer, layout.size().min(size)) };
                    // SAFETY: the caller's contract is the same.
                    unsafe { self.dealloc(pointer, layout) };
                }
                return moved;
            }
        };
        if !grown.is_null() {
            self.uncount(layout.size());
        }
        self.count(grown, size)
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

    #[test]
    fn kept_blocks_are_released_where_memory_is_short() {
        let recycler = Recycler::new();
        let kept = Layout::from_size_align(MIN_KEPT_BLOCK_BYTES, 8).expect("valid");
        let enormous = Layout::from_size_align(isize::MAX as usize - 4096, 8).expect("valid");
        let small = Layout::from_size_align(8, 8).expect("valid");
        // SAFETY: no size is zero.
        let block = unsafe { recycler.alloc(small) };
        for attempt in 0..3 {
            // SAFETY: no size is zero, and the block is freed once, with its layout.
            unsafe { recycler.dealloc(recycler.alloc(kept), kept) };
            assert_eq!(recycler.free.lock().expect("no panic").count, 1);
            // SAFETY: no size is zero. The small block stays where it is, since it can't grow.
            let pointer = unsafe {
                match attempt {
                    0 => recycler.alloc(enormous),
                    1 => recycler.alloc_zeroed(enormous),
                    _ => recycler.realloc(block, small, enormous.size()),
                }
            };
            // Without this, the compiler takes out the allocation, and thinks that it has succeeded.
            assert!(std::hint::black_box(pointer).is_null());
            assert_eq!(recycler.free.lock().expect("no panic").count, 0);
        }
        // SAFETY: the block has this layout, and is freed once.
        unsafe { recycler.dealloc(block, small) };
    }

    #[test]
    fn the_most_bytes_in_use_are_counted() {
        let recycler = Recycler::new();
        let layout = |size| Layout::from_size_align(size, 8).expect("valid");
        let sizes = [MIN_KEPT_BLOCK_BYTES, 3 * MIN_KEPT_BLOCK_BYTES, MAX_KEPT_BLOCK_BYTES + 1];
        let allocate = |size| {
            // SAFETY: no size is zero.
            let pointer = unsafe { recycler.alloc(layout(size)) };
            assert!(!pointer.is_null());
            pointer
        };
        let free = |pointer, size| {
            // SAFETY: the blocks come from `allocate` or `realloc` below with this size, and are freed once.
            unsafe { recycler.dealloc(pointer, layout(size)) };
        };
        let small = allocate(MIN_KEPT_BLOCK_BYTES - 1);
        assert_eq!(recycler.most_in_use(), 0);
        let blocks = sizes.map(allocate);
        let sum: usize = sizes.iter().sum();
        assert_eq!(recycler.most_in_use(), sum);
        free(blocks[2], sizes[2]);
        assert_eq!(recycler.most_in_use(), sum);
        recycler.forget_most_in_use();
        assert_eq!(recycler.most_in_use(), sizes[0] + sizes[1]);
        // To a block of the same size class, to a larger one, which holds both for a while, and to none.
        let mut pointer = blocks[1];
        let mut size = sizes[1];
        for (new, most) in [
            (size - 1, sizes[0] + size),
            (2 * size, sizes[0] + size - 1 + 2 * size),
            (1, sizes[0] + size - 1 + 2 * size),
        ] {
            // SAFETY: the block has this layout, and the new size isn't zero.
            pointer = unsafe { recycler.realloc(pointer, layout(size), new) };
            assert!(!pointer.is_null());
            size = new;
            assert_eq!(recycler.most_in_use(), most);
        }
        free(pointer, size);
        free(blocks[0], sizes[0]);
        free(small, MIN_KEPT_BLOCK_BYTES - 1);
        recycler.forget_most_in_use();
        assert_eq!(recycler.most_in_use(), 0);
        recycler.release();
    }
}
