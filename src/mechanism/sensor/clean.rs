//! Lines as a person would see them on a terminal: without its codes, and progress bars in their last state.

/// The longest piece of a line that is held; longer lines come in several pieces.
pub(super) const LONGEST_PIECE: usize = 64 * 1024;

/// Cuts one stream into clean lines.
#[derive(Debug, Default)]
pub(super) struct LineCleaner {
    line: Vec<u8>,
    /// The last byte was a carriage return: what is held is overwritten unless a line feed follows.
    returned: bool,
}

impl LineCleaner {
    /// Takes the next bytes and calls `each` with every line, or piece of a long line; the flag says whether it ends
    /// there.
    pub(super) fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, bool)) {
        for &byte in bytes {
            match byte {
                b'\n' => self.end_line(each),
                b'\r' => self.returned = true,
                _ => self.put(byte, each),
            }
        }
    }

    /// The stream ended.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(&str, bool)) {
        if !self.line.is_empty() {
            self.end_line(each);
        }
    }

    fn put(&mut self, byte: u8, each: &mut dyn FnMut(&str, bool)) {
        if self.returned {
            self.line.clear();
            self.returned = false;
        }
        self.line.push(byte);
        // Cut only where a character begins; terminal codes that straddle the cut are left as they are.
        let is_border = byte & 0xc0 != 0x80;
        if self.line.len() > LONGEST_PIECE && is_border {
            self.line.pop();
            each(&clean(&self.line), false);
            self.line.clear();
            self.line.push(byte);
        }
    }

    fn end_line(&mut self, each: &mut dyn FnMut(&str, bool)) {
        each(&clean(&self.line), true);
        self.line.clear();
        self.returned = false;
    }
}

fn clean(line: &[u8]) -> String {
    anstream::adapter::strip_str(&String::from_utf8_lossy(line)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(chunks: &[&[u8]]) -> Vec<(String, bool)> {
        let mut cleaner = LineCleaner::default();
        let mut lines = Vec::new();
        let mut each = |line: &str, ends: bool| lines.push((line.to_owned(), ends));
        chunks.iter().for_each(|chunk| cleaner.push(chunk, &mut each));
        cleaner.finish(&mut each);
        lines
    }

    #[test]
    fn a_progress_bar_is_its_last_state() {
        let lines = cleaned(&[b"10%\r55%\r", b"100%\r\nnext\r\n\nlast"]);
        let texts: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["100%", "next", "", "last"]);
    }

    #[test]
    fn an_endless_progress_bar_is_not_held() {
        let mut cleaner = LineCleaner::default();
        for n in 0..100_000 {
            cleaner.push(format!("\r{n} of many").as_bytes(), &mut |_, _| panic!("no line ended"));
            assert!(cleaner.line.len() < 30);
        }
    }

    #[test]
    fn colours_go() {
        assert_eq!(cleaned(&[b"\x1b[1;31mFAIL\x1b[0m\ttwo\n"]), [("FAIL\ttwo".to_owned(), true)]);
    }

    #[test]
    fn a_long_line_comes_in_pieces_at_character_borders() {
        let line = "ä".repeat(200_000);
        let lines = cleaned(&[line.as_bytes(), b"\n"]);
        assert!(lines.iter().all(|(piece, _)| piece.len() <= LONGEST_PIECE && !piece.contains('\u{fffd}')));
        assert_eq!(lines.iter().map(|(piece, _)| piece.as_str()).collect::<String>(), line);
        assert_eq!(lines.iter().filter(|(_, ends)| *ends).count(), 1);
    }
}
