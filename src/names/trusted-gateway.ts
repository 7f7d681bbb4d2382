import type { Dispatcher } from 'undici'
import { expected } from '../format/bug.js'
import { refuse } from '../format/refusal.js'
import { type Question, Upstream } from '../http/upstream.js'
import { readRecord } from './name-record.js'
import type { Name, ResolveContext, Resolver, ResolverVerdict } from './names-port.js'

export interface TrustedGatewayOptions {
  /** Address with `__NAME__` where the name goes. */
  readonly url: string
  /** Host header instead of the address's own; `__NAME__` is replaced here, too. */
  readonly hostHeader?: string
  /** Own host name, sent to detect loops. */
  readonly ownHost?: string
  readonly release: string
  /** Sockets to one host. */
  readonly connectionsMax: number
}

/** Beginnings of name headers: those of the network in use, and the neutral ones. */
const prefixes = ['x-arns-', 'x-ns-']

/** Both stand for a name without an undername, as gateways of the network treat a name by default. */
const usual = { undernameLimit: 10, recordIndex: 0 }

/** An answer for content that is absent, or not paid for, names the id all the same. */
const namingStatuses = new Set([200, 402, 404])

/** What the client calls a head that is too long, by the parser or by its own count. */
const longHeads: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_OVERFLOW', 'HPE_HEADER_OVERFLOW'])

/** Another gateway, queried by HEAD; its name headers are the answer. Malformed ones count as not sent. */
export class TrustedNameGateway implements Resolver {
  readonly label = 'gateway'
  readonly remote = true
  readonly #upstream: Upstream

  constructor(private readonly options: TrustedGatewayOptions) {
    // Waiting is bounded by the caller. Heads of more than 16 KiB are refused by the client.
    this.#upstream = new Upstream({
      connections: options.connectionsMax,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 16_384,
    })
  }

  /** Not where the name is part of the host there, and cannot be: `xn--` with text that is not Punycode (RFC 3492). */
  accepts(name: Name): boolean {
    return URL.canParse(this.#addressOf(name))
  }

  #addressOf(name: Name): string {
    return this.options.url.replaceAll('__NAME__', name.full)
  }

  async resolve(name: Name, asking: ResolveContext): Promise<ResolverVerdict> {
    try {
      const { statusCode, headers, body } = await this.#upstream.request(this.#question(name, asking))
      // A HEAD has no body; whoever sends one gets its connection closed.
      void body.dump({ limit: 0 }).catch(() => undefined)
      if (statusCode === 451) return 'blocked'
      if (!namingStatuses.has(statusCode)) return this.#no(`status ${statusCode}`)
      return this.#read(name, headers, statusCode)
    } catch (error) {
      if (asking.signal.aborted) return refuse('late', 'upstream', 'the gateway for names did not answer')
      const { code, message } = expected(error) as NodeJS.ErrnoException
      // The owner of a name can make its head long.
      if (code !== undefined && longHeads.has(code)) return this.#no('its head is too long')
      return refuse('upstream', 'upstream', `the gateway for names: ${message}`)
    }
  }

  async close(): Promise<void> {
    await this.#upstream.destroy()
  }

  #question(name: Name, { hops, via, signal }: ResolveContext): Question {
    const { hostHeader, ownHost, release } = this.options
    const place = new URL(this.#addressOf(name))
    const trail = [...via, ...(ownHost === undefined ? [] : [ownHost])]
    const headers = {
      'user-agent': release,
      'X-AR-IO-Hops': String(hops + 1),
      ...(trail.length === 0 ? {} : { 'X-AR-IO-Via': trail.join(',') }),
      ...(hostHeader === undefined ? {} : { host: hostHeader.replaceAll('__NAME__', name.full) }),
    }
    return { origin: place.origin, path: place.pathname + place.search, method: 'HEAD', headers, signal }
  }

  #read(name: Name, headers: Dispatcher.ResponseData['headers'], status: number): ResolverVerdict {
    const word = (suffix: string): string | undefined => {
      for (const prefix of prefixes) {
        const value = headers[prefix + suffix]
        if (typeof value === 'string') return value
      }
      return undefined
    }
    const statedName = word('name')
    // The page for unknown names has a name of its own.
    const other = statedName !== undefined && statedName.toLowerCase() !== name.full
    const id = word('resolved-id')
    if (other || id === undefined)
      return status === 404 ? 'absent' : this.#no('it does not say what the name means')
    const record = readRecord({
      id,
      ttlSeconds: word('ttl-seconds'),
      antId: word('ant-id') ?? word('process-id'),
      antProgramId: word('ant-program-id'),
      undernameLimit: word('undername-limit'),
      recordIndex: word('record-index'),
    })
    return record === undefined ? this.#no('it names an id that is none') : { ...usual, ...record }
  }

  #no(why: string): ResolverVerdict {
    return refuse('forged', 'upstream', `the gateway for names: ${why}`)
  }
}
