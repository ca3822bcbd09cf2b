//! The lunation program.

fn main() {}
