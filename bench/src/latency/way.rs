//! The ways of receiving that are compared.

/// The way in which both processes receive frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Way {
    Pull,
    PullSpinning,
    Hook,
    HookSpinning,
    Raw,
}

impl Way {
    pub(crate) const ALL: [Self; 5] =
        [Self::Pull, Self::PullSpinning, Self::Hook, Self::HookSpinning, Self::Raw];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::PullSpinning => "pull, spinning",
            Self::Hook => "hook",
            Self::HookSpinning => "hook, spinning",
            Self::Raw => "bare",
        }
    }

    /// The argument for the side processes.
    pub(super) fn argument(self) -> String {
        self.name().replace(", ", "-").replace("bare", "raw")
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::Way;

    #[test]
    fn the_sides_understand_every_way() {
        for way in Way::ALL {
            assert_eq!(Way::from_str(&way.argument(), false), Ok(way));
        }
    }
}
