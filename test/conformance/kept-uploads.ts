import { createHash, randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { encodeBase64url } from '../../src/format/base64url.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import type { RecordDigest } from '../../src/store/segments/segment-record.js'
import type { LoggedUpload } from '../../src/upload/records/uploads.js'
import { eventually } from '../eventually.js'

/** An accepted item, as the intake gives it away. */
export interface MadeItem {
  readonly id: Id
  readonly bytes: Buffer
  readonly headerSize: number
  readonly digest: RecordDigest
  readonly logged: LoggedUpload
}

/** What keeps accepted uploads until they are permanent. */
export interface KeptUploads {
  /** True: the uploader may have a receipt. */
  keep(item: MadeItem): Promise<boolean>
  /** What the next process finds, of which everything else is lost that is not promised: bytes and records by id. */
  next(): Promise<ReadonlyMap<Id, { readonly bytes: Buffer; readonly logged: LoggedUpload }>>
  /** These are permanent. */
  release(ids: readonly Id[]): Promise<void>
  /** From now on it takes nothing, or takes everything again. */
  setFailing(isFailing: boolean): void
}

const headerSize = 100

function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** An item of so many bytes. Nobody looks into it here. */
export function madeItem(sizeBytes: number): MadeItem {
  const bytes = randomBytes(sizeBytes)
  const id = idOfBytes(randomBytes(32))
  const payload = sha256(bytes.subarray(headerSize))
  const logged: LoggedUpload = {
    id,
    headerSize,
    owner: encodeBase64url(randomBytes(32)),
    receivedMs: 1_700_000_000_000,
    deadlineHeight: 1234,
    winc: '17',
    contentType: 'text/plain',
    digest: encodeBase64url(payload),
  }
  const digest = { frontBytes: headerSize, digest: sha256(bytes.subarray(0, headerSize), payload) }
  return { id, bytes, headerSize, digest, logged }
}

/** What holds of everything that keeps accepted uploads. `open`: an empty one. */
export async function conformKeptUploads(t: Test, open: (t: Test) => Promise<KeptUploads>): Promise<void> {
  await t.test('what was kept is found, byte for byte, with its record', async (t) => {
    const kept = await open(t)
    const sizes = [...Array.from({ length: 300 }, () => 10_240), headerSize, 262_145, 1_500_000, 20_000_000]
    const items = sizes.map(madeItem)
    t.ok((await Promise.all(items.map((item) => kept.keep(item)))).every(Boolean))
    const found = await kept.next()
    t.equal(found.size, items.length)
    for (const { id, bytes, logged } of items) {
      const one = found.get(id)
      if (one?.bytes.equals(bytes) !== true) t.fail(`other bytes of an item of ${bytes.length}`)
      t.match(one?.logged, logged)
    }
    const again = await kept.next()
    t.equal(again.size, items.length, 'and again')
  })

  await t.test('what was refused does not count', async (t) => {
    const kept = await open(t)
    const [before, refused, large, after] = [10_240, 10_240, 3_000_000, 10_240].map(madeItem) as [
      MadeItem,
      MadeItem,
      MadeItem,
      MadeItem,
    ]
    t.equal(await kept.keep(before), true)
    kept.setFailing(true)
    t.equal(await kept.keep(refused), false)
    t.equal(await kept.keep(large), false)
    kept.setFailing(false)
    await eventually('it takes items again', () => kept.keep(after))
    const found = await kept.next()
    t.strictSame([...found.keys()].sort(), [before.id, after.id].sort())
  })

  await t.test('what is permanent is not kept', async (t) => {
    const kept = await open(t)
    const items = [10_240, 10_240, 2_000_000].map(madeItem)
    for (const item of items) t.equal(await kept.keep(item), true)
    await kept.release(items.map(({ id }) => id))
    t.equal((await kept.next()).size, 0)
  })
}
