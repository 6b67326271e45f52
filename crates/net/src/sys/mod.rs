//! The system: one file per kind, with the same items in each.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod wire;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::*;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod portable;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use portable::*;
