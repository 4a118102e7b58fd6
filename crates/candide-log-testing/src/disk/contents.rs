//! The bytes of a file, in pages that copies of the file share until one of them is written to.

use super::data::Data;
use std::ops::Range;
use std::sync::Arc;

/// The size of a page, in bytes.
const PAGE: usize = 4096;

const ZEROS: [u8; PAGE] = [0; PAGE];

/// A page. A page of zeros is `None`, so that files of zeros cost little.
type Page = Option<Arc<[u8; PAGE]>>;

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    size: u64,
    /// The pages, at least up to the last page that is not all zeros. There may be bytes beyond the
    /// size, until [`Self::cut`].
    pages: Arc<Vec<Page>>,
}

impl Contents {
    /// Returns the size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Raises the size to `size`, if it is smaller.
    pub(super) fn grow(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// Copies the bytes at `offset` to `to`. Beyond the size there are zeros, unless bytes were
    /// stored there.
    pub(super) fn read(&self, offset: u64, to: &mut [u8]) {
        for piece in PagePiece::all(offset, to.len() as u64) {
            let to = &mut to[piece.source];
            match self.page(piece.page) {
                Some(page) => to.copy_from_slice(&page[piece.within]),
                None => to.fill(0),
            }
        }
    }

    /// Stores the bytes `range` of `data`, which begins at `offset`. The size stays the same.
    pub(super) fn store(&mut self, offset: u64, data: &Data, range: Range<u64>) {
        let pages = Arc::make_mut(&mut self.pages);
        for piece in PagePiece::all(offset + range.start, range.end - range.start) {
            let bytes = data.bytes(range.start, piece.source);
            let is_zero = bytes.is_none_or(|bytes| bytes == &ZEROS[..bytes.len()]);
            if is_zero && pages.get(piece.page).is_none_or(Option::is_none) {
                continue;
            }
            if is_zero && piece.within.len() == PAGE {
                pages[piece.page] = None;
                continue;
            }
            if pages.len() <= piece.page {
                pages.resize(piece.page + 1, None);
            }
            let page = pages[piece.page].get_or_insert_with(|| Arc::new(ZEROS));
            let to = &mut Arc::make_mut(page)[piece.within];
            match bytes {
                Some(bytes) => to.copy_from_slice(bytes),
                None => to.fill(0),
            }
        }
    }

    /// Returns whether the file has the bytes `range` of `data`, which begins at `offset`.
    pub(super) fn has(&self, offset: u64, data: &Data, range: Range<u64>) -> bool {
        PagePiece::all(offset + range.start, range.end - range.start).all(|piece| {
            let bytes = data.bytes(range.start, piece.source);
            match (self.page(piece.page), bytes) {
                (None, None) => true,
                (None, Some(bytes)) => bytes == &ZEROS[..bytes.len()],
                (Some(page), None) => page[piece.within.clone()] == ZEROS[piece.within],
                (Some(page), Some(bytes)) => &page[piece.within] == bytes,
            }
        })
    }

    /// Replaces the bytes beyond the size by zeros.
    pub(super) fn cut(&mut self) {
        let whole = usize::try_from(self.size.div_ceil(PAGE as u64)).unwrap_or(usize::MAX);
        let end = self.size as usize % PAGE;
        let is_clean = |page: &[u8; PAGE]| end == 0 || page[end..] == ZEROS[end..];
        let last = whole.checked_sub(1).and_then(|last| self.page(last));
        if self.pages.len() <= whole && last.is_none_or(is_clean) {
            return;
        }
        let pages = Arc::make_mut(&mut self.pages);
        pages.truncate(whole);
        if let (true, Some(Some(page))) = (end > 0 && pages.len() == whole, pages.last_mut()) {
            Arc::make_mut(page)[end..].fill(0);
        }
    }

    fn page(&self, index: usize) -> Option<&[u8; PAGE]> {
        self.pages.get(index)?.as_deref()
    }
}

/// The part of some consecutive bytes that is in one page.
struct PagePiece {
    page: usize,
    /// The place within the page.
    within: Range<usize>,
    /// The place within the consecutive bytes.
    source: Range<usize>,
}

impl PagePiece {
    /// Returns the parts of the `length` bytes at `offset`, in order.
    fn all(offset: u64, length: u64) -> impl Iterator<Item = Self> {
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == length {
                return None;
            }
            let at = offset + done;
            let start = (at % PAGE as u64) as usize;
            let count = (PAGE - start).min((length - done) as usize);
            let source = done as usize..done as usize + count;
            done += count as u64;
            let page = (at / PAGE as u64) as usize;
            Some(Self { page, within: start..start + count, source })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(size: usize) -> Contents {
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8 + 1).collect();
        let mut contents = Contents::default();
        let data = Data::new(&[&bytes]);
        contents.store(0, &data, 0..size as u64);
        contents.grow(size as u64);
        contents
    }

    fn bytes(contents: &Contents, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![7; (range.end - range.start) as usize];
        contents.read(range.start, &mut bytes);
        bytes
    }

    #[test]
    fn a_copy_does_not_change_with_its_original() {
        let mut one = contents(10_000);
        let two = one.clone();
        one.store(4090, &Data::new(&[b"0123456789"]), 0..10);
        assert_eq!(bytes(&one, 4090..4100), b"0123456789");
        assert_eq!(bytes(&two, 0..10_000), bytes(&contents(10_000), 0..10_000));
    }

    #[test]
    fn zeros_cost_no_pages_and_replace_what_was_there() {
        let mut file = Contents::default();
        let zeros = Data::new(&[&vec![0; 1 << 20]]);
        file.store(0, &zeros, 0..1 << 20);
        assert!(file.pages.is_empty());
        let mut file = contents(10_000);
        file.store(100, &zeros, 0..9_000);
        assert!(file.pages[1].is_none());
        assert_eq!(bytes(&file, 99..101), [100, 0]);
        assert_eq!(bytes(&file, 9_099..9_101), [0, 65]);
    }

    #[test]
    fn bytes_beyond_the_size_are_zeros_after_a_cut() {
        for size in [0, 1, 4095, 4096, 4097, 8192, 9_999] {
            let mut file = contents(10_000);
            file.size = size;
            file.cut();
            let mut expected = bytes(&contents(10_000), 0..size);
            expected.resize(10_000, 0);
            assert_eq!(bytes(&file, 0..10_000), expected, "{size}");
        }
    }

    #[test]
    fn equal_bytes_are_found_equal_and_others_not() {
        let file = contents(10_000);
        let mut same = bytes(&file, 4000..9000);
        assert!(file.has(4000, &Data::new(&[&same]), 0..5000));
        same[4096] ^= 1;
        let other = Data::new(&[&same]);
        assert!(!file.has(4000, &other, 0..5000));
        assert!(file.has(4000, &other, 0..4096));
        assert!(file.has(4000, &other, 4097..5000));
        assert!(file.has(20_000, &Data::new(&[&[0; 5000]]), 0..5000));
        assert!(!file.has(0, &Data::new(&[&[0; 5000]]), 0..5000));
    }
}
