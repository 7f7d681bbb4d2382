/** Whole requests over a real chain: posted by clients nobody here wrote, served by id, proven against the chain. */
import { randomBytes } from 'node:crypto'
import { ArweaveSigner, bundleAndSignData, createData, EthereumSigner } from 'arbundles'
import t, { type Test } from 'tap'
import { eventually } from '../eventually.js'
import { type Payer, payerAt } from '../flow/payer.js'
import { type Running, run, sluice } from '../flow/running.js'

interface Stage extends Payer {
  readonly running: Running
  readonly gateway: string
  readonly node: string
}

/** Nobody opens a bundle before somebody asks. */
async function stage(t: Test): Promise<Stage> {
  const still = { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0', ANS104_UNBUNDLE_FILTER: '{"never":true}' }
  const running = await run(t, t.testdir(), still)
  const { gateway = '', devnet: node = '' } = running.urls
  return { running, gateway, node, ...(await payerAt(node)) }
}

async function get(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ answer: Response; bytes: Buffer }> {
  const answer = await fetch(url, { headers })
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) }
}

/** Asks until the answer comes from the cache. */
async function cached(url: string): Promise<{ answer: Response; bytes: Buffer }> {
  return eventually('a hit', async () => {
    const got = await get(url)
    return got.answer.headers.get('x-cache') === 'HIT' ? got : undefined
  })
}

async function wholeTransaction(t: Test, here: Stage): Promise<void> {
  const data = randomBytes(3 * 1024 * 1024 + 17)
  const id = await here.post(data, { 'Content-Type': 'application/x-test' })
  const first = await get(`${here.gateway}/${id}`)
  t.equal(first.answer.status, 200)
  t.ok(first.bytes.equals(data), 'byte-identical while it is fetched')
  t.equal(first.answer.headers.get('x-cache'), 'MISS')
  t.equal(first.answer.headers.get('x-gateway-verified'), 'false')
  t.equal(first.answer.headers.get('content-type'), 'application/x-test')
  const second = await cached(`${here.gateway}/raw/${id}`)
  t.ok(second.bytes.equals(data), 'byte-identical from the cache')
  t.equal(second.answer.headers.get('x-gateway-verified'), 'true')
  t.equal(second.answer.headers.get('x-chain-tag-content-type'), 'application/x-test')
  const part = await get(`${here.gateway}/${id}`, { range: 'bytes=1000000-1000999' })
  t.equal(part.answer.status, 206)
  t.ok(part.bytes.equals(data.subarray(1_000_000, 1_001_000)))
  const report = await sluice(['verify', id, '--gateway', here.gateway, '--node', here.node])
  t.equal(report.code, 0, report.out + report.err)
  t.match(report.out, /yes data root/)
  t.match(report.out, /yes gateway signature/)
}

async function hintedItems(t: Test, here: Stage): Promise<void> {
  const rsa = new ArweaveSigner(here.wallet)
  const ethereum = new EthereumSigner('11'.repeat(32))
  const payloads = ['first', 'second, of another key', 'x'.repeat(300_000)]
  const signers = [rsa, ethereum, rsa]
  const items = payloads.map((payload, index) =>
    createData(payload, signers[index] ?? rsa, {
      tags: [{ name: 'Content-Type', value: `text/x-${index}` }],
    }),
  )
  for (const [index, item] of items.entries()) await item.sign(signers[index] ?? rsa)
  const bundle = await bundleAndSignData(items, rsa)
  const root = await here.post(bundle.getRaw(), { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' })

  for (const [index, item] of items.entries()) {
    const url = `${here.gateway}/${item.id}`
    t.equal((await get(url)).answer.status, 404, 'not known without a hint')
    const first = await get(url, { 'X-GATEWAY-Root-Transaction-Id': root })
    t.equal(first.answer.status, 200)
    t.equal(first.bytes.toString(), payloads[index])
    t.equal(first.answer.headers.get('x-gateway-verified'), 'false', 'not from the cache')
    const later = await cached(url)
    const header = (name: string): string | null => later.answer.headers.get(name)
    t.equal(later.bytes.toString(), payloads[index])
    t.equal(header('x-gateway-verified'), 'true')
    t.equal(header('content-type'), `text/x-${index}`)
    t.equal(header('x-gateway-root-transaction-id'), root)
    const headerSize = item.getStartOfData()
    t.equal(header('x-gateway-data-item-data-offset'), String(headerSize))
    t.equal(header('x-gateway-data-item-size'), String(item.getRaw().length))
    t.equal(header('x-gateway-data-item-offset'), String(Buffer.from(bundle.getRaw()).indexOf(item.getRaw())))
    const report = await sluice(['verify', item.id, '--gateway', here.gateway, '--node', here.node])
    t.equal(report.code, 0, report.out + report.err)
    t.match(report.out, /yes item signature/)
    t.match(report.out, /^- +in +transaction .* by the gateway's word$/m, 'a place that nothing proves')
  }
}

async function wrongHint(t: Test, here: Stage): Promise<void> {
  const item = createData('mine', new ArweaveSigner(here.wallet))
  await item.sign(new ArweaveSigner(here.wallet))
  const other = await here.post(randomBytes(1000), {})
  const lie = await get(`${here.gateway}/${item.id}`, { 'X-GATEWAY-Root-Transaction-Id': other })
  t.equal(lie.answer.status, 404)
  t.equal(lie.answer.headers.get('signature'), null, 'an error is not signed')
}

t.test('one program on a chain of its own', async (t) => {
  const here = await stage(t)
  await t.test('a transaction of 3 MB is served byte for byte, and verified from the cache only', (t) =>
    wholeTransaction(t, here),
  )
  await t.test('items of a foreign bundle are known after one request with a hint of their root', (t) =>
    hintedItems(t, here),
  )
  await t.test('a wrong hint has no effect', (t) => wrongHint(t, here))
})
