//! `rushes bench`: all measurements in one run, with one report.

use std::time::Instant;

use clap::Args;

use crate::Outcome;
use crate::ciphers::CiphersArgs;
use crate::goodput::GoodputArgs;
use crate::latency::LatencyArgs;
use crate::peers::PeersArgs;
use crate::rate::RateArgs;
use crate::rates::RatesArgs;
use crate::report::{Figure, Machine, page};
use crate::scale::ScaleArgs;
use crate::scaling::ScalingArgs;
use crate::settings::{Measure, Settings, usual, write};
use crate::slices::SlicesArgs;
use crate::srtp::SrtpArgs;
use crate::start_code::StartCodeArgs;
use crate::streams::StreamsArgs;
use crate::texture::TextureArgs;
use crate::zrtp::ZrtpArgs;

pub(crate) const HELP: &str = "\
Without a command everything is measured, in about 25 minutes; --quick takes three. With
--out there is also report.html, a single page with all tables and plots, without external files.

Use a release build on a machine that does nothing else, and compare figures of one run only.
Measurements that need root (network namespaces) or a program that is not installed are left out,
with a message.";

#[derive(Args, Clone, Debug)]
pub(crate) struct AllArgs {
    #[command(flatten)]
    settings: Settings,
}

type Figures = fn(&Settings) -> anyhow::Result<Vec<Figure>>;

/// The measurements, in the order of the report.
const SECTIONS: [(&str, Figures); 14] = [
    ("goodput", figures::<GoodputArgs>),
    ("rates", figures::<RatesArgs>),
    ("peers", figures::<PeersArgs>),
    ("latency", figures::<LatencyArgs>),
    ("start codes", figures::<StartCodeArgs>),
    ("srtp", figures::<SrtpArgs>),
    ("ciphers", figures::<CiphersArgs>),
    ("zrtp", figures::<ZrtpArgs>),
    ("slices", figures::<SlicesArgs>),
    ("scaling", figures::<ScalingArgs>),
    ("streams", figures::<StreamsArgs>),
    ("scale", figures::<ScaleArgs>),
    ("rate", figures::<RateArgs>),
    ("texture", figures::<TextureArgs>),
];

fn figures<M: Measure>(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    usual::<M>()?.figures(settings)
}

pub(crate) fn run(args: &AllArgs) -> anyhow::Result<Outcome> {
    let settings = &args.settings;
    settings.prepare()?;
    let start = Instant::now();
    let mut all = Vec::new();
    for (name, measure) in SECTIONS {
        let begun = Instant::now();
        let figures = measure(settings)?;
        // Figures are printed at once, as the run may be interrupted.
        if !settings.json {
            for figure in &figures {
                settings.report(figure)?;
            }
        }
        all.extend(figures);
        settings.progress(&format!("{name}: {:.0} s", begun.elapsed().as_secs_f64()));
    }
    if settings.json {
        settings.report_all(&all)?;
    }
    if let Some(folder) = &settings.out {
        let machine = Machine::find();
        let file = folder.join("report.html");
        write(&file, &page(&machine, settings.quick, start.elapsed(), &all)?)?;
        settings.progress(&format!("the report is {}", file.display()));
    }
    Ok(Outcome::Done)
}
