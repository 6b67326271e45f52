//! The 80 rounds of SHA-1 over vectors, once for all vector lengths (FIPS 180-4 section 6.1.2).
//!
//! These are macros rather than generic functions, because a trait method cannot be a safe function
//! for an instruction set. The module that expands them provides the operations on its vectors:
//! `add`, `exclusive_or`, `rotate::<BITS>`, `choose`, `parity`, `majority` and `constant`.

/// Runs the rounds over the state and the 16 words of the block; evaluates to the new state.
macro_rules! eighty_rounds {
    ($state:expr, $words:ident) => {{
        let [mut a, mut b, mut c, mut d, mut e] = $state;
        $crate::rounds::twenty_rounds!(choose, 0, 0, $words, a b c d e);
        $crate::rounds::twenty_rounds!(parity, 1, 20, $words, a b c d e);
        $crate::rounds::twenty_rounds!(majority, 2, 40, $words, a b c d e);
        $crate::rounds::twenty_rounds!(parity, 3, 60, $words, a b c d e);
        [a, b, c, d, e]
    }};
}

/// Twenty rounds, which share one function and one constant.
macro_rules! twenty_rounds {
    ($function:ident, $twenty:literal, $from:literal, $words:ident, $($state:ident)+) => {
        let key = constant($crate::scalar::CONSTANTS[$twenty]);
        $crate::rounds::five_rounds!($function, key, $from, $words, $($state)+);
        $crate::rounds::five_rounds!($function, key, $from + 5, $words, $($state)+);
        $crate::rounds::five_rounds!($function, key, $from + 10, $words, $($state)+);
        $crate::rounds::five_rounds!($function, key, $from + 15, $words, $($state)+);
    };
}

/// Five rounds, after which every variable is in its original place, so that none has to be moved.
macro_rules! five_rounds {
    ($f:ident, $key:ident, $t:expr, $words:ident, $a:ident $b:ident $c:ident $d:ident $e:ident) => {
        $crate::rounds::round!($f, $key, $t, $words, $a $b $c $d $e);
        $crate::rounds::round!($f, $key, $t + 1, $words, $e $a $b $c $d);
        $crate::rounds::round!($f, $key, $t + 2, $words, $d $e $a $b $c);
        $crate::rounds::round!($f, $key, $t + 3, $words, $c $d $e $a $b);
        $crate::rounds::round!($f, $key, $t + 4, $words, $b $c $d $e $a);
    };
}

/// One round. Only the last 16 words of the message schedule are kept.
macro_rules! round {
    ($f:ident, $key:ident, $t:expr, $words:ident, $a:ident $b:ident $c:ident $d:ident $e:ident) => {
        if const { $t >= 16 } {
            let near = exclusive_or($words[($t + 13) % 16], $words[($t + 8) % 16]);
            let far = exclusive_or($words[($t + 2) % 16], $words[$t % 16]);
            $words[$t % 16] = rotate::<1>(exclusive_or(near, far));
        }
        // The operation that depends on `$a`, the newest value, is the last.
        $e = add($e, add($words[$t % 16], $key));
        $e = add(add($e, $f($b, $c, $d)), rotate::<5>($a));
        $b = rotate::<30>($b);
    };
}

pub(crate) use eighty_rounds;
pub(crate) use five_rounds;
pub(crate) use round;
pub(crate) use twenty_rounds;
