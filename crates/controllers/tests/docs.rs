//! The settings tables in `docs/controllers` are those of the code.

use crate::support::{golden, read};
use serde_json::Value;
use std::fmt::Write as _;
use tidegate_controllers::{Entry, Setting, registry};

const BEGIN: &str = "<!-- settings: written by the test `docs` -->\n";
const END: &str = "<!-- end of settings -->";

/// A table for all presets that have the same settings.
fn tables(entry: &Entry) -> String {
    let mut kinds: Vec<(&[Setting], Vec<&str>)> = vec![];
    for preset in entry.presets {
        let settings = (entry.settings)(preset);
        match kinds.iter_mut().find(|(known, _)| *known == settings) {
            Some((_, presets)) => presets.push(preset),
            None => kinds.push((settings, vec![preset])),
        }
    }
    kinds.iter().map(|(settings, presets)| table(entry, settings, presets)).collect::<Vec<_>>().join("\n")
}

fn table(entry: &Entry, settings: &[Setting], names: &[&str]) -> String {
    let presets: Vec<Value> = names.iter().map(|name| (entry.defaults)(name).expect("known")).collect();
    let mut text = format!("| setting | unit | {} | meaning | source |\n", names.join(" | "));
    text += &format!("|{}\n", "---|".repeat(4 + presets.len()));
    for setting in settings {
        let values: Vec<String> = presets.iter().map(|preset| shown(&preset[setting.name])).collect();
        let same = values.iter().all(|value| *value == values[0]);
        let mark = if same { "" } else { " *" };
        let values = values.join(" | ");
        let (name, unit, doc, source) = (setting.name, setting.unit, setting.doc, setting.source);
        writeln!(text, "| `{name}`{mark} | {unit} | {values} | {doc} | {source} |").expect("a string");
    }
    text
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.as_f64().map_or_else(|| value.to_string(), |x| x.to_string()), Into::into)
}

#[test]
fn every_controller_has_a_page_with_its_settings() {
    for entry in registry() {
        let path = format!("docs/controllers/{}.md", entry.name);
        let page = read(&path);
        let (before, rest) =
            page.split_once(BEGIN).unwrap_or_else(|| panic!("{path} has no place for settings"));
        let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{path}: no end of settings"));
        golden(&path, &format!("{before}{BEGIN}{}{END}{after}", tables(entry)));
    }
}
