import { isId } from '../../format/id.js'
import { ClientError } from '../errors.js'
import { answerType, bareType } from '../media-type.js'
import { pathManifestType } from '../path-manifest.js'
import type { FetchLike } from '../service.js'
import { soon, throwIfAborted } from '../timing.js'
import type { BelievedBlock } from './agreed-block.js'
import type { Agreed } from './agreement.js'
import { type Finding, Gateways } from './gateways.js'
import { HeldResponse } from './held-body.js'
import type { Proof, Provable, Provables } from './provable.js'
import type { ProvenData } from './proven-data.js'
import { type OwnedContent, ownedContent, tooLong } from './whole.js'

export interface VerifiedFetchOptions {
  /** First and last byte, as in `bytes=0-499`; without an end to the end. */
  readonly range?: { readonly start: number; readonly end?: number } | undefined
  readonly signal?: AbortSignal | undefined
  /** Whole content up to this is held until its owner's signature is checked; 128 MiB by default. Longer is proven in pieces. */
  readonly holdBytesMax?: number
}

export interface ProvingFetchOptions {
  readonly gatewayUrls: readonly string[]
  readonly fetch?: FetchLike
  /** How many gateways must agree on a name; 2 by default, or 1 where there is only one gateway. */
  readonly nameQuorum?: number
  /**
   * Whether content is also proven to lie in a block. `ask` (default) proves it for ranges of transactions where gateways give
   * enough of the chain. `require` proves it for everything, and rejects where that fails. `skip` requests nothing. The headers
   * `X-Verified-Block` and `X-Verified-Height` of the answer name the block. `X-Verified-Block-By` states how many gateways agree
   * on it (`2 of 3`), which is the only proof of it.
   */
  readonly block?: 'ask' | 'require' | 'skip'
  /** How many gateways must agree on the block; 2 by default, or 1 where there is only one gateway. */
  readonly blockQuorum?: number
  /** How long a gateway may send nothing before another one is tried, in milliseconds; 30,000 by default. */
  readonly patienceMs?: number
  /** Called for each gateway that failed or sent false bytes. */
  readonly onFinding?: (finding: Finding) => void
}

const holdBytesDefault = 128 * 1024 * 1024
const manifestBytesMax = 64 * 1024 * 1024
/** How long a range waits for the answers of gateways about its block, where that is not required. */
const blockWaitMs = 3000

/** Fetches content by id or name from gateways that need no trust. */
export class ProvingFetcher {
  readonly #gateways: Gateways
  readonly #options: ProvingFetchOptions
  #provables: Provables | undefined
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
   * were proven before they are given out. `X-Verified` names the proof. `owner`: the owner's signature over all of the content.
   * `chunks`: the id is a transaction, and the bytes lie under the data root that its owner signed. The id of a name is not
   * proven: it is in `X-Verified-Name-Id`, and in `X-Verified-Name-By` how many gateways agree (`2 of 3`). Rejects with a
   * ClientError: `untrue` where every gateway that answered lied.
   */
  async fetch(reference: string, options: VerifiedFetchOptions = {}): Promise<Response> {
    const [host = '', ...rest] = reference.replace(/^ar:\/\//, '').split('/')
    const path = rest.join('/')
    const named = isId(host) ? undefined : await this.#named(host, options.signal)
    const id = named?.value ?? host
    // By id alone the bytes are meant as they are; a path, and a name always, lead through a manifest.
    const isPlain = isId(host) && rest.length === 0
    const response = await this.content(
      isPlain ? id : await this.#resolved(id, path, options.signal),
      options,
    )
    if (named === undefined) return response
    response.headers.set('x-verified-name-id', named.value)
    response.headers.set('x-verified-name-by', `${named.by} of ${named.of}`)
    return response
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
    const pieces = read(from, to, signal)
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
    const {
      block = 'ask',
      blockQuorum = Math.min(2, this.#gateways.witnesses.length),
      onFinding,
    } = this.#options
    if (block === 'skip' || (block === 'ask' && this.#unplaced.has(data))) return undefined
    const askBlock = async (): Promise<BelievedBlock> => {
      const { agreedBlock } = await import('./agreed-block.js')
      return agreedBlock(this.#gateways, data.transaction.id, blockQuorum, onFinding, signal)
    }
    const placed = data.placed(at, askBlock, signal)
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

  /** Content that is proven in pieces. Most content is read whole, so what this needs is loaded with the first such. */
  async #provable(id: string, signal: AbortSignal | undefined): Promise<Provable> {
    const { Provables } = await import('./provable.js')
    this.#provables ??= new Provables(this.#gateways, this.#options.block === 'require')
    return this.#provables.of(id, signal)
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

  /** What may be a manifest. Undefined: it is too long for one. A length is not proven, so one gateway is not believed in it. */
  async #short(id: string, signal: AbortSignal | undefined): Promise<OwnedContent | undefined> {
    const gateways = this.#gateways
    try {
      return await gateways.first(async (gateway) => {
        const question = { gateways, gateway, id, bytesMax: manifestBytesMax, signal }
        const found = await ownedContent(question)
        if (found !== tooLong) return found
        throw new ClientError(
          'too-large',
          `${gateway}: ${id} is longer than any manifest`,
          'ask for the id alone',
        )
      }, signal)
    } catch (error) {
      if (error instanceof ClientError && error.code === 'too-large') return undefined
      throw error
    }
  }

  async #named(name: string, signal: AbortSignal | undefined): Promise<Agreed<string>> {
    if (!/^[a-z0-9_-]{1,115}$/i.test(name))
      throw new ClientError('invalid-input', `${name} is no id or name`, 'check it')
    const { nameQuorum = Math.min(2, this.#gateways.witnesses.length), onFinding } = this.#options
    const { nameResolved } = await import('./names.js')
    return nameResolved(this.#gateways, name.toLowerCase(), nameQuorum, onFinding, signal)
  }

  /** What a path below an id means: the manifest is proven like any content. */
  async #resolved(id: string, path: string, signal: AbortSignal | undefined): Promise<string> {
    const whole = await this.#short(id, signal)
    const isManifest = bareType(whole?.contentType ?? '') === pathManifestType
    if (whole === undefined || !isManifest) {
      if (path === '') return id
      throw new ClientError('not-found', `${id} is no manifest, so it has no ${path}`, 'ask for the id alone')
    }
    const { manifestTarget } = await import('./manifest-target.js')
    const target = manifestTarget(whole.bytes, path)
    if (target !== undefined && isId(target)) return target
    throw new ClientError('not-found', `the manifest ${id} has no ${path}`, 'look at its paths')
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
