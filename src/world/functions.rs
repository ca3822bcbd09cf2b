//! Agents and sensors that an embedding program brings as functions instead of processes.

use std::future::Future;
use std::path::PathBuf;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::policy::Usage;

/// What a function is told.
#[derive(Debug, Clone)]
pub struct FunctionContext {
    /// Root of the workspace.
    pub workspace: PathBuf,
    /// Id of the run.
    pub run: String,
    /// Fires when the run ends from outside; a function that goes on after it is abandoned.
    pub cancel: CancellationToken,
}

/// What an agent function answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionTurn {
    /// The final message; an empty one is an empty answer.
    pub text: String,
    /// Tokens and cost; unknown by default.
    pub usage: Usage,
}

impl FunctionTurn {
    /// A final message with unknown usage.
    pub fn text(text: impl Into<String>) -> FunctionTurn {
        FunctionTurn { text: text.into(), usage: Usage::default() }
    }
}

/// What a sensor function answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionReading {
    /// Failing items; 0 is passed.
    pub failing: u64,
    /// A score; higher is better.
    pub score: Option<f64>,
    /// What the next prompt may show.
    pub feedback: String,
}

/// An agent of the embedding program. An error is the outcome `agent_error`, with its whole chain as the message.
#[async_trait]
pub trait AgentFunction: Send + Sync {
    /// One turn.
    async fn turn(&self, context: FunctionContext, prompt: String) -> anyhow::Result<FunctionTurn>;
}

#[async_trait]
impl<F, Fut> AgentFunction for F
where
    F: Fn(FunctionContext, String) -> Fut + Send + Sync,
    Fut: Future<Output = anyhow::Result<FunctionTurn>> + Send,
{
    async fn turn(&self, context: FunctionContext, prompt: String) -> anyhow::Result<FunctionTurn> {
        self(context, prompt).await
    }
}

/// A sensor of the embedding program. An error is a broken reading.
#[async_trait]
pub trait SensorFunction: Send + Sync {
    /// One reading.
    async fn read(&self, context: FunctionContext) -> anyhow::Result<FunctionReading>;
}

#[async_trait]
impl<F, Fut> SensorFunction for F
where
    F: Fn(FunctionContext) -> Fut + Send + Sync,
    Fut: Future<Output = anyhow::Result<FunctionReading>> + Send,
{
    async fn read(&self, context: FunctionContext) -> anyhow::Result<FunctionReading> {
        self(context).await
    }
}
