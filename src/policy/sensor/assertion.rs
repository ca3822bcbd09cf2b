//! What a number must be: `< 0.8`, `>= 10 and < 20`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bound {
    comparison: Comparison,
    number: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// Longer signs first: `<=` begins like `<`.
const SIGNS: [(&str, Comparison); 6] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// All comparisons must hold. Written and serialised as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Assertion {
    text: String,
    bounds: Vec<Bound>,
}

/// Text that is no assertion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no assertion: write a comparison and a number, like \"< 0.8\" or \">= 10 and < 20\"")]
pub struct AssertionError(String);

impl Assertion {
    /// Whether the number is as it must be. What is not a number never is.
    pub fn holds(&self, number: f64) -> bool {
        !number.is_nan()
            && self.bounds.iter().all(|bound| match bound.comparison {
                Comparison::Less => number < bound.number,
                Comparison::LessOrEqual => number <= bound.number,
                Comparison::Greater => number > bound.number,
                Comparison::GreaterOrEqual => number >= bound.number,
                Comparison::Equal => number == bound.number,
                Comparison::NotEqual => number != bound.number,
            })
    }
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Assertion, AssertionError> {
        let wrong = || AssertionError(text.to_owned());
        let bounds = text
            .split(" and ")
            .map(|part| {
                let part = part.trim();
                let (sign, comparison) = SIGNS.iter().find(|(sign, _)| part.starts_with(sign)).ok_or_else(wrong)?;
                let number: f64 = part[sign.len()..].trim().parse().map_err(|_| wrong())?;
                if number.is_finite() { Ok(Bound { comparison: *comparison, number }) } else { Err(wrong()) }
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Assertion { text: text.trim().to_owned(), bounds })
    }
}

impl TryFrom<String> for Assertion {
    type Error = AssertionError;

    fn try_from(text: String) -> Result<Assertion, AssertionError> {
        text.parse()
    }
}

impl From<Assertion> for String {
    fn from(assertion: Assertion) -> String {
        assertion.text
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_hold_or_do_not() {
        for (text, yes, no) in [
            ("< 0.8", 0.79, 0.8),
            ("<=0.8", 0.8, 0.81),
            ("> -1", 0.0, -1.0),
            (">= 10 and < 20", 10.0, 20.0),
            ("== 3", 3.0, 3.1),
            ("!= 0", 1.0, 0.0),
            ("< 1e3", 999.0, 1000.0),
        ] {
            let assertion: Assertion = text.parse().unwrap();
            assert!(assertion.holds(yes) && !assertion.holds(no), "{text}");
            assert!(!assertion.holds(f64::NAN), "{text}");
            let again: Assertion = serde_json::from_str(&serde_json::to_string(&assertion).unwrap()).unwrap();
            assert_eq!(again, assertion);
        }
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        for text in ["", "0.8", "< ", "< x", "=< 3", "< 1 or > 2", "< NaN", "< inf", "< 1 and", "<"] {
            assert!(text.parse::<Assertion>().is_err(), "{text}");
        }
    }
}
