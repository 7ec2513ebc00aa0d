//! Whatever comes before an alarm that is due: no controller then asks for one in the past.

use crate::support::host;
use serde_json::Value;
use tidegate_core::control::{Limits, NewFrame, Sent};
use tidegate_core::{Rate, Size, Span, Time};

#[test]
fn what_comes_before_an_alarm_that_is_due_is_answered() {
    for (name, preset) in [("scream", "draft"), ("scream", "ericsson-2026-07"), ("scream-v1", "rfc8298")] {
        let begun = || {
            let mut host = host(name, preset, &Value::Null, &Limits::default());
            let size = Size::from_bytes(1200);
            let sent = Sent { sequence: 0, size, in_flight: size, backlog: Size::ZERO };
            let _ = host.sent(Time::from_millis(10), &sent).expect("contract");
            host
        };
        // seconds after what was in flight is given up, and after every other alarm
        let late = Time::from_secs(9);
        for kilobytes in [1, 100] {
            let size = Size::from_bytes(1000 * kilobytes);
            let frame = NewFrame { video: true, size, backlog: size, pacer_delay: Span::ZERO };
            let mut host = begun();
            let _ = host.frame(late, &frame).expect("a frame");
            let _ = host.frame(late + Span::from_millis(40), &frame).expect("another one");
        }
        let _ = begun().coupled(late, Rate::from_kbps(500)).expect("a coupled rate");
    }
}
