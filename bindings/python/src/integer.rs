//! Integers from Python, with errors that name the argument, its value and the range.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error::ConfigError;

/// An integer type and its range.
pub(crate) trait Integer: Copy + for<'a, 'py> FromPyObject<'a, 'py> {
    const LEAST: i128;
    const MOST: i128;

    /// The same number in a type that contains all of these.
    fn wide(self) -> i128;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            const LEAST: i128 = <$type>::MIN as i128;
            const MOST: i128 = <$type>::MAX as i128;

            fn wide(self) -> i128 {
                self as i128
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, usize, i64);

/// The argument `name`, an integer of type `T`.
///
/// # Errors
/// `ConfigError` if it is out of range, `TypeError` if it is not an integer.
pub(crate) fn integer<T: Integer>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    within(name, value, T::LEAST, T::MOST)
}

/// The argument `name`, an integer from `least` to `most`.
pub(crate) fn within<T: Integer>(
    name: &str,
    value: &Bound<'_, PyAny>,
    least: i128,
    most: i128,
) -> PyResult<T> {
    let wrong = || ConfigError::new_err(format!("{name}: {value} is outside {least} to {most}"));
    match value.extract::<T>() {
        Ok(number) if (least..=most).contains(&number.wide()) => Ok(number),
        Ok(_) => Err(wrong()),
        Err(error) => {
            let error: PyErr = error.into();
            let is_range = error.is_instance_of::<PyOverflowError>(value.py());
            Err(if is_range { wrong() } else { error })
        }
    }
}

/// Defines functions for `from_py_with`: one for each argument, with its name and type.
macro_rules! arguments {
    ($($function:ident: $type:ty = $name:literal;)*) => {$(
        fn $function(value: &Bound<'_, PyAny>) -> PyResult<$type> {
            crate::integer::integer($name, value)
        }
    )*};
}

/// The same for arguments that may be `None`.
macro_rules! optional_arguments {
    ($($function:ident: $type:ty = $name:literal;)*) => {$(
        fn $function(value: &Bound<'_, PyAny>) -> PyResult<Option<$type>> {
            if value.is_none() {
                return Ok(None);
            }
            crate::integer::integer($name, value).map(Some)
        }
    )*};
}

pub(crate) use {arguments, optional_arguments};

/// A host and a port.
pub(crate) fn address(value: &Bound<'_, PyAny>) -> PyResult<(String, u16)> {
    let (host, port) = value.extract::<(String, Bound<'_, PyAny>)>()?;
    Ok((host, integer("port", &port)?))
}
