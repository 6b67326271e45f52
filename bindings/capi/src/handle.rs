//! Handles: numbers in the type of pointers.
//!
//! A handle encodes a place in a table and the place's generation, so that a stale, reused or
//! made-up handle is recognised. It is odd, so it is never the address of an aligned object.

use std::ptr;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Failure, Status};

/// Bits of a handle for the place in a table.
const PLACE_BITS: u32 = if usize::BITS >= 64 { 24 } else { 12 };

/// Number of the lowest bits of a handle: the kind, and one bit that is always set.
const TAG_BITS: u32 = 5;

const GENERATION_MAX: usize = usize::MAX >> (PLACE_BITS + TAG_BITS);

/// A type that C refers to by handles.
pub(crate) trait Handled: Sized + Send + Sync + 'static {
    /// The name of the type in error messages.
    const NAME: &'static str;
    /// Distinguishes the type's handles from those of other types, 0..=15.
    const KIND: usize;
    fn table() -> &'static Table<Self>;
}

/// Declares the handle table of a type.
macro_rules! handle_type {
    ($handled:ty, $kind:expr, $name:expr) => {
        impl crate::handle::Handled for $handled {
            const NAME: &'static str = $name;
            const KIND: usize = $kind;
            fn table() -> &'static crate::handle::Table<Self> {
                static TABLE: crate::handle::Table<$handled> = crate::handle::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use handle_type;

/// All handles of one kind.
pub(crate) struct Table<T>(RwLock<Places<T>>);

struct Places<T> {
    places: Vec<Place<T>>,
    free: Vec<usize>,
}

struct Place<T> {
    generation: usize,
    value: Option<Arc<T>>,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(Places { places: Vec::new(), free: Vec::new() }))
    }
}

impl<T> Places<T> {
    /// Returns a free place, or a new one below `limit`.
    fn claim(&mut self, limit: usize) -> Option<usize> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        if self.places.len() >= limit {
            return None;
        }
        self.places.push(Place { generation: 0, value: None });
        Some(self.places.len() - 1)
    }
}

/// Stores a value under a new handle.
pub(crate) fn insert<T: Handled>(value: T) -> Result<*mut T, Failure> {
    insert_shared(Arc::new(value))
}

/// Stores a shared value under a new handle.
pub(crate) fn insert_shared<T: Handled>(value: Arc<T>) -> Result<*mut T, Failure> {
    let mut table = T::table().0.write().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = table.claim(1 << PLACE_BITS) else {
        // The refused value may hold hooks, so it is dropped without the lock.
        drop(table);
        drop(value);
        let message = format!("too many open handles of a {}", T::NAME);
        return Err(Failure::new(Status::System, message));
    };
    let taken = &mut table.places[place];
    taken.value = Some(value);
    let number = (taken.generation << PLACE_BITS | place) << TAG_BITS | T::KIND << 1 | 1;
    Ok(ptr::without_provenance_mut(number))
}

/// The place and generation encoded in a handle.
struct Number {
    place: usize,
    generation: usize,
}

fn number<T: Handled>(handle: *const T) -> Result<Number, Failure> {
    let number = handle.addr();
    if number == 0 {
        return Err(Failure::new(Status::Null, format!("the handle of a {} is null", T::NAME)));
    }
    let tag = number & ((1 << TAG_BITS) - 1);
    if tag != (T::KIND << 1 | 1) {
        return Err(invalid_handle::<T>());
    }
    let number = number >> TAG_BITS;
    Ok(Number { place: number & ((1 << PLACE_BITS) - 1), generation: number >> PLACE_BITS })
}

fn invalid_handle<T: Handled>() -> Failure {
    Failure::new(Status::Handle, format!("invalid handle of a {}", T::NAME))
}

fn closed<T: Handled>() -> Failure {
    Failure::new(Status::Closed, format!("the {} was closed or released before", T::NAME))
}

/// Returns the value of a handle.
pub(crate) fn get<T: Handled>(handle: *const T) -> Result<Arc<T>, Failure> {
    let number = number(handle)?;
    let table = T::table().0.read().unwrap_or_else(PoisonError::into_inner);
    let place = table.places.get(number.place).ok_or_else(invalid_handle::<T>)?;
    if place.generation != number.generation {
        return Err(closed::<T>());
    }
    place.value.clone().ok_or_else(closed::<T>)
}

/// Closes a handle and returns its value.
pub(crate) fn remove<T: Handled>(handle: *const T) -> Result<Arc<T>, Failure> {
    let number = number(handle)?;
    let mut table = T::table().0.write().unwrap_or_else(PoisonError::into_inner);
    let Places { places, free } = &mut *table;
    let place = places.get_mut(number.place).ok_or_else(invalid_handle::<T>)?;
    if place.generation != number.generation {
        return Err(closed::<T>());
    }
    let value = place.value.take().ok_or_else(closed::<T>)?;
    place.generation = (place.generation + 1) & GENERATION_MAX;
    free.push(number.place);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(u32);
    handle_type!(Thing, 14, "thing");
    struct Other;
    handle_type!(Other, 15, "other");

    fn status<T>(outcome: Result<T, Failure>) -> Option<Status> {
        outcome.err().map(|failure| failure.status)
    }

    #[test]
    fn only_a_handle_that_is_open_stands_for_something() {
        let one = insert(Thing(1)).unwrap();
        let other = insert(Other).unwrap();
        assert_eq!(get(one).unwrap().0, 1);
        assert_eq!(status(get::<Thing>(ptr::null())), Some(Status::Null));
        assert_eq!(status(get::<Thing>(other.cast())), Some(Status::Handle));
        assert_eq!(status(get::<Thing>(&raw const NOTHING)), Some(Status::Handle));
        let high = ptr::without_provenance::<Thing>(one.addr() | 0xff_ffff << TAG_BITS);
        assert_eq!(status(get(high)), Some(Status::Handle));
        assert_eq!(remove(one).unwrap().0, 1);
        assert_eq!(status(get(one)), Some(Status::Closed));
        assert_eq!(status(remove(one)), Some(Status::Closed));
        // The place is reused, and the old handle stays invalid.
        let two = insert(Thing(2)).unwrap();
        assert_eq!(status(get(one)), Some(Status::Closed));
        assert_eq!(get(two).unwrap().0, 2);
        assert_ne!(one.addr(), two.addr());
        remove(two).unwrap();
        remove(other).unwrap();
    }

    static NOTHING: Thing = Thing(0);

    #[test]
    fn places_are_limited() {
        let mut places = Places::<Thing> { places: Vec::new(), free: Vec::new() };
        assert_eq!([0; 4].map(|_| places.claim(2)), [Some(0), Some(1), None, None]);
        assert_eq!(places.places.len(), 2);
        places.free.push(1);
        assert_eq!([0; 2].map(|_| places.claim(2)), [Some(1), None]);
    }

    #[test]
    fn threads_get_their_own_messages() {
        let work = |thread: u32| {
            for n in 0..2_000 {
                let value = thread << 16 | n;
                let handle = insert(Thing(value)).unwrap();
                assert_eq!(get(handle).unwrap().0, value);
                assert_eq!(remove(handle).unwrap().0, value);
                assert_eq!(status(get(handle)), Some(Status::Closed));
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || work(thread));
            }
        });
    }
}
