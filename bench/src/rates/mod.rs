//! `rushes bench rates`: goodput, CPU time and loss against the rate of access units.

mod contestant;
