//! The rules of [`JsonLines`], made ready: paths parsed, expressions compiled.
//!
//! Guarantees that what compiles can be interpreted without an error; every mistake is told with the name of its field.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::field::{FieldPath, Sieve};
use crate::policy::{ErrorPattern, FailedRule, JsonLines, Match, TextRule, UsageRule};

/// A mistake in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleError {
    /// Dotted name of the field, like `failed[2].status`.
    pub(super) field: String,
    /// What is wrong and what to do.
    pub(super) problem: String,
}

/// One condition, compiled.
#[derive(Debug)]
pub(super) struct Condition(Vec<(FieldPath, Test)>);

#[derive(Debug)]
enum Test {
    Equal(Value),
    Fits(Regex),
}

impl Condition {
    /// True when every path has its value. Without paths it fits nothing.
    pub(super) fn fits(&self, line: &Value) -> bool {
        !self.0.is_empty()
            && self.0.iter().all(|(path, test)| {
                let mut fits = false;
                path.each(line, &mut |value| fits |= test.holds(value));
                fits
            })
    }
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Test::Equal(Value::Number(wanted)), Value::Number(found)) => wanted.as_f64() == found.as_f64(),
            (Test::Equal(wanted), found) => wanted == found,
            (Test::Fits(regex), Value::String(text)) => regex.is_match(text),
            (Test::Fits(_), _) => false,
        }
    }
}

/// [`TextRule`], compiled.
#[derive(Debug)]
pub(super) struct Text {
    when: Condition,
    unless: Condition,
    path: FieldPath,
    pub(super) append: bool,
}

impl Text {
    /// The text that this line holds by this rule; `None` when the rule is not about this line.
    pub(super) fn read(&self, line: &Value) -> Option<String> {
        (self.when.fits(line) && !self.unless.fits(line)).then(|| self.path.text(line).unwrap_or_default())
    }
}

/// What a line says about trouble, raw.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Trouble {
    /// The message, as the agent wrote it.
    pub(super) message: String,
    /// HTTP-like status.
    pub(super) status: Option<u16>,
    /// The agent's own word for it.
    pub(super) code: Option<String>,
    /// Unix seconds.
    pub(super) resets_at: Option<i64>,
}

/// [`FailedRule`], compiled.
#[derive(Debug)]
pub(super) struct Failed {
    when: Condition,
    unless: Condition,
    pub(super) is_final: bool,
    message: Vec<FieldPath>,
    status: Option<FieldPath>,
    code: Option<FieldPath>,
    resets_at: Option<FieldPath>,
}

impl Failed {
    /// The trouble that this line tells by this rule.
    pub(super) fn read(&self, line: &Value) -> Option<Trouble> {
        if !self.when.fits(line) || self.unless.fits(line) {
            return None;
        }
        let message = self.message.iter().filter_map(|path| path.text(line)).find(|text| !text.trim().is_empty());
        let number = |path: &Option<FieldPath>| path.as_ref().and_then(|path| path.number(line));
        Some(Trouble {
            message: message.unwrap_or_default(),
            status: number(&self.status).filter(|n| (100.0..1000.0).contains(n)).map(|n| n as u16),
            code: self.code.as_ref().and_then(|path| path.text(line)),
            resets_at: number(&self.resets_at).and_then(unix_seconds),
        })
    }
}

/// Seconds since 1970 from a number that may be milliseconds; `None` where it is no time of this age.
pub(super) fn unix_seconds(number: f64) -> Option<i64> {
    let seconds = if number >= 1e11 { number / 1000.0 } else { number };
    (1e9..1e10).contains(&seconds).then_some(seconds as i64)
}

/// [`UsageRule`], compiled.
#[derive(Debug)]
pub(super) struct Counts {
    when: Condition,
    input: Option<FieldPath>,
    cache_read: Option<FieldPath>,
    cache_write: Option<FieldPath>,
    output: Option<FieldPath>,
    reasoning: Option<FieldPath>,
    cost: Option<FieldPath>,
    id: Option<FieldPath>,
    pub(super) sum: bool,
    pub(super) input_includes_cache: bool,
    pub(super) output_excludes_reasoning: bool,
}

/// The numbers of one line, by the agent's own convention.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RawUsage {
    pub(super) input: Option<f64>,
    pub(super) cache_read: Option<f64>,
    pub(super) cache_write: Option<f64>,
    pub(super) output: Option<f64>,
    pub(super) reasoning: Option<f64>,
    pub(super) cost: Option<f64>,
}

impl Counts {
    /// The numbers of this line and the id of the call that they are about; `None` when the rule is not about it.
    pub(super) fn read(&self, line: &Value) -> Option<(RawUsage, Option<String>)> {
        if !self.when.fits(line) {
            return None;
        }
        let number = |path: &Option<FieldPath>| {
            path.as_ref().and_then(|path| path.number(line)).filter(|n| n.is_finite() && *n >= 0.0)
        };
        let raw = RawUsage {
            input: number(&self.input),
            cache_read: number(&self.cache_read),
            cache_write: number(&self.cache_write),
            output: number(&self.output),
            reasoning: number(&self.reasoning),
            cost: number(&self.cost),
        };
        Some((raw, self.id.as_ref().and_then(|path| path.text(line))))
    }
}

/// All rules of one agent, ready to be used.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) text: Vec<Text>,
    pub(super) fresh: Vec<Condition>,
    pub(super) done: Vec<Condition>,
    pub(super) ended: Vec<Condition>,
    pub(super) well: Vec<Condition>,
    pub(super) truncated: Vec<Condition>,
    pub(super) failed: Vec<Failed>,
    pub(super) retry: Vec<Failed>,
    pub(super) usage: Vec<Counts>,
    pub(super) session: Vec<Text>,
    pub(super) ignore: Vec<String>,
    pub(super) sieve: Sieve,
}

impl Rules {
    /// Compiles; stops at the first mistake.
    pub(super) fn compile(spec: &JsonLines) -> Result<Rules, RuleError> {
        let mut compiler = Compiler::default();
        compiler.path("type", "type")?;
        Ok(Rules {
            text: compiler.list("text", &spec.text, Compiler::text)?,
            fresh: compiler.list("fresh", &spec.fresh, Compiler::needed_condition)?,
            done: compiler.list("done", &spec.done, Compiler::needed_condition)?,
            ended: compiler.list("ended", &spec.ended, Compiler::needed_condition)?,
            well: compiler.list("well", &spec.well, Compiler::needed_condition)?,
            truncated: compiler.list("truncated", &spec.truncated, Compiler::needed_condition)?,
            failed: compiler.list("failed", &spec.failed, Compiler::failed)?,
            retry: compiler.list("retry", &spec.retry, Compiler::failed)?,
            usage: compiler.list("usage", &spec.usage, Compiler::usage)?,
            session: compiler.list("session", &spec.session, Compiler::text)?,
            ignore: spec.ignore.clone(),
            sieve: compiler.sieve,
        })
    }

    /// True when some line can end a turn well.
    pub(super) fn can_end_well(&self) -> bool {
        let says_when = !self.done.is_empty() || !self.ended.is_empty();
        says_when && !self.text.is_empty()
    }
}

/// Compiles one rule after the other and remembers every path for the sieve.
#[derive(Default)]
struct Compiler {
    sieve: Sieve,
}

impl Compiler {
    fn list<S, C>(
        &mut self,
        name: &str,
        specs: &[S],
        compile: fn(&mut Compiler, &str, &S) -> Result<C, RuleError>,
    ) -> Result<Vec<C>, RuleError> {
        specs.iter().enumerate().map(|(at, spec)| compile(self, &format!("{name}[{}]", at + 1), spec)).collect()
    }

    fn path(&mut self, field: &str, text: &str) -> Result<FieldPath, RuleError> {
        let path = FieldPath::parse(text).map_err(|problem| RuleError { field: field.to_owned(), problem })?;
        self.sieve.admit(&path);
        Ok(path)
    }

    fn maybe_path(&mut self, field: String, text: &Option<String>) -> Result<Option<FieldPath>, RuleError> {
        text.as_ref().map(|text| self.path(&field, text)).transpose()
    }

    fn condition(&mut self, field: &str, spec: &Match) -> Result<Condition, RuleError> {
        let mut tests = Vec::new();
        for (path, wanted) in spec {
            let field = format!("{field}[\"{path}\"]");
            let path = self.path(&field, path)?;
            tests.push((path, compile_test(&field, wanted)?));
        }
        Ok(Condition(tests))
    }

    fn needed_condition(&mut self, field: &str, spec: &Match) -> Result<Condition, RuleError> {
        if spec.is_empty() {
            let problem = "an empty condition fits no line: name a field and its value, like type = \"result\"".into();
            return Err(RuleError { field: field.to_owned(), problem });
        }
        self.condition(field, spec)
    }

    fn text(&mut self, field: &str, spec: &TextRule) -> Result<Text, RuleError> {
        Ok(Text {
            when: self.needed_condition(&format!("{field}.when"), &spec.when)?,
            unless: self.condition(&format!("{field}.unless"), &spec.unless)?,
            path: self.path(&format!("{field}.text"), &spec.text)?,
            append: spec.append,
        })
    }

    fn failed(&mut self, field: &str, spec: &FailedRule) -> Result<Failed, RuleError> {
        let message = spec.message.iter().enumerate();
        Ok(Failed {
            when: self.needed_condition(&format!("{field}.when"), &spec.when)?,
            unless: self.condition(&format!("{field}.unless"), &spec.unless)?,
            is_final: spec.is_final,
            message: message
                .map(|(at, path)| self.path(&format!("{field}.message[{}]", at + 1), path))
                .collect::<Result<_, _>>()?,
            status: self.maybe_path(format!("{field}.status"), &spec.status)?,
            code: self.maybe_path(format!("{field}.code"), &spec.code)?,
            resets_at: self.maybe_path(format!("{field}.resets_at"), &spec.resets_at)?,
        })
    }

    fn usage(&mut self, field: &str, spec: &UsageRule) -> Result<Counts, RuleError> {
        Ok(Counts {
            when: self.needed_condition(&format!("{field}.when"), &spec.when)?,
            input: self.maybe_path(format!("{field}.input"), &spec.input)?,
            cache_read: self.maybe_path(format!("{field}.cache_read"), &spec.cache_read)?,
            cache_write: self.maybe_path(format!("{field}.cache_write"), &spec.cache_write)?,
            output: self.maybe_path(format!("{field}.output"), &spec.output)?,
            reasoning: self.maybe_path(format!("{field}.reasoning"), &spec.reasoning)?,
            cost: self.maybe_path(format!("{field}.cost"), &spec.cost)?,
            id: self.maybe_path(format!("{field}.id"), &spec.id)?,
            sum: spec.sum,
            input_includes_cache: spec.input_includes_cache,
            output_excludes_reasoning: spec.output_excludes_reasoning,
        })
    }
}

fn compile_test(field: &str, wanted: &Value) -> Result<Test, RuleError> {
    let Value::String(text) = wanted else { return Ok(Test::Equal(wanted.clone())) };
    let wrapped = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    match wrapped.or_else(|| text.starts_with('^').then_some(text)) {
        Some(pattern) => Ok(Test::Fits(compile_regex(field, pattern, false)?)),
        None => Ok(Test::Equal(wanted.clone())),
    }
}

/// Compiles a regular expression of bounded size.
pub(super) fn compile_regex(field: &str, pattern: &str, ignore_case: bool) -> Result<Regex, RuleError> {
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| RuleError { field: field.to_owned(), problem: format!("not a regular expression: {error}") })
}

/// [`ErrorPattern`], compiled.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) kind: crate::policy::ErrorKind,
    /// Found anywhere in an error message.
    pub(super) anywhere: Regex,
    /// The same over a whole message, where the pattern may judge one.
    pub(super) whole: Option<Regex>,
}

/// Compiles the error patterns of an agent.
pub(super) fn compile_patterns(errors: &[ErrorPattern]) -> Result<Vec<Pattern>, RuleError> {
    let mut patterns = Vec::new();
    for (at, error) in errors.iter().enumerate() {
        let field = format!("errors[{}].pattern", at + 1);
        let problem = |problem: &str| RuleError { field: field.clone(), problem: problem.into() };
        let anywhere = compile_regex(&field, &error.pattern, true)?;
        if anywhere.is_match("") {
            return Err(problem("it fits the empty text, so it would fit every message"));
        }
        let whole = error.whole_message.then(|| compile_regex(&field, &format!("\\A(?:{})\\z", error.pattern), true));
        patterns.push(Pattern { kind: error.kind, anywhere, whole: whole.transpose()? });
    }
    Ok(patterns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn condition(spec: Value) -> Condition {
        Compiler::default().condition("when", &serde_json::from_value(spec).unwrap()).unwrap()
    }

    #[test]
    fn a_condition_compares_values_patterns_and_numbers() {
        let line =
            json!({"type": "error", "message": "Reconnecting... 1/5", "n": 1, "parts": [{"role": "a"}, {"role": "b"}]});
        for spec in [
            json!({"type": "error"}),
            json!({"type": "error", "message": "^Reconnecting"}),
            json!({"message": "/\\d\\/5/"}),
            json!({"n": 1.0}),
            json!({"parts[].role": "b"}),
        ] {
            assert!(condition(spec.clone()).fits(&line), "{spec}");
        }
        for spec in
            [json!({}), json!({"type": "errors"}), json!({"n": "1"}), json!({"n": "^1"}), json!({"absent": null})]
        {
            assert!(!condition(spec.clone()).fits(&line), "{spec}");
        }
    }

    #[test]
    fn a_mistake_is_told_with_the_name_of_its_field() {
        let mistakes = [
            (json!({"done": [{"type": "^("}]}), "done[1][\"type\"]"),
            (json!({"done": [{}]}), "done[1]"),
            (json!({"text": [{"when": {"type": "a"}, "text": "a..b"}]}), "text[1].text"),
            (json!({"text": [{"when": {"type": "a"}, "text": "a"}, {"text": "a"}]}), "text[2].when"),
            (json!({"failed": [{"when": {"type": "a"}, "message": ["x", ""]}]}), "failed[1].message[2]"),
            (json!({"usage": [{"when": {"type": "a"}, "cost": "."}]}), "usage[1].cost"),
        ];
        for (spec, field) in mistakes {
            let error = Rules::compile(&serde_json::from_value(spec).unwrap()).unwrap_err();
            assert_eq!(error.field, field);
        }
    }

    #[test]
    fn an_error_pattern_that_fits_everything_is_refused() {
        let pattern = |pattern: &str| {
            compile_patterns(&[ErrorPattern {
                kind: crate::policy::ErrorKind::Auth,
                pattern: pattern.into(),
                whole_message: true,
            }])
        };
        assert!(pattern("x*").unwrap_err().problem.contains("every message"));
        assert!(pattern("a(").unwrap_err().problem.contains("regular expression"));
        let whole = pattern("a|ab").unwrap().remove(0).whole.unwrap();
        assert!(whole.is_match("AB") && !whole.is_match("abc"));
    }
}
