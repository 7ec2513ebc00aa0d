//! Flows other than media: UDP, TCP, and those of the driver.

use super::{Builder, Refusal};
use crate::engine::external::{ExternalSink, ExternalSource};
use crate::link::capacity::Steps;
use crate::scenario::calls::nodes;
use crate::scenario::moves::{CallChange, PathChange, at_move};
use crate::scenario::{ExternalFlow, FlowKind, FlowSpec, TcpSpec, UdpSpec};
use crate::traffic::Sink;
use crate::traffic::tcp::{TcpReceiver, TcpSender, TcpSettings};
use crate::traffic::udp::{Pattern, UdpSettings, UdpSource};
use tidegate_core::wire::ip::UDP_HEADERS;
use tidegate_core::wire::tcp::data_headers;
use tidegate_core::{FlowId, NodeId, Port, Span, Time};

impl Builder<'_> {
    pub(super) fn udp(
        &mut self,
        id: FlowId,
        flow: &FlowSpec,
        udp: &UdpSpec,
        path: &[(NodeId, Port)],
        jitter: Option<Span>,
    ) -> Result<(), Refusal> {
        let changing = udp.pattern == Pattern::Cbr && !udp.schedule.is_empty();
        let route = self.route(path, self.next_node(1));
        let settings = UdpSettings {
            flow: id,
            route,
            size: udp.packet_size,
            start: flow.start,
            stop: flow.stop.unwrap_or(Time::MAX),
            pattern: udp.pattern,
            rate: udp.rate,
            schedule: changing.then(|| Steps::new(&udp.schedule, None)).transpose()?,
            jitter: jitter.unwrap_or(Span::ZERO),
        };
        let source = UdpSource::new(&flow.name, self.seed(&flow.name), settings)
            .map_err(|refusal| refusal.at("udp"))?;
        self.nodes.push(Box::new(source));
        self.nodes.push(Box::new(Sink::new(format!("{}.sink", flow.name))));
        Ok(())
    }

    pub(super) fn external_flow(&mut self, id: FlowId, flow: &FlowSpec, path: &[(NodeId, Port)]) {
        let (source, sink) = (self.next_node(0), self.next_node(1));
        let route = self.route(path, sink);
        self.nodes.push(Box::new(ExternalSource::new(&flow.name, id, route)));
        let mut receiver = ExternalSink::new(format!("{}.sink", flow.name));
        if matches!(flow.kind, FlowKind::Program) {
            receiver = receiver.useful_behind(UDP_HEADERS);
        }
        self.nodes.push(Box::new(receiver));
        self.external.flows.push(ExternalFlow {
            name: flow.name.clone(),
            source,
            sink,
            start: flow.start,
            stop: flow.stop.unwrap_or(Time::MAX),
        });
    }

    /// Adds the routes of the moves that change the path of the external flow that was added last.
    pub(super) fn external_paths(&mut self, id: FlowId, flow: &FlowSpec) -> Result<(), Refusal> {
        let scenario = self.scenario;
        let (source, sink) = (NodeId(self.next_node(0).0 - 2), NodeId(self.next_node(0).0 - 1));
        let moves = scenario.moves.iter().enumerate();
        for (index, change) in moves.filter(|(_, change)| change.flow.as_ref() == Some(&flow.name)) {
            let Some(path) = &change.path else { continue };
            let path = self.calls.along(path, [&flow.from, &flow.to]);
            let path = path.map_err(|refusal| at_move(index, &refusal))?;
            let routes = vec![((source, Port::ZERO), self.route(&path, sink))];
            let flows = vec![(id, nodes(&path))];
            self.changes.insert(index, CallChange::Path(PathChange { flows, routes, signalled: false }));
        }
        Ok(())
    }

    pub(super) fn tcp(
        &mut self,
        id: FlowId,
        flow: &FlowSpec,
        tcp: &TcpSpec,
        path: &[(NodeId, Port)],
        jitter: Option<Span>,
    ) -> Result<(), Refusal> {
        let back = self.way_back(flow)?;
        let headers = data_headers(tcp.timestamps);
        let segment = tcp.packet_size.checked_sub(headers).filter(|&bytes| bytes > 0);
        let segment = segment.and_then(|bytes| u16::try_from(bytes).ok()).ok_or_else(|| {
            let expected = format!("{headers} bytes of headers and 1 to 65535 of data");
            Refusal::new("tcp.packet_size", tcp.packet_size, expected)
        })?;
        let settings = TcpSettings {
            variant: tcp.algorithm,
            recovery: tcp.recovery,
            segment,
            initial_window: tcp.initial_window,
            receive_window: u32::try_from(tcp.receive_window).unwrap_or(u32::MAX),
            min_rto: tcp.min_rto,
            // RFC 5681 allows 500 ms; 200 ms is what ns-3 and the BSDs wait
            delayed_ack: tcp.delayed_ack.then_some(Span::from_millis(200)),
            handshake: tcp.handshake,
            options: tcp.options,
            hystart: tcp.hystart,
            ecn: tcp.ecn,
            timestamps: tcp.timestamps,
            offload: tcp.offload,
            workload: tcp.workload,
            start: flow.start,
            stop: flow.stop,
            ..TcpSettings::default()
        };
        let data = self.route(path, self.next_node(1));
        let acks = self.route(&back, self.next_node(0));
        settings.check().map_err(|refusal| refusal.at("tcp"))?;
        let receiver = TcpReceiver::new(format!("{}.receiver", flow.name), id, acks, &settings)?;
        let sender = TcpSender::new(&flow.name, self.seed(&flow.name), id, data, settings, jitter)?;
        self.nodes.push(Box::new(sender));
        self.nodes.push(Box::new(receiver));
        Ok(())
    }
}
