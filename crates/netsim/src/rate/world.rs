//! Flows over one path, there and back.

use std::collections::VecDeque;
use std::time::Duration;

use super::MS;
use super::flow::{Flow, Source};
use super::media::{Controller, Report};
use crate::{Course, Link};

/// Octets of an acknowledgement, and of a report without and for each packet.
const ACKNOWLEDGEMENT_LEN: usize = 40;
const REPORT_LEN: usize = 50;
const REPORT_PACKET_LEN: usize = 2;

/// A packet on its way, and the flow that it belongs to.
#[derive(Clone)]
struct Item {
    flow: usize,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Media { sequence: u16, sent: Duration, octets: usize },
    Report(Report),
    Acknowledgement(u16),
}

/// Runs flows over one path, there and back.
pub(super) fn run<C: Controller>(flows: &mut [Flow<C>], courses: [Course; 2], seconds: u32) {
    let mut links = courses.map(|course| Link::new(course, 1));
    // Items that have passed their bottleneck and still have to propagate, by flow and way.
    let mut propagating: Vec<[VecDeque<(Duration, Content)>; 2]> =
        flows.iter().map(|_| Default::default()).collect();
    for tick in 0..seconds * 1000 {
        let now = tick * MS;
        for (index, flow) in flows.iter_mut().enumerate() {
            if (flow.schedule.begins..flow.schedule.ends).contains(&now) {
                send(index, flow, now, &mut links);
            }
        }
        for way in [0, 1] {
            while let Some(delivery) = links[way].poll(now) {
                let Item { flow, content } = delivery.item;
                let at = delivery.at + flows[flow].schedule.delay;
                propagating[flow][way].push_back((at, content));
            }
        }
        for (index, ways) in propagating.iter_mut().enumerate() {
            for queue in ways {
                while queue.front().is_some_and(|(at, _)| *at <= now)
                    && let Some((at, content)) = queue.pop_front()
                {
                    if let Some(sequence) = arrive(&mut flows[index], now, at, content) {
                        let content = Content::Acknowledgement(sequence);
                        let back = &mut links[1 - flows[index].schedule.way];
                        back.push(now, ACKNOWLEDGEMENT_LEN, Item { flow: index, content });
                    }
                }
            }
        }
    }
}

fn send<C: Controller>(
    index: usize,
    flow: &mut Flow<C>,
    now: Duration,
    links: &mut [Link<Item>; 2],
) {
    let way = flow.schedule.way;
    for (sequence, octets) in flow.send(now) {
        let content = Content::Media { sequence, sent: now, octets };
        links[way].push(now, octets, Item { flow: index, content });
    }
    if let Some(report) = flow.report(now) {
        let len = REPORT_LEN + REPORT_PACKET_LEN * report.arrivals.len();
        links[1 - way].push(now, len, Item { flow: index, content: Content::Report(report) });
    }
}

/// Handles an item that arrived at `at`. Returns the number of a packet to be acknowledged.
fn arrive<C: Controller>(
    flow: &mut Flow<C>,
    now: Duration,
    at: Duration,
    content: Content,
) -> Option<u16> {
    match (content, &mut flow.source) {
        (Content::Media { sequence, sent, octets }, _) => {
            flow.receive(at, sequence, sent, octets);
            return matches!(flow.source, Source::Tcp(_)).then_some(sequence);
        }
        (Content::Report(report), Source::Media(media)) => {
            media.controller.handle_report(now, &report);
        }
        (Content::Acknowledgement(sequence), Source::Tcp(tcp)) => tcp.acknowledge(now, sequence),
        _ => {}
    }
    None
}
