import { parentPort, workerData } from 'node:worker_threads'
import { localAddress } from '../../src/actor/mailbox-address.js'
import type { KeeperReply, KeeperRequest } from '../../src/admission/bucket-messages.js'
import { BucketTable, type TableOptions } from '../../src/admission/bucket-table.js'
import { Ticket } from '../../src/admission/buckets.js'
import { Clients } from '../../src/admission/clients.js'
import { MemoryBuckets } from '../../src/admission/memory-buckets.js'
import { clientAt, named } from '../conformance/buckets.js'
import { someClients } from './house.js'

/** A thread that takes and gives back at random, as fast as it can, and tells what it holds in the end. */
export interface TakerOrder {
  readonly options: TableOptions
  readonly ip: SharedArrayBuffer
  readonly resource: SharedArrayBuffer
  readonly secret: { readonly low: number; readonly high: number }
  readonly addresses: readonly string[]
  readonly paths: readonly string[]
  readonly rounds: number
  readonly seed: number
}

/** Tokens that were taken and not given back, by bucket. */
export type TakerReport = Readonly<Record<string, number>>

const order = workerData as TakerOrder
let seed = order.seed
const random = (below: number): number => {
  seed = (Math.imul(seed, 1664525) + 1013904223) | 0
  return (seed >>> 8) % below
}
const clients = new Clients(someClients, order.secret)
const buckets = new MemoryBuckets({
  ip: new BucketTable(order.ip, order.options),
  resource: new BucketTable(order.resource, order.options),
  clients,
  secret: order.secret,
  keeper: localAddress<KeeperRequest, KeeperReply>(() => undefined),
})
const kept: Record<string, number> = {}
for (let round = 0; round < order.rounds; round += 1) {
  const address = order.addresses[random(order.addresses.length)] ?? ''
  const path = order.paths[random(order.paths.length)] ?? ''
  const tokens = 1 + random(9)
  const taken = buckets.take(
    clientAt(clients, address),
    named(path),
    tokens,
    random(2) === 0 ? 'client' : 'both',
  )
  if (!(taken instanceof Ticket)) continue
  const back = random(3) === 0 ? 0 : random(tokens + 1)
  if (back > 0) taken.give(back)
  kept[address] = (kept[address] ?? 0) + tokens - back
}
parentPort?.postMessage(kept satisfies TakerReport)
