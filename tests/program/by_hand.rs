//! Loops by hand: what a script may do between the steps, and what it cannot get around.

use crate::project::Project;

/// A project whose script is a function over a run, with an agent that fixes the bug.
fn project(body: &str) -> Project {
    let project = Project::with_a_failing_test();
    let agent = project.agent("sed -i 's/-/+/' src/calc.sh; echo fixed");
    project.write(
        "loop.lua",
        format!(
            "local ln = require \"lunation\"\nlocal agent = ln.agent {{ \"sh\", \"{agent}\", name = \"fake\" }}\n\
             local tests = ln.sensors {{ \"sh test.sh\" }}\n\nreturn function(run)\n{body}\nend\n"
        ),
    );
    project.commit_all("a loop");
    project
}

#[test]
fn checks_that_held_on_another_tree_verify_nothing() {
    let project = project(
        "  for it in run:iterations { max = 2 } do\n    it:turn(agent, \"x\")\n    it:sense(tests)\n\
         \x20   ln.sh \"echo broken > src/calc.sh\"\n    return it:done \"all green\"\n  end",
    );
    project.lunation(&["run", "--trust"]).exits_with(1).says("nothing verified");
}

#[test]
fn what_changes_after_the_loop_is_told_and_verified_by_nothing() {
    let project = project(
        "  for it in run:iterations { max = 2 } do\n    it:turn(agent, \"x\")\n    it:sense(tests)\n\
         \x20   local result = it:done \"all green\"\n    ln.sh \"echo broken > src/calc.sh\"\n    return result\n  end",
    );
    let answer = project.lunation(&["run", "--trust"]);
    answer.exits_with(1).says("the tree changed after the checks had run").says("nothing verified");
}

#[test]
fn a_formatter_between_turn_and_checks_is_part_of_the_result() {
    let project = project(
        "  for it in run:iterations { max = 2 } do\n    it:turn(agent, \"x\")\n    ln.sh \"echo '# tidy' >> src/calc.sh\"\n\
         \x20   if it:sense(tests).ok then return it:done \"all green\" end\n    it:stall()\n  end",
    );
    project.lunation(&["run", "--trust"]).exits_with(0);
    assert!(project.read("src/calc.sh").ends_with("# tidy\n"));
}

#[test]
fn loops_do_not_nest_and_each_keeps_its_budget() {
    let project = project(
        "  for outer in run:iterations { max = 2, id = \"outer\" } do\n    outer:turn(agent, \"x\")\n    outer:keep()\n\
         \x20   for inner in run:iterations { max = 2, id = \"inner\" } do\n      inner:turn(agent, \"y\")\n      inner:stall()\n\
         \x20     break\n    end\n  end",
    );
    let answer = project.lunation(&["run", "--trust"]);
    answer.exits_with(4).says("another run:iterations has begun since").says("loop.lua:6");
    let started = project.records().iter().filter(|record| record["kind"] == "iteration_started").count();
    assert_eq!(started, 2, "one of each loop");
}

#[test]
fn a_decided_iteration_can_do_nothing_in_the_next_one() {
    let project = project(
        "  local old\n  for it in run:iterations { max = 2 } do\n    if old then old:keep \"not mine\" end\n\
         \x20   old = it\n    it:turn(agent, \"x\")\n    it:stall()\n  end",
    );
    project.lunation(&["run", "--trust"]).exits_with(4).says("loop.lua:8: iteration 1 is over");
}

#[test]
fn a_breaker_leaves_its_diagnosis_where_the_script_wants_it() {
    let project = Project::with_a_failing_test();
    project.write(
        "loop.lua",
        "local ln = require \"lunation\"\nlocal agent = ln.agent { \"sh\", \"-c\", \"exit 3\", name = \"fake\" }\n\
         return function(run)\n  for it in run:iterations { breaker = { failures = 1, diagnosis = \"WHY.md\" } } do\n\
         \x20   it:turn(agent, \"x\")\n    it:stall()\n  end\nend\n",
    );
    project.lunation(&["run", "--trust"]).exits_with(1).says("breaker:failures");
    assert!(project.read("WHY.md").contains("Last turn: fake ended as"), "{}", project.read("WHY.md"));
}

#[test]
fn null_in_a_list_of_the_input_is_a_value_of_its_own() {
    let project = project("  ln.log.info(ln.json.encode(run.input))\n  return run:stop \"looked\"");
    let answer = project.lunation(&["run", "--trust", "--input", "{\"list\":[1,null,3,null],\"none\":null}"]);
    answer.exits_with(1).says("{\"list\":[1,null,3,null]}");
}

#[test]
fn an_error_of_the_script_is_on_standard_error_too() {
    let project = project("  error \"no way\"");
    let answer = project.lunation(&["run", "--trust"]);
    answer.exits_with(4).says("loop.lua:6: no way").complains("error: loop.lua:6: no way");
    project.lunation(&["run", "--trust", "--quiet"]).exits_with(4).complains("error: loop.lua:6: no way");
    let json = project.lunation(&["run", "--trust", "--json"]);
    json.exits_with(4);
    assert_eq!(json.err.matches("loop.lua:6: no way").count(), 1, "told once\n{}", json.err);
}
