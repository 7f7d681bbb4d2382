/**
 * Bundles that anybody can post, with a stranger's header in front of other bytes, against the whole program and the client: the
 * forged one in the chain before the genuine one, and behind it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Finding, ProvingFetcher, type ProvingFetchOptions } from '../../src/client/fetch/index.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { bent, codeOf } from '../client/rig.js'
import { forged, forgedTags } from '../source/forged.js'
import { bundleTags, item, type MadeItem } from '../source/weave.js'
import { type Payer, payerAt } from './payer.js'
import { until } from './published.js'
import { type Running, run } from './running.js'

/** Longer than what readers are told of only when it is whole. */
const sizeBytes = 2_100_000
const range = { start: 150_000, end: 150_999 }
const rangeLine = { range: `bytes=${range.start}-${range.end}` }

let running: Running
let payer: Payer

interface Answered {
  readonly status: number
  readonly bytes: Buffer | 'broken'
  readonly headers: Headers
}

async function ask(path: string, headers: Record<string, string> = {}): Promise<Answered> {
  const answer = await fetch(`${running.urls.gateway}${path}`, { headers })
  const bytes = await answer.arrayBuffer().then(
    (whole) => Buffer.from(whole),
    () => 'broken' as const,
  )
  return { status: answer.status, bytes, headers: answer.headers }
}

async function indexed(id: string): Promise<{ bundledIn?: { id: string }; data?: { size: string } } | null> {
  const query = `{ transaction(id: "${id}") { bundledIn { id } data { size } } }`
  const answer = await fetch(`${running.urls.gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const found = (await answer.json()) as { data: { transaction: { bundledIn?: { id: string } } | null } }
  return found.data.transaction
}

/** Posts a bundle, and waits until it was opened: the last item in it is found. */
async function post(items: readonly MadeItem[]): Promise<string> {
  const last = item(randomBytes(10))
  const root = await payer.post(encodeBundle([...items, last]), bundleTags)
  await until('a bundle is opened', async () => ((await indexed(last.id)) === null ? undefined : true))
  return root
}

/** Whatever is asked, no answer has other bytes than the owner's under the id; where `isThere` it has those. */
async function isGenuine(
  t: Test,
  what: string,
  { id, payload }: MadeItem,
  roots: readonly string[],
  isThere: boolean,
) {
  const hints = roots.map((root) => ({ 'x-gateway-root-transaction-id': root }))
  const whole = Buffer.from(payload)
  for (const hint of [{}, ...hints])
    for (const part of [{}, rangeLine]) {
      const { status, bytes, headers } = await ask(`/raw/${id}`, { ...hint, ...part })
      const found = `${what}: ${JSON.stringify({ ...hint, ...part })}: ${status}`
      if (isThere && Object.keys(hint).length === 0) t.ok(status === 200 || status === 206, found)
      if (status >= 400) continue
      const { start = 0, end = whole.length - 1 } = rangeOf(headers)
      t.ok(bytes !== 'broken' && bytes.equals(whole.subarray(start, end + 1)), found)
      t.equal(headers.get('content-type'), 'image/png', found)
    }
}

function rangeOf(headers: Headers): { start?: number; end?: number } {
  const [, start, end] = /^bytes (\d+)-(\d+)\//.exec(headers.get('content-range') ?? '') ?? []
  return start === undefined ? {} : { start: Number(start), end: Number(end) }
}

/** A gateway that names another root, and has for the id what lies there. */
function naming(t: Test, root: string, { id, payload }: MadeItem): Promise<string> {
  return bent(t, running.urls.gateway ?? '', ({ path, headers }, upstreamAnswer) => {
    if (path !== `/raw/${id}`) return upstreamAnswer
    const [, from = '0', to = String(payload.length - 1)] =
      /bytes=(\d+)-(\d*)/.exec(headers.range ?? '') ?? []
    const lines = { 'content-type': 'image/png', 'x-gateway-root-transaction-id': root }
    const isPart = headers.range !== undefined
    return {
      status: isPart ? 206 : 200,
      headers: isPart ? { ...lines, 'content-range': `bytes ${from}-${to}/${payload.length}` } : lines,
      bytes: payload.subarray(Number(from), Number(to) + 1),
    }
  })
}

async function read(
  { id }: MadeItem,
  gatewayUrls: readonly string[],
  options: Partial<ProvingFetchOptions> & { readonly isWhole?: boolean } = {},
): Promise<{ bytes: Buffer; by: string | null; findings: Finding[] }> {
  const findings: Finding[] = []
  const fetcher = new ProvingFetcher({ gatewayUrls, onFinding: (one) => findings.push(one), ...options })
  const response = await fetcher.fetch(id, options.isWhole ? { holdBytesMax: 1000 } : { range })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { bytes, by: response.headers.get('x-verified'), findings }
}

/** The client gives out nothing of a forged item, and the owner's bytes where an honest gateway is asked, too. */
async function isProven(t: Test, genuine: MadeItem, fake: MadeItem, root: string, isThere: boolean) {
  const liar = await naming(t, root, fake)
  for (const options of [{}, { block: 'require' }, { isWhole: true }] as const) {
    t.match(
      await codeOf(read(genuine, [liar], options)),
      /untrue|not-found/,
      `alone: ${JSON.stringify(options)}`,
    )
    if (!isThere) continue
    const { bytes, by, findings } = await read(genuine, [liar, running.urls.gateway ?? ''], options)
    const payload = Buffer.from(genuine.payload)
    const { start, end } = 'isWhole' in options ? { start: 0, end: payload.length } : range
    t.ok(bytes.equals(payload.subarray(start, end + 1)), JSON.stringify(options))
    t.equal(by, 'owner')
    t.match(findings, [{ gateway: liar, error: { code: 'untrue' } }], JSON.stringify(options))
  }
}

t.test('a copied header in front of other bytes', async (t) => {
  running = await run(t, join(t.testdir(), 'data'), {
    SERVICES: 'gateway',
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '0',
  })
  payer = await payerAt(running.urls.devnet ?? '')
  const early = item(randomBytes(sizeBytes), { 'Content-Type': 'image/png' })
  const late = item(randomBytes(200_000), { 'Content-Type': 'image/png' })

  await t.test('the forged bundle is in the chain first, with another owner and other tags', async (t) => {
    const fake = forgedTags(early, item(randomBytes(sizeBytes), { 'Content-Type': 'text/html' }))
    const bad = await post([fake])
    t.equal(await indexed(early.id), null, 'no index has it')
    await isGenuine(t, 'nobody has the genuine one', early, [bad], false)
    await isProven(t, early, fake, bad, false)
    const right = await post([early])
    await isGenuine(t, 'the genuine one came later', early, [bad], true)
    t.match(await indexed(early.id), { bundledIn: { id: right }, data: { size: String(sizeBytes) } })
  })

  await t.test('the genuine bundle is in the chain first, and its item in use', async (t) => {
    const right = await post([late])
    await isGenuine(t, 'alone', late, [], true)
    const fake = forged(late, randomBytes(200_000))
    const bad = await post([fake])
    await isGenuine(t, 'the forged one came later', late, [bad], true)
    t.match(await indexed(late.id), { bundledIn: { id: right }, data: { size: '200000' } })
    const { headers } = await ask(`/raw/${late.id}`)
    t.equal(headers.get('x-gateway-verified') ?? headers.get('x-ar-io-verified'), 'true')
    t.equal(headers.get('x-gateway-root-transaction-id') ?? headers.get('x-ar-io-root-transaction-id'), right)
    t.equal(
      headers.get('content-digest'),
      `sha-256=:${createHash('sha256').update(late.payload).digest('base64')}:`,
    )
    await isProven(t, late, fake, bad, true)
  })

  t.equal(await running.stop(), 0)
})
