/** Each program of examples/, run against a whole gateway as its reader would run it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { generatePrivateKey } from 'viem/accounts'
import { findPort } from '../../src/actor/claim.js'
import { anvilPath, startChain } from '../admission/anvil.js'
import { stockFacilitator } from '../admission/stock-facilitator.js'
import { document, until } from './published.js'
import { type Running, run, seeded } from './running.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Runs an example to its end. Fails the test where it does not end with code 0. */
async function example(
  t: Test,
  name: string,
  words: string[],
  given: Record<string, string>,
): Promise<string> {
  const path = join(root, 'examples', name)
  const [command, args] = name.endsWith('.sh') ? [path, words] : [process.execPath, [path, ...words]]
  const child = spawn(command, args, { env: { PATH: process.env.PATH ?? '', ...given }, stdio: 'pipe' })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (printed += text.toString()))
  const [code] = (await once(child, 'close')) as [number]
  t.equal(code, 0, `${name} ${words.join(' ')}: ${printed}`)
  return printed
}

function addresses({ urls }: Running): Record<string, string> {
  return { GATEWAY: urls.gateway ?? '', NODE: urls.devnet ?? '' }
}

t.test('the table of examples names each file, and no other', (t) => {
  const named = [
    ...readFileSync(join(root, 'examples/README.md'), 'utf8').matchAll(/examples\/(\d\d-[\w.-]+)/g),
  ]
  const files = readdirSync(join(root, 'examples')).filter((name) => name !== 'README.md')
  t.strictSame(named.map(([, name]) => name).sort(), files.sort())
  t.end()
})

t.test('reading, querying, posting, blocking, exporting, publishing and receiving news', async (t) => {
  const dataPath = t.testdir()
  const heardPort = await findPort('127.0.0.1', 0, 'a port for the test')
  const heard = firstNews(t, heardPort, join(dataPath, 'keys/webhook.secret'))
  const running = await run(t, dataPath, {
    ...seeded,
    CHAIN_FORK_DEPTH_MAX: '2',
    INDEX_PUBLISH: 'true',
    INDEX_SCAN_SECONDS: '1',
    INDEX_DELTA_EVERY_SECONDS: '1',
    WEBHOOK_TARGET_SERVERS: `http://127.0.0.1:${heardPort}/`,
    WEBHOOK_BLOCK_FILTER: '{"always":true}',
  })
  t.match(await heard, /block/i)
  const given = addresses(running)
  const { page = '' } = running.examples
  const keyFile = join(dataPath, 'keys/admin.key')
  await until('the site in the index', async () => {
    const query = `{transactions(ids: ["${page}"]) {edges {node {id}}}}`
    const answer = await fetch(`${given.GATEWAY}/graphql?query=${encodeURIComponent(query)}`)
    return (await answer.text()).includes(page) ? true : undefined
  })
  t.match(
    await example(t, '01-fetch-and-verify.mjs', [page], given),
    /digest {5}agrees\nsignature {2}by [\w-]{43}/,
  )
  t.match(await example(t, '01-fetch-and-verify.mjs', [], given), /image\/png/)
  t.match(await example(t, '02-range.mjs', [], given), /from byte 2097152 on: {2}206, 2097152 bytes/)
  t.match(await example(t, '03-graphql.mjs', [], given), /\d+ of them/)
  t.match(await example(t, '05-post-a-transaction.mjs', ['A text'], given), /: A text/)
  // Exports hold final blocks only, and what is in the index may be in the newest block, or in none yet.
  await fetch(`${given.NODE}/mine/3`)
  await until('the site in a final block', async () => {
    const query = `{transactions(ids: ["${page}"]) {edges {node {block {height}}}} blocks(first: 1) {edges {node {height}}}}`
    const answer = await fetch(`${given.GATEWAY}/graphql?query=${encodeURIComponent(query)}`)
    const heights = [...(await answer.text()).matchAll(/"height":(\d+)/g)].map(([, height]) => Number(height))
    const [block = Number.POSITIVE_INFINITY, top = 0] = heights
    return heights.length === 2 && top >= block + 2 ? true : undefined
  })
  t.match(await example(t, '09-export-to-duckdb.mjs', [keyFile, dataPath], given), /text\/html/)
  t.match(await example(t, '08-block.mjs', [page, keyFile], given), /after: {2}451/)
  const nginx = spawnSync('nginx', ['-v']).error === undefined
  await t.test('nginx in front', { skip: nginx ? false : 'nginx is not installed' }, async (t) => {
    const front = { ...given, FRONT_PORT: String(await findPort('127.0.0.1', 0, 'a port for the test')) }
    t.match(await example(t, '10-behind-nginx.sh', [], front), /"network":"devnet"/)
  })
  await fetch(`${given.NODE}/mine/5`)
  await until('a band', async () => {
    const bands = (await document(given.GATEWAY ?? ''))?.indexes.flatMap((index) => index.bands) ?? []
    return bands.length > 0 ? true : undefined
  })
  t.match(await example(t, '06-follow-bands.mjs', [], given), /\d+ files, \d+ bytes, each as published/)
  t.equal(await running.stop(), 0)
})

/** The first thing that the receiver of webhooks prints; it listens on `port`. */
function firstNews(t: Test, port: number, secretFile: string): Promise<string> {
  const path = join(root, 'examples/07-webhook-receiver.mjs')
  const receiver = spawn(process.execPath, [path, secretFile], {
    env: { PATH: process.env.PATH ?? '', WEBHOOK_PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => receiver.kill('SIGKILL'))
  const lines = createInterface({ input: receiver.stdout })
  return new Promise<string>((resolve) => {
    lines.on('line', (line) => {
      if (!line.startsWith('listening')) resolve(line)
    })
  })
}

t.test('a stock client pays on devnet, where every key has money', async (t) => {
  const port = String(await findPort('127.0.0.1', 0, 'a port for the test'))
  const running = await run(t, t.testdir(), {
    ...seeded,
    SERVICES: 'gateway',
    DEVNET_PORT: port,
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '2',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: '0x000000000000000000000000000000000000dEaD',
    X_402_USDC_FACILITATOR_URL: `http://127.0.0.1:${port}/x402`,
  })
  const printed = await example(t, '04-pay-with-x402.mjs', [running.examples.image ?? ''], addresses(running))
  t.match(printed, /without payment: 402\nwith payment: {4}200, \d+ bytes/)
  t.equal(await running.stop(), 0)
})

const binary = anvilPath()
const skip = binary === undefined && 'anvil is not installed'

t.test('a stock client pays', { skip }, async (t) => {
  const chain = await startChain(t, binary ?? '', 'base-sepolia')
  const facilitator = await stockFacilitator(t, chain, await chain.account({ ether: 10n ** 19n }))
  const key = generatePrivateKey()
  await chain.account({ units: 1_000_000n, key })
  const running = await run(t, t.testdir(), {
    ...seeded,
    SERVICES: 'gateway',
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '2',
    RATE_LIMITER_IP_REFILL_PER_SEC: '0',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: (await chain.account()).address,
    X_402_USDC_FACILITATOR_URL: facilitator.url,
    X_402_USDC_RPC_URL: chain.url,
    PAYMENT_BASE_CONFIRMATIONS: '1',
    X_402_USDC_SETTLE_TIMEOUT_MS: '30000',
  })
  const given = { ...addresses(running), PRIVATE_KEY: key }
  const printed = await example(t, '04-pay-with-x402.mjs', [running.examples.image ?? ''], given)
  t.match(printed, /without payment: 402\nwith payment: {4}200, \d+ bytes/)
  t.equal(await running.stop(), 0)
})
