//! Other networks: this host's loopback, and virtual Ethernet between two namespaces.

use super::pair::{Figures, measure_all};
use super::spec::Spec;
use super::{COST_HEADS, ScalingArgs, costs, left_out, series};
use crate::hosts::Hosts;
use crate::report::{Across, BARE, Cell, Figure, Plot};

/// Ways: segmentation, `sendmmsg`, bare sockets.
const WAYS: [(&str, bool, bool); 3] =
    [("gso/gro", true, false), ("sendmmsg/recvmmsg", false, false), ("gso/gro", true, true)];

pub(super) fn figures(args: &ScalingArgs) -> anyhow::Result<Vec<Figure>> {
    let mut places: Vec<(String, usize, Hosts)> = Vec::new();
    let mut refused = None;
    for mtu in [1500, 9000] {
        places.push((format!("loopback, {mtu}"), mtu, Hosts::loopback()));
        match Hosts::namespaces_with(mtu) {
            Ok(hosts) => places.push((format!("veth, {mtu}"), mtu, hosts)),
            Err(why) => refused = Some(why),
        }
    }
    if let Some(why) = refused {
        left_out("virtual Ethernet is", &why);
    }
    let turns = args.runs(3);
    let mut rows = Vec::new();
    let mut lines: Vec<Vec<(f64, f64)>> = vec![Vec::new(); WAYS.len()];
    for (n, (name, mtu, hosts)) in places.iter().enumerate() {
        args.settings.progress(&format!("scaling: {name}"));
        let specs = WAYS.map(|(_, segmented, bare)| {
            let gigabits = if segmented { 40.0 } else { 8.0 };
            Spec { mtu: *mtu, segmented, bare, ..args.flat(gigabits) }
        });
        let measured: Vec<Figures> = measure_all(hosts, &specs, turns)?;
        for ((way, figures), line) in WAYS.iter().zip(&measured).zip(&mut lines) {
            let path = if way.2 { "sockets alone" } else { way.0 };
            let row = [Cell::text(name), Cell::text(path)].into_iter().chain(costs(figures));
            rows.push(row.collect());
            line.push((n as f64, figures.gigabits));
        }
    }
    let lines = WAYS.iter().zip(lines).map(|((name, _, bare), points)| {
        series(format!("{name}{}", if *bare { BARE } else { "" }), points, *bare)
    });
    let plot = Plot {
        name: "places".to_owned(),
        title: "Goodput by network and octets in an IP packet".to_owned(),
        x: "network",
        y: "Gbit/s",
        across: Across::Names(places.iter().map(|place| place.0.clone()).collect()),
        decades: false,
        series: lines.collect(),
    };
    Ok(vec![Figure {
        name: "places",
        title: format!(
            "Networks: {} octets an access unit, medians of {turns} runs",
            args.frame_size
        ),
        heads: ["network", "path"].into_iter().chain(COST_HEADS).collect(),
        rows,
        plots: vec![plot],
    }])
}
