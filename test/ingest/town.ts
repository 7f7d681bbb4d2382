import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { ForkOptions } from '../../src/devnet/base-layer.js'
import type { Devnet } from '../../src/devnet/devnet.js'
import { encodeBundle } from '../../src/format/bundle.js'
import type { Id } from '../../src/format/id.js'
import { devnetOf, type Payer, payerOf, postedBy } from '../devnet/posting.js'
import { bundleItem, bundleTags, item } from '../source/weave.js'
import { type House, house } from './house.js'

/** A node whose chain a test grows and forks, with transactions and bundles in it. */
export interface Town {
  readonly devnet: Devnet
  readonly payer: Payer
  /** Posts data; not mined. */
  post(data: Uint8Array, tags?: Readonly<Record<string, string>>): Promise<Id>
  /** Posts a bundle with a bundle in it: its id and the ids of its items. */
  bundle(items: number): Promise<{ root: Id; items: Id[] }>
  fork(depth: number, options?: ForkOptions): void
}

export async function town(t: Test): Promise<Town> {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const post: Town['post'] = (data, tags) => postedBy(payer, data, tags)
  return {
    devnet,
    payer,
    post,
    async bundle(count) {
      const list = Array.from({ length: count }, () => item(randomBytes(20), { App: 'town' }))
      const inner = bundleItem(list.slice(0, count >> 1))
      const root = await post(encodeBundle([inner, ...list.slice(count >> 1)]), bundleTags)
      return { root, items: [inner.id, ...list.map(({ id }) => id)] }
    },
    fork: (depth, options) => void devnet.fork(depth, options),
  }
}

/** Waits until the index has the node's tip, and nothing waits to be done. */
export async function settled({ index, following }: House, devnet: Devnet, waitMs = 120_000): Promise<void> {
  const end = Date.now() + waitMs
  for (;;) {
    const tip = (await (await fetch(`${devnet.url}/info`)).json()) as { height: number; current: string }
    index.refresh()
    const isDone = following.bundlesWaiting === 0 && following.missing === 0
    if (isDone && following.height === tip.height && index.block(tip.height)?.id === tip.current) return
    if (Date.now() > end) {
      const { state, height, bundlesWaiting, missing } = following
      throw new Error(`not settled: ${JSON.stringify({ tip, state, height, bundlesWaiting, missing })}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** What an index says that was built from the node's chain as it is now, from nothing. */
export async function rebuilt(t: Test, devnet: Devnet): Promise<string[]> {
  const fresh = house(t, devnet.url)
  await settled(fresh, devnet)
  const lines = fresh.dump()
  await fresh.stop()
  return lines
}

/** A node in front of the node: `refuses` decides which paths it does not know, and which requests it never answers. */
export async function gatekeeper(
  t: Test,
  behind: string,
  refuses: (path: string) => boolean | 'silent',
): Promise<string> {
  const server: Server = createServer((request, response) => {
    const refused = refuses(request.url ?? '')
    if (refused === 'silent') return
    if (refused) return void response.writeHead(404).end()
    void fetch(`${behind}${request.url}`)
      .then(async (answer) => {
        response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()))
      })
      // The node behind may be stopped while its last answer is on the way.
      .catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
