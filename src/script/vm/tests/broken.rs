//! The mistakes that beginners make, each with the message that it must get.
//!
//! The scripts are in `tests/lua/broken`, the messages beside them. `LUNATION_BLESS=1` writes them anew, to be read.

use std::path::Path;

use super::harness::{Case, Outcome};
use crate::world::{ScriptedTurn, ScriptedWorld};

const SCRIPTS: &[&str] = &[
    "async_in_sort",
    "async_in_sort_by_hand",
    "bad_decision",
    "effect_at_load",
    "forgot_local",
    "mutate",
    "typo_reading",
    "undefined_global",
    "unknown_option",
];

#[tokio::test]
async fn each_mistake_gets_its_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lua/broken");
    for name in SCRIPTS {
        let text = std::fs::read_to_string(folder.join(format!("{name}.lua"))).unwrap();
        let message = message(&format!("{name}.lua"), &text).await;
        // On Lua 5.4 a name that nobody declared is found when it is used, not when the script is compiled.
        let own = folder.join(format!("{name}.lua54.txt"));
        let golden = if cfg!(feature = "lua54") && own.exists() { own } else { folder.join(format!("{name}.txt")) };
        if std::env::var("LUNATION_BLESS").is_ok_and(|bless| bless == "1") {
            std::fs::write(&golden, format!("{message}\n")).unwrap();
        }
        let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(message, wanted.trim_end(), "{name}");
    }
}

/// What is said when the script is loaded, or else when it runs.
async fn message(name: &str, text: &str) -> String {
    let case = Case::new().file(name, text);
    let (vm, loaded) = match case.load_file(name) {
        Ok(loaded) => loaded,
        Err(error) => return error.to_string(),
    };
    let world = ScriptedWorld::new([ScriptedTurn::edit("a", "1"), ScriptedTurn::edit("a", "2")])
        .sensor("t", [Some(2), Some(1)])
        .sensor("cargo test", [Some(2), Some(1)]);
    let outcome = Outcome::new(world, case.folder.path());
    match vm.run(&loaded, outcome.run.clone()).await {
        Err(error) => error.to_string(),
        Ok(result) => panic!("{name} ran: {result:?}"),
    }
}
