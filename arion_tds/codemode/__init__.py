"""Running a model's TypeScript in a sandbox whose host calls are tool calls."""
