-- OpenAI's Codex, run without a terminal. Measured with 0.171.0.
--
-- Without the last three settings it waits some seconds for its telemetry when it leaves, and asks a public
-- host for plugins. It is not asked to guard itself: the host fences, guards and reaps. It commits nothing by itself.
return {
  name = "codex",
  source = {
    command = {
      "codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check",
      "--dangerously-bypass-approvals-and-sandbox", "-m", "{model}",
      "-c", "analytics.enabled=false", "--disable", "plugins", "--disable", "apps", "-",
    },
  },
  prompt_via = "stdin",
  version = { "codex", "--version" },
  install = "npm install -g @openai/codex",
  parse = {
    json_lines = {
      text = {
        { when = { type = "item.completed", ["item.type"] = "agent_message" }, text = "item.text" },
      },
      done = { { type = "turn.completed" } },
      failed = {
        { when = { type = "turn.failed" }, message = { "error.message" }, final = true },
        { when = { type = "error" }, message = { "message" } },
      },
      -- An item of type "error" is only a warning, so no rule is about it.
      retry = { { when = { type = "error", message = "^Reconnecting" }, message = { "message" } } },
      usage = {
        {
          -- Sum over the calls of the turn; input counts cached tokens, output counts reasoning.
          when = { type = "turn.completed" },
          input = "usage.input_tokens", cache_read = "usage.cached_input_tokens",
          cache_write = "usage.cache_write_input_tokens", output = "usage.output_tokens",
          reasoning = "usage.reasoning_output_tokens", input_includes_cache = true,
        },
      },
      session = { { when = { type = "thread.started" }, text = "thread_id" } },
      ignore = { "item.started", "item.updated" },
    },
  },
  errors = {
    -- "try again at 7:11 PM." is local time, with a date only when it is not today.
    { kind = "usage_limit", pattern = "hit your usage limit|usage_limit_reached" },
    { kind = "context_overflow", pattern = "ran out of room in the model's context window" },
    { kind = "overloaded", pattern = "currently experiencing high demand" },
    { kind = "network", pattern = "stream disconnected before completion" },
    { kind = "auth", pattern = "refresh token|please log out and sign in|codex login" },
  },
}
