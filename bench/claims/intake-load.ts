import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { Pool } from 'undici'
import { systemClock } from '../../src/actor/clock.js'
import { encodeItemHeader, parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { ItemVerifier } from '../../src/proof/item-verifier.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import type { Taker } from './intake-servers.js'

const seed = randomBytes(32)
const signer = ed25519Signer(seed)
export const owner: Uint8Array = signer.owner

/** The payload of each item is another one: its last bytes count. */
export function itemOf(bytes: number, at: number): Buffer {
  const payload = Buffer.alloc(bytes, 'payload of the intake bench ')
  payload.writeDoubleLE(at, Math.max(0, bytes - 8))
  return Buffer.from(signItem(signer, {}, payload))
}

let made = 0

/** What became of uploads. */
export interface Uploaded {
  readonly seconds: number
  readonly latenciesMs: readonly number[]
  readonly statuses: ReadonlyMap<number, number>
}

class Tally {
  readonly latenciesMs: number[] = []
  readonly statuses = new Map<number, number>()
  readonly #begin = systemClock.monotonic()

  note(status: number, beganMs: number): void {
    this.latenciesMs.push(systemClock.monotonic() - beganMs)
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
  }

  over(): Uploaded {
    const seconds = (systemClock.monotonic() - this.#begin) / 1000
    return { seconds, latenciesMs: this.latenciesMs, statuses: this.statuses }
  }
}

async function one(pool: Pool, taker: Taker, path: string, item: Buffer): Promise<number> {
  const { method } = taker
  const answer = await pool.request({ path, method, body: item, headers: taker.headers(item.length) })
  await answer.body.dump()
  return answer.statusCode
}

function poolOf(taker: Taker, connections: number): { readonly pool: Pool; path(): string } {
  const { origin, pathname } = new URL(taker.url)
  const pool = new Pool(origin, { connections, pipelining: 1 })
  return { pool, path: () => pathname + taker.suffix() }
}

/** So many uploads, by so many uploaders that wait for each answer. Items are made before the time begins. */
export async function uploads(
  taker: Taker,
  given: { readonly bytes: number; readonly count: number; readonly uploaders: number },
): Promise<Uploaded> {
  const { pool, path } = poolOf(taker, given.uploaders)
  const items = Array.from({ length: given.count }, () => itemOf(given.bytes, made++))
  const tally = new Tally()
  const uploader = async (): Promise<void> => {
    for (let item = items.pop(); item !== undefined; item = items.pop()) {
      const beganMs = systemClock.monotonic()
      tally.note(await one(pool, taker, path(), item), beganMs)
    }
  }
  await Promise.all(Array.from({ length: given.uploaders }, uploader))
  const over = tally.over()
  await pool.destroy()
  return over
}

/** Uploads that begin at a rate, whether those before have ended or not: each one's time counts from when it was due. */
export async function paced(
  taker: Taker,
  given: {
    readonly bytes: number
    readonly count: number
    readonly perSecond: number
    /** 64 where absent: enough where an answer takes less than a tenth of a second. */
    readonly connections?: number
  },
): Promise<Uploaded> {
  const { pool, path } = poolOf(taker, given.connections ?? 64)
  const items = Array.from({ length: given.count }, () => itemOf(given.bytes, made++))
  const tally = new Tally()
  const begin = systemClock.monotonic()
  const running: Promise<void>[] = []
  while (running.length < given.count) {
    const due = Math.min(given.count, ((systemClock.monotonic() - begin) * given.perSecond) / 1000)
    for (let at = running.length; at < due; at += 1) {
      const dueMs = begin + (at * 1000) / given.perSecond
      const sent = one(pool, taker, path(), items[at] as Buffer)
      running.push(sent.then((status) => tally.note(status, dueMs)))
    }
    await new Promise<void>((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(running)
  const over = tally.over()
  await pool.destroy()
  return over
}

/** One item of any size, made as it is sent. Resolves with the seconds that its upload took. */
export async function large(taker: Taker, bytes: number): Promise<number> {
  const piece = Buffer.alloc(2 ** 20, randomBytes(997))
  const pieces = function* (): Generator<Buffer> {
    for (let at = 0; at < bytes; at += piece.length)
      yield piece.subarray(0, Math.min(piece.length, bytes - at))
  }
  const facts = { signatureType: signer.signatureType, owner: signer.owner, tags: [] }
  const bare = parseItemHeader(encodeItemHeader({ ...facts, signature: new Uint8Array(64) }))
  if (bare === 'more' || isRefusal(bare)) throw new Error('an own item cannot be read')
  const verifier = new ItemVerifier(bare)
  for (const part of pieces()) verifier.update(part)
  const header = encodeItemHeader({ ...facts, signature: signer.sign(verifier.message()) })
  const body = async function* (): AsyncGenerator<Uint8Array> {
    yield header
    yield* pieces()
  }
  const { pool, path } = poolOf(taker, 1)
  const begin = systemClock.monotonic()
  const answer = await pool.request({
    path: path(),
    method: taker.method,
    body: Readable.from(body()),
    headers: { ...taker.headers(bytes), 'content-length': String(header.length + bytes) },
    bodyTimeout: 0,
    headersTimeout: 0,
  })
  const text = await answer.body.text()
  if (answer.statusCode !== taker.status) throw new Error(`status ${answer.statusCode}: ${text}`)
  const seconds = (systemClock.monotonic() - begin) / 1000
  await pool.destroy()
  return seconds
}
