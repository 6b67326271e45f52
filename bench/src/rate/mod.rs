//! `rushes bench rate`: rate control in the cases of RFC 8867, in virtual time.

mod controller;
mod plots;

use std::time::Instant;

use clap::Args;
use rushes_netsim::rate::{Case, Flow, RATES, Summary, cases};
use rushes_proto::rate::RateSettings;

use self::controller::Library;
use crate::captions;
use crate::report::{Figure, Table};
use crate::settings::{Measure, Settings};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Flows of media and of TCP share a path with a bottleneck, in virtual time: nothing is sent, results
do not depend on the machine, and a quick run is the same. Media follows the model of RFC 8593
section 5, from 150 to 1 500 kbit/s. Each case is run with the library's rate control, and again with
media of 1 000 kbit/s that nothing controls.

  % used    share of the capacity that all flows used when they had adapted
  kbit/s    rate of each flow of media at the end
  fairness  Jain's index of these rates: 1 if they are equal
  queue     time that packets of media waited at the bottleneck, whose queue holds 300 ms
  s to 80 % seconds until the flow that has to grow has 80 % of a fair share; empty: more than 100")]
pub(crate) struct RateArgs {}

/// The rate in kbit/s of media that nothing controls.
const FIXED_RATE: u32 = 1000;

/// The results of a case, under rate control and at a fixed rate.
struct Played {
    case: Case,
    controlled: Vec<Flow<Library>>,
    fixed: Vec<Flow<Library>>,
}

struct Row<'a> {
    case: &'a Case,
    sending: &'static str,
    summary: Summary,
}

impl Measure for RateArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        settings.progress("rate: the cases of RFC 8867");
        let [min, first, max] = RATES;
        let limits = RateSettings::new(min, first, max)?;
        let played: Vec<_> = cases().into_iter().map(|case| play(case, limits)).collect();
        let rows: Vec<_> = played.iter().flat_map(Played::rows).collect();
        let plots = played.iter().flat_map(plots::plots);
        let settings = "virtual time, queues of 300 ms, fixed rate of 1 000 kbit/s";
        Ok(vec![table(&rows).figure(&captions::RATE, settings).plots(plots)])
    }
}

impl Played {
    fn rows(&self) -> [Row<'_>; 2] {
        let row = |sending, flows| {
            let summary = Summary::new(&self.case, flows);
            Row { case: &self.case, sending, summary }
        };
        [row("rate control", &self.controlled), row("fixed rate", &self.fixed)]
    }
}

fn play(case: Case, limits: RateSettings) -> Played {
    let start = Instant::now();
    let controlled = case.run(|begins| Library::new(limits, start, begins));
    let fixed = case.run_fixed(FIXED_RATE);
    Played { case, controlled, fixed }
}

fn table<'i>(rows: &'i [Row<'i>]) -> Table<'i, Row<'i>> {
    let millis = |row: &Row<'_>, place: usize| row.summary.queued[place].as_secs_f64() * 1e3;
    Table::of(rows)
        .text("case", |row| row.case.name)
        .text("flows", |row| row.case.title)
        .text("media", |row| row.sending)
        .measure("% used", 0, |row| 100.0 * row.summary.utilisation)
        .text("kbit/s", |row| {
            let rates: Vec<_> = row.summary.rates.iter().map(ToString::to_string).collect();
            rates.join(" / ")
        })
        .measure("fairness", 3, |row| (row.summary.rates.len() > 1).then_some(row.summary.fairness))
        .measure("queue p50 ms", 0, move |row| millis(row, 0))
        .measure("queue p95 ms", 0, move |row| millis(row, 1))
        .measure("lost %", 2, |row| 100.0 * row.summary.loss)
        .count("s to 80 %", |row| row.summary.growth.map(|seconds| seconds as u64))
}
