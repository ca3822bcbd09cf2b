//! The lunation program.

fn main() {
    lunation::mechanism::process::enter_warden_if_asked();
}
