//! `rushes bench`: all measurements in one run, with one report.

use std::time::Instant;

use clap::Args;

use crate::report::{Figure, Machine, page};
use crate::settings::{Settings, write};
use crate::{
    Outcome, goodput, latency, peers, rates, scaling, srtp, start_code, texture, zero_copy, zrtp,
};

pub(crate) const HELP: &str = "\
Without a command everything is measured, in about 20 minutes; --quick takes two. With
--out there is also report.html, a single page with all tables and plots, without external files.

Use a release build on a machine that does nothing else, and compare figures of one run only.
Measurements that need root (network namespaces) or a program that is not installed are left out,
with a message.";

#[derive(Args, Clone, Debug)]
pub(crate) struct AllArgs {
    #[command(flatten)]
    settings: Settings,
}

type Measure = fn(&Settings) -> anyhow::Result<Vec<Figure>>;

/// The measurements, in the order of the report.
const SECTIONS: &[(&str, Measure)] = &[
    ("goodput", |settings| goodput::figures(&goodput::GoodputArgs::of_all(settings))),
    ("rates", |settings| rates::figures(&rates::RatesArgs::of_all(settings))),
    ("peers", |settings| peers::figures(&peers::PeersArgs::of_all(settings))),
    ("latency", |settings| latency::figures(&latency::LatencyArgs::of_all(settings))),
    ("start codes", |settings| start_code::figures(&start_code::StartCodeArgs::of_all(settings))),
    ("srtp", |settings| srtp::figures(&srtp::SrtpArgs::of_all(settings))),
    ("zrtp", |settings| zrtp::figures(&zrtp::ZrtpArgs::of_all(settings))),
    ("scaling", |settings| scaling::figures(&scaling::ScalingArgs::of_all(settings))),
    ("zero copy", |settings| Ok(zero_copy::figures(&zero_copy::ZeroCopyArgs::of_all(settings)))),
    ("texture", |settings| texture::figures(&texture::TextureArgs::of_all(settings))),
];

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
