-- Claude Code, run without a terminal. Made from its documentation; the same line format was run with another agent.
--
-- IS_SANDBOX: as root it refuses --dangerously-skip-permissions unless the environment declares a sandbox. Set it to
-- anything else (env = { IS_SANDBOX = "" }) where that declaration is not wanted.
-- Wordings of limits change every few months: the structured fields come first, and the patterns below are here to be
-- mended.
return {
  name = "claude",
  source = {
    command = {
      "claude", "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions",
      "--no-session-persistence", "--model", "{model}",
    },
  },
  env = { IS_SANDBOX = "1", DISABLE_AUTOUPDATER = "1" },
  prompt_via = "stdin",
  version = { "claude", "--version" },
  install = "npm install -g @anthropic-ai/claude-code",
  parse = {
    json_lines = {
      text = {
        { when = { type = "result" }, text = "result" },
        -- For turns that are cut off. A message of a sub-agent is not the agent's.
        {
          when = { type = "assistant" }, unless = { parent_tool_use_id = "/./" },
          text = "message.content[].text",
        },
      },
      done = { { type = "result", subtype = "success", is_error = false } },
      truncated = {
        { type = "result", subtype = "success", is_error = false, stop_reason = "max_tokens" },
      },
      failed = {
        -- Also with subtype "success" and exit code 0.
        {
          when = { type = "result", is_error = true },
          message = { "error.message", "errors[]", "result", "subtype" },
          status = "api_error_status", final = true,
        },
        {
          when = { type = "result", subtype = "^error" },
          message = { "error.message", "errors[]", "result", "subtype" },
          status = "api_error_status", final = true,
        },
        {
          when = { type = "assistant", error = "/./" }, unless = { parent_tool_use_id = "/./" },
          message = { "message.content[].text", "error" }, code = "error",
        },
        {
          when = { type = "rate_limit_event", ["rate_limit_info.status"] = "rejected" },
          message = { "rate_limit_info.rateLimitType" }, resets_at = "rate_limit_info.resetsAt",
        },
      },
      retry = {
        {
          when = { type = "system", subtype = "api_retry" },
          message = { "error" }, status = "error_status", code = "error",
        },
      },
      codes = {
        authentication_failed = "auth", oauth_org_not_allowed = "auth", account_on_hold = "auth",
        billing_error = "auth", rate_limit = "rate_limited", overloaded = "overloaded",
        server_error = "server",
      },
      usage = {
        -- Input leaves the cache out. The cost is that of the whole process.
        {
          when = { type = "result" },
          input = "usage.input_tokens", cache_read = "usage.cache_read_input_tokens",
          cache_write = "usage.cache_creation_input_tokens", output = "usage.output_tokens",
          cost = "total_cost_usd",
        },
        -- For turns that are cut off: a message comes in several lines that repeat its usage.
        {
          when = { type = "assistant" },
          input = "message.usage.input_tokens", cache_read = "message.usage.cache_read_input_tokens",
          cache_write = "message.usage.cache_creation_input_tokens", output = "message.usage.output_tokens",
          sum = true, id = "message.id",
        },
      },
      session = { { when = { type = "system", subtype = "init" }, text = "session_id" } },
      ignore = { "user", "stream_event" },
    },
  },
  errors = {
    { kind = "rate_limited", pattern = "not your usage limit" },
    {
      kind = "usage_limit", whole_message = true,
      pattern = "You[’']ve (?:hit|reached) your (?:[\\w-]+ ){0,2}limit\\b[^\\n]*",
    },
    {
      kind = "usage_limit", whole_message = true,
      pattern = "(?:Claude (?:AI )?)?usage limit reached\\b[^\\n]*",
    },
    {
      kind = "auth", whole_message = true,
      pattern = "Not logged in[^\\n]*|Invalid API key[^\\n]*|Credit balance is too low|OAuth token (?:revoked|has expired)[^\\n]*",
    },
    { kind = "context_overflow", pattern = "Prompt is too long" },
    { kind = "overloaded", pattern = "Overloaded|\\b529\\b" },
  },
}
