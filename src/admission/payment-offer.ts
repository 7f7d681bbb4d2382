import type { Request } from '../http/exchange.js'
import { ownOrigin } from '../http/own-origin.js'
import { checksumAddress } from '../proof/ethereum.js'
import type { Charge } from './admission-port.js'
import type { Kinds } from './cashier-messages.js'
import { inUsdc, Price, type Tariff } from './token-price.js'
import { type Usdc, usdcOf } from './usdc.js'

export interface OfferOptions {
  readonly network: Usdc['network']
  /** Receives the payments; lower case. */
  readonly wallet: string
  readonly tariff: Tariff
  /** In the addresses that offers name; `http` where it is absent. */
  readonly protocol?: 'http' | 'https'
  /** Shown in `/gateway/info`. */
  readonly facilitatorUrl: string
  /** What wallets show. Absent: egress of this gateway. */
  readonly description?: string
  /** Extensions of version 2 that are understood, by their names, with their fields in offers. */
  readonly extensions?: Readonly<Record<string, object>>
}

/** What one answer costs, and what is bought. */
export interface Quote {
  /** Smallest units of USDC. */
  readonly units: bigint
  readonly bytes: number
  /** Absolute address of the requested content. */
  readonly resource: string
  readonly mimeType: string
  /** The description that wallets show; absent: that of the options. */
  readonly description?: string
  /** Seconds within which a payment is valid, as usual clients sign it; absent: five minutes. */
  readonly timeoutSeconds?: number
}

const usualTimeoutSeconds = 300

/** An offer's address goes into a header: longer ones lose their query, then their path. */
const resourceMax = 1024

/** The absolute address of a request, as URLs are spelt: whatever a client wrote into it is percent-encoded. */
export function resourceOf(request: Request, protocol: 'http' | 'https' = 'http'): string {
  const origin = ownOrigin(request, protocol)
  const query = request.query === '' ? '' : `?${request.query}`
  for (const rest of [request.path + query, request.path]) {
    const text = origin + rest
    if (URL.canParse(text) && new URL(text).href.length <= resourceMax) return new URL(text).href
  }
  return URL.canParse(origin) ? new URL(origin).href : `${protocol}://localhost/`
}

/** A bare media type, or the one of plain bytes: content types are written by strangers. */
function mimeTypeOf(contentType: string): string {
  const [bare = ''] = contentType.split(';')
  return /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(bare.trim()) ? bare.trim() : 'application/octet-stream'
}

/** JSON as base64, as the protocol's headers carry it. */
export function inBase64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

/** Makes offers in the formats of both versions of the protocol (x402, exact payments by EIP-3009). */
export class Offers {
  readonly price: Price
  readonly usdc: Usdc
  /** The wallet with the checksum of EIP-55. */
  readonly payTo: string

  constructor(
    readonly options: OfferOptions,
    private readonly kinds: Kinds,
  ) {
    this.price = new Price(options.tariff)
    this.usdc = usdcOf[options.network]
    this.payTo = checksumAddress(Buffer.from(options.wallet.slice(2), 'hex'))
  }

  /** True where a payment in this version can be settled. */
  has(version: 1 | 2): boolean {
    return this.kinds.has(version)
  }

  quote({ request, bytes, contentType }: Charge): Quote {
    const { protocol } = this.options
    const resource = resourceOf(request, protocol)
    return { units: this.price.units(bytes), bytes, resource, mimeType: mimeTypeOf(contentType) }
  }

  /** Terms of version 1 (`accepts` of the body). */
  terms1(quote: Quote): object {
    return {
      scheme: 'exact',
      network: this.usdc.network,
      maxAmountRequired: quote.units.toString(),
      resource: quote.resource,
      description: this.#describe(quote),
      mimeType: quote.mimeType,
      ...this.#common(quote),
    }
  }

  /** Terms of version 2 (`accepts` of the header). */
  terms2(quote: Quote): object {
    return {
      scheme: 'exact',
      network: this.usdc.caip2,
      amount: quote.units.toString(),
      ...this.#common(quote),
    }
  }

  /** The body of version 1. Usual clients throw on an empty list: see `has`. */
  body(quote: Quote, fault: Readonly<Record<string, string>>): object {
    return { x402Version: 1, accepts: this.has(1) ? [this.terms1(quote)] : [], ...fault }
  }

  /** Header lines of version 2, each with CRLF in front. */
  lines(quote: Quote, error: string): string {
    if (!this.has(2)) return ''
    const { resource, mimeType } = quote
    const about = { url: resource, description: this.#describe(quote), mimeType }
    const { extensions } = this.options
    const understood = extensions === undefined ? {} : { extensions }
    const required = {
      x402Version: 2,
      error,
      resource: about,
      accepts: [this.terms2(quote)],
      ...understood,
    }
    return `\r\nPAYMENT-REQUIRED: ${inBase64(required)}`
  }

  /** The section of `/gateway/info`. */
  about(): object {
    const { network, facilitatorUrl, tariff } = this.options
    const cost = (bytes: number): number => Number(inUsdc(this.price.units(bytes)))
    const pricing = {
      perBytePrice: tariff.perByte,
      minPrice: Number(tariff.minimum).toFixed(6),
      maxPrice: Number(tariff.maximum).toFixed(6),
      currency: 'USDC',
      exampleCosts: { '1KB': cost(2 ** 10), '1MB': cost(2 ** 20), '1GB': cost(2 ** 30) },
    }
    return {
      enabled: true,
      network,
      walletAddress: this.payTo,
      facilitatorUrl,
      dataEgress: { pricing, rateLimiterCapacityMultiplier: tariff.multiplier },
    }
  }

  #describe(quote: Quote): string {
    return quote.description ?? this.options.description ?? describe(quote)
  }

  #common({ timeoutSeconds: maxTimeoutSeconds = usualTimeoutSeconds }: Quote): object {
    const { address, name, version } = this.usdc
    return { payTo: this.payTo, maxTimeoutSeconds, asset: address, extra: { name, version } }
  }
}

/** What wallets show. Top-ups and the echo name no bytes: they buy an allowance. */
function describe({ bytes }: Quote): string {
  return bytes === 0 ? 'Allowance for gateway data egress' : `Gateway data egress for ${bytes} bytes`
}
