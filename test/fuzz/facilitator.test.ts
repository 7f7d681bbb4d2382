import { equal, ok } from 'node:assert/strict'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Facilitator } from '../../src/admission/facilitator.js'
import { usdcOf } from '../../src/admission/usdc.js'
import { type Call, serveWeb } from '../admission/web.js'
import { fc } from '../property.js'

const payer = `0x${'ab'.repeat(20)}`
const hash = `0x${'1C'.repeat(32)}`
const usdc = usdcOf['base-sepolia']
const numRuns = 400

/** Every word that an answer can hold, as it should be and as it should not. */
const odd = fc.constantFrom<unknown>(
  undefined,
  null,
  '',
  0,
  1,
  -1,
  'true',
  [],
  {},
  [hash],
  '\ud800',
  'x'.repeat(5000),
)
const oneOf = (...good: unknown[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...good) }, { weight: 1, arbitrary: odd })
const body = fc.record(
  {
    success: oneOf(true, false),
    isValid: oneOf(true, false),
    transaction: oneOf(hash, hash.toLowerCase(), hash.slice(2), `${hash}00`),
    txHash: oneOf(hash),
    payer: oneOf(payer, payer.toUpperCase().replace('0X', '0x'), `0x${'cd'.repeat(20)}`),
    network: oneOf('base-sepolia', 'eip155:84532', 'base', 'eip155:8453'),
    errorReason: oneOf('insufficient_funds', 'settlement_pending', 'http://node:8545 said no\n at line 3'),
    invalidReason: oneOf('insufficient_funds', '<script>'),
    kinds: oneOf(
      [{ x402Version: 1, scheme: 'exact', network: 'base-sepolia' }],
      [null, 7, 'x', { x402Version: 2 }],
    ),
    extensions: odd,
  },
  { requiredKeys: [] },
)
const status = fc.constantFrom(200, 200, 200, 201, 204, 301, 400, 402, 404, 408, 409, 425, 429, 500, 502, 503)
/** How the answer is written: rightly, cut, as something else, as a list, with words around it, or not at all. */
const manner = fc.constantFrom(
  'json',
  'json',
  'json',
  'json',
  'cut',
  'html',
  'list',
  'mark',
  'reset',
  'short',
  'latin',
)

type Answer = readonly [status: number, body: object, manner: string]

function write({ response }: Call, [status, body, manner]: Answer): void {
  const text = JSON.stringify(body)
  if (manner === 'reset') return void response.destroy()
  response.setHeader('content-type', manner === 'html' ? 'text/html' : 'application/json')
  if (manner === 'short') {
    response.writeHead(status, { 'content-length': text.length + 10 })
    response.write(text)
    return void response.destroy()
  }
  response.writeHead(status)
  if (manner === 'cut') response.end(text.slice(0, -1))
  else if (manner === 'html') response.end(`<html>${text}</html>`)
  else if (manner === 'list') response.end(`[${text}]`)
  else if (manner === 'mark') response.end(`\ufeff${text}`)
  else response.end(manner === 'latin' ? Buffer.from(`${text.slice(0, -1)}, "é": 1}`, 'latin1') : text)
}

/** One answer of each kind, so that none is left to chance. */
const examples: [number, object, string][] = [
  [200, { success: true, transaction: hash, payer, network: 'base-sepolia' }, 'json'],
  [200, { success: false, errorReason: 'insufficient_funds' }, 'json'],
  [200, { success: false, errorReason: 'settlement_pending', transaction: hash }, 'json'],
  [400, {}, 'html'],
  [500, {}, 'reset'],
]

t.test('whatever a facilitator answers, a payment counts only where the answer states success', async (t) => {
  let now: Answer = [200, {}, 'json']
  const { url } = await serveWeb(t, (call) => write(call, now))
  const options = { url, usdc, verifyMs: 2000, settleMs: 2000, connectionsMax: 4 }
  const facilitator = new Facilitator(options, systemClock, silentLog)
  t.teardown(() => facilitator.close())
  const counts = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(status, body, manner, async (status, body, manner) => {
      now = [status, body, manner]
      const sent: Partial<Record<string, unknown>> = status === 204 ? {} : JSON.parse(JSON.stringify(body))
      const isRead = ['json', 'latin'].includes(manner)
      const settled = await facilitator.settle('{}', payer)
      counts.set(settled.result, (counts.get(settled.result) ?? 0) + 1)
      if (settled.result === 'settled') {
        ok(isRead && status === 200 && sent.success === true)
        equal(settled.transaction, hash.toLowerCase())
        ok(['base-sepolia', 'eip155:84532', '', null, undefined].includes(sent.network as string))
        ok(!String(sent.payer).includes('cd'))
      }
      if (settled.result === 'refused') {
        ok(sent.success === false && status < 500)
        ok(/^[a-z0-9_]+$/.test(settled.reason), settled.reason)
      }
      // Only a plain no means that nothing can have moved.
      const isNo = [401, 403, 404, 405, 411, 413, 415, 429].includes(status)
      if (settled.result === 'unrequested')
        ok(isNo || (status === 400 && sent.errorType === 'invalid_request'))
      if (settled.result === 'refused' && settled.isClear) ok(!/unexpected|0x/.test(JSON.stringify(sent)))
      const verified = await facilitator.verify('{}', payer)
      if (verified.verdict === 'valid') ok(isRead && status === 200 && sent.isValid === true)
      if (verified.verdict === 'invalid') ok(sent.isValid === false && /^[a-z0-9_]+$/.test(verified.reason))
      const kinds = await facilitator.supported()
      ok(kinds === undefined || kinds.every((kind) => kind === 1 || kind === 2))
    }),
    { numRuns, examples },
  )
  for (const result of ['settled', 'refused', 'pending', 'unrequested', 'nothing']) {
    t.ok((counts.get(result) ?? 0) > 0, `${result}: ${counts.get(result)}`)
  }
})

t.test('answers of facilitators in use are understood', async (t) => {
  let now: Answer = [200, {}, 'json']
  const { url } = await serveWeb(t, (call) => write(call, now))
  const options = { url, usdc, verifyMs: 2000, settleMs: 2000, connectionsMax: 4 }
  const facilitator = new Facilitator(options, systemClock, silentLog)
  t.teardown(() => facilitator.close())
  const good = { result: 'settled', transaction: hash.toLowerCase() }
  const table: [number, object, object][] = [
    [200, { success: true, transaction: hash, network: 'base-sepolia', payer }, good],
    [
      200,
      { success: true, transaction: hash, network: 'eip155:84532', payer, amount: '1000', extensions: {} },
      good,
    ],
    [200, { success: true, transaction: hash, network: '', payer: null, errorReason: null }, good],
    [200, { success: true, txHash: hash, networkId: '84532', error: null }, good],
    [400, { error: 'Timed out while waiting for transaction' }, { result: 'nothing' }],
    [422, { error: 'no' }, { result: 'nothing' }],
    [
      200,
      { success: false, errorReason: 'settle_exact_node_failure', transaction: hash },
      { result: 'refused', reason: 'unexpected_settle_error', isClear: false },
    ],
    [200, { success: false, errorReason: 'transaction_failed', transaction: '' }, { isClear: false }],
    [200, { success: false, errorReason: 'insufficient_funds', transaction: hash }, { isClear: false }],
    [
      400,
      { success: false, errorReason: 'insufficient_funds', transaction: '' },
      { result: 'refused', isClear: true },
    ],
    [
      402,
      { success: false, errorReason: 'insufficient_funds', payer },
      { result: 'refused', reason: 'insufficient_funds' },
    ],
    [
      400,
      { errorType: 'invalid_request', errorMessage: 'no', correlationId: '1' },
      { result: 'unrequested' },
    ],
    [429, { errorType: 'rate_limit_exceeded' }, { result: 'unrequested' }],
    [409, { error: 'this payment is being settled' }, { result: 'nothing' }],
    [200, { success: false, errorReason: 'settlement_pending', transaction: hash }, { result: 'pending' }],
    [500, { success: false, errorReason: 'unexpected_settle_error' }, { result: 'nothing' }],
    [200, { success: true, transaction: '' }, { result: 'nothing' }],
  ]
  for (const [status, body, expected] of table) {
    now = [status, body, 'json']
    t.match(await facilitator.settle('{}', payer), expected, JSON.stringify(body))
  }
})
