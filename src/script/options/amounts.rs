//! Numbers, durations and sizes, with their units and their limits.

use mlua::Value;

use super::given::Given;
use super::problem::Problems;
use super::reader::text_of;
use super::schema::Field;
use crate::policy::units;
use crate::script::vm::show;

pub(super) fn leave_out(field: Option<&Field>) -> String {
    match field {
        Some(Field { default: Some(default), .. }) => format!("; leave it out for the default of {default}"),
        Some(Field { required: false, .. }) => "; leave it out to have no limit".into(),
        _ => String::new(),
    }
}

pub(super) fn integer(
    value: &Value,
    min: u64,
    max: u64,
    field: Option<&Field>,
    path: &str,
    problems: &mut Problems,
) -> Option<Given> {
    let whole = match value {
        Value::Integer(number) => i128::from(*number),
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 1e18 => *number as i128,
        _ => {
            problems.add(path, format!("must be a whole number, got {}", show::short(value)));
            return None;
        }
    };
    if whole < i128::from(min) {
        problems.add(path, format!("must be at least {min}, got {whole}{}", leave_out(field)));
        return None;
    }
    if whole > i128::from(max) {
        problems.add(path, format!("must be at most {max}, got {whole}"));
        return None;
    }
    u64::try_from(whole).ok().map(Given::Integer)
}

pub(super) fn duration(value: &Value, field: Option<&Field>, path: &str, problems: &mut Problems) -> Option<Given> {
    let read = match value {
        Value::String(_) => {
            let text = text_of(value, path, problems)?;
            units::parse_duration(&text)
        }
        _ => {
            let seconds = value.as_number().or_else(|| value.as_integer().map(|n| n as f64)).unwrap_or(f64::NAN);
            units::seconds_to_duration(seconds).ok_or_else(|| units::UnitError::Duration(show::short(value)))
        }
    };
    match read {
        Ok(duration) if duration.is_zero() => {
            problems.add(path, format!("must be more than 0{}", leave_out(field)));
            None
        }
        Ok(duration) => Some(Given::Duration(duration)),
        Err(error) => {
            problems.add(path, error.to_string());
            None
        }
    }
}

pub(super) fn bytes(value: &Value, field: Option<&Field>, path: &str, problems: &mut Problems) -> Option<Given> {
    let read = match value {
        Value::String(_) => {
            let text = text_of(value, path, problems)?;
            units::parse_bytes(&text).map_err(|error| error.to_string())
        }
        _ => match integer(value, 1, i64::MAX as u64, field, path, problems)? {
            Given::Integer(number) => Ok(number),
            _ => return None,
        },
    };
    match read {
        Ok(0) => {
            problems.add(path, format!("must be at least 1 byte{}", leave_out(field)));
            None
        }
        Ok(bytes) => Some(Given::Bytes(bytes)),
        Err(problem) => {
            problems.add(path, problem);
            None
        }
    }
}
