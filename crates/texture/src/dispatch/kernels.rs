//! Selection of a kernel, for vectors of any length.

/// Defines a function that calls the kernels of modules with this name, which need these features.
macro_rules! kernels {
    ($name:ident, $vectors:ident, $features:literal) => {
        /// Encodes the blocks that fill whole pairs of vectors.
        #[target_feature(enable = $features)]
        fn $name(kernel: Kernel, strip: Strip<'_>, out: &mut [u8]) {
            match kernel {
                Kernel::Bc1 => bc1::$vectors::encode(strip, out),
                Kernel::Bc3 => bc3::$vectors::encode(strip, out),
                Kernel::YCoCgBc3 => ycocg_bc3::$vectors::encode(strip, out),
                Kernel::RefinedBc1 => refined::$vectors::encode::<8>(strip, out),
                Kernel::RefinedBc3 => refined::$vectors::encode::<16>(strip, out),
                Kernel::RefinedYCoCgBc3 => refined::$vectors::encode_chroma(strip, out),
            }
        }
    };
}
