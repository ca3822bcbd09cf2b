-- pi (badlogic's coding agent), run without a terminal. Measured with 1.6.0; needs 1.x.
--
-- On Node older than 22.19 npm installs 0.74 without a word; that one has no `agent_settled` line, so its turns end as
-- no_terminal_event. pi has no permissions to ask for. Its exit code is 0 whatever happened.
return {
  name = "pi",
  source = { command = { "pi", "-p", "--mode", "json", "--no-session", "--model", "{model}" } },
  env = { PI_OFFLINE = "1", PI_TELEMETRY = "0" },
  prompt_via = "stdin",
  version = { "pi", "--version" },
  install = "npm install -g @earendil-works/pi-coding-agent   (needs Node 22.19 or newer)",
  parse = {
    json_lines = {
      -- The last message counts even when it says nothing: what it said before it called a tool is not its answer.
      text = {
        { when = { type = "message_end", ["message.role"] = "assistant" }, text = "message.content[].text" },
      },
      ended = { { type = "agent_settled", aborted = false } },
      well = {
        { type = "message_end", ["message.role"] = "assistant", ["message.stopReason"] = "stop" },
        { type = "message_end", ["message.role"] = "assistant", ["message.stopReason"] = "toolUse" },
      },
      truncated = {
        { type = "message_end", ["message.role"] = "assistant", ["message.stopReason"] = "length" },
      },
      failed = {
        {
          -- It may be tried again, so it is not final.
          when = { type = "message_end", ["message.role"] = "assistant", ["message.stopReason"] = "^(error|aborted)$" },
          message = { "message.errorMessage", "message.stopReason" },
        },
        { when = { type = "auto_retry_end", success = false }, message = { "finalError" } },
        { when = { type = "agent_settled", aborted = true }, final = true },
      },
      retry = { { when = { type = "auto_retry_start" }, message = { "errorMessage" } } },
      usage = {
        {
          -- Input leaves the cache out. Prices come from its models file; an unknown price shows as 0.
          when = { type = "message_end", ["message.role"] = "assistant" },
          input = "message.usage.input", cache_read = "message.usage.cacheRead",
          cache_write = "message.usage.cacheWrite", output = "message.usage.output",
          reasoning = "message.usage.reasoning", cost = "message.usage.cost.total", sum = true,
        },
      },
      session = { { when = { type = "session" }, text = "id" } },
      ignore = {
        "message_update", "message_start", "turn_end", "agent_end",
        "tool_execution_start", "tool_execution_update", "tool_execution_end",
      },
    },
  },
  errors = {
    -- Messages are "<status>: <the provider's JSON>".
    { kind = "usage_limit", pattern = "insufficient_quota|usage_limit_reached" },
    { kind = "auth", pattern = "no models available|no api key found|/login to log into a provider" },
    { kind = "network", pattern = "^terminated\\b" },
  },
}
