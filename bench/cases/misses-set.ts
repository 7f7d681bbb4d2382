import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '../../src/actor/clock.js'
import { postedBy } from '../../test/devnet/posting.js'
import { bundlesOf } from '../corpus/bundles.js'
import { truthFrom } from '../corpus/truth.js'
import { emptyFolder } from '../kit/folders.js'
import { payersNode } from '../kit/payers-node.js'
import { Stopwatch } from '../kit/usage.js'
import type { Target } from '../load/load.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { offline, startGateway } from '../rivals/gateway.js'
import { cachingProxy, gatewayLike } from '../rivals/nginx.js'
import { makePair } from '../rivals/tls-servers.js'
import type { Order } from './run.js'

/** What is known of the root of each content: a node has it, will have it some day, or nobody names one. */
export type Provable = 'now' | 'later' | 'never'

const itemsEach = 500

/** Until nothing is left to do for `quietMs`, but at most and, with verification, at least so long. */
export interface Waits {
  readonly quietMs: number
  readonly longestMs: number
  readonly provingMs: number
}

const usualWaits: Waits = { quietMs: 3000, longestMs: 90_000, provingMs: 45_000 }
/** For a run that gives no verdict. */
const shortWaits: Waits = { quietMs: 500, longestMs: 3000, provingMs: 1000 }

export const waitsOf = ({ scale }: Order): Waits => (scale.judges ? usualWaits : shortWaits)

/** Processor seconds that a program uses in a second while nobody asks. */
export async function idleRate({ pid }: Candidate): Promise<number> {
  await pause(2000)
  const watch = new Stopwatch(pid)
  await pause(3000)
  return watch.seconds() / 3
}

/** Processor seconds from now until nothing is left to do, without those that are used when idle. */
export async function untilQuiet(
  { pid, role }: Candidate,
  idle: number,
  { quietMs, longestMs, provingMs }: Waits,
): Promise<number> {
  const watch = new Stopwatch(pid)
  let [waitedMs, restMs, before] = [0, 0, 0]
  const leastMs = role === 'ours' ? provingMs : 0
  while (waitedMs < longestMs && (restMs < quietMs || waitedMs < leastMs)) {
    await pause(500)
    waitedMs += 500
    const used = watch.seconds() - before
    before += used
    restMs = used < idle / 2 + 0.004 ? restMs + 500 : 0
  }
  return Math.max(0, before - (idle * waitedMs) / 1000)
}

export interface Misses {
  readonly off: Candidate
  readonly on: Candidate
  readonly proxy: Candidate
  /** Where both fetch from. */
  readonly upstream: Candidate
  readonly targets: readonly Target[]
  stop(): Promise<void>
}

/** Contents behind a gateway that speaks TLS; a node; and this program with and without verification. */
export async function startMisses(
  { threads }: Pick<Order, 'threads'>,
  provable: Provable,
  count: number,
): Promise<Misses> {
  const { devnet, payer } = await payersNode()
  const files = join(emptyFolder('misses'), 'files')
  mkdirSync(files)
  const [targets, roots]: [Target[], string[]] = [[], []]
  for (const { bytes, digest, items } of bundlesOf(count, itemsEach)) {
    const tags = { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' }
    const rootId =
      provable === 'now' ? await postedBy(payer, bytes, tags) : Buffer.from(digest).toString('base64url')
    devnet.mine()
    for (const { id, sizeBytes, truthStart } of items) {
      writeFileSync(join(files, id), Buffer.concat([...truthFrom(truthStart, sizeBytes)]))
      targets.push({ path: `/${id}`, sizeBytes, truthStart })
      if (provable !== 'never') roots.push(`/raw/${id} ${rootId};`)
    }
  }
  const pair = await makePair()
  const upstream = await gatewayLike(files, roots, pair)
  const urls = JSON.stringify({ [`https://localhost:${upstream.port}`]: 1 })
  const settings = { ...offline, TRUSTED_NODE_URL: devnet.url, TRUSTED_GATEWAYS_URLS: urls }
  const started = (name: string, verifies: boolean) =>
    startGateway({
      name,
      threads,
      settings: {
        ...settings,
        NODE_EXTRA_CA_CERTS: pair.cert,
        ENABLE_BACKGROUND_DATA_VERIFICATION: String(verifies),
      },
    })
  const off = await started('without verification', false)
  const on = await started('sluice', true)
  const proxy = await cachingProxy(upstream.port, threads, 'https')
  const stop = async (): Promise<void> => {
    await stopAll([off, on, proxy, upstream])
    await devnet.stop()
  }
  return { off: { ...off, role: 'part' }, on, proxy, upstream, targets, stop }
}
