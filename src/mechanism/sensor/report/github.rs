//! Annotations as GitHub reads them.

use super::LineParser;
use super::counted::Counted;

#[derive(Debug, Default)]
pub(super) struct Github(Counted);

/// Undoes the escapes of a message.
fn plain(text: &str) -> String {
    text.replace("%0D", "").replace("%0A", " ").replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
}

impl LineParser for Github {
    fn line(&mut self, line: &str) {
        let Some(command) = line.trim_start().strip_prefix("::") else { return };
        let Some((front, message)) = command.split_once("::") else { return };
        let (level, properties) = front.split_once(' ').unwrap_or((front, ""));
        if level != "error" && level != "warning" {
            return;
        }
        let of = |name: &str| {
            properties.split(',').find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('=')).map(plain)
        };
        let place = match (of("file"), of("line")) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            _ => String::new(),
        };
        self.0.finding(level == "error", &format!("{place}{}", plain(message)));
    }

    fn finish(&mut self) -> Option<Counted> {
        Some(std::mem::take(&mut self.0))
    }
}
