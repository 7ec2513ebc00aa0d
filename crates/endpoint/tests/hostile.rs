//! Bytes and numbers that no sane peer sends, with which an endpoint goes on.

use crate::common::*;
use tidegate_core::datagram::{Attachment, RtpBody};
use tidegate_core::rng::Stream;
use tidegate_core::{Body, Node, Packet, Port, Rate, Span, Time};
use tidegate_endpoint::repair::{Fec, Nack, Pli};
use tidegate_endpoint::{Bounds, FeedbackFormat, Playout, Repair, SourceSettings, StreamSettings};

/// Changes a packet at random.
fn spoil(packet: &mut Packet, rng: &mut Stream) {
    match &mut packet.datagram.body {
        Body::Rtp(body) => {
            let bits = rng.next_u64();
            let RtpBody { timestamp, sequence, transport_sequence, original, payload_type, ssrc, .. } = body;
            let frame = &mut packet.frame;
            match rng.below(9) {
                0 => *timestamp = bits as u32,
                1 => frame.number = bits as u32,
                2 => frame.number = frame.number.wrapping_add(bits as u32 % 9000),
                3 => *sequence = bits as u16,
                4 => *transport_sequence = (bits >> 16 & 3 > 0).then_some(bits as u16),
                5 => *payload_type = bits as u8,
                6 => *original = bits as u16,
                7 => *ssrc = bits as u32,
                _ => frame.flags = bits as u8,
            }
        }
        _ => {
            let mut bytes = packet.rtcp().unwrap_or_default().to_vec();
            for _ in 0..=rng.below(4) {
                let index = rng.below(bytes.len() as u64) as usize;
                match rng.below(3) {
                    0 => bytes[index] = rng.next_u64() as u8,
                    1 => bytes[index] ^= 1 << rng.below(8),
                    _ => bytes.truncate((index / 4 * 4).max(4)),
                }
            }
            packet.attachment = Some(std::sync::Arc::new(Attachment::Rtcp(bytes)));
        }
    }
}

#[test]
fn spoiled_packets_do_no_harm() {
    for (round, format) in
        [FeedbackFormat::Twcc, FeedbackFormat::Ccfb].into_iter().cycle().take(8).enumerate()
    {
        let (controller, heard) = constant(Rate::from_mbps(1));
        let bounds = Bounds::new(Rate::from_kbps(100), Rate::from_mbps(2));
        let streams = vec![
            StreamSettings::video(1, SourceSettings::Ideal { fps: 30.0, bounds }),
            StreamSettings::audio(2, SourceSettings::AUDIO),
        ];
        let (mut caller, mut callee) = one_way(streams, controller, format);
        if round > 3 {
            let send = caller.send.as_mut().unwrap();
            send.repair = Repair {
                nack: Some(Nack::default()),
                pli: Some(Pli::default()),
                fec: Some(Fec { packets: 5, parity: 2, by_frame: true }),
            };
            let receive = callee.receive.as_mut().unwrap();
            (receive.repair, receive.streams) = (send.repair, send.signalled());
        }
        if round % 4 > 1 {
            callee.receive.as_mut().unwrap().playout = Playout::Fixed { delay: Span::from_millis(50) };
        }
        let mut rng = Stream::new(round as u64, "hostile", "test");
        let mut world = World::new(caller, callee, delay(20));
        let mut last = Time::ZERO;
        for step in 1..2000 {
            let now = Time::from_millis(10 * step);
            world.run(now);
            let sent = std::mem::take(&mut world.recorded.lock().unwrap().sent);
            for (_, packet) in sent.iter().filter(|_| step > 50) {
                if rng.chance(0.2) {
                    let mut packet = packet.clone();
                    spoil(&mut packet, &mut rng);
                    let to = 1 - packet.route.0 as usize;
                    world.nodes[to].receive(now, Port::ZERO, Box::new(packet), &mut world.out);
                    assert_eq!(world.out.failure, None);
                    assert!(world.nodes.iter().all(|node| node.next_wakeup().is_none_or(|time| time >= now)));
                }
            }
            last = now;
        }
        // and reports on the sound packets still come
        let heard = heard.lock().unwrap();
        let recent = heard.reports.iter().filter(|(time, _)| *time > last - Span::from_secs(1)).count();
        assert!(recent >= 15, "{recent} reports in the last second");
        let recorded = world.recorded.lock().unwrap();
        let largest = recorded.rtcp.iter().map(|(_, r)| r.size.as_bytes()).max().unwrap();
        // two streams, or with repair four, which share the bytes of three, and requests
        let limit = if round > 3 { 3 * 16_384 + 1_500 } else { 2 * 16_384 + 200 };
        assert!(largest < limit, "{largest} bytes of RTCP at once");
        assert!(heard.results().iter().all(|result| result.sent <= last));
    }
}
