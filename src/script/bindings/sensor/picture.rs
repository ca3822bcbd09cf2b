//! `ln.sensor.picture`: a picture and the one that it must look like.

use std::path::{Component, Path};

use mlua::{Lua, Value};

use super::{common, finish};
use crate::policy::{PictureSpec, SensorSource, SensorSpec};
use crate::script::bindings::objects::SensorObject;
use crate::script::options::sensor_tables::PICTURE;
use crate::script::options::{Problems, Record, read_table};
use crate::script::vm::Shared;

const TOLERANCE: f64 = 0.1;

pub(super) fn make(lua: &Lua, value: Value) -> mlua::Result<SensorObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let mut record = read_table(&value, &PICTURE, "", &mut problems);
    let common = common(&shared, &mut record, "", &mut problems);
    let picture = spec(&mut record, &mut problems);
    if let (Some(picture), Some(reader)) = (&picture, shared.reader().as_mut()) {
        reader.protect(&picture.golden);
    }
    let spec = picture.map(|picture| SensorSpec {
        id: record.text("id").unwrap_or_else(|| picture.actual.clone()),
        source: SensorSource::Picture(Box::new(picture)),
        ..common
    });
    finish(lua, "ln.sensor.picture", spec, problems)
}

/// `None` only where a problem says why.
fn spec(record: &mut Record, problems: &mut Problems) -> Option<PictureSpec> {
    let mut path = |name: &str, problems: &mut Problems| {
        let path = record.text(name)?;
        let plain = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !plain {
            problems.add(name, format!("`{path}` is no path below the root"));
        }
        Some(path)
    };
    let (actual, golden) = (path("actual", problems), path("golden", problems));
    let mut share = |name: &str, default: f64, problems: &mut Problems| {
        let share = record.number(name).unwrap_or(default);
        if share > 1.0 {
            problems.add(name, format!("is a share, at most 1, got {share}: 1 percent is 0.01"));
        }
        share
    };
    let threshold = share("threshold", 0.0, problems);
    let tolerance = share("tolerance", TOLERANCE, problems);
    let take = record.command("take").map(|line| record.command_spec(line));
    Some(PictureSpec { take, actual: actual?, golden: golden?, threshold, tolerance })
}
