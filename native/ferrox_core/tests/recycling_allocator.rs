//! The allocator that reuses large blocks, as the allocator of a whole program.

use std::sync::mpsc;
use std::thread;

use ferrox_core::exec::memory::recycling_allocator::Recycler;

#[global_allocator]
static RECYCLER: Recycler = Recycler::new();

/// A linear congruential generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Vectors keep their contents when they grow, shrink, or move to other threads and are dropped
/// there.
#[test]
fn blocks_have_one_owner() {
    let (sender, receiver) = mpsc::channel::<(u8, Vec<u8>)>();
    let threads: Vec<_> = (0..4)
        .map(|id| {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut random = Random(id);
                let mut held: Vec<(u8, Vec<u8>)> = Vec::new();
                for step in 0..2_000usize {
                    let mark = (id as usize * 61 + step) as u8;
                    match random.below(4) {
                        0 => held.push((mark, vec![mark; random.below(3_000_000)])),
                        1 => {
                            let zeroed = vec![0u64; random.below(200_000)];
                            assert!(zeroed.iter().all(|&x| x == 0));
                        }
                        2 => {
                            if let Some((mark, bytes)) = held.last_mut() {
                                bytes.resize(random.below(2_000_000), *mark);
                                bytes.shrink_to_fit();
                            }
                        }
                        _ if held.is_empty() => {}
                        _ => {
                            let (mark, bytes) = held.swap_remove(random.below(held.len()));
                            assert!(bytes.iter().all(|&x| x == mark));
                            if bytes.len() % 3 == 0 {
                                sender.send((mark, bytes)).expect("the other end waits");
                            }
                        }
                    }
                    if held.len() > 8 {
                        held.truncate(4);
                    }
                }
            })
        })
        .collect();
    drop(sender);
    for (mark, bytes) in receiver {
        assert!(bytes.iter().all(|&x| x == mark));
    }
    for thread in threads {
        thread.join().expect("no assertion failed");
    }
}

/// The next allocation of a size gets the block that was freed, zeroed if requested.
#[test]
fn a_freed_block_is_kept() {
    // A size that the other test doesn't use.
    const SIZE: usize = 20_000_000;
    let kept = (0..50).any(|_| {
        let first = vec![1u8; SIZE];
        let address = first.as_ptr().expose_provenance();
        drop(first);
        let second = vec![0u8; SIZE - 100];
        assert!(second.iter().all(|&x| x == 0));
        second.as_ptr().expose_provenance() == address
    });
    assert!(kept);
}

/// An allocation that is too large for the system is refused.
#[test]
fn too_much_is_an_error() {
    // A system of 32 bits may have memory for one or two.
    let refused = (0..4)
        .map(|_| {
            let mut bytes: Vec<u8> = Vec::new();
            bytes.try_reserve_exact(isize::MAX as usize / 2).map(|()| bytes)
        })
        .collect::<Result<Vec<_>, _>>();
    assert!(refused.is_err());
}
