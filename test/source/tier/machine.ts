import { join } from 'node:path'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { Meters, meterBytes } from '../../../src/actor/meter.js'
import { meterTable } from '../../../src/actor/meter-table.js'
import type { Attributes } from '../../../src/catalog/attributes.js'
import type { Id } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal, type Refusal } from '../../../src/format/refusal.js'
import { tagOf } from '../../../src/format/tag.js'
import { GuardedObjects, guardDefaults } from '../../../src/source/objects/guarded-objects.js'
import type { ObjectStore } from '../../../src/source/objects/object-store.js'
import { unknownEverywhere } from '../../../src/source/refusals.js'
import { learnedOfItem } from '../../../src/source/roots/learned.js'
import type { Found, Source } from '../../../src/source/source.js'
import { ContentTier, type ContentTierOptions } from '../../../src/source/tier/content-tier.js'
import { hedged } from '../../../src/source/tier/hedged-source.js'
import { tierMeters } from '../../../src/source/tier/tier-meters.js'
import { openEnvironment } from '../../../src/store/lmdb.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { drain, type Rig, rig } from '../rig.js'
import type { MadeItem } from '../weave.js'

/** A network that has some content, proven; `asked` are the ids it was asked for. */
export class Network implements Source {
  readonly name = 'trusted-gateways'
  readonly requested: Id[] = []
  readonly #found = new Map<
    Id,
    Omit<Found, 'body' | 'name' | 'origin' | 'sizeBytes'> & { payload: Uint8Array }
  >()

  /** An item in a root. */
  addItem({ id, bytes, payload }: MadeItem, rootId: Id): void {
    const header = parseItemHeader(bytes)
    if (header === 'more' || isRefusal(header)) throw new Error('no item')
    const place = {
      rootId,
      parentId: rootId,
      path: [rootId],
      rootItemOffset: 160,
      parentItemOffset: 160,
      itemSize: bytes.length,
      headerSize: header.headerSize,
      isSigned: true as const,
    }
    const learned = { ...learnedOfItem(header), place, height: 5 }
    this.#found.set(id, { payload, trusted: false, proven: true, learned, hints: {} })
  }

  /** A transaction, whose header is not that of an item. */
  addTransaction(id: Id, payload: Uint8Array, tags: Readonly<Record<string, string>> = {}): void {
    const header = {
      signatureType: 1,
      signature: Buffer.alloc(512),
      owner: Buffer.alloc(512),
      ownerAddress: id,
      target: Buffer.alloc(0),
      anchor: Buffer.alloc(0),
      tags: Object.entries(tags).map(([name, value]) => tagOf(name, value)),
    }
    const learned = { contentType: 'text/x-test', isTransaction: true as const, height: 5, header }
    this.#found.set(id, { payload, trusted: false, proven: true, learned, hints: {} })
  }

  async open({ id }: { readonly id: Id }): Promise<Found | Refusal> {
    this.requested.push(id)
    const found = this.#found.get(id)
    if (found === undefined) return unknownEverywhere()
    const { payload, ...rest } = found
    async function* body(): AsyncGenerator<Uint8Array, undefined> {
      yield payload
      return undefined
    }
    return {
      ...rest,
      name: 'trusted-gateways',
      origin: 'here',
      sizeBytes: payload.length,
      body: body(),
      isLasting: true,
    }
  }
}

/** One machine with a disk of its own, on a store that may be shared. */
export interface Machine {
  readonly rig: Rig
  readonly tier: ContentTier
  readonly network: Network
  readonly meters: Meters
  /** Reads content as a reader does: from the disk, the store, the network. */
  read(id: Id): Promise<Buffer | Refusal>
  /** Has content on disk, verified, and tells the tier. */
  keep(id: Id): Promise<Attributes>
  /** Removes content from the disk. */
  evict(id: Id): Promise<void>
  /** Everything that was told to the tier is in the store. */
  settled(): Promise<void>
  close(): Promise<void>
}

export async function machine(
  objects: ObjectStore,
  options: Partial<ContentTierOptions> & { readonly path?: string; readonly hedgeMs?: number } = {},
): Promise<Machine> {
  const { path = scratch('tier'), hedgeMs = 5000, ...tierOptions } = options
  const network = new Network()
  let source: Source = network
  const made = await rig({
    path,
    source: { name: 'on-demand', open: (wanted, signal) => source.open(wanted, signal) },
    fetch: { digestBufferMaxBytes: 100_000 },
  })
  const { catalog, store, fetcher, blobCache } = made
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const metered = tierMeters(meters)
  const guard = { ...guardDefaults, restMs: 100, restMaxMs: 200 }
  const tier = new ContentTier(
    {
      store: new GuardedObjects(objects, guard, metered.store, systemClock),
      environment: openEnvironment(join(path, 'tier')),
      catalog,
      blobs: store,
      isForbidden: () => false,
      hasRoom: () => true,
      meters: metered,
      clock: systemClock,
      log: silentLog,
    },
    {
      prefix: 'test',
      network: 'devnet',
      keepMinBytes: 50_000,
      budget: { dailyBytes: 2 ** 40, maxBytes: 2 ** 40 },
      gatherMs: 1,
      roundMs: 50,
      listAfterMs: [100, 300, 300],
      followMs: 50,
      openAgainMs: 50,
      ...tierOptions,
    },
  )
  source = hedged(tier.source, network, hedgeMs)
  const isHere = (id: Id): boolean => {
    const digest = catalog.attributes(id)?.digest
    return digest !== undefined && catalog.blobSize(digest) !== undefined
  }
  tier.start(async (id) => {
    await fetcher.fetchFrom(id, {}, tier.source)
    await blobCache.settled()
    return isHere(id)
  })
  const edge = made.edge()
  const machine: Machine = {
    rig: made,
    tier,
    network,
    meters,
    async read(id) {
      const opened = await edge.open(id)
      if (isRefusal(opened)) return opened
      const content = edge.grow(opened)
      const bytes = await drain(content, 0, opened.sizeBytes)
      content.close()
      return bytes
    },
    async keep(id) {
      await machine.read(id)
      const known = await eventually('content is on disk', () => isHere(id) && catalog.attributes(id))
      tier.verified([id])
      return known
    },
    async evict(id) {
      const digest = catalog.attributes(id)?.digest
      if (digest !== undefined) await blobCache.drop(digest)
    },
    async settled() {
      await eventually(
        'the store has everything',
        () => tier.state.waiting === 0,
        () => tier.state,
      )
    },
    async close() {
      await made.fetcher.stop()
      await tier.close()
      await made.close()
    },
  }
  await eventually(
    'the store is open',
    () => tier.state.state !== 'opening',
    () => tier.state,
  )
  return machine
}
