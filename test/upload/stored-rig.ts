import { closeSync, mkdirSync, openSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pause, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import type { Id } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { GuardedObjects, guardDefaults } from '../../src/source/objects/guarded-objects.js'
import type { ObjectStore } from '../../src/source/objects/object-store.js'
import { TierKeys } from '../../src/source/tier/tier-keys.js'
import type { Environment } from '../../src/store/lmdb.js'
import type { DurableLog } from '../../src/store/segments/durable-log.js'
import { type LogPlace, logFileName } from '../../src/store/segments/log-file.js'
import { Sales } from '../../src/upload/charging/sales.js'
import { openIntake, takeUpBrought } from '../../src/upload/intake/open-intake.js'
import { openUploadTables, Uploads } from '../../src/upload/records/uploads.js'
import { PlacesSeen } from '../../src/upload/stored/log-bytes.js'
import { StoredKeys } from '../../src/upload/stored/stored-keys.js'
import {
  StoredUploads,
  type StoredUploadsOptions,
  type StoredUploadsParts,
} from '../../src/upload/stored/stored-uploads.js'
import type { MadeItem } from '../conformance/kept-uploads.js'
import type { MemoryObjects } from '../engines/memory-objects.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

/** A machine that accepts items: its disk, and its part of an object store. */
export interface StoringMachine {
  readonly uploads: Uploads
  readonly log: DurableLog
  readonly stored: StoredUploads
  readonly guarded: GuardedObjects
  /** Logs and stores an item, and enters it in the tables as the intake does. True: it may have its receipt. */
  accept(item: MadeItem): Promise<boolean>
  bytesAt(place: LogPlace): Buffer
  /** Its process ends; `isLost`: with its disk. */
  end(isLost?: boolean): Promise<void>
}

export interface MachineOptions extends Partial<StoredUploadsOptions> {
  readonly folder?: string
  readonly node?: string
  readonly takeover?: StoredUploadsParts['takeover']
  /** Absent: there are no sales. */
  readonly leaveSales?: StoredUploadsParts['leaveSales']
  /** Of the wallet. */
  readonly secret?: Uint8Array
}

const unmetered = { ended: () => undefined, received: () => undefined, sent: () => undefined }

/** Starts one; resolves when it accepts items, or at once with `isWaited` false. */
export async function storingMachine(
  objects: ObjectStore,
  {
    folder = scratch('stored'),
    node = 'one',
    secret = Buffer.alloc(32, 7),
    takeover,
    leaveSales = async () => undefined,
    ...options
  }: MachineOptions = {},
  isWaited = true,
): Promise<StoringMachine> {
  const tables = join(folder, 'uploads')
  mkdirSync(tables, { recursive: true })
  const environment: Environment = openUploadTables(tables)
  const uploads = new Uploads(environment)
  uploads.pending.useWriter({
    isOverdue: () => false,
    leftOut: () => undefined,
    writeRows(items) {
      for (const item of items) uploads.enter(item)
    },
    rowsCommitted: () => undefined,
  })
  const storing = { seen: new PlacesSeen(), unstored: [], isUnflushed: options.isOnDisk === false }
  const entering = {
    uploads,
    sales: new Sales(uploads.environment),
    pools: { record: () => undefined },
    log: silentLog,
    clock: systemClock,
  }
  const { itemLog: log } = await openIntake(join(folder, 'log'), { ...entering, storing })
  const rests = { ...guardDefaults, writesMax: 4, restMs: 200, restMaxMs: 400 }
  const guarded = new GuardedObjects(objects, rests, unmetered, systemClock)
  const stored = new StoredUploads(
    {
      store: guarded,
      slowStore: new GuardedObjects(objects, rests, unmetered, systemClock),
      keys: new StoredKeys('p'),
      tierKeys: new TierKeys('p'),
      network: 'devnet',
      node,
      uploads,
      itemLog: log,
      ...storing,
      secret: async () => secret,
      leaveSales,
      takeUp: (items) => void takeUpBrought(items, log, entering),
      betweenRounds: async (act) => act(),
      ...(takeover === undefined ? {} : { takeover }),
      count: () => undefined,
      clock: systemClock,
      logger: silentLog,
    },
    { isWanted: true, isOnDisk: true, againMs: 100, doubtMs: 2000, ...options },
  )
  // Timers of the program keep no process alive.
  const alive = new AbortController()
  void pause(600_000, alive.signal)
  stored.start()
  if (isWaited) await eventually('the store is open', () => stored.refusal === undefined)
  return {
    uploads,
    log,
    stored,
    guarded,
    accept: (item) => accepted(uploads, log, stored, item),
    bytesAt: (place) => bytesAt(log.folder, place),
    async end(isLost = false) {
      alive.abort()
      await stored.close()
      await log.close()
      await environment.close()
      if (isLost) rmSync(folder, { recursive: true })
    },
  }
}

async function accepted(
  uploads: Uploads,
  log: DurableLog,
  stored: StoredUploads,
  { id, bytes, digest, headerSize, logged }: MadeItem,
): Promise<boolean> {
  if (stored.refusal !== undefined) return false
  const meta = Buffer.from(JSON.stringify(logged))
  const draft = log.draft()
  for (let at = 0; at < bytes.length; at += 65_536) {
    const refusal = await draft.write(bytes.subarray(at, at + 65_536))
    if (refusal !== undefined) return false
  }
  const place = await draft.finish(digest, meta)
  if (isRefusal(place)) return false
  const contentType = logged.contentType ?? ''
  const sizeBytes = bytes.length
  const group = await stored.put({ id, headerSize, contentType, sizeBytes, digest, meta, place })
  if (isRefusal(group)) return false
  uploads.accept(
    [group === undefined ? { ...logged, place } : { ...logged, place, stored: group }],
    () => undefined,
  )
  return true
}

export function bytesAt(folder: string, { file, offset, sizeBytes }: LogPlace): Buffer {
  const handle = openSync(`${folder}/${logFileName(file)}`, 'r')
  try {
    const bytes = Buffer.alloc(sizeBytes)
    const read = sizeBytes === 0 ? 0 : readSync(handle, bytes, 0, sizeBytes, offset)
    return bytes.subarray(0, read)
  } finally {
    closeSync(handle)
  }
}

/** What becomes of items when their bundle is permanent. */
export function release({ uploads }: StoringMachine, items: readonly { readonly id: Id }[]): void {
  uploads.environment.write(() => {
    for (const { id } of items) {
      const item = uploads.find(id)
      if (item !== undefined) uploads.release(item)
    }
  })
}

/** Keys of the groups in a bucket. */
export function groupsOf({ objects }: MemoryObjects): string[] {
  return [...objects.keys()].filter((key) => key.startsWith('p/sluice/uploads/log/'))
}
