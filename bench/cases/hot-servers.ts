import { totalmem } from 'node:os'
import { bytesOf, type Corpus } from '../corpus/corpus.js'
import type { Sites } from '../corpus/sites.js'
import { boundMemory, forgetPages } from '../kit/bounded-memory.js'
import type { Candidate } from '../rivals/candidate.js'
import { fillWith, startGateway } from '../rivals/gateway.js'
import { fileServer } from '../rivals/nginx.js'
import { blockOf, startLayer } from '../rivals/start-layer.js'
import type { Order } from './run.js'

/** What all servers of a set serve. */
export interface Served {
  readonly corpus: Corpus
  readonly sites?: Sites | undefined
}

/** Starts the servers of a set; this gateway is the first. */
export type StartServers = (served: Served, order: Pick<Order, 'threads' | 'note'>) => Promise<Candidate[]>

/** Starts this gateway. `special`: another name, and settings beyond the usual ones. */
function startOurs(
  { corpus, sites }: Served,
  threads: number,
  special: { readonly name?: string; readonly settings?: Readonly<Record<string, string>> } = {},
): Promise<Candidate> {
  return startGateway({
    name: 'sluice',
    threads,
    ...special,
    fill: (seeding) => fillWith(seeding, corpus, sites),
  })
}

/** Starts a rival. One that cannot be started is left out, and its name printed. */
async function begin(
  started: Candidate[],
  { note }: Pick<Order, 'note'>,
  name: string,
  start: () => Promise<Candidate>,
): Promise<void> {
  try {
    started.push(await start())
  } catch (error) {
    note(`${name} is left out: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** nginx in both of its ways to send, with as many workers as this gateway has edge threads. */
export const startWithNginx: StartServers = async (served, order) => {
  const { corpus, sites } = served
  const started = [await startOurs(served, order.threads)]
  const folders = { files: corpus.filesFolder, sites: sites?.folder }
  for (const sendfile of [true, false])
    await begin(started, order, 'nginx', () => fileServer(folders, order.threads, sendfile))
  return started
}

/** Contents up to this share of the machine's memory are in it for this gateway, for nginx, and for the others. */
const memoryShare = 1 / 6

/**
 * nginx, and other servers below JavaScript, which have one thread each. These hold all contents in memory of their own: where
 * the machine has too little for that, they are left out.
 */
export const startWithAll: StartServers = async (served, order) => {
  const { corpus, sites } = served
  const started = await startWithNginx(served, order)
  if (bytesOf(corpus) > totalmem() * memoryShare) {
    order.note('only nginx beside us: the others hold all contents in memory, which is too small')
    return started
  }
  const [content] = corpus.contents
  const [gateway] = started
  const block = content === undefined || gateway === undefined ? [] : await blockOf(gateway.port, content.id)
  const layers = order.threads === 1 ? (['uws', 'node', 'own'] as const) : []
  for (const layer of layers)
    await begin(started, order, layer, () => startLayer(layer, corpus, sites, block))
  return started
}

/** Limits that no load reaches: what they cost is their counting. */
const limited = {
  ENABLE_RATE_LIMITER: 'true',
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: '1099511627776',
  RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: '1099511627776',
}

/** This gateway with limits, beside itself without. */
export const startWithLimits: StartServers = async (served, { threads }) => {
  const withLimits = await startOurs(served, threads, { settings: limited })
  const without = await startOurs(served, threads, { name: 'without limits' })
  return [
    { ...withLimits, name: 'with limits' },
    { ...without, role: 'rival' },
  ]
}

/** What a server may need for itself from then on; what it does not need holds more contents. */
const ownBytes = 2 ** 28

/**
 * Beside nginx, each with memory for half of the contents (`canBoundMemory`). One nginx: a page counts for the group that has
 * read it first, so that two with the same files would have all of them in memory.
 */
export const startWithLittleMemory: StartServers = async (served, order) => {
  const { corpus } = served
  const started = [await startOurs(served, order.threads)]
  const files = { files: corpus.filesFolder, sites: undefined }
  await begin(started, order, 'nginx', () => fileServer(files, order.threads, true))
  const bounded = started.map((each) => {
    const free = boundMemory(each.pid, ownBytes + Math.round(bytesOf(corpus) / 2))
    return { ...each, stop: () => each.stop().finally(free) }
  })
  forgetPages()
  return bounded
}
