import { isContentId, textOfBytes } from '../bytes.js'
import { ClientError } from '../errors.js'
import { answerType, bareType, typeTagOf } from '../media-type.js'
import { pathManifestType } from '../path-manifest.js'
import type { FetchLike } from '../service.js'
import { soon, throwIfAborted } from '../timing.js'
import type { BelievedBlock } from './agreed-block.js'
import { type Finding, Gateways, gatewayHeader, untrue } from './gateways.js'
import { HeldResponse } from './held-body.js'
import { findItem } from './item-place.js'
import { manifestTarget } from './manifest-target.js'
import { ProvenData } from './proven-data.js'
import type { ReadTwice } from './read-twice.js'
import { type OwnedContent, ownedContent, tooLong } from './whole.js'

export interface VerifiedFetchOptions {
  /** First and last byte, as in `bytes=0-499`; without an end to the end. */
  readonly range?: { readonly start: number; readonly end?: number } | undefined
  readonly signal?: AbortSignal | undefined
  /** Whole content up to this is held until its owner's signature is checked; 128 MiB unless said. Longer is proven by chunks. */
  readonly holdBytesMax?: number
}

export interface ProvingFetchOptions {
  readonly gatewayUrls: readonly string[]
  readonly fetch?: FetchLike
  /** How many gateways must agree on a name; 2 unless said, or 1 where there is only one gateway. */
  readonly nameQuorum?: number
  /**
   * Whether content that is proven by chunks is also proven to lie in a block: `ask` (unless said) proves it where gateways tell
   * enough of the chain, `require` rejects where it cannot be proven, `skip` does not ask. Of the block the answer's lines
   * `X-Verified-Block` and `X-Verified-Height` tell, and `X-Verified-Block-By` how many gateways say so (`2 of 3`): it is proven
   * no other way.
   */
  readonly block?: 'ask' | 'require' | 'skip'
  /** How many gateways must agree on the block; 2 unless said, or 1 where there is only one gateway. */
  readonly blockQuorum?: number
  /** How long a gateway may say nothing before another is asked, in milliseconds; 30,000 unless said. */
  readonly patienceMs?: number
  /** Hears of each gateway that failed or lied. */
  readonly onFinding?: (finding: Finding) => void
}

const holdBytesDefault = 128 * 1024 * 1024
const manifestBytesMax = 64 * 1024 * 1024
/** Roots whose proofs are kept for the next range. */
const rootsMax = 8

/** How long a range waits for what gateways say of its block, where that is not required. */
const blockWaitMs = 3000

type Proof = 'owner' | 'chunks'

interface Provable {
  readonly start: number
  readonly end: number
  readonly contentType: string | undefined
  readonly proof: Proof
  /** Where it is proven by chunks. */
  readonly data?: ProvenData
  pieces(from: number, to: number): AsyncGenerator<Uint8Array>
}

/** Keeps a proof for the next question, and forgets the oldest beyond the bound. */
function keepNewest<Value>(kept: Map<string, Value>, id: string, value: Value): void {
  kept.delete(id)
  kept.set(id, value)
  for (const oldest of kept.keys()) {
    if (kept.size <= rootsMax) break
    kept.delete(oldest)
  }
}

/** Fetches content by id or name from gateways that need no trust. */
export class ProvingFetcher {
  readonly #gateways: Gateways
  readonly #options: ProvingFetchOptions
  readonly #roots = new Map<string, Promise<ProvenData>>()
  readonly #twice = new Map<string, Promise<ReadTwice>>()
  /** Roots of which no block could be proven: the next range does not wait for it once more. */
  readonly #unplaced = new WeakSet<ProvenData>()

  constructor(options: ProvingFetchOptions) {
    this.#options = options
    this.#gateways = new Gateways({
      gatewayUrls: options.gatewayUrls,
      fetch: options.fetch,
      onFinding: options.onFinding,
      patienceMs: options.patienceMs,
    })
  }

  /**
   * Content of `ID`, `ID/path`, `ar://ID/path`, `ar://name/path`. The answer has status 200, or 206 for a range; its bytes
   * were proven before they are given out. `X-Verified` says how: `owner` (the owner's signature over the whole) or `chunks`
   * (the bytes lie in the transaction that the owner of the bundle signed, in the place of this id). Rejects with a ClientError:
   * `untrue` where every gateway that answered lied.
   */
  async fetch(reference: string, options: VerifiedFetchOptions = {}): Promise<Response> {
    const [host = '', ...rest] = reference.replace(/^ar:\/\//, '').split('/')
    const path = rest.join('/')
    const id = isContentId(host) ? host : await this.#named(host, options.signal)
    // By id alone the bytes are meant as they are; a path, and a name always, lead through a manifest.
    const isPlain = isContentId(host) && rest.length === 0
    return this.content(isPlain ? id : await this.#resolved(id, path, options.signal), options)
  }

  /** Content by id alone, without manifests. */
  async content(id: string, options: VerifiedFetchOptions = {}): Promise<Response> {
    const { range, signal, holdBytesMax = holdBytesDefault } = options
    if (range === undefined && this.#options.block !== 'require') {
      const whole = await this.#whole(id, holdBytesMax, signal)
      if (whole !== undefined) return responseOf(whole, 'owner', whole.gateway)
    }
    const { start, end, contentType, pieces: read, proof, data } = await this.#provable(id, signal)
    const from = start + (range?.start ?? 0)
    const to = Math.min(end, range?.end === undefined ? end : start + range.end + 1)
    if (from >= to && !(range === undefined && start === end)) {
      throw new ClientError(
        'invalid-input',
        `the range lies beyond ${end - start} bytes`,
        'give a smaller start',
      )
    }
    const block = data && from < to ? await this.#block(data, from, signal) : undefined
    const pieces = read(from, to)
    const length = { 'content-length': String(to - from) }
    const lines: Record<string, string> =
      range === undefined
        ? length
        : { ...length, 'content-range': `bytes ${from - start}-${to - start - 1}/${end - start}` }
    const type = answerType(contentType)
    const headers: Record<string, string> = {
      ...lines,
      'content-type': type,
      'x-verified': proof,
      'accept-ranges': 'bytes',
      ...(block && {
        'x-verified-block': block.hash,
        'x-verified-height': String(block.height),
        'x-verified-block-by': block.by,
      }),
    }
    return new Response(streamOf(pieces), { status: range === undefined ? 200 : 206, headers })
  }

  /** The block that the data is proven to lie in, as far as it is wanted. */
  async #block(
    data: ProvenData,
    at: number,
    signal: AbortSignal | undefined,
  ): Promise<BelievedBlock | undefined> {
    const { block = 'ask', blockQuorum = Math.min(2, this.#gateways.urls.length), onFinding } = this.#options
    if (block === 'skip' || (block === 'ask' && this.#unplaced.has(data))) return undefined
    const asked = async (): Promise<BelievedBlock> => {
      const { agreedBlock } = await import('./agreed-block.js')
      return agreedBlock(this.#gateways, data.transaction.id, blockQuorum, onFinding, signal)
    }
    const placed = data.placed(at, asked, signal)
    if (block === 'require') return placed
    try {
      return await soon(placed, blockWaitMs, signal)
    } catch (error) {
      throwIfAborted(signal)
      if (!(error instanceof ClientError)) throw error
      // The owner's signature still proves every byte.
      this.#unplaced.add(data)
      return undefined
    }
  }

  async #whole(
    id: string,
    bytesMax: number,
    signal: AbortSignal | undefined,
  ): Promise<(OwnedContent & { readonly gateway: string }) | undefined> {
    const gateways = this.#gateways
    const { found, gateway } = await gateways.first(async (url) => {
      return { found: await ownedContent({ gateways, gateway: url, id, bytesMax, signal }) }
    }, signal)
    return found === tooLong ? undefined : { ...found, gateway }
  }

  async #named(name: string, signal: AbortSignal | undefined): Promise<string> {
    if (!/^[a-z0-9_-]{1,115}$/i.test(name))
      throw new ClientError('invalid-input', `${name} is no id or name`, 'check it')
    const { nameQuorum = Math.min(2, this.#gateways.urls.length), onFinding } = this.#options
    const { nameResolved } = await import('./names.js')
    return nameResolved(this.#gateways, name.toLowerCase(), nameQuorum, onFinding, signal)
  }

  /** What a path below an id means: the manifest is proven like any content. */
  async #resolved(id: string, path: string, signal: AbortSignal | undefined): Promise<string> {
    const whole = await this.#whole(id, manifestBytesMax, signal)
    const isManifest = bareType(whole?.contentType ?? '') === pathManifestType
    if (whole === undefined || !isManifest) {
      if (path === '') return id
      throw new ClientError('not-found', `${id} is no manifest, so it has no ${path}`, 'ask for the id alone')
    }
    const target = manifestTarget(textOfBytes(whole.bytes), path)
    if (target !== undefined && isContentId(target)) return target
    throw new ClientError('not-found', `the manifest ${id} has no ${path}`, 'look at its paths')
  }

  /** How a content is proven in pieces: by the chunks of its root, or where it is in no block yet by reading it twice. */
  async #provable(id: string, signal: AbortSignal | undefined): Promise<Provable> {
    const twice = this.#options.block === 'require' ? undefined : this.#twice.get(id)
    if (twice === undefined) {
      try {
        const { data, ...place } = await this.#place(id, signal)
        return { ...place, proof: 'chunks', data, pieces: (from, to) => data.pieces(from, to, signal) }
      } catch (error) {
        const isUnproven = error instanceof ClientError && ['not-found', 'untrue'].includes(error.code)
        if (!isUnproven || this.#options.block === 'require') throw error
      }
    }
    // Seldom wanted, so it is loaded then.
    const read = await (twice ?? (await import('./read-twice.js')).ReadTwice.of(this.#gateways, id, signal))
    keepNewest(this.#twice, id, Promise.resolve(read))
    const contentType = typeTagOf(read.header.tags)
    const pieces = (from: number, to: number) => read.pieces(from, to, signal)
    return { start: 0, end: read.size, contentType, proof: 'owner', pieces }
  }

  /** Root, bounds and type of a content that is proven by chunks. */
  async #place(
    id: string,
    signal: AbortSignal | undefined,
  ): Promise<{ data: ProvenData; start: number; end: number; contentType: string | undefined }> {
    const gateways = this.#gateways
    return gateways.first(async (gateway) => {
      const response = await gateways.get(
        `${gateway}/raw/${id}`,
        { range: 'bytes=0-0' },
        signal,
        [200, 206, 416],
      )
      const { headers } = response
      await response.body?.cancel()
      const root = gatewayHeader(headers, 'root-transaction-id') ?? id
      const data = await this.#root(root, signal)
      const { dataSize, contentType } = data.transaction
      if (root === id) return { data, start: 0, end: dataSize, contentType }
      const inner = gatewayHeader(headers, 'root-path')?.split(',').slice(1) ?? []
      const { header, start, end } = await findItem(data, [...inner, id], signal)
      return { data, start, end, contentType: typeTagOf(header.tags) }
    }, signal)
  }

  #root(id: string, signal: AbortSignal | undefined): Promise<ProvenData> {
    const known = this.#roots.get(id)
    if (known !== undefined) return known
    if (!isContentId(id)) throw untrue(`${id} is no transaction`)
    const data = ProvenData.of(this.#gateways, id, signal)
    keepNewest(this.#roots, id, data)
    data.catch(() => this.#roots.delete(id))
    return data
  }
}

/** One fetch without a verifier to keep. */
export function verifiedFetch(
  reference: string,
  options: VerifiedFetchOptions & ProvingFetchOptions,
): Promise<Response> {
  return new ProvingFetcher(options).fetch(reference, options)
}

function responseOf(content: OwnedContent, proof: Proof, gateway: string): Response {
  const headers: Record<string, string> = {
    'content-type': answerType(content.contentType),
    'content-length': String(content.bytes.length),
    'accept-ranges': 'bytes',
    'x-verified': proof,
    'x-verified-owner': content.owner,
    'x-verified-from': gateway,
  }
  if (content.signedBy !== undefined) headers['x-verified-signer'] = content.signedBy
  return new HeldResponse(content.bytes, { status: 200, headers })
}

function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await pieces.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}
