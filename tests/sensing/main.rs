//! Sensors of every kind through the real program: what a script says, what the record keeps, what the next prompt tells.

#[path = "../scene/mod.rs"]
mod scene;

mod commands;
mod functions;
mod judges;
mod metrics;
mod pictures;
mod runners;
mod services;
mod stub_http;

use scene::Scene;
use serde_json::Value;

/// A script with one loop over these sensors; its agent is `worker`.
fn loop_over(sensors: &str, more: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{\n  agent = ln.agent {{ \"worker\" }},\n  prompt = \"Work.\",\n  \
         sensors = {{ {sensors} }},\n  {more}\n}}\n"
    )
}

/// The readings of the last pass of the newest run; where there was none, those before the first iteration.
fn last_readings(scene: &Scene) -> Vec<Value> {
    let sensed = scene.events("sensed").pop().or_else(|| scene.events("baseline").pop()).expect("a pass");
    sensed["sense"]["readings"].as_array().cloned().unwrap_or_default()
}

/// The only reading of the last pass.
fn last_reading(scene: &Scene) -> Value {
    let mut readings = last_readings(scene);
    assert_eq!(readings.len(), 1, "{readings:?}");
    readings.remove(0)
}
