import type { Clock } from '../../src/actor/clock.js'
import { localAddress } from '../../src/actor/mailbox-address.js'
import { BucketKeeper } from '../../src/admission/bucket-keeper.js'
import type { Secret } from '../../src/admission/bucket-key.js'
import type { KeeperReply, KeeperRequest } from '../../src/admission/bucket-messages.js'
import { BucketTable, ticksPerSecond } from '../../src/admission/bucket-table.js'
import type { BucketKind, BucketRules } from '../../src/admission/buckets.js'
import { type ClientOptions, Clients } from '../../src/admission/clients.js'
import { KeptTable } from '../../src/admission/kept-table.js'
import { LocalBuckets } from '../../src/admission/local-buckets.js'
import { MemoryBuckets } from '../../src/admission/memory-buckets.js'
import type { House } from '../conformance/buckets.js'
import { scratch } from '../scratch.js'

/** A clock that only a test moves; its timers never fire. */
export class HandClock implements Clock {
  ms = 1_000_000

  now(): number {
    return this.ms
  }

  monotonic(): number {
    return this.ms
  }

  after(): { cancel(): void } {
    return { cancel: () => undefined }
  }

  every(): { cancel(): void } {
    return { cancel: () => undefined }
  }
}

export function dataFolder(): string {
  return scratch('buckets')
}

export const silent = { error: () => undefined, warn: () => undefined, info: () => undefined }

export const someClients = { trustedProxies: [], exempt: [], ipv6PrefixBits: 64 }

/** Buckets in memory that nobody keeps or refills. */
export function localBuckets(rules: Readonly<Record<BucketKind, BucketRules>>, secret: Secret): LocalBuckets {
  const table = (kind: BucketKind): BucketTable => {
    const options = { ...rules[kind], slots: 1024 }
    return new BucketTable(new SharedArrayBuffer(BucketTable.bytes(options)), options)
  }
  return new LocalBuckets({ ip: table('ip'), resource: table('resource'), secret })
}

/** Buckets in memory with their keeper, on one thread and a clock of their own. */
export async function memoryHouse(
  rules: { readonly ip: BucketRules; readonly resource: BucketRules },
  path = dataFolder(),
  slots = 1024,
  about: ClientOptions = someClients,
): Promise<House & { readonly keeper: BucketKeeper; readonly ip: KeptTable; readonly clock: HandClock }> {
  const clock = new HandClock()
  const open = () => {
    const [ipOptions, resourceOptions] = [
      { ...rules.ip, slots },
      { ...rules.resource, slots },
    ]
    const ip = new KeptTable(new SharedArrayBuffer(BucketTable.bytes(ipOptions)), ipOptions)
    const resource = new KeptTable(new SharedArrayBuffer(BucketTable.bytes(resourceOptions)), resourceOptions)
    const keeper = new BucketKeeper({ path, saveEveryMs: 1000 }, { ip, resource }, clock, silent)
    const clients = new Clients(about, keeper.secret)
    const address = localAddress<KeeperRequest, KeeperReply>((message) => keeper.handle(message))
    const buckets = new MemoryBuckets({ ip, resource, clients, secret: keeper.secret, keeper: address })
    return { ip, keeper, clients, buckets }
  }
  let now = open()
  return {
    clock,
    get ip() {
      return now.ip
    },
    get keeper() {
      return now.keeper
    },
    get buckets() {
      return now.buckets
    },
    get clients() {
      return now.clients
    },
    advance(seconds) {
      for (let tick = 0; tick < seconds * ticksPerSecond; tick += 1) {
        clock.ms += 1000 / ticksPerSecond
        now.keeper.tick()
      }
    },
    use: (given) => now.keeper.use(given),
    async restart() {
      await now.keeper.close()
      now = open()
    },
    close: () => now.keeper.close(),
  }
}
