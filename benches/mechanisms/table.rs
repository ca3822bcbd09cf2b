//! The table of figures: what is required, what was measured, whether it holds. Shared by all groups.

use std::{io::Write, path::Path, time::Duration};

/// One figure.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) figure: String,
    pub(crate) required: String,
    pub(crate) measured: String,
    pub(crate) ok: bool,
}

impl Row {
    /// A ratio of medians that may be at most `limit`; `of` says what was measured, in words.
    pub(crate) fn at_most_times(figure: &str, limit: f64, ratio: f64, of: &str) -> Row {
        Row::new(figure, format!("≤ {limit:.2} ×"), format!("{ratio:.2} × ({of})"), ratio <= limit)
    }

    /// Any other figure.
    pub(crate) fn new(figure: &str, required: String, measured: String, ok: bool) -> Row {
        let row = Row { figure: figure.into(), required, measured, ok };
        say(&row.line());
        row
    }

    fn line(&self) -> String {
        let Row { figure, required, measured, ok } = self;
        format!("| {figure} | {required} | {measured} | {} |", if *ok { "yes" } else { "**no**" })
    }
}

/// Progress, on stderr.
pub(crate) fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// The middle one.
pub(crate) fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// `a` in units of `b`.
pub(crate) fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}

fn text(rows: &[Row]) -> String {
    let mut text = String::from("| figure | required | measured | holds |\n|---|---|---|---|\n");
    for row in rows {
        text.push_str(&row.line());
        text.push('\n');
    }
    text
}

/// Prints it on stdout.
pub(crate) fn print(rows: &[Row]) -> std::io::Result<()> {
    std::io::stdout().write_all(text(rows).as_bytes())
}

const BEGIN: &str = "<!-- mechanisms: begin -->\n";
const END: &str = "<!-- mechanisms: end -->";

/// Puts it between the markers of a file.
pub(crate) fn write_into(file: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(file)?;
    let split = old.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = split else { anyhow::bail!("{} has no {BEGIN:?} and {END:?}", file.display()) };
    std::fs::write(file, format!("{before}{BEGIN}{}{END}{after}", text(rows)))?;
    Ok(())
}
