//! Reports of measurements: tables, plots, and a page of all of them.
//!
//! This module is independent of what was measured.

mod compact;
mod figure;
mod machine;
mod page;
mod plot;
mod statistics;

pub(crate) use self::figure::{Across, BARE, Caption, Figure, Plot, Series, Table};
pub(crate) use self::machine::Machine;
pub(crate) use self::page::page;
pub(crate) use self::plot::svg;
pub(crate) use self::statistics::{Span, mean, median, medians_of, quantile};
