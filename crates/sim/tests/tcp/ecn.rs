//! ECN of RFC 3168: negotiation, echoes, responses, and their effects.

use crate::bench::{Bench, MSS, established, receiver, sender};
use crate::harness::Dumbbell;
use tidegate_core::Ecn;
use tidegate_core::datagram::TcpBody;
use tidegate_sim::traffic::tcp::{TcpReceiver, TcpSender, TcpSettings, Variant};

const OFFER: u8 = TcpBody::ECE | TcpBody::CWR;

fn settings_of(variant: Variant) -> TcpSettings {
    TcpSettings { variant, ecn: true, ..established() }
}

/// ECN fields and flags beside ACK of the sent packets, with the numbers of the segments.
fn sent_marks(end: &mut Bench<TcpSender>) -> Vec<(u32, Ecn, u8)> {
    let sent = end.sent();
    sent.iter().map(|(body, packet)| (body.sequence / MSS, packet.ecn, body.flags & !TcpBody::ACK)).collect()
}

fn echo(end: &mut Bench<TcpSender>, ack: u32) {
    let flags = TcpBody::ACK | TcpBody::ECE;
    end.header(TcpBody { ack: ack * MSS, window: u16::MAX, flags, ..TcpBody::default() });
}

/// RFC 3168 section 6.1.1: a SYN offers with ECE and CWR, its answer accepts with ECE alone, and neither is ECN-capable.
#[test]
fn both_ends_have_to_agree() {
    for (ecn, accepts, expected) in [
        (true, TcpBody::ECE, Ecn::Ect0),
        (true, 0, Ecn::NotEct),
        (true, OFFER, Ecn::NotEct),
        (false, TcpBody::ECE, Ecn::NotEct),
    ] {
        let mut end = sender(TcpSettings { ecn, handshake: true, ..settings_of(Variant::Sack) });
        let (syn, packet) = end.sent().remove(0);
        assert_eq!((syn.flags & OFFER, packet.ecn), (if ecn { OFFER } else { 0 }, Ecn::NotEct));
        let flags = TcpBody::SYN | TcpBody::ACK | accepts;
        end.header(TcpBody { ack: 1, window: u16::MAX, flags, ..TcpBody::default() });
        assert!(sent_marks(&mut end).iter().all(|&(_, ecn, flags)| (ecn, flags) == (expected, 0)));
    }
    for (ecn, offers, expected) in
        [(true, OFFER, TcpBody::ECE), (true, TcpBody::ECE, 0), (true, 0, 0), (false, OFFER, 0)]
    {
        let mut end = receiver(&TcpSettings { ecn, handshake: true, ..settings_of(Variant::Sack) });
        end.header(TcpBody { flags: TcpBody::SYN | offers, ..TcpBody::default() });
        let (body, packet) = end.sent().remove(0);
        assert_eq!((body.flags & OFFER, packet.ecn), (expected, Ecn::NotEct));
        // an end that did not agree does not echo
        end.marked_data(1, Ecn::Ce, 0);
        assert_eq!(end.sent()[0].0.flags & OFFER, expected);
    }
}

/// RFC 3168 section 6.1.3: ECE from the marked packet until CWR, and again if the packet with CWR is marked itself.
#[test]
fn a_receiver_echoes_until_the_sender_reports_a_reduction() {
    let mut end: Bench<TcpReceiver> = receiver(&settings_of(Variant::Sack));
    let arrivals = [
        (Ecn::Ect0, 0, false),
        (Ecn::Ce, 0, true),
        (Ecn::Ect0, 0, true),
        (Ecn::NotEct, 0, true),
        (Ecn::Ect0, TcpBody::CWR, false),
        (Ecn::Ect0, 0, false),
        (Ecn::Ce, TcpBody::CWR, true),
        (Ecn::Ect0, 0, true),
    ];
    for (number, (ecn, flags, expected)) in arrivals.into_iter().enumerate() {
        end.marked_data(number as u32 * MSS, ecn, flags);
        let sent = end.sent();
        assert_eq!(sent[0].0.flags & TcpBody::ECE != 0, expected, "packet {number}");
        assert_eq!(sent[0].1.ecn, Ecn::NotEct, "section 6.1.4: a pure acknowledgement is not ECN-capable");
    }
}

/// RFC 3168 section 6.1.2: the window halves once for a window of data, the next new packet has CWR, and no window
/// grows by an acknowledgement with an echo.
#[test]
fn a_sender_answers_once_for_a_window() {
    let mut end = sender(settings_of(Variant::NewReno));
    assert_eq!(sent_marks(&mut end), (0..10).map(|n| (n, Ecn::Ect0, 0)).collect::<Vec<_>>());
    // five segments of window; nine are under way until five more have left
    for ack in 1..=5 {
        echo(&mut end, ack);
        assert_eq!(sent_marks(&mut end), [], "{ack}");
    }
    echo(&mut end, 6);
    assert_eq!(sent_marks(&mut end), [(10, Ecn::Ect0, TcpBody::CWR)]);
    // echoes of this window, and those sent before the packet with CWR came, have no effect
    for ack in 7..=10 {
        echo(&mut end, ack);
        assert_eq!(sent_marks(&mut end), [(ack + 4, Ecn::Ect0, 0)], "{ack}");
    }
    // the echo of packet 10 has: two and a half segments, of which two are full ones; 11 to 14 are under way
    echo(&mut end, 11);
    end.ack(12);
    assert_eq!(sent_marks(&mut end), []);
    end.ack(13);
    assert_eq!(sent_marks(&mut end), [(15, Ecn::Ect0, TcpBody::CWR)]);
}

/// The receiver goes on to echo until it gets CWR: echoes that come before a new packet could carry CWR have no
/// effect, even those of a whole window.
#[test]
fn echoes_before_a_packet_with_cwr_have_no_effect() {
    let mut end = sender(settings_of(Variant::NewReno));
    assert_eq!(sent_marks(&mut end).len(), 10);
    echo(&mut end, 1);
    // the receiver's window is shut until all has arrived
    let flags = TcpBody::ACK | TcpBody::ECE;
    for window in [0, u16::MAX] {
        assert_eq!(sent_marks(&mut end), []);
        end.header(TcpBody { ack: 10 * MSS, window, flags, ..TcpBody::default() });
    }
    let sent = sent_marks(&mut end);
    assert_eq!(sent.len(), 5, "half of ten, not a quarter");
    assert_eq!(sent[0], (10, Ecn::Ect0, TcpBody::CWR));
}

/// RFC 3168 sections 6.1.2 and 6.1.5: a loss in a window that had a response causes no further reduction, a
/// retransmission is not ECN-capable and has no CWR, and a reduction after a loss is reported by CWR as well.
#[test]
fn a_loss_beside_a_mark_is_one_sign() {
    for marked in [true, false] {
        let settings = TcpSettings { limited_transmit: false, ..settings_of(Variant::Sack) };
        let mut end = sender(settings);
        sent_marks(&mut end);
        if marked {
            echo(&mut end, 1);
        } else {
            end.ack(1);
            assert_eq!(sent_marks(&mut end).len(), 2);
        }
        (3..6).for_each(|highest| end.ack_with(1, &[(2, highest)]));
        let sent = sent_marks(&mut end);
        assert_eq!(sent[0], (1, Ecn::NotEct, 0), "sent again");
        let (window, half) = if marked { (10, 5) } else { (12, 5) };
        // the pipe may have `half` segments, and has those above the SACKed ones: new ones go as it drains
        let mut new = Vec::new();
        for highest in 6..=window {
            end.ack_with(1, &[(2, highest)]);
            new.extend(sent_marks(&mut end));
        }
        assert_eq!(new[0], (window, Ecn::Ect0, TcpBody::CWR), "marked: {marked}");
        assert!(new[1..].iter().all(|&(_, ecn, flags)| (ecn, flags) == (Ecn::Ect0, 0)), "{new:?}");
        // the repaired one, and the new ones: the window
        assert_eq!(new.len() + 1, half, "marked: {marked}");
    }
}

/// Marks cause the same saw-tooth as losses: over the reference path NewReno and CUBIC reduce their window in 100 s
/// as often with a queue that marks from 32 packets on as with a queue of 32 packets, their throughput is the same, and
/// no packet is sent twice. A packet that is not ECN-capable is dropped where others are marked.
#[test]
fn marks_make_the_saw_tooth_of_losses_without_any() {
    for variant in [Variant::NewReno, Variant::Sack, Variant::Cubic] {
        let run = |ecn, step, queue| {
            let settings = TcpSettings { ecn, ..TcpSettings { variant, ..TcpSettings::default() } };
            let mut path = Dumbbell::reference(settings);
            (path.step, path.queue) = (step, queue);
            path.run()
        };
        let (marked, lost) = (run(true, Some(32), 200), run(false, None, 32));
        let (with, without) = (&marked.flows[0], &lost.flows[0]);
        println!(
            "{variant:?}: {} reductions, {} marks, carries {:.4}, waits {:.2} ms; dropped {}, {:.4}, {:.2} ms",
            with.reductions,
            with.marked,
            marked.utilisation(),
            marked.queueing().0,
            without.lost,
            lost.utilisation(),
            lost.queueing().0
        );
        assert_eq!(with.lost, 0);
        assert!(with.marked >= with.reductions);
        let ratio = with.reductions as f64 / without.lost as f64;
        assert!((0.85..1.15).contains(&ratio), "{variant:?}: {ratio}");
        assert!((marked.utilisation() - lost.utilisation()).abs() < 0.01);
        let dropped = run(false, Some(32), 200);
        assert_eq!((dropped.flows[0].marked, dropped.flows[0].lost), (0, without.lost));
    }
}
