// An MCP server on the TypeScript SDK v2, both eras: `node server.mjs PORT`. Started by test_upstreams_real.py.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';

function server() {
  const made = new McpServer({ name: 'typescript', version: '1' });
  const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
  made.server.registerCapabilities({ tools: { listChanged: false } });
  made.server.setRequestHandler('tools/list', async () => ({
    tools: [{ name: 'shout', description: 'In capitals', inputSchema }],
  }));
  made.server.setRequestHandler('tools/call', async ({ params }) => ({
    content: [{ type: 'text', text: params.arguments.text.toUpperCase() }],
  }));
  return made;
}

createServer(toNodeHandler(createMcpHandler(server))).listen(Number(process.argv[2]), '127.0.0.1');
