//! Sessions of many members: from their specification to participants.

use super::trees::{Leaf, Trees};
use super::{Builder, Refusal, clock_of};
use crate::engine::host::{Destination, Host};
use crate::engine::replicator::Replicator;
use crate::record::FlowInfo;
use crate::record::member::MemberInfo;
use crate::record::path::Path;
use crate::record::target::Sharing;
use crate::scenario::{MemberMedia, MemberSpec, ProfileSpec, Routes, SessionSpec};
use tidegate_core::{FlowId, RouteId, Time};
use tidegate_endpoint::group::{Leave, MediaSettings, Participant, ParticipantSettings};
use tidegate_endpoint::rtcp::schedule::Avpf;
use tidegate_endpoint::{RtcpMinimum, RtcpMode, RtcpSettings};

/// A member of a session, before its participant is made.
struct Member<'a> {
    spec: &'a MemberSpec,
    /// `SESSION.MEMBER`.
    name: String,
    flow: FlowId,
}

impl Builder<'_> {
    /// The participants of all sessions, and the trees between them.
    pub(super) fn sessions(&mut self, infos: &mut Vec<FlowInfo>) -> Result<Vec<MemberInfo>, Refusal> {
        let scenario = self.scenario;
        let points = Routes::of(&scenario.links);
        let mut member_infos = Vec::new();
        for (index, session) in scenario.sessions.iter().enumerate() {
            self.session(index, session, &points, infos, &mut member_infos)
                .map_err(|refusal| refusal.at(&format!("sessions.{}", session.name)))?;
        }
        Ok(member_infos)
    }

    fn session(
        &mut self,
        index: usize,
        session: &SessionSpec,
        points: &Routes,
        infos: &mut Vec<FlowInfo>,
        member_infos: &mut Vec<MemberInfo>,
    ) -> Result<(), Refusal> {
        if session.members.len() < 2 {
            return Err(Refusal::new("members", session.members.len(), "at least 2 members"));
        }
        let first = infos.len();
        let mut members = Vec::with_capacity(session.members.len());
        let mut leaves = Vec::with_capacity(session.members.len());
        for (number, spec) in session.members.iter().enumerate() {
            let point = points.number(&spec.node);
            let point = point.ok_or_else(|| {
                format!("member {}: no link begins or ends at node {}", spec.name, spec.node)
            })?;
            let name = format!("{}.{}", session.name, spec.name);
            let (node, flow) = (self.next_node(number), FlowId((first + number) as u32));
            leaves.push(Leaf { name: &spec.node, point, node });
            members.push(Member { spec, name, flow });
        }
        let first_replicator = self.next_node(members.len()).0;
        let mut trees = Trees::new(&leaves, points, &mut self.routes, first_replicator);
        let routes: Vec<RouteId> =
            (0..leaves.len()).map(|source| trees.plant(source, points)).collect::<Result<_, _>>()?;
        let replicators = trees.into_branches();
        for (member, route) in members.iter().zip(routes) {
            let mut settings = settings(self.seed(&member.name), session, member);
            settings.clock.settings = clock_of(self.scenario, &member.spec.node);
            let participant = Participant::new(settings)?;
            self.nodes.push(Box::new(Host::new(participant, route, Destination::Group(index as u16))));
            infos.push(info(member, session.overhead, self.scenario.duration));
            member_infos.push(MemberInfo {
                flow: member.flow,
                session: index as u32,
                name: member.spec.name.clone(),
                bandwidth: session.bandwidth,
            });
        }
        for (number, branches) in replicators.into_iter().enumerate() {
            self.nodes.push(Box::new(Replicator::new(
                format!("{}.replicator{}", session.name, number + 1),
                branches,
            )));
        }
        Ok(())
    }
}

fn info(member: &Member<'_>, overhead: u32, duration: tidegate_core::Span) -> FlowInfo {
    let end = Time::ZERO + duration;
    FlowInfo {
        name: member.name.clone(),
        kind: "member",
        controller: match member.spec.profile {
            ProfileSpec::Avp { .. } => "avp",
            ProfileSpec::Avpf { .. } => "avpf",
        }
        .to_owned(),
        start: member.spec.join,
        stop: member.spec.leave.map_or(end, |time| time.min(end)),
        tightest: None,
        path: Path::default(),
        overhead,
        sharing: Sharing::Unknown,
        pauses: Vec::new(),
    }
}

fn settings(seed: u64, session: &SessionSpec, member: &Member<'_>) -> ParticipantSettings {
    let spec = member.spec;
    let (mode, minimum, avpf, reduced_size) = match spec.profile {
        ProfileSpec::Avp { minimum } => (RtcpMode::Avp, RtcpMinimum::Fixed(minimum), Avpf::default(), false),
        ProfileSpec::Avpf { l, k, redraw, max_feedback_delay, rr_interval, reduced_size } => {
            let avpf = Avpf { l, k, redraw, max_feedback_delay, rr_interval };
            (RtcpMode::Avpf, RtcpMinimum::Standard, avpf, reduced_size)
        }
    };
    let pictures = session.members.iter().find_map(|member| match member.media {
        Some(MemberMedia::Segments { segments, .. }) => Some(segments),
        _ => None,
    });
    ParticipantSettings {
        cname: spec.name.clone(),
        overhead: session.overhead,
        rtcp: RtcpSettings { mode, session_bandwidth: session.bandwidth, minimum, avpf, reduced_size },
        media: spec.media.map(|media| match media {
            MemberMedia::Packets { packet_size, rate } => MediaSettings::Packets { size: packet_size, rate },
            MemberMedia::Segments { fps, segments, rate } => MediaSettings::Segments { fps, segments, rate },
        }),
        segments: pictures,
        declared_sender: spec.declared_sender,
        declared_senders: session.members.iter().any(|member| member.declared_sender),
        reports_losses: spec.reports_losses,
        join: spec.join,
        leave: spec.leave.map(|time| (time, if spec.crashes { Leave::Crash } else { Leave::Goodbye })),
        ..ParticipantSettings::new(&member.name, seed, member.flow)
    }
}
