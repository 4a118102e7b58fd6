//! Tests in a process that has reached its limit of mappings.

use super::region::CHUNK_BYTES;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::process::Command;

/// Runs `body` in a separate process in which no other thread needs a mapping meanwhile. The caller
/// is the test named `test`.
pub(super) fn alone(test: &str, body: impl FnOnce()) {
    const IN_CHILD: &str = "CANDIDE_TEST_ALONE";
    if std::env::var_os(IN_CHILD).is_some() {
        return body();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--test-threads=1"])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
}

/// Enough mappings for the system to refuse more, or only a few if the limit is very high.
pub(super) struct Crowd {
    first_page: *mut std::ffi::c_void,
}

const PAGES: usize = 1 << 18;
const PAGE_BYTES: usize = 4 << 10;

impl Crowd {
    pub(super) fn new() -> Crowd {
        let map = |bytes| {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }
                .unwrap()
        };
        // The kernel joins neighbouring mappings of the same kind. Unmapping a part of the joined
        // mapping may turn it into several mappings.
        map(16 * CHUNK_BYTES);
        let first_page = map(PAGES * PAGE_BYTES);
        for page in (1..PAGES).step_by(2) {
            let page = first_page.wrapping_byte_add(page * PAGE_BYTES);
            // SAFETY: nothing uses the page.
            if unsafe { mprotect(page, PAGE_BYTES, MprotectFlags::READ) }.is_err() {
                break;
            }
        }
        Crowd { first_page }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing uses it.
        unsafe { munmap(self.first_page, PAGES * PAGE_BYTES) }.unwrap();
    }
}
