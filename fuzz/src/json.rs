//! Changes JSON by its values and keys.

use crate::mutations::Rng;
use serde_json::{Number, Value, json};

/// Changes a value of a JSON text; of other bytes nothing.
pub fn change(input: &mut Vec<u8>, rng: &mut Rng) {
    let Ok(mut tree) = serde_json::from_slice::<Value>(input) else { return };
    let donor = tree.clone();
    change_value(&mut tree, &donor, rng);
    if let Ok(text) = serde_json::to_vec(&tree) {
        *input = text;
    }
}

/// Goes down to a value, and changes it or its place.
fn change_value(value: &mut Value, donor: &Value, rng: &mut Rng) {
    let deeper = rng.below(32) > 0;
    match value {
        Value::Array(items) if deeper && !items.is_empty() => {
            let (at, other) = (rng.below(items.len()), rng.below(items.len()));
            match rng.below(24) {
                0 => drop(items.remove(at)),
                1 => items.insert(other, items[at].clone()),
                2 => items.swap(at, other),
                _ => change_value(&mut items[at], donor, rng),
            }
        }
        Value::Object(entries) if deeper && !entries.is_empty() => {
            let keys: Vec<String> = entries.keys().cloned().collect();
            let (key, other) = (&keys[rng.below(keys.len())], &keys[rng.below(keys.len())]);
            match rng.below(32) {
                0 => drop(entries.remove(key)),
                1 => {
                    let copy = entries[other].clone();
                    entries.insert(key.clone(), copy);
                }
                2 => {
                    entries.insert(
                        if rng.below(2) == 0 { "x".to_owned() } else { key.to_uppercase() },
                        json!(1),
                    );
                }
                _ => change_value(entries.get_mut(key).expect("a key of it"), donor, rng),
            }
        }
        _ => *value = instead(value, donor, rng),
    }
}

fn instead(value: &Value, donor: &Value, rng: &mut Rng) -> Value {
    match (value, rng.below(16)) {
        (_, 0) => elsewhere(donor, rng).clone(),
        (_, 1) => {
            [json!(null), json!(true), json!(0), json!(-1), json!(""), json!([]), json!({}), json!([[]])]
                [rng.below(8)]
            .clone()
        }
        (Value::Number(number), choice) => changed(number, choice, rng),
        (Value::String(text), 2) => json!(format!("{text}x")),
        (Value::Bool(truth), _) => json!(!truth),
        // a word of another place: a name, a kind, a direction
        _ => (0..8)
            .map(|_| elsewhere(donor, rng))
            .find(|other| other.is_string() == value.is_string())
            .unwrap_or(&Value::Null)
            .clone(),
    }
}

fn changed(number: &Number, choice: usize, rng: &mut Rng) -> Value {
    match number.as_f64() {
        Some(value) if choice > 6 || number.is_f64() => {
            let factor = [0.0, -1.0, 0.5, 0.9, 1.1, 2.0, 10.0, 1e3, 1e9, 1e300, 1e-9][rng.below(11)];
            let value = value * factor;
            if number.is_f64() { json!(value) } else { json!(value as i64) }
        }
        _ => {
            let value = rng.number(number.as_u64().unwrap_or(0));
            if rng.below(2) == 0 { json!(value) } else { json!(value as i64) }
        }
    }
}

/// A value of some place.
fn elsewhere<'a>(donor: &'a Value, rng: &mut Rng) -> &'a Value {
    let mut value = donor;
    while rng.below(6) > 0 {
        let inner = match value {
            Value::Array(items) => items.get(rng.below(items.len())),
            Value::Object(entries) => entries.values().nth(rng.below(entries.len())),
            _ => None,
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    value
}
