/** `sluice verify` ends well only where the content was proven: a gateway that tells nothing to check it by proves nothing. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type ServedAnswer, serving } from '../client/rig.js'
import { signed } from '../devnet/posting.js'
import { sluice } from '../flow/running.js'
import { weave } from '../source/weave.js'

async function verified(t: Test, id: string, raw: ServedAnswer, tx: ServedAnswer | undefined) {
  const bytes = raw.bytes ?? Buffer.alloc(0)
  const headers = {
    ...raw.headers,
    'content-digest': `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`,
  }
  const { url } = await serving(t, ({ path }) => {
    if (path === `/raw/${id}`) return { ...raw, headers }
    return path === `/tx/${id}` ? tx : undefined
  })
  return sluice(['verify', id, '--gateway', url, '--node', url])
}

t.test('what nobody accounts for', async (t) => {
  const outcome = await verified(t, 'A'.repeat(43), { bytes: Buffer.from('anything') }, undefined)
  t.match(outcome, { code: 4, out: /NO +content/ }, 'no root is named, and no node has it as a transaction')
})

t.test('a header of any length is not read', async (t) => {
  const lines = {
    'x-gateway-root-transaction-id': `${'B'.repeat(42)}A`,
    'x-gateway-root-data-item-offset': '0',
    'x-gateway-root-data-offset': String(2 ** 40),
  }
  const outcome = await verified(
    t,
    'A'.repeat(43),
    { bytes: Buffer.from('anything'), headers: lines },
    undefined,
  )
  t.match(outcome, { code: 4, out: /NO +content +no item has a header of 1099511627776 bytes/ })
})

t.test('a transaction of format 1', async (t) => {
  const { payer } = await weave(t)
  const one = await signed(payer, { data: 'the owner wrote this' }, (tx) => {
    Object.assign(tx, { format: 1, data_root: '', data_size: String(tx.data.length) })
  })
  const outcome = await verified(
    t,
    one.id,
    { bytes: Buffer.from('and not this') },
    { json: { ...one.toJSON(), data_root: '' } },
  )
  t.match(outcome, { code: 4, out: /yes +transaction signature +format 1[\s\S]*NO +content/ })
})

t.test('answers without an end are not read to one', async (t) => {
  const piece = Buffer.alloc(65_536, 'words of the gateway. ')
  const sentMax = 256 * 2 ** 20
  let sent = 0
  const endless = async (response: ServerResponse, status: number): Promise<void> => {
    response.writeHead(status)
    while (!response.destroyed && sent < sentMax) {
      sent += piece.length
      if (!response.write(piece)) await Promise.race([once(response, 'drain'), once(response, 'close')])
    }
    response.end()
  }
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/raw/A') === true) void endless(response, 404)
    else if (request.url?.startsWith('/tx/') === true) void endless(response, 200)
    else response.end('content')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const run = (id: string) => sluice(['verify', `${id.repeat(42)}A`, '--gateway', url, '--node', url])
  t.match(await run('A'), { code: 3, err: /answered 404: words of the gateway/ })
  t.ok(sent < 2 ** 25, `${sent} bytes of an error page`)
  sent = 0
  t.match(await run('B'), { code: 4, out: /NO +content +the node .* sends more than a transaction/ })
  t.ok(sent < 2 ** 26, `${sent} bytes of a transaction`)
})
