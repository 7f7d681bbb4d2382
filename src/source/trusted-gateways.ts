import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { cut } from './cut.js'
import { harvest, hintHeaders, type OwnName, trailHeaders } from './gateway-headers.js'
import { GatewayLine } from './gateway-line.js'
import type { LineAnswer } from './line-answer.js'
import type { Provenance, Window } from './protocol.js'
import { unknownEverywhere, weightier } from './refusals.js'
import type { Found, Source, Wanted } from './source.js'

export interface TrustedGateway {
  /** Base URL. */
  readonly url: string
  /** Lower is asked first; equals take turns. */
  readonly priority: number
  /** Whether its bytes may be called trusted. */
  readonly trusted: boolean
}

export interface GatewayOptions {
  readonly gateways: readonly TrustedGateway[]
  /** To the answer's head, connecting included. */
  readonly headMs: number
  /** Between two pieces of the body. */
  readonly stallMs: number
  /** A request that passed so many gateways is not passed on. */
  readonly hopsMax: number
  /** Our own host names, lower case; the first is the one we give. */
  readonly ownHosts: readonly string[]
  readonly release: string
  /** Sockets kept to one gateway. */
  readonly connectionsMax: number
}

const name = 'trusted-gateways'

/** A window that a gateway answers with the whole is cut out here where it starts no later. */
const cutMaxBytes = 10 * 1024 * 1024

/** True: no other gateway may be asked on behalf of this request. */
export function isConfined(
  provenance: Provenance,
  options: Pick<GatewayOptions, 'hopsMax' | 'ownHosts'>,
): boolean {
  if (!provenance.forward || provenance.hops >= options.hopsMax) return true
  return provenance.via.some((host) => options.ownHosts.includes(host.toLowerCase()))
}

/** Other gateways, asked for `/raw/{id}`. Nothing they say about their bytes is believed but what the operator said. */
export class TrustedGateways implements Source {
  readonly name = name
  readonly #line: GatewayLine
  readonly #own: OwnName
  readonly #tiers: readonly (readonly TrustedGateway[])[]
  #turn = 0

  constructor(
    private readonly options: GatewayOptions,
    clock: Clock,
  ) {
    const { ownHosts, release } = options
    this.#line = new GatewayLine(options, clock)
    const [host] = ownHosts
    this.#own = { release, ...(host === undefined ? {} : { host }) }
    const priorities = [...new Set(options.gateways.map(({ priority }) => priority))].sort((a, b) => a - b)
    this.#tiers = priorities.map((priority) => options.gateways.filter((one) => one.priority === priority))
  }

  async open(wanted: Wanted, signal: AbortSignal): Promise<Found | Refusal> {
    let refusal: Refusal | undefined
    for (const gateway of this.#candidates(wanted)) {
      if (signal.aborted) break
      const found = await this.#ask(gateway, wanted, signal)
      if (!isRefusal(found)) return found
      refusal = weightier(refusal, found)
    }
    return refusal ?? unknownEverywhere()
  }

  async close(): Promise<void> {
    await this.#line.close()
  }

  #candidates({ provenance, avoid }: Wanted): TrustedGateway[] {
    if (isConfined(provenance, this.options)) return []
    this.#turn += 1
    return this.#tiers
      .flatMap((tier) => tier.map((_, index) => tier[(index + this.#turn) % tier.length]))
      .filter((one): one is TrustedGateway => one !== undefined && !avoid.has(one.url))
      .filter(({ url }) => {
        const host = new URL(url).hostname.toLowerCase()
        return host !== provenance.origin?.toLowerCase() && !provenance.via.includes(host)
      })
  }

  async #ask(gateway: TrustedGateway, wanted: Wanted, signal: AbortSignal): Promise<Found | Refusal> {
    const answer = await this.#send(gateway, wanted, signal)
    if (isRefusal(answer)) return answer
    const found = this.#read(gateway, wanted, answer)
    if (isRefusal(found)) answer.drop()
    return found
  }

  #send(gateway: TrustedGateway, wanted: Wanted, signal: AbortSignal): Promise<LineAnswer | Refusal> {
    const { window } = wanted
    const headers = {
      'accept-encoding': 'identity',
      'user-agent': this.options.release,
      ...trailHeaders(wanted.provenance, this.#own),
      ...hintHeaders(wanted),
      ...(window === undefined ? {} : { range: `bytes=${window.start}-${window.end}` }),
    }
    return this.#line.ask(gateway.url, { method: 'GET', path: `/raw/${wanted.id}`, headers }, signal)
  }

  #read(gateway: TrustedGateway, { window }: Wanted, answer: LineAnswer): Found | Refusal {
    const { statusCode, headers } = answer
    const no = (message: string): Refusal => refuse('upstream', 'upstream', `${gateway.url}: ${message}`)
    if (statusCode === 404 || statusCode === 410) return unknownEverywhere()
    if (statusCode === 416 && window !== undefined) {
      return refuse('unsatisfiable', 'client', 'the window lies outside the payload')
    }
    if (statusCode !== 200 && !(statusCode === 206 && window !== undefined)) return no(`status ${statusCode}`)
    const length = lengthOf(headers['content-length'])
    if (length === undefined) return no('no positive Content-Length')
    const sizeBytes = statusCode === 200 ? length : sizeOfRange(headers['content-range'], window, length)
    if (sizeBytes === undefined) return no('another range than the one asked for')
    if (statusCode === 200 && window !== undefined && window.start > cutMaxBytes)
      return no('ranges are ignored')
    if (window !== undefined && window.end >= sizeBytes) {
      return refuse('unsatisfiable', 'client', 'the window lies outside the payload')
    }
    const { learned, hints, declaredDigest, hops } = harvest(headers)
    return {
      name,
      origin: gateway.url,
      sizeBytes,
      body:
        statusCode === 200 && window !== undefined
          ? cut(answer, window.start, window.end + 1, 'leave')
          : answer,
      trusted: gateway.trusted,
      proven: false,
      learned,
      hints,
      ...(declaredDigest === undefined ? {} : { declaredDigest }),
      ...(hops === undefined ? {} : { hops }),
    }
  }
}

function lengthOf(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string' || !/^[0-9]{1,16}$/.test(value)) return undefined
  const length = Number(value)
  return Number.isSafeInteger(length) && length > 0 ? length : undefined
}

/** Size of the whole from `Content-Range: bytes a-b/size` (RFC 9110 section 14.4), where it is the window asked for. */
function sizeOfRange(
  value: string | string[] | undefined,
  window: Window | undefined,
  length: number,
): number | undefined {
  const parts =
    typeof value === 'string' ? /^bytes ([0-9]{1,16})-([0-9]{1,16})\/([0-9]{1,16})$/.exec(value) : null
  if (parts === null || window === undefined) return undefined
  const [start, end, size] = parts.slice(1).map(Number)
  const right = start === window.start && end === window.end && length === window.end - window.start + 1
  return right && size !== undefined && Number.isSafeInteger(size) && size > window.end ? size : undefined
}
