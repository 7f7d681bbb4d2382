import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { localAddress } from '../../src/actor/mailbox-address.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import type { Credits, Denial, Paid } from '../../src/admission/admission-port.js'
import { Cashier } from '../../src/admission/cashier.js'
import {
  type CashierOptions,
  type CashierReply,
  type CashierRequest,
  cashierDefaults,
  Kinds,
} from '../../src/admission/cashier-messages.js'
import type { Witness } from '../../src/admission/chain-witness.js'
import { Facilitator } from '../../src/admission/facilitator.js'
import type { Authorizing } from '../../src/admission/json-peer.js'
import { x402Routes } from '../../src/admission/paid-routes.js'
import { Offers } from '../../src/admission/payment-offer.js'
import type { PaymentOwners } from '../../src/admission/payment-owners.js'
import { PaymentRecords } from '../../src/admission/payment-records.js'
import { Paywall, type PaywallOptions } from '../../src/admission/paywall.js'
import type { SettlementClaims } from '../../src/admission/settlement-claims.js'
import { type Usdc, usdcOf } from '../../src/admission/usdc.js'
import { X402 } from '../../src/admission/x402.js'
import type { Reply, Request } from '../../src/http/exchange.js'
import { serve } from '../../src/http/listen.js'
import { scratch } from '../scratch.js'
import { transferTypes } from './scripted-facilitator.js'

/** Buckets in memory: what the port promises, and nothing more. */
export class Purse implements Credits {
  readonly tokens = new Map<string, number>()
  readonly payments = new Map<string, string>()
  /** Throws so many times before it credits. */
  broken = 0

  async credit(client: string, payment: string, tokens: number): Promise<'credited' | 'known'> {
    if (this.broken > 0) {
      this.broken -= 1
      throw new Error('the purse is stuck')
    }
    if (this.payments.has(payment)) return 'known'
    this.payments.set(payment, client)
    this.tokens.set(client, this.of(client) + tokens)
    return 'credited'
  }

  of(client: string): number {
    return this.tokens.get(client) ?? 0
  }

  take(client: string, tokens: number): boolean {
    if (this.of(client) < tokens) return false
    this.tokens.set(client, this.of(client) - tokens)
    return true
  }
}

export interface ShopOptions {
  readonly facilitatorUrl: string
  readonly wallet: string
  readonly network?: Usdc['network']
  readonly path?: string
  readonly cashier?: Partial<CashierOptions>
  readonly verifyMs?: number
  readonly settleMs?: number
  readonly purse?: Purse
  readonly clock?: Clock
  readonly multiplier?: number
  readonly authorizing?: Authorizing
  readonly witness?: Witness | undefined
  readonly claims?: SettlementClaims
  readonly owners?: PaymentOwners
  readonly paywall?: Partial<PaywallOptions>
}

/** A server that sells bytes, as an edge thread and the cashier's thread do together. */
export interface Shop {
  readonly url: string
  readonly purse: Purse
  readonly records: PaymentRecords
  readonly offers: Offers
  readonly kinds: Kinds
  close(): Promise<void>
}

/** What `/file` is: 1,234,567 bytes, for the least price of 1,000 units. */
export const fileBytes = 1_234_567

export async function openShop(t: Test, options: ShopOptions): Promise<Shop> {
  const clock = options.clock ?? systemClock
  const kinds = new Kinds()
  const purse = options.purse ?? new Purse()
  const network = options.network ?? 'base-sepolia'
  const records = new PaymentRecords(join(options.path ?? scratch('shop'), 'payments'))
  const facilitator = new Facilitator(
    {
      url: options.facilitatorUrl,
      usdc: usdcOf[network],
      connectionsMax: 2 * cashierDefaults.contractsMax,
      verifyMs: options.verifyMs ?? 30_000,
      settleMs: options.settleMs ?? 30_000,
    },
    clock,
    silentLog,
    options.authorizing,
  )
  const cashier = new Cashier({
    records,
    facilitator,
    credits: purse,
    bindsBeneficiary: true,
    kinds,
    clock,
    log: silentLog,
    ...(options.witness === undefined ? {} : { witness: options.witness }),
    ...(options.claims === undefined ? {} : { claims: options.claims }),
    ...(options.owners === undefined ? {} : { owners: options.owners }),
    options: { ...cashierDefaults, waitMs: 30_000, retryMs: 20, supportedRetryMs: 20, ...options.cashier },
  })
  cashier.start()
  const tariff = {
    perByte: '0.0000000001',
    minimum: '0.001',
    maximum: '1.00',
    multiplier: options.multiplier ?? 10,
  }
  const wallet = options.wallet.toLowerCase()
  const offers = new Offers({ network, wallet, tariff, facilitatorUrl: options.facilitatorUrl }, kinds)
  const paywall = new Paywall(offers, {
    pathPrefix: '/gateway',
    appName: 'Test gateway',
    sealKey: randomBytes(32),
    ...options.paywall,
  })
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const address = localAddress<CashierRequest, CashierReply>((message) => cashier.handle(message))
  const payments = new X402({ offers, cashier: address, paywall, clock, meters })
  const clientOf = (request: Request): string => request.header('x-client') ?? request.remoteAddress
  const routes = x402Routes({ pathPrefix: '/gateway', payments, paywall, clientOf })
  const server = serve(
    (request, reply) => {
      const route = routes.find(
        ({ path }) => request.path === path || (path.endsWith('/') && request.path.startsWith(path)),
      )
      void (
        route?.handle(request, reply, 'X-Own: yes') ??
        sell(payments, purse, request, reply, clientOf(request))
      )
    },
    {
      host: '127.0.0.1',
      port: 0,
      stallMs: 5000,
      requestsMax: 1000,
      onThrow: (error) => t.fail('it threw', { error }),
    },
  )
  let closed = false
  const close = async (): Promise<void> => {
    if (closed) return
    closed = true
    await server.close(0)
    await cashier.close()
    await facilitator.close()
  }
  t.teardown(close)
  await server.listening
  return { url: `http://127.0.0.1:${server.port}`, purse, records, offers, kinds, close }
}

/** `/{bytes}` costs so many bytes; any other path the file. Paid for, or out of the purse, or 402. */
async function sell(
  payments: X402,
  purse: Purse,
  request: Request,
  reply: Reply,
  client: string,
): Promise<void> {
  const bytes = /^\/\d{1,15}$/.test(request.path) ? Number(request.path.slice(1)) : fileBytes
  const charge = { request, bytes, contentType: 'text/plain' }
  const need = Math.max(1, Math.ceil(bytes / 1024))
  let paid: Paid | Denial | undefined
  if (!purse.take(client, need)) {
    paid = (await payments.pay(charge, client)) ?? payments.demand(charge)
    if (!('status' in paid) && !purse.take(client, need)) {
      paid = payments.demand(charge, { error: 'payment_already_used', message: 'spent' })
    }
  }
  if (paid !== undefined && 'status' in paid) {
    const head = { status: paid.status, block: `Content-Type: ${paid.contentType}${paid.lines}` }
    if (request.method === 'HEAD') reply.endEmpty(head, Buffer.byteLength(paid.body))
    else reply.end(head, paid.body)
  } else reply.end({ status: 200, block: `Content-Type: text/plain${paid?.lines ?? ''}` }, 'the bytes')
}

export interface Wish {
  readonly to: string
  readonly value?: string
  readonly validAfter?: number
  readonly validBefore?: number
  readonly nonce?: Hex
  readonly domain?: object
  readonly scheme?: string
  readonly network?: string
  /** Goes over the authorization after it was signed. */
  readonly tamper?: object
  readonly signature?: string
  readonly accepted?: object
}

const inBase64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64')

/** Headers with a payment in which anything may be wrong on purpose. */
export async function payment(
  account: PrivateKeyAccount,
  version: 1 | 2,
  wish: Wish,
  network: Usdc['network'] = 'base-sepolia',
): Promise<Record<string, string>> {
  const usdc = usdcOf[network]
  const now = Math.floor(systemClock.now() / 1000)
  const authorization = {
    from: account.address as string,
    to: wish.to,
    value: wish.value ?? '1000',
    validAfter: String(wish.validAfter ?? now - 600),
    validBefore: String(wish.validBefore ?? now + 300),
    nonce: wish.nonce ?? (`0x${randomBytes(32).toString('hex')}` as Hex),
  }
  const { name, version: domainVersion, chainId, address } = usdc
  const signature = await account.signTypedData({
    types: transferTypes,
    primaryType: 'TransferWithAuthorization',
    domain: { name, version: domainVersion, chainId, verifyingContract: address as Hex, ...wish.domain },
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    },
  })
  const payload = {
    signature: wish.signature ?? signature,
    authorization: { ...authorization, ...wish.tamper },
  }
  const scheme = wish.scheme ?? 'exact'
  if (version === 1) {
    return { 'X-PAYMENT': inBase64({ x402Version: 1, scheme, network: wish.network ?? network, payload }) }
  }
  const extra = { name, version: domainVersion }
  const terms = { amount: authorization.value, asset: address, payTo: wish.to, maxTimeoutSeconds: 300, extra }
  const accepted = { scheme, network: wish.network ?? usdc.caip2, ...terms, ...wish.accepted }
  return { 'PAYMENT-SIGNATURE': inBase64({ x402Version: 2, accepted, payload }) }
}

/** What came back, read. */
export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly error: string | undefined
  readonly message: string | undefined
}

export async function get(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> {
  const answer = await fetch(url, { headers, method })
  const text = await answer.text()
  const body = text.startsWith('{') ? (JSON.parse(text) as Record<string, string>) : {}
  return { status: answer.status, headers: answer.headers, text, error: body.error, message: body.message }
}

/** The JSON in a header of the protocol. */
export function unpacked<T>(header: string | null): T {
  return JSON.parse(Buffer.from(header ?? '', 'base64').toString()) as T
}
