import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { loadSigningKey } from '../../src/attest/keys.js'
import { BandStore } from '../../src/bands/band-store.js'
import { measureDigests } from '../../src/bands/measure.js'
import { measureTorrent } from '../../src/bands/measure-torrent.js'
import { ownDomain } from '../../src/bands/publication.js'
import { Publisher, type PublishOptions } from '../../src/bands/publisher.js'
import { rootTxBands } from '../../src/bands/root-band.js'
import type { RootRecord } from '../../src/bands/root-record.js'
import { RootIndexWriter } from '../../src/bands/root-writer.js'
import { scratch } from '../scratch.js'

/** 32 bytes that stand for a number. */
export const idFor = (number: number | string): Buffer => createHash('sha256').update(String(number)).digest()

export const placeFor = (number: number): RootRecord => ({
  path: [idFor(`root ${number % 7}`)],
  itemOffset: number * 1000,
  dataOffset: number * 1000 + 300,
  itemSize: 900,
})

/** Puts a band with these numbers on the store. */
export async function shelveBand(
  bandStore: BandStore,
  id: string,
  numbers: readonly number[],
  metadata: Readonly<Record<string, unknown>> = { heightRange: [0, null] },
): Promise<string> {
  const draft = await bandStore.draft()
  const writer = new RootIndexWriter(draft)
  for (const number of numbers) writer.add(idFor(number), placeFor(number), number)
  await writer.finish('2031-02-03T04:05:06.000Z', metadata)
  await bandStore.place(draft, 'own', 'root-tx-index', id)
  return join(bandStore.root, 'own', 'root-tx-index', id)
}

export const span = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, at) => from + at)

/** A store and a publisher on it, in a folder of the test's own. */
export async function house(given: Partial<PublishOptions> = {}, clock: Clock = systemClock) {
  const root = scratch('root-band')
  const bandStore = new BandStore(join(root, 'bands'))
  await bandStore.prepare()
  const key = loadSigningKey({ keyFile: join(root, 'key.pem') })
  const torrentsPath = join(bandStore.root, 'torrents')
  const options: PublishOptions = {
    publisher: key.solanaAddress,
    domain: ownDomain,
    pathPrefix: '/gateway',
    ttlMs: 86_400_000,
    graceMs: 300_000,
    ...given,
    ...(given.trackers === undefined ? {} : { torrentsPath }),
  }
  const { pathPrefix, trackers = [] } = options
  const measure =
    given.trackers === undefined ? measureDigests : measureTorrent({ torrentsPath, pathPrefix, trackers })
  const open = (): Publisher =>
    new Publisher(bandStore, [rootTxBands], measure, key, clock, silentLog, options)
  return { root, bandStore, key, open, publisher: open() }
}
