//! Integers from Python, with errors that name the argument, its value and the range.

use std::net::Ipv6Addr;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::ConfigError;

/// An integer type and its range.
pub(crate) trait Integer: Copy + for<'a, 'py> FromPyObject<'a, 'py> {
    const LEAST: i128;
    const MOST: i128;

    /// Converts the number to a type that can hold every [`Integer`].
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

/// Converts the argument `name` to an integer of type `T`.
///
/// # Errors
/// `ConfigError` if it is out of range, `TypeError` if it is not an integer.
pub(crate) fn integer<T: Integer>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    within(name, value, T::LEAST, T::MOST)
}

/// Converts the argument `name` to an integer from `least` to `most`.
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

/// Defines such functions for arguments that may be `None`.
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

/// Converts a host and a port: a tuple of both, or a text such as `localhost:7000` or `[::1]:7000`.
pub(crate) fn address(value: &Bound<'_, PyAny>) -> PyResult<(String, u16)> {
    if let Ok(text) = value.cast::<PyString>() {
        return split(&text.to_cow()?).map_err(ConfigError::new_err);
    }
    let (host, port) = value.extract::<(String, Bound<'_, PyAny>)>()?;
    Ok((host, integer("port", &port)?))
}

/// Splits a text into a host and a port.
fn split(text: &str) -> Result<(String, u16), String> {
    let example = |host: &str| format!("address: {text:?} has no port; type \"{host}:7000\"");
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("{}, with brackets", example(&format!("[{text}]"))));
    }
    let Some((host, port)) = text.rsplit_once(':').filter(|_| !text.ends_with(']')) else {
        return Err(example(if text.is_empty() { "localhost" } else { text }));
    };
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if inner.is_none() && host.contains(':') {
        let wanted = format!("type \"[{host}]:{port}\"");
        return Err(format!("address: {text:?}: an IPv6 address needs brackets; {wanted}"));
    }
    let host = inner.unwrap_or(host);
    if host.is_empty() {
        return Err(format!("address: {text:?} has no host; type \"localhost:{port}\""));
    }
    let number = port.parse();
    let wrong = |_| format!("address: {text:?}: {port:?} is not a port, 0 to 65535");
    Ok((host.to_owned(), number.map_err(wrong)?))
}
