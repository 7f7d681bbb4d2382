import t, { type Test } from 'tap'
import { type Finding, ProvingFetcher, type ProvingFetchOptions } from '../../src/client/fetch/index.js'
import { eventually } from '../eventually.js'
import { type Running, run, seeded } from '../flow/running.js'
import { type Bend, bent, codeOf, type ServedAnswer } from './rig.js'

let running: Running

const honest = (): string => running.urls.gateway as string
const nodeUrl = (): string => running.urls.devnet as string
const jsonAt = async (url: string): Promise<Record<string, unknown>> =>
  (await (await fetch(url)).json()) as Record<string, unknown>

const range = { start: 500_000, end: 900_000 }

/** What a reader of a range gets: the bytes, and the block that it was proven by. */
async function read(
  id: string,
  gatewayUrls: readonly string[],
  options: Partial<ProvingFetchOptions> = {},
): Promise<{ bytes: Buffer; block: string | null; findings: Finding[] }> {
  const findings: Finding[] = []
  const fetcher = new ProvingFetcher({
    gatewayUrls,
    block: 'require',
    onFinding: (one) => findings.push(one),
    ...options,
  })
  const response = await fetcher.fetch(id, { range })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { bytes, block: response.headers.get('x-verified-block'), findings }
}

async function plainBytes(id: string): Promise<Buffer> {
  const headers = { range: `bytes=${range.start}-${range.end}` }
  return Buffer.from(await (await fetch(`${honest()}/raw/${id}`, { headers })).arrayBuffer())
}

/** The JSON of an answer with some fields changed. */
function changed(answer: ServedAnswer, fields: Readonly<Record<string, unknown>>): ServedAnswer {
  const json = JSON.parse(Buffer.from(answer.bytes ?? []).toString()) as object
  return { ...answer, bytes: Buffer.from(JSON.stringify({ ...json, ...fields })) }
}

/** Another line of a raw chunk's head; its JSON is not given, so that the line is what is read. */
const withLine =
  (name: string, value: (given: string) => string | Promise<string>): Bend =>
  async ({ path }, answer) => {
    if (!path.startsWith('/chunk/')) return answer
    if (!path.endsWith('/data')) return { status: 404, text: 'Not Found' }
    const given = answer.headers?.[name]
    return given === undefined
      ? answer
      : { ...answer, headers: { ...answer.headers, [name]: await value(given) } }
  }

const flippedText = (text: string): string => (text.startsWith('A') ? 'B' : 'A') + text.slice(1)

/** Each lie is detected with one gateway, and outvoted by two honest ones. */
async function isDetected(t: Test, id: string, what: string, bend: Bend, code: RegExp): Promise<void> {
  const bad = await bent(t, honest(), bend)
  t.match(await codeOf(read(id, [bad])), code, what)
  await isOutvoted(t, id, what, bad, code)
}

async function isOutvoted(t: Test, id: string, what: string, bad: string, code: RegExp): Promise<void> {
  const { bytes, block, findings } = await read(id, [bad, honest(), await bent(t, honest())])
  t.ok(bytes.equals(await plainBytes(id)), what)
  const { block_indep_hash: hash } = await jsonAt(`${honest()}/tx/${id}/status`)
  t.equal(block, hash, what)
  if (!code.test('not-found')) t.match(findings, [{ gateway: bad, error: { code: 'untrue' } }], what)
}

t.test('a range is proven up to a block that gateways agree on', async (t) => {
  // No block comes in between two questions.
  running = await run(t, t.testdir(), { ...seeded, SERVICES: 'gateway', DEVNET_BLOCK_MS: '0' })
  const id = running.examples.large as string
  const other = running.examples.image as string
  const status = await jsonAt(`${nodeUrl()}/tx/${id}/status`)
  const header = await jsonAt(`${nodeUrl()}/block/height/${status.block_height}`)

  await t.test('with honest gateways', async (t) => {
    for (const gatewayUrls of [[honest()], [honest(), await bent(t, honest())]]) {
      const { bytes, block, findings } = await read(id, gatewayUrls)
      t.ok(bytes.equals(await plainBytes(id)))
      t.equal(block, header.indep_hash)
      t.strictSame(findings, [])
    }
    const nested = running.examples.nested as string
    const item = await new ProvingFetcher({ gatewayUrls: [honest()], block: 'require' }).fetch(nested, {
      range: { start: 3 },
    })
    t.match(item.headers.get('x-verified-height'), /^\d+$/)
    t.equal(item.headers.get('x-verified'), 'owner', 'all of the item was read from its root')
    const unplaced = await new ProvingFetcher({ gatewayUrls: [honest()] }).fetch(nested, {
      range: { start: 3 },
    })
    t.equal(unplaced.headers.get('x-verified'), 'owner')
    t.equal(unplaced.headers.get('x-verified-block'), null, 'where its block need not be proven nobody asks')
    const response = await new ProvingFetcher({ gatewayUrls: [honest()] }).fetch(id, { range })
    t.match(response.headers.get('x-verified-height'), /^\d+$/)
    t.equal(response.headers.get('x-verified-block-by'), '1 of 1', 'on whose word')
    const lies = await bent(t, honest(), ({ path }, answer) =>
      path.startsWith('/block/') ? changed(answer, { txs: [] }) : answer,
    )
    const gatewayUrls = [honest(), lies, await bent(t, honest())]
    const several = await new ProvingFetcher({ gatewayUrls }).fetch(id, { range })
    t.equal(
      several.headers.get('x-verified-block-by'),
      '2 of 2',
      'of those that answered, without the one that lies',
    )
    const unasked = await read(id, [honest()], { block: 'skip' })
    t.equal(unasked.block, null)
  })

  await t.test('a tx_path or data_path that is not the chunk’s', async (t) => {
    const { offset } = await jsonAt(`${nodeUrl()}/tx/${other}/offset`)
    const pathOfOther = async (): Promise<string> =>
      String((await jsonAt(`${honest()}/chunk/${offset}`)).tx_path)
    const { offset: last } = await jsonAt(`${nodeUrl()}/tx/${id}/offset`)
    const pathOfLast = async (): Promise<string> =>
      String((await jsonAt(`${honest()}/chunk/${last}`)).data_path)
    const lies: Record<string, Bend> = {
      'a flipped tx_path': withLine('x-chain-chunk-tx-path', flippedText),
      'the tx_path of another transaction': withLine('x-chain-chunk-tx-path', pathOfOther),
      'a flipped data_path': withLine('x-chain-chunk-data-path', flippedText),
      'the data_path of another chunk': withLine('x-chain-chunk-data-path', pathOfLast),
    }
    for (const [what, bend] of Object.entries(lies)) await isDetected(t, id, what, bend, /untrue/)
    const without = await bent(
      t,
      honest(),
      withLine('x-chain-chunk-tx-path', () => ''),
    )
    t.match(await codeOf(read(id, [without])), /not-found|unavailable/, 'no tx_path')
    const checked = await read(id, [without], { block: 'ask' })
    t.ok(checked.bytes.equals(await plainBytes(id)))
    t.equal(checked.block, null, 'what is not proven is not said')
  })

  await t.test('a header that is not the block’s', async (t) => {
    const ofBlock =
      (fields: Readonly<Record<string, unknown>>): Bend =>
      ({ path }, answer) =>
        path.startsWith('/block/') ? changed(answer, fields) : answer
    const lies: Record<string, Bend> = {
      'another tx_root': ofBlock({ tx_root: flippedText(String(header.tx_root)) }),
      'another hash': ofBlock({ indep_hash: flippedText(String(header.indep_hash)) }),
      'another place in the weave': ofBlock({ weave_size: String(Number(header.weave_size) + 262_144) }),
      'a block without the transaction': ofBlock({ txs: [] }),
      'no root': ofBlock({ tx_root: '' }),
    }
    for (const [what, bend] of Object.entries(lies)) await isDetected(t, id, what, bend, /untrue/)
    const waits: Bend = ({ path }, answer) =>
      path.endsWith('/status') ? { status: 202, text: 'Pending' } : answer
    await isDetected(t, id, 'in no block yet', waits, /not-found/)
  })

  await t.test('the header of a fork that the chain has left', async (t) => {
    const { height } = await jsonAt(`${nodeUrl()}/info`)
    const depth = Number(height) - Number(status.block_height) + 1
    const fork = await fetch(`${nodeUrl()}/devnet/fork/${depth}`, { method: 'POST' })
    t.equal(fork.status, 200)
    const now = await jsonAt(`${nodeUrl()}/tx/${id}/status`)
    t.not(now.block_indep_hash, status.block_indep_hash)
    // The gateway follows the chain in its own time.
    const follows = async (): Promise<boolean> =>
      (await jsonAt(`${honest()}/tx/${id}/status`)).block_indep_hash === now.block_indep_hash &&
      (await codeOf(read(id, [honest()]))) === 'no failure'
    t.ok(await eventually('the gateway follows the fork', follows))
    const left: Bend = ({ path }, answer) => {
      if (path === `/tx/${id}/status`) return changed(answer, status)
      return path.startsWith('/block/') ? { status: 200, json: header } : answer
    }
    const bad = await bent(t, honest(), left)
    await isOutvoted(t, id, 'a block of another fork', bad, /untrue/)
    t.equal(await codeOf(read(id, [bad, honest()])), 'untrue', 'one against one')
    const checked = await read(id, [bad, honest()], { block: 'ask' })
    t.ok(checked.bytes.equals(await plainBytes(id)), 'the owner’s signature still proves every byte')
    t.equal(checked.block, null)
  })
})
