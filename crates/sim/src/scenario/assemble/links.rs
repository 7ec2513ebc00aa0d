//! Links: from their specification to nodes.

use super::{Builder, Refusal};
use crate::engine::external::ExternalLink;
use crate::link::capacity::{BrownianSettings, Service, Steps};
use crate::link::queue::Discipline;
use crate::link::{Link, LinkSettings, ManagedLink};
use crate::scenario::{Capacity, LinkService, LinkSpec};
use tidegate_core::{Node, Rate};

impl Builder<'_> {
    pub(super) fn link(&self, spec: &LinkSpec) -> Result<Box<dyn Node>, Refusal> {
        let settings = self.link_settings(spec).map_err(|refusal| refusal.at(&spec.name).at("links"))?;
        let (name, seed) = (&spec.name, self.seed(&spec.name));
        let link: Result<Box<dyn Node>, Refusal> = match (&spec.capacity, spec.service) {
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
            Capacity::Trace { index, offset, scale } => {
                let trace = self.traces.get(*index);
                let trace = trace.ok_or_else(|| format!("trace number {index} was not handed over"))?;
                Ok(trace.played(*offset, *scale)?.link(settings)?)
            }
            capacity => {
                settings.service = service(capacity)?;
                Ok(settings)
            }
        }
    }
}

/// The service of a link that does not follow a trace.
fn service(capacity: &Capacity) -> Result<Service, Refusal> {
    Ok(match capacity {
        Capacity::Infinite | Capacity::External | Capacity::Trace { .. } => Service::Infinite,
        Capacity::Constant(rate) => Service::Constant(*rate),
        Capacity::Schedule { steps, period } => Service::Schedule(Steps::new(steps, *period)?),
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
            settings.check()?;
            Service::Brownian(settings)
        }
        Capacity::Statuses(statuses) => Service::Statuses(statuses.clone()),
    })
}
