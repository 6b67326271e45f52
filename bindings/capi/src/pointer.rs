//! Reading and writing at addresses that C passes.
//!
//! The functions of the header require one guarantee from C: a pointer that is not null points to
//! as much memory as the function documents, and no other thread changes that memory during the
//! call. Null is checked here.

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

use crate::error::{Failure, Status};

fn null() -> Failure {
    Failure::new(Status::Null, "a required pointer is null")
}

/// Returns octets or numbers that C lends for the call; null is allowed if `count` is 0.
pub(crate) fn slice<'a, T>(data: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(null());
    }
    if !data.is_aligned() || count > isize::MAX as usize / size_of::<T>().max(1) {
        let message = format!("an array of {count} elements is not aligned, or is too large");
        return Err(Failure::new(Status::Argument, message));
    }
    // SAFETY: C guarantees that `count` elements are there and stay; the pointer is not null, is
    // aligned, and the slice is no longer than memory can be.
    Ok(unsafe { slice::from_raw_parts(data, count) })
}

/// Returns octets that C lends for writing.
pub(crate) fn slice_mut<'a>(data: *mut u8, count: usize) -> Result<&'a mut [u8], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    if data.is_null() {
        return Err(null());
    }
    if count > isize::MAX as usize {
        let message = format!("a buffer of {count} octets is too large");
        return Err(Failure::new(Status::Argument, message));
    }
    // The octets are zeroed first, because Rust must not read uninitialised memory. SAFETY: C
    // guarantees `count` octets, which no other thread uses during the call.
    unsafe { ptr::write_bytes(data, 0, count) };
    // SAFETY: as above, and all octets are initialised now.
    Ok(unsafe { slice::from_raw_parts_mut(data, count) })
}

/// Returns a string that C lends for the call.
pub(crate) fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    optional_text(text)?.ok_or_else(null)
}

/// Returns a string that C lends for the call; null means none.
pub(crate) fn optional_text<'a>(text: *const c_char) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: C guarantees that a string ends with a zero octet.
    let text = unsafe { CStr::from_ptr(text) };
    let wrong = |_| Failure::new(Status::Text, "a text is not UTF-8");
    text.to_str().map(Some).map_err(wrong)
}

/// Returns a number that C lends; null means none.
pub(crate) fn optional<T: Copy>(value: *const T) -> Result<Option<T>, Failure> {
    if value.is_null() {
        return Ok(None);
    }
    Ok(slice(value, 1)?.first().copied())
}

/// Checks the address of a result before any work is done.
pub(crate) fn check<T>(place: *mut T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null());
    }
    if !place.is_aligned() {
        return Err(Failure::new(Status::Argument, "a result pointer is not aligned"));
    }
    Ok(())
}

/// Writes a result to C's memory.
pub(crate) fn write<T: Copy>(place: *mut T, value: T) -> Result<(), Failure> {
    check(place)?;
    // SAFETY: C guarantees memory for the value; the pointer is not null and is aligned.
    unsafe { ptr::write(place, value) };
    Ok(())
}

/// Maximum number of octets that later versions may add to a struct. A larger `size` is invalid,
/// and nothing is written.
const GROWTH_MAX: usize = 4096;

/// Writes the first `size` octets of a struct, which are the fields in the caller's version of the
/// header: structs only grow at their end. Fields of a later version are set to zero.
pub(crate) fn write_prefix<T: Copy>(place: *mut T, size: usize, value: T) -> Result<(), Failure> {
    check(place)?;
    let len = size.min(size_of::<T>());
    let more = (size - len).min(GROWTH_MAX);
    let (from, to) = ((&raw const value).cast::<u8>(), place.cast::<u8>());
    // SAFETY: C guarantees `size` octets there, which do not overlap with `value`.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
    // SAFETY: as above, from octet `len` on.
    unsafe { ptr::write_bytes(to.wrapping_add(len), 0, more) };
    Ok(())
}

/// A struct of integers and pointers, for which any octets are a value.
pub(crate) trait Plain: Copy {}

/// Reads the first `size` octets of a struct that C lends. The fields after them, which the
/// caller's version of the header does not have, are taken from `default`. Null means `default`.
pub(crate) fn read_prefix<T: Plain>(
    place: *const T,
    size: usize,
    default: T,
) -> Result<T, Failure> {
    let mut value = default;
    if place.is_null() {
        return Ok(value);
    }
    check(place.cast_mut())?;
    let (from, to) = (place.cast::<u8>(), (&raw mut value).cast::<u8>());
    let len = size.min(size_of::<T>());
    // SAFETY: C guarantees `size` octets there, which do not overlap with `value`; any octets are a
    // value of `T`.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
    Ok(value)
}

/// Writes a string and a terminating zero octet into `size` octets.
pub(crate) fn write_text(place: *mut c_char, size: usize, text: &str) -> Result<(), Failure> {
    check(place)?;
    if text.len() >= size {
        let needed = format!("the text needs {} octets, the buffer has {size}", text.len() + 1);
        return Err(Failure::new(Status::Buffer, needed));
    }
    let octets = slice_mut(place.cast(), text.len() + 1)?;
    octets[..text.len()].copy_from_slice(text.as_bytes());
    Ok(())
}

#[allow(clippy::cast_possible_wrap, reason = "char is signed or unsigned, by platform")]
fn character(octet: u8) -> c_char {
    octet as c_char
}

/// Returns a string as an array for a struct, truncated to fit and terminated by a zero octet.
pub(crate) fn text_array<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    let fits = (0..N).rev().find(|&len| text.is_char_boundary(len)).unwrap_or(0);
    for (to, from) in array.iter_mut().zip(text.bytes().take(fits)) {
        *to = character(from);
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_nonsense_are_answers() {
        let status = |failure: Failure| failure.status;
        assert_eq!(slice::<u8>(ptr::null(), 0).map_err(status), Ok(&[][..]));
        assert_eq!(slice::<u8>(ptr::null(), 1).map_err(status), Err(Status::Null));
        assert_eq!(slice([1_u8, 2].as_ptr(), usize::MAX).map_err(status), Err(Status::Argument));
        assert_eq!(text(ptr::null()).map_err(status), Err(Status::Null));
        assert_eq!(text(c"a\xff".as_ptr()).map_err(status), Err(Status::Text));
        assert_eq!(optional::<u32>(ptr::null()).map_err(status), Ok(None));
        assert_eq!(write::<u32>(ptr::null_mut(), 1).map_err(status), Err(Status::Null));
    }

    #[test]
    fn a_text_is_whole_or_not_there() {
        let mut place = [character(b'x'); 4];
        assert!(write_text(place.as_mut_ptr(), 4, "abc").is_ok());
        assert_eq!(place, b"abc\0".map(character));
        let failure = write_text(place.as_mut_ptr(), 3, "abc").unwrap_err();
        assert_eq!(failure.status, Status::Buffer);
        assert_eq!(text_array::<4>("abé"), b"ab\0\0".map(character));
    }

    #[test]
    fn a_caller_that_knows_less_gets_less() {
        let mut place = [9_u32; 2];
        assert!(write_prefix(&raw mut place, 4, [1, 2]).is_ok());
        assert_eq!(place, [1, 9]);
    }

    impl Plain for [u16; 2] {}

    #[test]
    fn fields_unknown_to_the_caller_have_their_defaults() {
        let given = [7, 8];
        assert_eq!(read_prefix(&raw const given, 2, [1, 2]).ok(), Some([7, 2]));
        assert_eq!(read_prefix(&raw const given, 400, [1, 2]).ok(), Some(given));
        assert_eq!(read_prefix(ptr::null(), 4, [1, 2]).ok(), Some([1, 2]));
    }

    #[test]
    fn a_caller_that_knows_more_finds_zeros() {
        let mut place = [9_u32; 4];
        assert!(write_prefix((&raw mut place).cast::<[u32; 2]>(), 12, [1, 2]).is_ok());
        assert_eq!(place, [1, 2, 0, 9]);
        let mut large = vec![9_u32; 3 + GROWTH_MAX / 4];
        assert!(write_prefix(large.as_mut_ptr().cast::<[u32; 2]>(), usize::MAX, [1, 2]).is_ok());
        assert_eq!(large[..3], [1, 2, 0]);
        assert_eq!(large[large.len() - 2..], [0, 9]);
    }
}
