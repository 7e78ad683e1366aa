// A conversation of the TypeScript SDK's client with a gateway: node client.mjs URL legacy|modern TOOL ARGUMENTS
// Out: one JSON object per line. First what was negotiated, listed and called; then, when told that the list changed,
// the list as it is then. Ends after that. Run by test_node_clients.py.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, era, tool, args] = process.argv.slice(2);
const say = (value) => console.log(JSON.stringify(value));

const changed = Promise.withResolvers();
const client = new Client(
  { name: "e2e", version: "1" },
  {
    versionNegotiation: { mode: era === "legacy" ? "legacy" : "auto" },
    listChanged: {
      tools: { debounceMs: 0, onChanged: (error, tools) => (error ? changed.reject(error) : changed.resolve(tools)) },
    },
  },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
say({
  version: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion(),
  tools: tools.map((one) => one.name),
  result,
});
say({ changed: (await changed.promise).map((one) => one.name) });
await client.close();
