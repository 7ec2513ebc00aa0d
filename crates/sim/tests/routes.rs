//! The longest path: a packet counts its hops in 8 bits.

use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Run, Scenario};
use tidegate_sim::{Refusal, World};

/// Number of UDP packets, one every 10 ms, that arrive in 1 s over a chain of `links` links of 1 ms.
fn arrived_over(links: usize) -> Result<u64, Refusal> {
    let link = |k: usize| -> Value {
        let settings = json!({"delay": 1_000_000});
        json!({"name": format!("link {k}"), "from": format!("{k}"), "to": format!("{}", k + 1), "capacity": "infinite",
            "settings": settings})
    };
    let udp = json!({"pattern": "cbr", "rate": 800_000, "packet_size": 1000});
    let scenario: Scenario = serde_json::from_value(json!({
        "name": "chain", "duration": 1_000_000_000, "seed": 1, "sending_jitter": "off",
        "links": (0..links).map(link).collect::<Vec<_>>(),
        "flows": [{"name": "udp", "from": "0", "to": format!("{links}"), "kind": {"udp": udp}}],
    }))
    .expect("a scenario");
    let mut run = Run::new(&scenario, &[], &mut from_registry)?;
    run.run_until(Time::MAX).expect("no component fails");
    Ok(run.finish().expect("every packet is accounted for").summary.flows[0].packets_received)
}

#[test]
fn the_longest_path_carries_and_a_longer_one_is_refused() {
    let longest = World::LONGEST_ROUTE - 1;
    assert_eq!(longest, 254);
    // sent at 0, 10 ms ... 990 ms; those sent by 746 ms have arrived at the end
    assert_eq!(arrived_over(longest).expect("carried"), 75);
    let refusal = arrived_over(longest + 1).expect_err("refused");
    assert_eq!(
        (refusal.key.as_str(), refusal.value.as_str(), refusal.expected.as_str()),
        ("links", "a path over 255 links", "at most 254 links")
    );
}
