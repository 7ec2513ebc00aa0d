//! Links: from their specification to nodes.

use super::{Builder, Refusal};
use crate::engine::external::ExternalLink;
use crate::link::capacity::{BrownianSettings, Constant, Server, Steps};
use crate::link::queue::Discipline;
use crate::link::trace::Trace;
use crate::link::{Link, LinkSettings, ManagedLink};
use crate::record::summary::{PlayedTrace, Warning};
use crate::scenario::{Capacity, FlowKind, FlowSpec, LinkService, LinkSpec, Offset};
use tidegate_core::{Node, Rate, Span, Stream};

/// Bytes of the largest IP packet on Ethernet (RFC 894), and of an RTP header without extensions.
const ETHERNET_MTU: u32 = 1500;
const RTP_HEADER: u32 = 12;

impl Builder<'_> {
    pub(super) fn link(&self, spec: &LinkSpec) -> Result<Box<dyn Node>, Refusal> {
        let settings = self.link_settings(spec).map_err(|refusal| refusal.at(&spec.name).at("links"))?;
        let (name, seed) = (&spec.name, self.seed(&spec.name));
        // a link that is changed while packets wait has to be computed packet by packet
        let moved = self.scenario.moves.iter().any(|move_spec| move_spec.link.as_ref() == Some(name));
        let service = if moved || settings.netem.is_some() || settings.mtu.is_some() {
            LinkService::Managed
        } else {
            spec.service
        };
        let link: Result<Box<dyn Node>, Refusal> = match (&spec.capacity, service) {
            (Capacity::External, _) => Ok(Box::new(ExternalLink::new(name))),
            (_, LinkService::Fifo) if settings.discipline == Discipline::DropTail => {
                Link::new(name, seed, settings).map(|link| Box::new(link) as _)
            }
            _ => ManagedLink::new(name, seed, settings).map(|link| Box::new(link) as _),
        };
        link.map_err(|refusal| refusal.at("links"))
    }

    fn link_settings(&self, spec: &LinkSpec) -> Result<LinkSettings, Refusal> {
        let mut settings = spec.settings.clone();
        match &spec.capacity {
            Capacity::Trace { index, offset, scale, capacity_only } => {
                let mut trace = self.trace(*index)?.played(self.offset(offset)?, *scale)?;
                if *capacity_only {
                    trace = Trace { loss: None, delay: None, ..trace };
                }
                Ok(trace.link(settings)?)
            }
            Capacity::Leo(leo) => {
                let seeds = (self.seed(&spec.name), self.seed(&leo.cable));
                leo.link(settings, &spec.name, seeds, self.scenario.duration)
            }
            capacity => {
                settings.server = server(capacity, self.seed(&spec.name), &spec.name)?;
                Ok(settings)
            }
        }
    }

    fn trace(&self, index: usize) -> Result<&Trace, Refusal> {
        let trace = self.traces.get(index).map(|trace| &**trace);
        trace.ok_or_else(|| format!("trace number {index} of the scenario was not passed to the run").into())
    }

    /// The time in its trace at which a link begins.
    ///
    /// A random offset is a whole millisecond, with equal probability, such that the run fits into the recording: no run
    /// crosses the seam where the recording begins again. A recording that is no longer than the run is played from its
    /// beginning: all of it is played wherever the run begins, and the seam would be a place of its own in each. Both
    /// directions of a cable were recorded at the same time and begin at the same offset, which the shorter recording
    /// limits.
    fn offset(&self, offset: &Offset) -> Result<Span, Refusal> {
        let cable = match offset {
            Offset::At(offset) => return Ok(*offset),
            Offset::Random { random } => random,
        };
        let mut shortest = Span::MAX;
        for spec in &self.scenario.links {
            if let Capacity::Trace { index, offset: Offset::Random { random }, .. } = &spec.capacity
                && random == cable
            {
                shortest = shortest.min(self.trace(*index)?.duration());
            }
        }
        const MILLI: i64 = 1_000_000;
        let spare = shortest - self.scenario.duration;
        let positions = spare.as_nanos().max(0) / MILLI + 1;
        let mut luck = Stream::new(self.seed(cable), cable, "offset");
        Ok(Span::from_nanos(luck.below(positions as u64) as i64 * MILLI))
    }

    /// The part of each recorded network that is played if the run lasts as long as planned.
    pub(super) fn recordings(&self) -> Result<Vec<PlayedTrace>, Refusal> {
        let mut recordings = Vec::new();
        for spec in &self.scenario.links {
            if let Capacity::Trace { index, offset, .. } = &spec.capacity {
                let trace = self.trace(*index)?;
                let (from, length) = (self.offset(offset)?, trace.duration());
                let name = trace.name.rsplit(['/', '\\']).next().unwrap_or_default();
                recordings.push(PlayedTrace {
                    link: spec.name.clone(),
                    trace: name.to_owned(),
                    from_s: Span::from_nanos(from.as_nanos() % length.as_nanos().max(1)).as_secs_f64(),
                    used_s: self.scenario.duration.min(length).as_secs_f64(),
                    length_s: length.as_secs_f64(),
                });
            }
        }
        Ok(recordings)
    }

    /// Choices of the parsers of the recorded networks, outliers in them, and datagrams that no Ethernet carries whole.
    pub(super) fn remarks(&self) -> Result<Vec<Warning>, Refusal> {
        let mut remarks = Vec::new();
        for spec in &self.scenario.links {
            if let Capacity::Trace { index, scale, .. } = &spec.capacity {
                let (key, trace) = (format!("links.{}.capacity", spec.name), self.trace(*index)?);
                let says = trace.remarks.iter().cloned();
                remarks.extend(says.map(|says| Warning { key: format!("{key}.trace"), says }));
                if let Some(median) = trace.outlying() {
                    let [mean, median] = [trace.mean_rate(), median].map(|rate| rate.scaled(*scale));
                    let says = format!(
                        "an outlier makes the recording's mean ({:.3} Mbit/s), which is more than ten times its median by \
                         time ({:.3} Mbit/s): utilisation is low for every controller; a queue limit in time is computed \
                         from the median",
                        mean.as_bps_f64() / 1e6,
                        median.as_bps_f64() / 1e6
                    );
                    remarks.push(Warning { key, says });
                }
            }
        }
        remarks.extend(self.large_datagrams());
        Ok(remarks)
    }

    /// Warns about flows whose datagrams are larger than Ethernet's packets, where no link has an MTU.
    fn large_datagrams(&self) -> impl Iterator<Item = Warning> {
        let knows = self.scenario.links.iter().any(|spec| spec.settings.mtu.is_some());
        let flows = self.scenario.flows.iter().filter(move |_| !knows);
        flows.filter_map(|FlowSpec { name, kind, .. }| {
            let (key, size) = match kind {
                FlowKind::Media(media) => ("media.payload", RTP_HEADER + media.payload + media.overhead),
                FlowKind::Udp(udp) => ("udp.packet_size", udp.packet_size),
                FlowKind::Tcp(_) | FlowKind::External | FlowKind::Program => return None,
            };
            let says = format!(
                "packets of up to {size} bytes go whole, although Ethernet's have {ETHERNET_MTU} at most: state the `mtu` of \
                 a link, or smaller packets"
            );
            (size > ETHERNET_MTU).then(|| Warning { key: format!("flows.{name}.{key}"), says })
        })
    }
}

/// The transmitter of a link without a trace, for its name and seed.
fn server(capacity: &Capacity, seed: u64, name: &str) -> Result<Server, Refusal> {
    Ok(match capacity {
        Capacity::Infinite | Capacity::External | Capacity::Trace { .. } | Capacity::Leo(_) => {
            Server::Infinite
        }
        Capacity::Constant(rate) => Server::Constant(Constant::new(*rate)),
        Capacity::Schedule { steps, period } => Server::schedule(Steps::new(steps, *period)?),
        Capacity::Brownian(spec) => {
            let defaults = BrownianSettings::default();
            let packets = |rate: Rate| rate.as_bps_f64() / (f64::from(defaults.bytes) * 8.0);
            let settings = BrownianSettings {
                sigma: packets(spec.sigma),
                max: packets(spec.max),
                escape: spec.outage_escape,
                initial: Some(packets(spec.start)),
                ..defaults
            };
            Server::brownian(settings, seed, name)?
        }
        Capacity::Statuses(statuses) => Server::statuses(statuses.clone(), seed, name)?,
    })
}
