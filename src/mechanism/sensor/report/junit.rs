//! JUnit's XML, as most runners can write it.

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::counted::Counted;

/// What is known of the test that is open.
#[derive(Debug, Default)]
struct Case {
    name: String,
    failed: bool,
    skipped: bool,
}

/// Reads a report to its end, in bounded memory but for single texts.
///
/// # Errors
/// XML that cannot be read, or that is no report.
pub(super) fn read(input: impl BufRead) -> Result<Counted, String> {
    let mut reader = Reader::from_reader(input);
    let mut counted = Counted::tests();
    let mut buffer = Vec::new();
    let mut case: Option<Case> = None;
    let mut suite = String::new();
    let (mut is_report, mut telling, mut depth) = (false, false, 0_u32);
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer).map_err(|error| error.to_string())?;
        let (start, closed) = match &event {
            Event::Start(start) => (Some(start), false),
            Event::Empty(start) => (Some(start), true),
            _ => (None, false),
        };
        if let Some(start) = start {
            if !closed {
                depth += 1;
            }
            match start.local_name().as_ref() {
                "testsuites" => is_report = true,
                "testsuite" => {
                    is_report = true;
                    suite = attribute(start, "name").unwrap_or_default();
                }
                "testcase" => {
                    end(&mut counted, case.take());
                    case = Some(Case { name: case_name(start), ..Case::default() });
                    if closed {
                        end(&mut counted, case.take());
                    }
                }
                "failure" | "error" => {
                    let name = match &mut case {
                        Some(case) => {
                            case.failed = true;
                            case.name.clone()
                        }
                        None => {
                            // A suite that could not be set up.
                            counted.failing += 1;
                            counted.total += 1;
                            counted.name(&suite);
                            suite.clone()
                        }
                    };
                    counted.detail(&format!("---- {name} ----"));
                    attribute(start, "message").iter().flat_map(|text| text.lines()).for_each(|l| counted.detail(l));
                    telling = !closed;
                }
                "skipped" => {
                    if let Some(case) = &mut case {
                        case.skipped = true;
                    }
                }
                _ => {}
            }
            continue;
        }
        match event {
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                match tag.local_name().as_ref() {
                    "testcase" => end(&mut counted, case.take()),
                    "failure" | "error" => telling = false,
                    _ => {}
                }
            }
            Event::Text(text) if telling => {
                text.lines().for_each(|line| counted.detail(line));
            }
            Event::CData(text) if telling => {
                text.lines().for_each(|line| counted.detail(line));
            }
            Event::GeneralRef(name) if telling => {
                if let Ok(Some(character)) = name.resolve_char_ref() {
                    counted.detail(&character.to_string());
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if depth > 0 {
        return Err("it ends in the middle".into());
    }
    if is_report { Ok(counted) } else { Err("it has no <testsuite>".into()) }
}

fn end(counted: &mut Counted, case: Option<Case>) {
    let Some(case) = case else { return };
    if case.skipped && !case.failed {
        counted.skipped += 1;
        return;
    }
    counted.total += 1;
    if case.failed {
        counted.failing += 1;
        counted.name(&case.name);
    }
}

fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = start.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    let text = found.value.clone().into_owned();
    Some(quick_xml::escape::unescape(&text).map(|text| text.into_owned()).unwrap_or(text))
}

fn case_name(start: &BytesStart<'_>) -> String {
    let name = attribute(start, "name").unwrap_or_default();
    match attribute(start, "classname").filter(|class| !class.is_empty()) {
        Some(class) => format!("{class}::{name}"),
        None => name,
    }
}
