"""Running a model's TypeScript in a sandbox whose host calls are tool calls.

`pool` keeps single-use sandboxes ready (`deno` makes them), `run` drives one execution, `bridge` answers its host
calls; `wrap`, `scan`, `protocol`, `stubs` and `limits` are pure. Nothing here knows a View or a front:
`arion_tds.executing` joins them.
"""
