// A client of the TypeScript SDK, led over stdin, a JSON object a line:
//     {"id": 1, "ask": "tools"}, {"id": 2, "ask": "call", "params": {"name": …, "arguments": …}}, {"cancel": 2}
// It answers {"id": 1, "result": …} or {"id": 2, "error": …}, and first of all {"id": 0, "result": protocol version}.
//
//     node client.mjs v1|v2 auto|legacy URL
//     node client.mjs v1|v2 auto|legacy COMMAND [ARGUMENT…]

import { createInterface } from 'node:readline';

const MODULES = {
  v1: ['sdk/client/index.js', 'sdk/client/stdio.js', 'sdk/client/streamableHttp.js'],
  v2: ['client', 'client/stdio'],
};

const [version, mode, target, ...args] = process.argv.slice(2);
const modules = await Promise.all(MODULES[version].map((name) => import(`@modelcontextprotocol/${name}`)));
const sdk = Object.assign({}, ...modules);

const transport = target.startsWith('http')
  ? new sdk.StreamableHTTPClientTransport(new URL(target))
  : new sdk.StdioClientTransport({ command: target, args });
const client = new sdk.Client({ name: 'journey', version: '1.0.0' }, { versionNegotiation: { mode } });
const underWay = new Map();

const asks = {
  tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: (params, options) =>
    version === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options),
};

async function answer(id, promise) {
  const outcome = await promise.then((result) => ({ result }), (error) => ({ error: String(error) }));
  process.stdout.write(JSON.stringify({ id, ...outcome }) + '\n');
}

await answer(0, client.connect(transport).then(() => client.getNegotiatedProtocolVersion?.() ?? null));

for await (const line of createInterface(process.stdin)) {
  const { id, ask, params, cancel } = JSON.parse(line);
  if (cancel) {
    underWay.get(cancel).abort();
    continue;
  }
  underWay.set(id, new AbortController());
  answer(id, asks[ask](params, { signal: underWay.get(id).signal }));
}
await client.close();
