import { sameBytes } from '../bytes.js'
import { ClientError } from '../errors.js'
import { digestBeside } from '../hash.js'
import type { SignedHead } from '../item-layout.js'
import { asideBytesMin, longSha384 } from '../long-hash.js'
import { partsOf } from '../parts.js'
import { type Gateways, untrue } from './gateways.js'
import { plainLength } from './held-body.js'
import { checkOwner, headOf } from './item-head.js'
import type { ProvenTransaction } from './transaction-proof.js'

/** Each so long part has a digest of its own: 8 KiB of digests for 64 MiB of content. */
const partBytes = 256 * 1024
/** Bytes of one request when it is read again. */
const blockBytes = 16 * partBytes
/** Where a gateway states no length, as behind a proxy that compresses texts, so much is read at most. */
const unstatedMaxBytes = 2 ** 30
/** Blocks requested ahead of the reader. */
const aheadMax = 2

/**
 * An item of which a range is wanted, or which is too long to be held until its signature is checked. It is read twice: once for
 * its owner's signature, keeping a digest of each part; then again, part by part, against those. Memory: 32 bytes for each
 * 256 KiB, and the parts that are under way.
 */
export class ReadTwice {
  private constructor(
    private readonly gateways: Gateways,
    readonly header: SignedHead,
    readonly size: number,
    private readonly digests: readonly Uint8Array[],
  ) {}

  /** Reads it from `gateway` for the first time. Rejects with `untrue` where its owner did not sign what the gateway has. */
  static async of(gateways: Gateways, gateway: string, id: string, signal?: AbortSignal): Promise<ReadTwice> {
    const { header, size, digests } = await readOnce(gateways, gateway, id, signal)
    return new ReadTwice(gateways, header, size, digests)
  }

  /** Bytes `from` to `to` (exclusive), each part proven before it is given. */
  async *pieces(from: number, to: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const ahead: Promise<{ bytes: Uint8Array }>[] = []
    const first = Math.floor(from / partBytes) * partBytes
    let requested = first
    try {
      for (let at = first; at < to; at += blockBytes) {
        for (; ahead.length < aheadMax && requested < to; requested += blockBytes) {
          const start = requested
          const one = this.gateways.first((gateway) => this.#block(gateway, start, to, signal), signal)
          // Awaited in its turn, or not at all where the reader leaves.
          one.catch((error) => error)
          ahead.push(one)
        }
        const { bytes } = (await ahead.shift()) as { bytes: Uint8Array }
        yield bytes.subarray(Math.max(0, from - at), Math.min(bytes.length, to - at))
      }
    } finally {
      await Promise.allSettled(ahead)
    }
  }

  async #block(
    gateway: string,
    start: number,
    to: number,
    signal: AbortSignal | undefined,
  ): Promise<{ bytes: Uint8Array }> {
    const wanted = Math.ceil((to - start) / partBytes) * partBytes
    const end = Math.min(this.size, start + Math.min(blockBytes, wanted))
    const range = { range: `bytes=${start}-${end - 1}` }
    const { id } = this.header
    const response = await this.gateways.get(`${gateway}/raw/${id}`, range, signal, [206])
    const bytes = await this.gateways.bytes(response, end - start, signal)
    if (bytes.length !== end - start)
      throw untrue(`${gateway}: ${bytes.length} bytes of ${id} instead of ${end - start}`)
    const parts = Array.from({ length: Math.ceil(bytes.length / partBytes) }, async (_, at) => {
      const part = bytes.subarray(at * partBytes, (at + 1) * partBytes)
      return sameBytes(await digestBeside('sha256', part), this.digests[start / partBytes + at] as Uint8Array)
    })
    if ((await Promise.all(parts)).includes(false))
      throw untrue(`${gateway}: the second time these are not the bytes that the owner of ${id} signed`)
    return { bytes }
  }
}

async function readOnce(
  gateways: Gateways,
  gateway: string,
  id: string,
  signal: AbortSignal | undefined,
): Promise<{ header: SignedHead; size: number; digests: Uint8Array[] }> {
  const response = await gateways.get(`${gateway}/raw/${id}`, {}, signal)
  const head = headOf({ gateways, gateway, id, signal }, response.headers)
  head.catch((error) => error)
  const whole = await longSha384(Number(response.headers.get('content-length') ?? asideBytesMin))
  const digests: Uint8Array[] = []
  let size = 0
  let header: SignedHead | ProvenTransaction
  try {
    for await (const part of partsOf(
      gateways.pieces(response, plainLength(response) ?? unstatedMaxBytes, signal),
      partBytes,
    )) {
      await whole.update(part)
      digests.push(await digestBeside('sha256', part))
      size += part.length
    }
    header = await head
  } catch (error) {
    whole.drop()
    throw error
  }
  const hashed = await whole.digest()
  if ('dataRoot' in header) throw new ClientError('not-found', `${id} is no item`, 'fetch it by its chunks')
  await checkOwner(gateway, header, { hashed, length: size })
  return { header, size, digests }
}
