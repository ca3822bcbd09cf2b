//! Cutting long output so that what matters survives.

/// Cuts `text` to at most `cap` bytes: head and tail are kept, cut at line borders where a line is short enough and
/// always at character borders; what was cut is said in the middle, with byte counts and the name of the full log.
///
/// A third of the room goes to the head and the rest to the tail, where summaries stand.
pub fn cap_feedback(text: &str, cap: usize, full_log: Option<&str>) -> String {
    if text.len() <= cap {
        return text.to_owned();
    }
    let whole = match full_log {
        Some(log) => format!("; whole output: {log}"),
        None => String::new(),
    };
    let marker = |cut: usize| format!("\n[... {cut} of {} bytes cut{whole} ...]\n", text.len());
    let room = cap.saturating_sub(marker(text.len()).len());
    if room == 0 {
        return text[..floor(text, cap)].to_owned();
    }
    let head_room = room / 3;
    let head_end = line_end_before(text, floor(text, head_room));
    let tail_start = line_start_after(text, ceil(text, text.len() - (room - head_room)));
    format!("{}{}{}", &text[..head_end], marker(tail_start - head_end), &text[tail_start..])
}

/// The same for text of which only the beginning and the end were kept: `gap` bytes between `head` and `tail` are
/// missing. Where to find the whole is said elsewhere. Nothing is cut when there is room for all and no gap.
pub fn cap_feedback_with_gap(head: &str, tail: &str, gap: usize, cap: usize) -> String {
    let total = head.len() + gap + tail.len();
    if gap == 0 || head.len() <= cap || tail.len() <= cap {
        // What is cut reaches into one of the two at most, so they may as well be one.
        let missing = if gap == 0 { String::new() } else { format!("\n[... {gap} of {total} bytes cut ...]\n") };
        return cap_feedback(&format!("{head}{missing}{tail}"), cap, None);
    }
    let marker = |cut: usize| format!("\n[... {cut} of {total} bytes cut ...]\n");
    let room = cap.saturating_sub(marker(total).len());
    if room == 0 {
        return head[..floor(head, cap)].to_owned();
    }
    let head_end = line_end_before(head, floor(head, room / 3));
    let tail_start = line_start_after(tail, ceil(tail, tail.len() - (room - room / 3)));
    let cut = total - head_end - (tail.len() - tail_start);
    format!("{}{}{}", &head[..head_end], marker(cut), &tail[tail_start..])
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// How far a cut may move to reach the border of a line.
const LINE_SEARCH: usize = 400;

fn line_end_before(text: &str, at: usize) -> usize {
    let from = floor(text, at.saturating_sub(LINE_SEARCH));
    text[from..at].rfind('\n').map_or(at, |found| from + found)
}

fn line_start_after(text: &str, at: usize) -> usize {
    let to = floor(text, at.saturating_add(LINE_SEARCH).min(text.len()));
    if to <= at {
        return at;
    }
    text[at..to].find('\n').map_or(at, |found| at + found + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_text_stays_as_it_is() {
        assert_eq!(cap_feedback("one\ntwo", 100, None), "one\ntwo");
    }

    #[test]
    fn head_and_tail_survive_and_the_cut_is_said() {
        let lines: Vec<String> = (0..500).map(|n| format!("line {n}")).collect();
        let text = lines.join("\n");
        let capped = cap_feedback(&text, 400, Some("run/log"));
        assert!(capped.len() <= 400);
        assert!(capped.starts_with("line 0\n"));
        assert!(capped.ends_with("line 499"));
        assert!(capped.contains(&format!("of {} bytes cut; whole output: run/log", text.len())), "{capped}");
    }

    #[test]
    fn text_with_a_gap_is_cut_the_same_and_the_whole_is_counted() {
        let (head, tail) = ("first\n".repeat(100), "last\n".repeat(100));
        let capped = cap_feedback_with_gap(&head, &tail, 1_000_000, 200);
        assert!(capped.len() <= 200);
        assert!(capped.starts_with("first\n") && capped.ends_with("last\n"));
        assert!(capped.contains("of 1001100 bytes cut"), "{capped}");
        assert_eq!(cap_feedback_with_gap("a\n", "b\n", 0, 200), "a\nb\n");
    }

    proptest! {
        #[test]
        fn a_gap_never_breaks_the_cap(head in "\\PC*", tail in "\\PC*", gap in 0usize..999, cap in 0usize..300) {
            prop_assert!(cap_feedback_with_gap(&head, &tail, gap, cap).len() <= cap);
        }

        #[test]
        fn the_cap_always_holds(text in "\\PC*", cap in 0usize..300) {
            prop_assert!(cap_feedback(&text, cap, None).len() <= cap);
        }
    }
}
