import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { pause } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { Meters, meterBytes } from '../../../src/actor/meter.js'
import { meterTable } from '../../../src/actor/meter-table.js'
import type { Broadcasted } from '../../../src/chain/broadcast.js'
import type { DataWish } from '../../../src/chain/data-witnesses.js'
import { encodeBase64url } from '../../../src/format/base64url.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { sha256 } from '../../../src/proof/digest.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { Bundles } from '../../../src/upload/bundling/bundle-records.js'
import { Bundler } from '../../../src/upload/bundling/bundler.js'
import type { BundlerParts } from '../../../src/upload/bundling/bundler-parts.js'
import type { FreeReservation } from '../../../src/upload/records/free-pools.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { turnOf } from '../../../src/upload/records/waiting-lines.js'
import { HandClock } from '../../http/hand-clock.js'
import { scratch } from '../../scratch.js'

export const rules = { itemsMax: 20, bytesMax: 100_000, waitMs: 0, everyMs: 250, depth: 18, lookMs: 500 }

export interface Rig {
  readonly uploads: Uploads
  readonly bundles: Bundles
  readonly clock: HandClock
  readonly bundler: Bundler
  readonly log: DurableLog
  /** Puts an item into the log and the tables; `free`: what was taken for it. */
  accept(name: string, free?: FreeReservation): Id
  /** The next bundle is packed, if any is: five seconds later, or `afterMs`. */
  round(afterMs?: number): Promise<void>
  /** A round, whether a bundle is packed or not. */
  turn(afterMs: number): Promise<void>
}

/** A bundler over a log on disk. Its node answers a transaction by `post`, takes everything unless given, and mines nothing. */
export async function rigOf(
  t: Test,
  post: () => object = () => ({}),
  balance = 100n,
  more: Partial<BundlerParts> = {},
  moreOfChain: object = {},
): Promise<Rig> {
  const folder = scratch('bundler')
  const environment = openUploadTables(join(folder, 'tables'))
  const uploads = new Uploads(environment)
  const bundles = new Bundles(environment, uploads)
  const log = await DurableLog.open(join(folder, 'log'))
  const clock = new HandClock()
  const beganMs = Date.now() - clock.monotonic()
  clock.now = () => beganMs + clock.monotonic()
  let signed = 0
  let hanging = 0
  const { chunk = async () => ({ enough: true, results: [] }) as unknown as Broadcasted } =
    more.broadcast ?? {}
  const counted = async (json: string): Promise<Broadcasted> => {
    hanging += 1
    return chunk(json).finally(() => {
      hanging -= 1
    })
  }
  const taken = new Set<string>()
  const unknown = refuse('unknown', 'upstream', 'no node has it')
  const bundler = new Bundler({
    uploads,
    bundles,
    itemLog: log,
    logFolder: join(folder, 'log'),
    clock,
    logger: silentLog,
    height: () => 1,
    owner: Buffer.alloc(512, 1),
    signing: {
      data: async () => {
        signed += 1
        return sha256(Buffer.from(`signature ${signed}`))
      },
    },
    chain: {
      tip: async () => ({ anchor: 'A'.repeat(64), height: (more.height ?? (() => 1))() }),
      price: async () => 1n,
      balance: async () => balance,
      postTransaction: async ({ id }: { readonly id: string }) => {
        const posted = post()
        if (!isRefusal(posted)) taken.add(id)
        return posted
      },
      agreedStatus: async (id: string) => (taken.has(id) ? { kind: 'pending' } : unknown),
      ...moreOfChain,
    },
    witnesses: { look: async ({ offsets }: DataWish) => ({ seen: offsets, missing: [] }) },
    rules,
    meters: new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0),
    ...more,
    broadcast: { chunk: counted },
  } as unknown as BundlerParts)
  bundler.start()
  t.teardown(async () => {
    await bundler.close()
    await log.close()
    await environment.close()
  })
  const accept = (name: string, free?: FreeReservation): Id => {
    const bytes = Buffer.from(name)
    const id = idOfBytes(sha256(bytes))
    const place = log.append([bytes], createHash('sha256').update(bytes).digest())
    if (isRefusal(place)) throw new Error(place.message)
    const turn = free && turnOf(free)
    const logDigest = encodeBase64url(sha256(bytes.subarray(0, 1), sha256(bytes.subarray(1))))
    const facts = {
      logDigest,
      id,
      headerSize: 1,
      owner: 'o',
      receivedMs: clock.now(),
      deadlineHeight: 1,
      winc: '0',
    }
    uploads.accept([{ ...facts, place, ...(turn === undefined ? {} : { turn }) }], () => undefined)
    return id
  }
  /** What is sent beside the rounds has ended, or waits for nodes. */
  const settled = async (): Promise<void> => {
    const isDue = (): boolean =>
      bundles.open().some(({ state, dueMs }) => state === 'posted' && dueMs <= clock.now())
    for (let turns = 0, hung = 0; turns < 1000 && hung < 10 && isDue(); turns += 1) {
      await pause(2)
      hung = hanging > 0 ? hung + 1 : 0
    }
  }
  const round = async (afterMs = 5000): Promise<void> => {
    const before = bundles.recent.length
    clock.jump(afterMs)
    for (let turns = 0; turns < 40 && bundles.recent.length === before; turns += 1) await pause(5)
    await bundler.betweenRounds(() => undefined)
    await settled()
  }
  const turn = async (afterMs: number): Promise<void> => {
    clock.jump(afterMs)
    await bundler.betweenRounds(() => undefined)
    await settled()
  }
  return { uploads, bundles, clock, bundler, log, accept, round, turn }
}
