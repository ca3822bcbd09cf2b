//! The Test Anything Protocol, with subtests as in version 14 and as node writes them.
//!
//! A point that sums up its subtests is not counted beside them.

use super::LineParser;
use super::counted::{Counted, is_number};

/// Deeper subtests count as being at this depth.
const DEEPEST: usize = 32;

#[derive(Debug, Default, Clone)]
struct Level {
    /// Points one level deeper since the last point here, and whether one of them failed.
    children: bool,
    failed_children: bool,
    name: String,
}

#[derive(Debug, Default)]
pub(super) struct Tap {
    counted: Counted,
    levels: Vec<Level>,
    version: bool,
    plan: Option<u64>,
    points: u64,
    top_points: u64,
    bailed: bool,
    telling: bool,
}

impl Tap {
    fn level(&mut self, at: usize) -> &mut Level {
        if self.levels.len() <= at {
            self.levels.resize(at + 1, Level::default());
        }
        &mut self.levels[at]
    }

    fn point(&mut self, depth: usize, ok: bool, rest: &str) {
        self.points += 1;
        if depth == 0 {
            self.top_points += 1;
        }
        let rest = rest.trim_start();
        let rest = rest.split_once(' ').filter(|(number, _)| is_number(number)).map_or(rest, |(_, rest)| rest);
        let rest = if is_number(rest) { "" } else { rest };
        let (name, directive) = match rest.rsplit_once(" # ").or_else(|| rest.strip_prefix("# ").map(|d| ("", d))) {
            Some((name, directive)) => (name, directive.to_ascii_lowercase()),
            None => (rest, String::new()),
        };
        let name = name.strip_prefix("- ").unwrap_or(name).trim();
        let skipped = directive.starts_with("skip");
        let failed = !ok && !directive.starts_with("todo") && !skipped;
        let level = std::mem::take(self.level(depth));
        if depth > 0 {
            let above = self.level(depth - 1);
            above.children = true;
            above.failed_children |= failed;
        }
        self.telling = failed && !(level.children && level.failed_children);
        if level.children && (ok || level.failed_children) {
            return;
        }
        if skipped {
            self.counted.skipped += 1;
            return;
        }
        self.counted.total += 1;
        if failed {
            self.counted.failing += 1;
            let parents = self.levels[..depth].iter().map(|level| level.name.as_str()).filter(|name| !name.is_empty());
            let named = if name.is_empty() { format!("test {}", self.points) } else { name.to_owned() };
            let full = parents.chain([named.as_str()]).collect::<Vec<_>>().join(" > ");
            self.counted.name(&full);
            self.counted.detail(&format!("---- {full} ----"));
        }
    }
}

impl LineParser for Tap {
    fn line(&mut self, line: &str) {
        let text = line.trim_start();
        let depth = ((line.len() - text.len()) / 4).min(DEEPEST);
        let first = text.as_bytes().first().copied().unwrap_or(b' ');
        match first {
            b'o' if text.starts_with("ok") && matches!(text.as_bytes().get(2), None | Some(b' ')) => {
                self.point(depth, true, &text[2..]);
                return;
            }
            b'n' if text.starts_with("not ok") && matches!(text.as_bytes().get(6), None | Some(b' ')) => {
                self.point(depth, false, &text[6..]);
                return;
            }
            b'1' if depth == 0 && text.starts_with("1..") => {
                let number = text[3..].split([' ', '#']).next().unwrap_or_default();
                if let Ok(number) = number.parse::<u64>() {
                    self.plan = Some(self.plan.unwrap_or(0) + number);
                    return;
                }
            }
            b'T' if depth == 0 && text.starts_with("TAP version ") => self.version = true,
            b'B' if text.starts_with("Bail out!") => {
                self.bailed = true;
                self.counted.failing += 1;
                self.counted.total += 1;
                self.counted.name(text);
            }
            b'#' => {
                if let Some(name) = text.strip_prefix("# Subtest: ") {
                    name.clone_into(&mut self.level(depth).name);
                    return;
                }
            }
            _ => {}
        }
        if self.telling && first != b'#' && text != "---" && text != "..." {
            self.counted.detail(line);
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        let sure = self.version || self.plan.is_some() && (self.points > 0 || self.plan == Some(0)) || self.bailed;
        if !sure {
            return None;
        }
        self.counted.tests = true;
        if let Some(missing) = self.plan.and_then(|plan| plan.checked_sub(self.top_points))
            && missing > 0
            && !self.bailed
        {
            self.counted.failing += missing;
            self.counted.total += missing;
            self.counted.name(&format!("{missing} planned tests that were not run"));
        }
        Some(std::mem::take(&mut self.counted))
    }
}
