//! The forms in which a value shows up in output: as it is, escaped, encoded.

use std::collections::BTreeSet;

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{LONGEST_PATTERN, SHORTEST_SECRET};

/// Lines of a value are secrets of their own from this length on (keys in PEM form are quoted line by line).
const SHORTEST_LINE: usize = 16;

/// All byte strings to look for; none when the value is too short to be a secret.
pub(super) fn all(value: &str) -> BTreeSet<Vec<u8>> {
    let whole = value.trim();
    let mut forms = BTreeSet::new();
    if whole.len() < SHORTEST_SECRET {
        return forms;
    }
    let lines = whole.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE && !line.starts_with("-----"));
    for plain in lines.chain([whole, value]) {
        let json = in_json(plain);
        let ascii = in_ascii_json(plain);
        for form in [
            plain.to_owned(),
            // An agent that speaks JSON quotes output that is JSON itself.
            in_json(&json),
            in_json(&ascii),
            json.replace('/', "\\/"),
            json,
            ascii,
            percent(plain, false, "%20"),
            percent(plain, true, "%20"),
            percent(plain, false, "+"),
        ] {
            insert(&mut forms, form.into_bytes());
        }
        for alignment in 0..3 {
            insert(&mut forms, inside_base64(plain.as_bytes(), alignment, &STANDARD_NO_PAD));
            insert(&mut forms, inside_base64(plain.as_bytes(), alignment, &URL_SAFE_NO_PAD));
        }
    }
    forms
}

/// Adds a form, in pieces where it is longer than a pattern may be.
fn insert(forms: &mut BTreeSet<Vec<u8>>, form: Vec<u8>) {
    let mut rest = form.as_slice();
    while rest.len() > LONGEST_PATTERN {
        // The last piece must not become so short that it matches by chance.
        let left = rest.len() - LONGEST_PATTERN;
        let cut = LONGEST_PATTERN - SHORTEST_SECRET.saturating_sub(left);
        let cut = (0..=cut).rev().find(|&at| !is_continuation(rest[at])).unwrap_or(cut);
        forms.insert(rest[..cut].to_vec());
        rest = &rest[cut..];
    }
    if rest.len() >= SHORTEST_SECRET {
        forms.insert(rest.to_vec());
    }
}

/// True inside of a UTF-8 character, where no piece may begin.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// JSON as writers make it that escape all that is not ASCII.
fn in_ascii_json(text: &str) -> String {
    let mut escaped = String::new();
    for letter in in_json(text).chars() {
        if letter.is_ascii() {
            escaped.push(letter);
        } else {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

fn percent(text: &str, lower_case: bool, space: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            b' ' => encoded.push_str(space),
            _ if lower_case => encoded.push_str(&format!("%{byte:02x}")),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The letters of a base 64 text that depend on nothing but the value, when `alignment` bytes stand before it.
/// At most a few bits at each end are left, which stand in letters shared with the neighbours.
fn inside_base64(value: &[u8], alignment: usize, engine: &impl base64::Engine) -> Vec<u8> {
    let mut padded = vec![0; alignment];
    padded.extend_from_slice(value);
    let encoded = engine.encode(&padded).into_bytes();
    let first = (alignment * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    encoded[first..last].to_vec()
}
