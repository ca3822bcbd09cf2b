//! Counting tokens and money of one process, by the agent's own convention.
//!
//! Guarantees that what is not known stays unknown: no count, or nothing but zeros, is `None` and never "free".

use super::rules::{Counts, RawUsage};
use crate::policy::Usage;

/// What one usage rule has seen so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Sum of what cannot change any more, or nothing where the last line holds the total.
    settled: RawUsage,
    /// The last line.
    last: RawUsage,
    last_id: Option<String>,
}

impl Tally {
    /// Takes the numbers of one line.
    pub(super) fn add(&mut self, rule: &Counts, raw: RawUsage, id: Option<String>) {
        if rule.sum {
            if id.is_none() || id != self.last_id {
                self.settled = plus(self.settled, self.last);
                self.last = RawUsage::default();
            }
            self.last_id = id;
        }
        self.last = over(self.last, raw);
    }

    fn tokens(&self, rule: &Counts) -> Option<Usage> {
        let raw = plus(self.settled, self.last);
        let (input, output) = (raw.input, raw.output);
        if input.unwrap_or(0.0) + output.unwrap_or(0.0) + raw.cache_read.unwrap_or(0.0) <= 0.0 {
            return None;
        }
        let cached = raw.cache_read.unwrap_or(0.0) + raw.cache_write.unwrap_or(0.0);
        let input = input.map(|input| if rule.input_includes_cache { (input - cached).max(0.0) } else { input });
        let thought = if rule.output_excludes_reasoning { raw.reasoning.unwrap_or(0.0) } else { 0.0 };
        let count = |number: Option<f64>| number.map(|number| number.round() as u64);
        Some(Usage {
            input: count(input),
            cache_read: count(raw.cache_read),
            cache_write: count(raw.cache_write),
            output: count(output.map(|output| output + thought)),
            reasoning: count(raw.reasoning),
            cost_usd: None,
        })
    }

    fn cost(&self) -> Option<f64> {
        plus(self.settled, self.last).cost.filter(|cost| *cost > 0.0)
    }
}

/// The usage of the process: tokens by the first rule that found any, cost by the first that found one.
pub(super) fn usage(rules: &[Counts], tallies: &[Tally]) -> Usage {
    let both = || rules.iter().zip(tallies);
    let tokens = both().find_map(|(rule, tally)| tally.tokens(rule));
    Usage { cost_usd: both().find_map(|(_, tally)| tally.cost()), ..tokens.unwrap_or_default() }
}

fn merge(a: RawUsage, b: RawUsage, f: fn(Option<f64>, Option<f64>) -> Option<f64>) -> RawUsage {
    RawUsage {
        input: f(a.input, b.input),
        cache_read: f(a.cache_read, b.cache_read),
        cache_write: f(a.cache_write, b.cache_write),
        output: f(a.output, b.output),
        reasoning: f(a.reasoning, b.reasoning),
        cost: f(a.cost, b.cost),
    }
}

fn plus(a: RawUsage, b: RawUsage) -> RawUsage {
    merge(a, b, |a, b| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    })
}

/// `b` where it tells, else `a`.
fn over(a: RawUsage, b: RawUsage) -> RawUsage {
    merge(a, b, |a, b| b.or(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::agent::rules::Rules;
    use serde_json::{Value, json};

    fn count(rules: Value, lines: &[Value]) -> Usage {
        let rules = Rules::compile(&serde_json::from_value(json!({"usage": rules})).unwrap()).unwrap().usage;
        let mut tallies: Vec<Tally> = rules.iter().map(|_| Tally::default()).collect();
        for line in lines {
            for (rule, tally) in rules.iter().zip(&mut tallies) {
                if let Some((raw, id)) = rule.read(line) {
                    tally.add(rule, raw, id);
                }
            }
        }
        usage(&rules, &tallies)
    }

    #[test]
    fn a_cumulative_cost_is_its_last_value() {
        let rules = json!([{"when": {"type": "cost"}, "cost": "usd"}]);
        let line = |usd: f64| json!({"type": "cost", "usd": usd});
        let cost =
            |values: &[f64]| count(rules.clone(), &values.iter().copied().map(line).collect::<Vec<_>>()).cost_usd;
        assert_eq!(cost(&[0.10, 0.30, 0.50]), Some(0.50));
        assert_eq!(cost(&[0.20, 0.40]), Some(0.40));
        assert_eq!(cost(&[0.25]), Some(0.25));
        assert_eq!(cost(&[0.0]), None);
        assert_eq!(cost(&[]), None);
    }

    #[test]
    fn both_conventions_come_to_the_same_numbers() {
        let wanted = Usage {
            input: Some(2500),
            cache_read: Some(500),
            cache_write: None,
            output: Some(33),
            reasoning: Some(7),
            cost_usd: None,
        };
        let inclusive = json!([{"when": {"t": 1}, "input": "in", "cache_read": "hit", "output": "out", "reasoning": "think",
            "input_includes_cache": true}]);
        assert_eq!(count(inclusive, &[json!({"t": 1, "in": 3000, "hit": 500, "out": 33, "think": 7})]), wanted);
        let exclusive = json!([{"when": {"t": 1}, "input": "in", "cache_read": "hit", "output": "out", "reasoning": "think",
            "sum": true, "output_excludes_reasoning": true}]);
        let lines = [
            json!({"t": 1, "in": 1000, "hit": 0, "out": 11, "think": 0}),
            json!({"t": 1, "in": 1500, "hit": 500, "out": 15, "think": 7}),
        ];
        assert_eq!(count(exclusive, &lines), wanted);
    }

    #[test]
    fn zeros_are_unknown() {
        let rules = json!([{"when": {"t": 1}, "input": "in", "output": "out", "cost": "usd"}]);
        assert_eq!(count(rules, &[json!({"t": 1, "in": 0, "out": 0, "usd": 0})]), Usage::default());
    }

    #[test]
    fn lines_about_the_same_call_count_once() {
        let rules = json!([{"when": {"t": 1}, "input": "in", "output": "out", "sum": true, "id": "id"}]);
        let lines = [
            json!({"t": 1, "id": "a", "in": 10, "out": 1}),
            json!({"t": 1, "id": "a", "in": 10, "out": 5}),
            json!({"t": 1, "id": "b", "in": 20, "out": 2}),
        ];
        let usage = count(rules, &lines);
        assert_eq!((usage.input, usage.output), (Some(30), Some(7)));
    }

    #[test]
    fn a_later_rule_is_only_asked_when_the_first_found_nothing() {
        let rules = json!([
            {"when": {"type": "result"}, "input": "in", "output": "out", "cost": "usd"},
            {"when": {"type": "step"}, "input": "in", "output": "out", "sum": true},
        ]);
        let step = json!({"type": "step", "in": 5, "out": 1});
        assert_eq!(count(rules.clone(), &[step.clone(), step.clone()]).tokens(), Some(12));
        let result = json!({"type": "result", "in": 9, "out": 2, "usd": 0.5});
        let usage = count(rules, &[step, result]);
        assert_eq!((usage.tokens(), usage.cost_usd), (Some(11), Some(0.5)));
    }
}
