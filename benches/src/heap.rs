//! Counts the bytes that are asked of the allocator, when told to.

#![expect(unsafe_code, reason = "an allocator cannot be written otherwise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// The system's allocator, with a count of what is live. Off, it costs one load an allocation.
struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed());
        count(-layout.size().cast_signed());
        unsafe { System.realloc(at, layout, size) }
    }
}

fn count(bytes: isize) {
    if ON.load(Ordering::Relaxed) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

/// What a piece of work took of the heap, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// The most that was live at once.
    pub peak: usize,
    /// What is still live while its result is held.
    pub retained: usize,
}

/// Does `work` and counts what it takes; its result is dropped afterwards.
pub fn measure<T>(work: impl FnOnce() -> T) -> Heap {
    LIVE.store(0, Ordering::Relaxed);
    PEAK.store(0, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    let result = work();
    ON.store(false, Ordering::Relaxed);
    let bytes = |count: &AtomicIsize| count.load(Ordering::Relaxed).max(0).cast_unsigned();
    let heap = Heap { peak: bytes(&PEAK), retained: bytes(&LIVE) };
    drop(result);
    heap
}
