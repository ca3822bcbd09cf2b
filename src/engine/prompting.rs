//! The prompt of an iteration: the fixed template and the data that is put into it.
//!
//! Owns the standard slots and their caps. Must not know how a file is read: it asks the world.

use std::sync::Arc;

use super::error::EngineError;
use super::governor::{NOTES_BYTES, TRIED_BYTES, WINDOW_BYTES};
use super::session::Session;
use crate::policy::{
    LoopSpec, Policy, PromptSource, RenderedPrompt, STANDARD_SLOTS, Slot, SlotSource, SlotSpec, cap_feedback,
    read_prompt, render_prompt,
};
use crate::world::World;

/// Bytes of the output of context commands that a prompt may show.
const CONTEXT_BYTES: usize = 16 << 10;

/// Runs the context commands, once before the first iteration. A request to end now ends them too.
pub(super) async fn gather_context(
    world: &Arc<dyn World>,
    session: &Session,
    spec: &LoopSpec,
) -> Result<String, EngineError> {
    let mut context = String::new();
    for command in &spec.context {
        let result = world.command(command, session.asked_now()).await?;
        context.push_str(&format!("$ {}\n{}{}", command.line.show(), result.stdout, result.stderr));
        if !result.ok {
            context.push_str(&format!("(exit code {})\n", result.code));
        }
    }
    Ok(cap_feedback(&context, CONTEXT_BYTES, None))
}

/// The prompt of the iteration that is open.
pub(super) async fn compose(
    session: &mut Session,
    spec: &LoopSpec,
    policy: &dyn Policy,
    context: &str,
) -> Result<RenderedPrompt, EngineError> {
    let template = match &spec.prompt {
        PromptSource::Text { template, .. } => template.clone(),
        PromptSource::Function => {
            let text = policy.prompt(&session.observe()).await?;
            read_prompt("the prompt that the function returned", text.as_bytes())
                .map_err(|error| EngineError::Misuse(error.to_string()))?
        }
    };
    let mut slots = Vec::new();
    for slot in spec.slots.iter().filter(|slot| slot.source != SlotSource::Standard) {
        let text = fill(session, policy, slot).await?;
        slots.push(Slot { name: slot.name.clone(), text, max_bytes: slot.max_bytes, keep: slot.keep });
    }
    for name in STANDARD_SLOTS {
        let (text, max_bytes) = match name {
            "context" => (context.to_owned(), CONTEXT_BYTES),
            "feedback" => (session.governor.feedback(), spec.feedback_bytes),
            "tried" => (session.governor.tried(), TRIED_BYTES),
            "window" => (session.governor.window(), WINDOW_BYTES),
            _ => (session.governor.take_notes(), NOTES_BYTES),
        };
        let mut slot = Slot::new(name, text, max_bytes);
        if let Some(written) = spec.slots.iter().find(|written| written.name == name) {
            slot.max_bytes = written.max_bytes;
            slot.keep = written.keep;
        }
        slots.push(slot);
    }
    Ok(render_prompt(&template, &slots))
}

async fn fill(session: &Session, policy: &dyn Policy, slot: &SlotSpec) -> Result<String, EngineError> {
    // More than the cap is read, so that what was cut can be told.
    let most = slot.max_bytes.saturating_mul(64).max(1 << 20);
    Ok(match &slot.source {
        SlotSource::Standard => String::new(),
        SlotSource::Text(text) => text.clone(),
        SlotSource::File(path) => session.world().peek(path, most).await?.unwrap_or_default(),
        SlotSource::Glob(pattern) => {
            let mut all = String::new();
            for path in session.world().glob(pattern).await? {
                let Some(text) = session.world().peek(&path, most).await? else { continue };
                all.push_str(&format!("## {path}\n{}\n", text.trim_end_matches('\n')));
                if all.len() > most {
                    break;
                }
            }
            all
        }
        SlotSource::Function => policy.slot(&slot.name, &session.observe()).await?,
    })
}
