import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import { random } from '../property.js'

/** What is asked of a store of payloads named by the SHA-256 of their bytes, however it keeps them. */
export interface Payloads {
  /** Keeps a payload with this digest: the caller has hashed it. False: it is not kept. */
  put(digest: Uint8Array, bytes: Uint8Array): Promise<boolean>
  /** The bytes, which are those of the digest; undefined where they are not had. */
  get(digest: Uint8Array): Promise<Uint8Array | undefined>
  /** It is not had afterwards. */
  remove(digest: Uint8Array): Promise<void>
  /** Bytes that it takes: at least those of what was put and not removed. */
  usage(): Promise<{ readonly bytes: number }>
  /** As after an orderly end and a start: what was put is there. */
  reopen(): Promise<void>
  /** As after a kill. Absent: nothing outlives it. */
  kill?(): Promise<void>
  /** Changes a byte of this payload behind the store's back. Absent: nothing can. */
  damage?(digest: Uint8Array): Promise<void>
  close(): Promise<void>
}

const digestOf = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

function payload(sizeBytes: number, seed: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes)
  for (let at = 0; at < sizeBytes; at += 32) digestOf(Buffer.from(`${seed} ${at}`)).copy(bytes, at)
  return bytes
}

/** What every store of payloads does. `open` begins an empty one, with room for some MB. */
export async function conformPayloads(t: Test, open: (t: Test) => Promise<Payloads>): Promise<void> {
  await t.test('what was put is had, and nothing else', async (t) => {
    const store = await open(t)
    for (const size of [0, 1, 511, 512, 513, 10_000, 200_000]) {
      const bytes = payload(size, size)
      t.equal(await store.get(digestOf(bytes)), undefined, `${size} bytes, before`)
      t.equal(await store.put(digestOf(bytes), bytes), true)
      t.ok(bytes.equals((await store.get(digestOf(bytes))) ?? Buffer.alloc(1)), `${size} bytes`)
    }
    t.equal(await store.get(digestOf(payload(10_000, 3))), undefined)
    await store.close()
  })

  await t.test('put twice, it is one; removed, it is gone, and can come again', async (t) => {
    const store = await open(t)
    const bytes = payload(3000, 1)
    const digest = digestOf(bytes)
    await store.remove(digest)
    const before = await store.usage()
    await store.put(digest, bytes)
    const once = await store.usage()
    t.ok(once.bytes - before.bytes >= 3000, 'its bytes are counted')
    await store.put(digest, bytes)
    t.same(await store.usage(), once)
    await store.remove(digest)
    t.equal(await store.get(digest), undefined)
    t.ok((await store.usage()).bytes <= once.bytes, 'room is given back now or later')
    await store.put(digest, bytes)
    t.ok(bytes.equals((await store.get(digest)) ?? Buffer.alloc(0)))
    await store.reopen()
    t.ok(bytes.equals((await store.get(digest)) ?? Buffer.alloc(0)), 'after a start')
    await store.close()
  })

  await t.test('a digest that was borrowed and changed afterwards changes nothing', async (t) => {
    const store = await open(t)
    const bytes = payload(700, 9)
    const borrowed = digestOf(bytes)
    await store.put(borrowed, bytes)
    borrowed.fill(0)
    t.ok(bytes.equals((await store.get(digestOf(bytes))) ?? Buffer.alloc(0)))
    await store.close()
  })

  await t.test('changed bytes are never given', async (t) => {
    const store = await open(t)
    const { damage } = store
    if (damage !== undefined) {
      const bytes = payload(5000, 2)
      const other = payload(6000, 3)
      for (const one of [bytes, other]) await store.put(digestOf(one), one)
      await store.reopen()
      await damage.call(store, digestOf(bytes))
      t.equal(await store.get(digestOf(bytes)), undefined)
      t.ok(other.equals((await store.get(digestOf(other))) ?? Buffer.alloc(0)))
      await store.remove(digestOf(bytes))
      t.equal(await store.put(digestOf(bytes), bytes), true)
      t.ok(bytes.equals((await store.get(digestOf(bytes))) ?? Buffer.alloc(0)), 'it comes anew')
    }
    await store.close()
  })

  await t.test('any order of put, get, remove, start and kill is as a plain map has it', async (t) => {
    const store = await open(t)
    const model = new Map<number, Buffer>()
    const seeds = 24
    const look = async (seed: number): Promise<void> => {
      const bytes = payload(100 * seed, seed)
      const had = await store.get(digestOf(bytes))
      const wanted = model.get(seed)
      if (wanted === undefined ? had !== undefined : !wanted.equals(had ?? Buffer.alloc(1)))
        t.fail(`payload ${seed} is ${had === undefined ? 'missing' : 'wrong'}`)
    }
    for (let turn = 0; turn < 400; turn += 1) {
      const seed = Math.floor(random() * seeds)
      const bytes = payload(100 * seed, seed)
      const what = random()
      if (what < 0.4) {
        t.ok(await store.put(digestOf(bytes), bytes))
        model.set(seed, bytes)
      } else if (what < 0.6) {
        await store.remove(digestOf(bytes))
        model.delete(seed)
      } else if (what < 0.96) await look(seed)
      else if (what < 0.98) await store.reopen()
      else if (store.kill !== undefined) await store.kill()
    }
    for (let seed = 0; seed < seeds; seed += 1) await look(seed)
    await store.close()
  })
}
