//! `node --test`: its spec reporter. Its TAP reporter is TAP.

use super::LineParser;
use super::counted::Counted;

#[derive(Debug, Default)]
pub(super) struct Node {
    counted: Counted,
    seen: bool,
    passed: u64,
    listing: bool,
}

impl LineParser for Node {
    fn line(&mut self, line: &str) {
        if let Some(sum) = line.strip_prefix("ℹ ") {
            let Some((word, number)) = sum.split_once(' ') else { return };
            let Ok(number) = number.trim().parse::<u64>() else { return };
            match word {
                "tests" => self.seen = true,
                "pass" => self.passed += number,
                "fail" | "cancelled" => self.counted.failing += number,
                "skipped" | "todo" => self.counted.skipped += number,
                _ => {}
            }
        } else if line == "✖ failing tests:" {
            self.listing = true;
        } else if self.listing {
            if let Some(name) = line.strip_prefix("✖ ") {
                self.counted.name(name.rsplit_once(" (").map_or(name, |(name, _)| name));
            }
            self.counted.detail(line);
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        self.counted.tests = true;
        self.counted.total = self.passed + self.counted.failing;
        self.seen.then(|| std::mem::take(&mut self.counted))
    }
}
