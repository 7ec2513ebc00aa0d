//! DCTCP and Prague: codepoints, echoes, and queues.

use crate::bench::{MSS, established, receiver, sender};
use crate::harness::Dumbbell;
use tidegate_core::datagram::TcpBody;
use tidegate_core::{Ecn, Span, Time, math};
use tidegate_sim::traffic::tcp::{TcpSettings, Variant};

fn settings_of(variant: Variant) -> TcpSettings {
    TcpSettings { variant, ..TcpSettings::default() }
}

/// DCTCP's data are ECT(0) and Prague's ECT(1) (RFC 9331 section 4.1), including retransmissions.
#[test]
fn packets_bear_their_codepoint() {
    for (variant, expected) in [(Variant::Dctcp, Ecn::Ect0), (Variant::Prague, Ecn::Ect1)] {
        let mut end = sender(TcpSettings { variant, ..established() });
        assert!(end.sent().iter().all(|(_, packet)| packet.ecn == expected));
        (2..5).for_each(|highest| end.ack_with(0, &[(1, highest)]));
        end.pass(Span::from_millis(100));
        let again = end.sent();
        assert!(again.iter().any(|(body, _)| body.sequence == 0));
        assert!(again.iter().all(|(_, packet)| packet.ecn == expected));
    }
}

/// RFC 8257 section 3.2: ECE in acknowledgements of marked packets and in no others, and a change is echoed at once if
/// acknowledgements are delayed.
#[test]
fn each_mark_is_echoed() {
    let delayed_ack = Some(Span::from_millis(100));
    let mut end = receiver(&TcpSettings { variant: Variant::Dctcp, delayed_ack, ..established() });
    let mut echoes = Vec::new();
    for (number, ecn) in
        [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0].iter().enumerate()
    {
        end.marked_data(number as u32 * MSS, *ecn, TcpBody::CWR);
        for (body, _) in end.sent() {
            echoes.push((number, body.ack / MSS, body.flags & TcpBody::ECE != 0));
        }
    }
    let expected = [(1, 1, false), (1, 2, true), (3, 4, true), (4, 5, false), (6, 7, false)];
    assert_eq!(echoes, expected);
}

/// RFC 8257 section 3.3: an acknowledgement that ends a window of data updates the estimate (steps 1 to 8) before the
/// window falls by it (step 9). With one mark in eleven alpha is then 0.885 and the window falls from 20 to 11.1
/// segments; with the estimate of the previous window, 0.9375, it would fall to 10.6.
#[test]
fn the_estimate_is_brought_up_to_date_before_the_window_falls() {
    let mut end = sender(TcpSettings { variant: Variant::Dctcp, ..established() });
    (1..=10).for_each(|ack| end.ack(ack));
    assert_eq!(end.sent().len(), 30);
    for ack in 11..=20 {
        let flags = TcpBody::ACK | TcpBody::ECE;
        end.header(TcpBody { ack: ack * MSS, window: u16::MAX, flags, ..TcpBody::default() });
        // 19 are under way after 11, and 10 after 20
        assert_eq!(end.sent().len(), usize::from(ack == 20), "{ack}");
    }
}

/// Alizadeh and others, "Data Center TCP (DCTCP)" (2010), section 3.3: a flow over a queue that marks from K packets on fills
/// it up to K + 1 and lets it fall by sqrt(2 (C RTT + K)) / 2. With C RTT = 34.4 and K = 20 that is 5.2 packets; a
/// window that is halved would empty it.
#[test]
fn the_queue_stays_near_the_step() {
    let run = |variant, ecn| {
        let mut path = Dumbbell::reference(TcpSettings { ecn, ..settings_of(variant) });
        (path.step, path.queue) = (Some(20), 200);
        let result = path.run();
        let mut packets: Vec<f64> = result.flows[0].queued.iter().map(|wait| wait / 1.2).collect();
        packets.sort_by(f64::total_cmp);
        let quantile = |share: usize| packets[packets.len() * share / 1000];
        (quantile(5), quantile(995), result.utilisation(), result.flows[0].lost)
    };
    let (low, high, carried, lost) = run(Variant::Dctcp, false);
    println!("DCTCP: from {low:.1} to {high:.1} packets, carries {carried:.4}");
    let fall = math::sqrt(2.0 * (34.4 + 20.0)) / 2.0;
    assert!((20.0..22.5).contains(&high), "{high}");
    assert!((0.6..1.4).contains(&((high - low) / fall)), "falls by {} and not {fall}", high - low);
    assert!(carried > 0.9999 && lost == 0);
    let (low, ..) = run(Variant::Sack, true);
    assert!(low < 3.0, "{low}");
}

/// A loss halves both windows (RFC 8257 section 3.5, RFC 9331 section 4.3 item 2): under random loss their goodput is
/// that of SACK.
#[test]
fn losses_halve_the_window() {
    let carried = |variant| {
        let mut path = Dumbbell::reference(settings_of(variant));
        (path.queue, path.loss, path.until) = (400, 0.005, Time::from_secs(320));
        path.run().goodput(0)
    };
    let sack = carried(Variant::Sack);
    for variant in [Variant::Dctcp, Variant::Prague] {
        let ratio = carried(variant) / sack;
        println!("{variant:?}: {ratio:.3} of SACK's goodput");
        assert!((0.85..1.15).contains(&ratio), "{variant:?}: {ratio}");
    }
}

/// RFC 9331 section 4.3 item 4: of two flows with 5 and 20 ms the shorter one has less of an advantage with Prague.
#[test]
fn prague_depends_less_on_the_round_trip() {
    let ratio = |variant| {
        let mut path = Dumbbell::reference(settings_of(variant));
        path.flows =
            vec![(settings_of(variant), Span::ZERO), (settings_of(variant), Span::from_micros(7500))];
        (path.one_way, path.step, path.queue) = (Span::from_micros(2500), Some(4), 200);
        path.jitter = Some(Span::from_micros(1200));
        let result = path.run();
        result.goodput(0) / result.goodput(1)
    };
    let (dctcp, prague) = (ratio(Variant::Dctcp), ratio(Variant::Prague));
    println!("DCTCP {dctcp:.2} to 1, Prague {prague:.2} to 1");
    assert!(prague < 0.7 * dctcp && (0.7..1.5).contains(&prague), "{dctcp} {prague}");
}
