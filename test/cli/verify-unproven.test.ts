/** `sluice verify` ends well only where the content was proven: a gateway that tells nothing to check it by proves nothing. */
import { createHash } from 'node:crypto'
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
