//! Questions over HTTP, with bounds.

use std::collections::BTreeMap;
use std::time::Duration;

/// The longest answer that is read, in bytes.
const MOST_ANSWER: u64 = 32 << 20;

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Asks by GET and waits at most so long. Blocks.
///
/// # Errors
/// Says why there is no answer.
pub(super) fn get(
    url: &str,
    query: &[(&str, String)],
    headers: &BTreeMap<String, String>,
    limit: Duration,
) -> Result<Answer, String> {
    // No proxy: nothing of the surroundings decides where a question goes.
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(limit))
        .http_status_as_error(false)
        .proxy(None)
        .build()
        .into();
    let mut request = agent.get(url);
    for (name, value) in query {
        request = request.query(*name, value);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let mut response = request.call().map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let body = response
        .body_mut()
        .with_config()
        .limit(MOST_ANSWER)
        .lossy_utf8(true)
        .read_to_string()
        .map_err(|error| error.to_string())?;
    Ok(Answer { status, body })
}

/// True when a service of this machine answers on the port and path with a status below 400. Blocks, at most so long.
pub fn is_served(port: u16, path: &str, limit: Duration) -> bool {
    get(&format!("http://127.0.0.1:{port}{path}"), &[], &BTreeMap::new(), limit).is_ok_and(|answer| answer.status < 400)
}
