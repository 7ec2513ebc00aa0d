//! Feedback: per-packet reports, receiver reports, round trips, RTCP timing.

use crate::common::*;
use tidegate_core::control::{Arrived, Context, EcnCounts, Feedback, FeedbackRequest, ReceiverHalf, Urgency};
use tidegate_core::rng::Stream;
use tidegate_core::wire::rtcp::{self, App, Contents, ReportBlock};
use tidegate_core::{Body, Decision, Ecn, FlowId, Kind, Packet, Rate, RemoteTime, Size, Span, Time};
use tidegate_endpoint::{
    Bounds, Clock, EndpointSettings, FeedbackFormat, ReceiveSettings, RtcpMinimum, RtcpMode, SendSettings,
    SourceSettings, StreamSettings,
};

const VIDEO: u32 = 0x11;

fn greedy(ssrc: u32) -> StreamSettings {
    StreamSettings::video(ssrc, SourceSettings::Greedy(Bounds::default()))
}

/// A path that loses and reorders packets by chance; RTCP passes.
fn rough(loss: f64, jitter_millis: f64) -> Path {
    let mut rng = Stream::new(5, "path", "test");
    Box::new(move |now, _, packet: &Packet| {
        let (lost, extra) = (rng.chance(loss), rng.uniform() * jitter_millis);
        if packet.kind == Kind::Rtcp {
            return Some(now + Span::from_millis(20));
        }
        (!lost).then(|| now + Span::from_millis(20) + Span::from_millis_f64(extra))
    })
}

/// Ground truth: when each packet of media arrived, in the order of sending.
fn arrivals(recorded: &Recorded) -> Vec<Option<Time>> {
    let sent: Vec<u32> =
        recorded.sent.iter().filter(|(_, p)| p.kind.is_rtp()).map(|(_, packet)| packet.sequence).collect();
    let mut arrivals = vec![None; sent.len()];
    for (now, packet) in recorded.arrived.iter().filter(|(_, packet)| packet.kind.is_rtp()) {
        let index = sent.binary_search(&packet.sequence).expect("it was sent");
        arrivals[index].get_or_insert(*now);
    }
    arrivals
}

#[test]
fn twcc_reports_each_arrival_to_250_us_across_both_wraps() {
    let (controller, heard) = constant(Rate::from_mbps(50));
    let (caller, mut callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::Twcc);
    // the reference time counts 64 ms in 24 bits: it wraps 5 s after the start
    let wrap = Span::from_nanos((1 << 24) * 64_000_000);
    callee.clock.offset = wrap * 40 - Span::from_secs(5) + Span::from_nanos(12_345_678);
    let offset = callee.clock.offset;
    let mut world = World::new(caller, callee, rough(0.02, 3.0));
    world.run(Time::from_secs(15));
    let recorded = world.finish();
    let truth = arrivals(&recorded);
    assert!(truth.len() > 70_000, "{}: not enough for a wrap of 16 bits", truth.len());
    let results = heard.lock().unwrap().results();
    let mut latest = vec![None; truth.len()];
    let mut worst = 0;
    // the number of wraps of the receiver's clock is unknown: errors are modulo the wrap
    for result in &results {
        latest[result.sequence as usize] = Some(*result);
        if let Some(arrival) = result.arrival {
            let truth = truth[result.sequence as usize].expect("it did arrive") + offset;
            let error =
                (arrival - RemoteTime::from_nanos(truth.as_nanos())).as_nanos().rem_euclid(wrap.as_nanos());
            let error = error.min(wrap.as_nanos() - error);
            worst = worst.max(error);
        }
    }
    assert!((100_000..=125_000).contains(&worst), "{worst} ns: half a tick at most, and nearly so");
    // the last report on each packet is right; the last 100 ms are not reported yet
    let reported = truth.len() - 600;
    for (sequence, (truth, latest)) in truth.iter().zip(&latest).enumerate().take(reported) {
        let latest = latest.unwrap_or_else(|| panic!("{sequence} was never reported"));
        assert_eq!(latest.arrival.is_some(), truth.is_some(), "{sequence}");
    }
    // arrivals are on one timeline: they never jump by a wrap
    let mut received: Vec<RemoteTime> = results.iter().filter_map(|r| r.arrival).collect();
    received.sort();
    assert!(received.windows(2).all(|pair| pair[1] - pair[0] < Span::from_millis(100)));
}

#[test]
fn a_late_packet_is_reported_as_lost_and_then_as_received() {
    let (controller, heard) = constant(Rate::from_mbps(1));
    let (caller, callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::Twcc);
    let late = |now: Time, _: usize, packet: &Packet| match packet.body {
        Body::Rtp(body) if body.transport_sequence == Some(50) => Some(now + Span::from_millis(220)),
        Body::Rtp(body) if body.transport_sequence == Some(60) => None,
        _ => Some(now + Span::from_millis(20)),
    };
    let mut world = World::new(caller, callee, Box::new(late));
    world.run(Time::from_secs(2));
    let heard = heard.lock().unwrap();
    let arrivals_of = |sequence: u64| -> Vec<bool> {
        heard.results().iter().filter(|r| r.sequence == sequence).map(|r| r.arrival.is_some()).collect()
    };
    assert_eq!(
        (arrivals_of(49), arrivals_of(50), arrivals_of(51), arrivals_of(60)),
        (vec![true], vec![false, true], vec![true], vec![false])
    );
    for (_, report) in &heard.reports {
        assert!(report.packets.is_sorted_by_key(|p| p.sequence));
    }
}

#[test]
fn in_flight_and_round_trip_of_per_packet_reports() {
    for format in [FeedbackFormat::Twcc, FeedbackFormat::Ccfb] {
        let (controller, heard) = constant(Rate::from_bps(1_224_000));
        let (mut caller, mut callee) = one_way(vec![greedy(VIDEO)], controller, format);
        // reports of RFC 3550 are kept out of the way
        caller.rtcp.minimum = RtcpMinimum::Fixed(Span::from_secs(1000));
        callee.rtcp.minimum = RtcpMinimum::Fixed(Span::from_secs(1000));
        let mut world = World::new(caller, callee, delay(30));
        world.run(Time::from_secs(10));
        let heard = heard.lock().unwrap();
        assert!((190..=200).contains(&heard.reports.len()), "{}", heard.reports.len());
        for (time, report) in heard.reports.iter().skip(2) {
            // a packet every 8 ms; the newest reported arrived up to 8 ms before the report was made
            let rtt = report.packet_rtt.expect("a sample").as_millis_f64();
            assert_eq!((report.report_rtt, report.rtt()), (None, report.packet_rtt));
            match format {
                FeedbackFormat::Twcc => assert!((60.0..68.0).contains(&rtt), "{time}: {rtt}"),
                // RFC 8888 reports how long it has waited, rounded down to 1/1024 s
                _ => assert!((60.0..61.0).contains(&rtt), "{time}: {rtt}"),
            }
            let flying = report.in_flight.as_bytes() as f64 / 1224.0;
            assert!((7.0..=9.0).contains(&flying), "{time}: {flying} packets in 60 to 68 ms");
            assert!(report.loss.is_none());
        }
    }
}

#[test]
fn rfc_8888_reports_arrivals_to_a_1024th_and_ecn() {
    let (controller, heard) = constant(Rate::from_mbps(40));
    let audio = StreamSettings::audio(0x22, SourceSettings::AUDIO);
    let (mut caller, mut callee) = one_way(vec![greedy(VIDEO), audio], controller, FeedbackFormat::Ccfb);
    let send = caller.send.as_mut().unwrap();
    send.ecn = Ecn::Ect1;
    send.extensions.transport_sequence = false;
    // the report timestamp, 2^-16 s in 32 bits, wraps 3 s after the start
    callee.clock.offset = Span::from_secs(65_536 * 40_000) - Span::from_secs(3);
    let offset = callee.clock.offset;
    let mut world = World::new(caller, callee, rough(0.02, 3.0));
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    assert!(
        recorded
            .sent
            .iter()
            .filter(|(_, p)| p.kind == Kind::Video)
            .all(|(_, p)| p.size == 1200 + 12 + 8 + 28)
    );
    let truth = arrivals(&recorded);
    assert!(truth.len() > 70_000, "{}", truth.len());
    let results = heard.lock().unwrap().results();
    let mut errors: Vec<i64> = Vec::new();
    let mut origin = None;
    for result in &results {
        let truth = truth[result.sequence as usize];
        if let Some(arrival) = result.arrival {
            let truth = RemoteTime::from_nanos((truth.expect("it did arrive") + offset).as_nanos());
            // the origin of a 32-bit timestamp is not known: whole wraps
            let wraps =
                *origin.get_or_insert_with(|| ((arrival - truth).as_secs_f64() / 65_536.0).round() as i64);
            errors.push((arrival - truth).as_nanos() - wraps * 65_536_000_000_000);
            assert_eq!(result.ecn, Ecn::Ect1);
        } else {
            assert_eq!(result.ecn, Ecn::NotEct);
        }
    }
    // offsets are rounded down, so that arrivals look up to 1/1024 s later; the timestamp costs 2^-16 s
    let (earliest, latest) = (*errors.iter().min().unwrap(), *errors.iter().max().unwrap());
    assert!(
        (-15_260..=5_000).contains(&earliest) && (950_000..=976_563).contains(&latest),
        "{earliest} {latest}"
    );
    let received = results.iter().filter(|r| r.arrival.is_some()).count();
    let arrived = truth.iter().flatten().count();
    assert!((0..600).contains(&(arrived - received)), "{received} of {arrived}");
}

#[test]
fn a_report_counts_packets_by_the_ecn_field_that_they_arrived_with() {
    let (controller, heard) = constant(Rate::from_mbps(2));
    let (mut caller, callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::Ccfb);
    caller.send.as_mut().unwrap().ecn = Ecn::Ect0;
    let mut world = World::new(caller, callee, rough(0.02, 3.0));
    // every seventh packet is marked, every eleventh has its field cleared, every thirteenth is re-marked
    let mark = |n: u32, ecn| match n {
        n if n % 7 == 0 => Ecn::Ce,
        n if n % 11 == 0 => Ecn::NotEct,
        n if n % 13 == 0 => Ecn::Ect1,
        _ => ecn,
    };
    world.mark =
        Box::new(
            move |packet| {
                if packet.kind == Kind::Rtcp { packet.ecn } else { mark(packet.sequence, packet.ecn) }
            },
        );
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    let heard = heard.lock().unwrap();
    let mut sums = EcnCounts::default();
    for (_, report) in &heard.reports {
        let Some(counts) = report.ecn else {
            assert!(report.packets.is_empty(), "only receiver reports have no counts");
            continue;
        };
        let mut reported = EcnCounts::default();
        report.packets.iter().filter(|p| p.arrival.is_some()).for_each(|p| reported.add(p.ecn));
        assert_eq!(counts, reported, "each packet is reported once");
        sums.not_ect += counts.not_ect;
        sums.ect0 += counts.ect0;
        sums.ect1 += counts.ect1;
        sums.ce += counts.ce;
    }
    // all packets that have arrived by 100 ms before the end are counted, and no other
    let count = |until: Time| {
        let mut counts = EcnCounts::default();
        let arrived = recorded.arrived.iter().filter(|(time, p)| p.kind == Kind::Video && *time <= until);
        arrived.for_each(|(_, packet)| counts.add(packet.ecn));
        [counts.not_ect, counts.ect0, counts.ect1, counts.ce]
    };
    let (lower, upper) = (count(Time::from_millis(19_900)), count(Time::from_secs(20)));
    let totals = [sums.not_ect, sums.ect0, sums.ect1, sums.ce];
    for field in 0..4 {
        assert!(
            lower[field] > 100 && (lower[field]..=upper[field]).contains(&totals[field]),
            "{lower:?} {totals:?} {upper:?}"
        );
    }
    // transport-wide feedback does not report ECN
    let (controller, heard) = constant(Rate::from_mbps(2));
    let (mut caller, callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::Twcc);
    caller.send.as_mut().unwrap().ecn = Ecn::Ect0;
    World::new(caller, callee, delay(20)).run(Time::from_secs(2));
    assert!(heard.lock().unwrap().reports.iter().all(|(_, report)| report.ecn.is_none()));
}

#[test]
fn a_report_has_the_backlog_and_the_delay_of_the_pacer() {
    // 80 bytes every 20 ms and a header of 24 are 41.6 kb/s, of which 29 leave: one packet every 28.7 ms
    let rate = Rate::from_kbps(29);
    let burst = Some(Span::ZERO);
    let decision = Decision { pace_audio: true, burst, target: Rate::from_mbps(1), ..Decision::rate(rate) };
    let (controller, heard) = scripted(vec![(Time::ZERO, decision)]);
    let audio = StreamSettings::audio(
        0x22,
        SourceSettings::Cbr { rate: Rate::from_kbps(32), interval: Span::from_millis(20), spurts: None },
    );
    let (caller, callee) = one_way(vec![audio], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(22));
    world.run(Time::from_secs(10));
    let heard = heard.lock().unwrap();
    assert!(heard.reports.len() > 100, "{}", heard.reports.len());
    for (time, report) in &heard.reports {
        // queued by now: numbers 0, 1, ... at 0 ms, 20 ms, ...; sent by now: at 0, 28.7 ms, ...
        let queued = time.as_nanos() / 20_000_000 + 1;
        let sent = time.as_nanos() * 29 / (8 * 104 * 1_000_000) + 1;
        assert_eq!(report.backlog, Size::from_bytes(104 * (queued - sent) as u64), "at {time}");
        let oldest = Time::from_millis(20 * sent);
        let waited = if queued > sent { *time - oldest } else { Span::ZERO };
        assert_eq!(report.pacer_delay, waited, "at {time}");
    }
    let last = &heard.reports.last().expect("many").1;
    assert!(last.pacer_delay > Span::from_millis(2500), "(1 - 29 / 41.6) of 10 s: {}", last.pacer_delay);
}

/// The report blocks that the callee sent, with their times.
fn blocks(recorded: &Recorded, ssrc: u32) -> Vec<(Time, ReportBlock)> {
    let mut matching = Vec::new();
    for (time, packets) in rtcp_packets(recorded) {
        for packet in packets {
            let blocks = match packet {
                rtcp::Packet::SenderReport(report) => report.blocks,
                rtcp::Packet::ReceiverReport(report) => report.blocks,
                _ => continue,
            };
            matching.extend(blocks.into_iter().filter(|block| block.ssrc == ssrc).map(|block| (time, block)));
        }
    }
    matching
}

#[test]
fn receiver_reports_have_the_losses_and_the_round_trip() {
    let (controller, heard) = constant(Rate::from_mbps(4));
    let (caller, callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::None);
    // every fifth packet is lost, 35 ms there, 20 ms back
    let path = |now: Time, from: usize, packet: &Packet| match packet.body {
        Body::Rtp(body) if body.transport_sequence.is_some_and(|number| number % 5 == 4) => None,
        _ => Some(now + Span::from_millis(if from == 0 { 35 } else { 20 })),
    };
    let mut world = World::new(caller, callee, Box::new(path));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let heard = heard.lock().unwrap();
    let losses: Vec<_> = heard.reports.iter().filter_map(|(_, r)| r.loss).collect();
    assert!(losses.len() > 100);
    assert_eq!(losses[0].expected, 0, "no report before the first one");
    for (loss, before) in losses[1..].iter().zip(&losses) {
        assert_eq!(loss.expected, loss.highest_sequence - before.highest_sequence);
        let lost = loss.cumulative_lost - before.cumulative_lost;
        assert_eq!(u32::from(loss.fraction_lost), (lost as u32 * 256) / loss.expected);
    }
    let last = losses.last().unwrap();
    let expected: u32 = losses.iter().map(|loss| loss.expected).sum();
    let fraction = f64::from(last.cumulative_lost - losses[0].cumulative_lost) / f64::from(expected);
    assert!((fraction - 0.2).abs() < 0.001, "{fraction}");
    assert!(last.jitter < Span::from_millis(1), "an even path: {}", last.jitter);
    // round trips by LSR and DLSR: 2^-16 s each are lost on the way
    let trips: Vec<Span> = heard.reports.iter().filter_map(|(_, r)| r.report_rtt).collect();
    assert!(trips.len() > 100);
    assert!(trips.iter().all(|rtt| (rtt.as_nanos() - 55_000_000).abs() <= 2 * 15_260), "{trips:?}");
    assert!(heard.reports.iter().all(|(_, r)| r.packets.is_empty()));
    // sender reports count what was sent
    let report = rtcp_packets(&recorded).into_iter().rev().find_map(|(time, p)| match &p[0] {
        rtcp::Packet::SenderReport(report) => Some((time, report.clone())),
        _ => None,
    });
    let (time, report) = report.expect("sender reports");
    let packets: Vec<_> = media(&recorded).into_iter().filter(|(sent, _)| *sent <= time).collect();
    assert!((packets.len() as u32).abs_diff(report.packet_count) <= 1);
    assert_eq!(report.octet_count, report.packet_count * 1200);
    let clock = RemoteTime::from_nanos((time + Clock::new(SEED, "caller").offset).as_nanos());
    assert_eq!(report.ntp, tidegate_core::wire::ntp::timestamp(clock));
    let Body::Rtp(first) = packets[0].1.body else { panic!("RTP") };
    let since = time - packets[0].0;
    let ticks = report.rtp_timestamp.wrapping_sub(first.timestamp);
    assert!((f64::from(ticks) - since.as_secs_f64() * 90_000.0).abs() <= 1.0, "{ticks}");
    assert!(!blocks(&recorded, VIDEO).is_empty());
}

#[test]
fn duplicates_count_against_the_loss_and_are_no_goodput() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (caller, callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(3));
    // the last packet once more
    let packet = media(&world.recorded.lock().unwrap())
        .into_iter()
        .rfind(|(time, _)| *time < Time::from_millis(2_900))
        .unwrap()
        .1;
    let (goodput, now) = (world.recorded.lock().unwrap().goodput, world.now);
    for _ in 0..10 {
        tidegate_core::Node::receive(
            &mut world.nodes[1],
            now,
            tidegate_core::Port::ZERO,
            Box::new(packet.clone()),
            &mut world.out,
        );
    }
    assert_eq!(world.recorded.lock().unwrap().goodput, goodput);
    world.run(Time::from_secs(6));
    let recorded = world.finish();
    assert_eq!(blocks(&recorded, VIDEO).last().unwrap().1.cumulative_lost, -10);
    assert_eq!(recorded.late, 0);
}

#[test]
fn rtcp_intervals_have_the_mean_of_rfc_3550() {
    let (controller, _) = constant(Rate::from_kbps(50));
    let (mut caller, mut callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::Twcc);
    for settings in [&mut caller, &mut callee] {
        settings.rtcp.mode = RtcpMode::Avp;
        settings.rtcp.minimum = RtcpMinimum::Standard;
    }
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(20_000));
    let recorded = world.finish();
    for route in [0, 1] {
        let times: Vec<Time> = recorded
            .sent
            .iter()
            .filter(|(_, p)| p.kind == Kind::Rtcp && p.route.0 == route)
            .map(|(time, _)| *time)
            .collect();
        let mean = (*times.last().unwrap() - times[0]).as_secs_f64() / (times.len() - 1) as f64;
        assert!((mean - 5.0).abs() < 0.1, "{mean} s over {} intervals", times.len() - 1);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert!(gaps.iter().all(|gap| (2.05..=6.16).contains(gap)), "5 s times 0.5 to 1.5 over 1.21828");
    }
    // under AVP everything is in compounds: feedback, too
    let packets = rtcp_packets(&recorded);
    assert!(packets.iter().all(|(_, p)| rtcp::is_compound(p)));
    assert!(packets.iter().any(|(_, p)| p.iter().any(|p| matches!(p, rtcp::Packet::Twcc(_)))));
}

#[test]
fn free_feedback_is_reduced_size_every_50_ms_and_its_bytes_count() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (caller, callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    let feedback: Vec<_> = recorded.rtcp.iter().filter(|(_, r)| r.contents == Contents::TWCC).collect();
    assert!((395..=400).contains(&feedback.len()), "{}", feedback.len());
    assert!(feedback.windows(2).all(|pair| pair[1].0 - pair[0].0 == Span::from_millis(50)));
    let wire: Vec<(Time, Size)> =
        recorded.sent.iter().filter(|(_, p)| p.kind == Kind::Rtcp).map(|(t, p)| (*t, p.size())).collect();
    let rtcp_sizes: Vec<(Time, Size)> = recorded.rtcp.iter().map(|(t, r)| (*t, r.size)).collect();
    assert_eq!(wire, rtcp_sizes);
    for (_, packet) in recorded.sent.iter().filter(|(_, p)| p.kind == Kind::Rtcp) {
        assert_eq!(packet.size as usize, packet.rtcp().unwrap().len() + 28);
        assert_eq!(packet.flow, FlowId(1));
    }
    assert!(recorded.rtcp.iter().all(|(_, r)| r.from_receiver != r.contents.has(Contents::SR)));
    // the mean of the compounds is that of the reduced minimum, 0.36 s
    let reports = recorded.rtcp.iter().filter(|(_, r)| r.contents == Contents::RR | Contents::SDES).count();
    assert!((46..=66).contains(&reports), "{reports} in 20 s");
}

/// A half that sends a message at once after each tenth packet, and one with the next regular report on its alarm each
/// second.
struct Half;

impl ReceiverHalf for Half {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> FeedbackRequest {
        assert_eq!(packet.size, Size::from_bytes(1224));
        let urgency =
            if packet.sequence.is_some_and(|number| number % 10 == 9) { Urgency::Now } else { Urgency::None };
        let alarm = Some(Time::from_secs(now.as_nanos() / 1_000_000_000 + 1));
        FeedbackRequest { urgency, alarm }
    }
    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> FeedbackRequest {
        cx.note("alarm", now.as_secs_f64());
        FeedbackRequest { urgency: Urgency::Regular, alarm: Some(now + Span::from_secs(1)) }
    }
    fn message(&mut self, _now: Time, _cx: &mut Context<'_>) -> Feedback {
        vec![rtcp::Packet::App(App { subtype: 1, ssrc: 77, name: *b"TEST", data: vec![1, 2, 3, 4] })]
    }
}

#[test]
fn messages_of_a_receiver_half_go_at_once_or_with_the_next_report() {
    for mode in [RtcpMode::Free, RtcpMode::Avp, RtcpMode::Avpf] {
        let (controller, heard) = constant(Rate::from_kbps(979)); // a packet every 10 ms
        let (caller, mut callee) = one_way(vec![greedy(VIDEO)], controller, FeedbackFormat::None);
        callee.receive.as_mut().unwrap().half = Some(Box::new(Half));
        callee.rtcp.mode = mode;
        let mut world = World::new(caller, callee, delay(20));
        world.run(Time::from_secs(10));
        let recorded = world.finish();
        let messages: Vec<_> = recorded.rtcp.iter().filter(|(_, r)| r.contents.has(Contents::APP)).collect();
        let heard = heard.lock().unwrap();
        let received: usize = heard.reports.iter().map(|(_, r)| r.messages.len()).sum();
        assert!(messages.len() - received <= 1);
        assert!(heard.reports.iter().flat_map(|(_, r)| &r.messages).all(|app| app.data == [1, 2, 3, 4]));
        assert_eq!(recorded.internal.iter().filter(|(_, name, _)| name == "alarm").count(), 10);
        match mode {
            RtcpMode::Free => {
                // 98 at once, and up to ten with a report or the next that goes at once
                assert!((98..=109).contains(&messages.len()), "{}", messages.len());
                assert!(messages.iter().all(|(_, r)| r.waited < Span::from_millis(101)));
                assert!(messages.iter().filter(|(_, r)| r.waited == Span::ZERO).count() >= 88);
            }
            RtcpMode::Avp => {
                assert!((20..=36).contains(&messages.len()), "{}", messages.len());
                assert!(messages.iter().all(|(_, r)| r.contents.has(Contents::RR)));
            }
            RtcpMode::Avpf => {
                assert!((90..=109).contains(&messages.len()), "{}", messages.len());
                assert!(messages.iter().all(|(_, r)| r.contents.has(Contents::RR)));
                // 6250 bytes a second for two: an interval is about 28 ms, and most messages find it free
                assert!(messages.iter().all(|(_, r)| r.waited < Span::from_millis(100)));
                assert!(messages.iter().filter(|(_, r)| r.waited == Span::ZERO).count() >= 70);
                // its half of the 62 500 bytes: early packets come off the regular ones
                let mine = recorded.rtcp.iter().filter(|(_, r)| r.from_receiver);
                let bytes: u64 = mine.map(|(_, r)| r.size.as_bytes()).sum();
                assert!((30_000..=32_500).contains(&bytes), "{bytes}");
            }
        }
    }
}

/// Two endpoints that both send video and audio and receive the peer's.
fn both_ways() -> (World, [std::sync::Arc<std::sync::Mutex<Heard>>; 2]) {
    let side = |name: &str, flow: u32, ssrc: u32| {
        let (controller, heard) = constant(Rate::from_kbps(800));
        let bounds = Bounds::new(Rate::from_kbps(100), Rate::from_kbps(2000));
        let mut send = SendSettings::new(FlowId(flow), controller);
        send.streams = vec![
            StreamSettings::video(ssrc, SourceSettings::Ideal { fps: 30.0, bounds }),
            StreamSettings::audio(ssrc + 1, SourceSettings::AUDIO),
        ];
        (EndpointSettings::new(name, SEED), send, heard)
    };
    let (mut first, first_send, first_heard) = side("alice", 1, 0x100);
    let (mut second, second_send, second_heard) = side("bob", 2, 0x200);
    first.receive = Some(ReceiveSettings::new(&second_send));
    second.receive = Some(ReceiveSettings::new(&first_send));
    (first.send, second.send) = (Some(first_send), Some(second_send));
    (World::new(first, second, rough(0.01, 2.0)), [first_heard, second_heard])
}

#[test]
fn calls_both_ways_report_on_each_other() {
    let (mut world, heard) = both_ways();
    world.run(Time::from_secs(30));
    let recorded = world.finish();
    for (side, heard) in heard.iter().enumerate() {
        let heard = heard.lock().unwrap();
        let rtt: Vec<f64> = heard
            .reports
            .iter()
            .filter_map(|(_, r)| r.loss.and(r.report_rtt))
            .map(Span::as_millis_f64)
            .collect();
        assert!(rtt.len() > 40, "{side}: {}", rtt.len());
        assert!(rtt.iter().all(|rtt| (40.0 - 0.04..=40.0 + 0.04).contains(rtt)), "{side}: {rtt:?}");
        // reordering makes packets look lost at first: the last report on each counts
        let last: std::collections::BTreeMap<u64, bool> =
            heard.results().iter().map(|r| (r.sequence, r.arrival.is_some())).collect();
        let lost = last.values().filter(|received| !**received).count() as f64 / last.len() as f64;
        assert!((0.005..0.015).contains(&lost), "{side}: {lost} of {} lost", last.len());
    }
    // each end's reports belong to the flow that it receives, and a compound is both SR and report on the peer
    let reports: Vec<_> = recorded.rtcp.iter().filter(|(_, r)| r.contents.has(Contents::SR)).collect();
    assert!(
        reports.iter().any(|(_, r)| r.flow == FlowId(1)) && reports.iter().any(|(_, r)| r.flow == FlowId(2))
    );
    for ssrc in [0x100, 0x101, 0x200, 0x201] {
        assert!(blocks(&recorded, ssrc).len() > 30, "{ssrc:#x}");
    }
    // running numbers have no gap in either direction of either flow
    for (flow, route) in [(1, 0), (2, 0), (1, 1), (2, 1)] {
        let numbers = recorded
            .sent
            .iter()
            .filter(|(_, p)| (p.flow.0, p.route.0) == (flow, route))
            .map(|(_, p)| p.sequence);
        assert!(numbers.enumerate().all(|(k, n)| k as u32 == n), "flow {flow} route {route}");
    }
    // every frame has one fate at most, and nearly all are complete
    let mut fates: Vec<(u32, bool, u32)> =
        recorded.frames.iter().map(|(_, f)| (f.flow.0, f.video, f.frame)).collect();
    fates.sort_unstable();
    assert!(fates.windows(2).all(|pair| pair[0] != pair[1]));
    let complete = recorded.frames.iter().filter(|(_, f)| f.complete.is_some()).count();
    let sent = recorded.frames_sent.len();
    assert!(complete < sent && complete as f64 > 0.95 * sent as f64, "{complete} of {sent}");
    // and frames that were sent and never arrived are in the record, too
    assert!(sent - fates.len() < 10, "{} of {sent}", fates.len());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let (mut world, _) = both_ways();
        world.run(Time::from_secs(20));
        let mut draws = Vec::new();
        for node in &world.nodes {
            tidegate_core::Node::draws(node, &mut |d| draws.push(d));
        }
        (format!("{:?}", world.finish()), draws)
    };
    let (first, second) = (run(), run());
    assert!(first == second);
    let names: Vec<&str> = first.1.iter().map(|d| &*d.name).collect();
    assert!(names.contains(&"alice/rtcp") && names.contains(&"bob/video/rtp"), "{names:?}");
}

/// Hash of all packets that both ends sent in 20 s. It must be the same in debug and release, on every platform. Any
/// change of behaviour changes it; look at the cause before writing down the new one.
#[test]
fn the_run_is_pinned() {
    let (mut world, _) = both_ways();
    world.run(Time::from_secs(20));
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add =
        |bytes: &[u8]| bytes.iter().for_each(|&b| hash = (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    for (time, packet) in &world.finish().sent {
        add(&time.as_nanos().to_le_bytes());
        add(&packet.size.to_le_bytes());
        add(&[packet.kind as u8]);
        add(packet.rtcp().unwrap_or_default());
    }
    assert_eq!(hash, 0xc9a9_36bc_59fa_32f9, "{hash:#x}");
}
