import { join } from 'node:path'
import type { Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { createLog, type Log } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import type { Request } from '../../src/http/exchange.js'
import { serve } from '../../src/http/listen.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { headKey } from '../../src/ledger/head-key.js'
import type { MoneyLedger } from '../../src/ledger/ledger-port.js'
import type { CardProvider } from '../../src/payment/cards/card-provider.js'
import { LocalCards } from '../../src/payment/cards/local-cards.js'
import type { ChainReader } from '../../src/payment/chains/seen-payment.js'
import type { Mailer } from '../../src/payment/letters/outbox.js'
import type { NameRegistry } from '../../src/payment/names/name-registry.js'
import { PaymentService } from '../../src/payment/payment-service.js'
import { fixedOracle, type Oracle } from '../../src/payment/prices/oracle.js'
import { paymentParameters } from '../../src/payment/requests/payment-parameters.js'
import type { X402Options } from '../../src/payment/usdc/x402-processor.js'
import { serviceHost } from '../../src/serving/service-host.js'
import { scratch } from '../scratch.js'

export const secret = 'a secret of both services'

const hourMs = 3600_000

export interface PaymentRig {
  readonly url: string
  readonly service: PaymentService
  readonly ledger: MoneyLedger
  readonly meters: Meters
  /** Time passes until then. One that is earlier: the clock is set back. */
  setTime(ms: number): void
  /** The clock of the machine is set, and no time passes. */
  setClock(ms: number): void
  get(
    path: string,
    headers?: Record<string, string>,
  ): Promise<{ status: number; text: string; json: unknown }>
  post(
    path: string,
    body: string,
    headers?: Record<string, string>,
  ): Promise<{ status: number; text: string; json: unknown }>
}

/** The payment service on a port of its own, with a clock that stands still. The network asks 2^30 winston for 10 GiB. */
export async function paymentRig(
  t: Test,
  given: {
    readonly readers?: readonly ChainReader[]
    readonly addresses?: Readonly<Record<string, string>>
    readonly cards?: (ledger: MoneyLedger) => CardProvider
    readonly names?: NameRegistry
    readonly mailer?: Mailer
    readonly log?: Log
    readonly clientOf?: (request: Request) => string
    readonly excluded?: readonly string[]
    /** In place of one in a folder. */
    readonly ledger?: MoneyLedger
    readonly lostMs?: number
    readonly privateSecret?: string
    readonly monotonic?: () => number
    readonly oracle?: Oracle
    /** What the network asks for 10 GiB, in winston. */
    readonly networkPrice?: () => bigint
    /** Records of settlements are in the folder of the test, unless another is named. */
    readonly x402?: Omit<X402Options, 'recordsPath'> & { readonly recordsPath?: string }
  } = {},
): Promise<PaymentRig> {
  let nowMs = Date.UTC(2026, 0, 1) - hourMs
  let passedMs = 0
  const { monotonic = systemClock.monotonic } = given
  const clock: Clock = { ...systemClock, monotonic: () => monotonic() + passedMs, now: () => nowMs }
  const setTime = (ms: number): void => {
    passedMs += Math.max(0, ms - nowMs)
    nowMs = ms
  }
  const folder = scratch('payment')
  const key = headKey(join(folder, 'key.pem'))
  const ledger: MoneyLedger = given.ledger ?? new EmbeddedLedger({ path: join(folder, 'ledger'), clock, key })
  const log = given.log ?? createLog('silent', 'test')
  let url = ''
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const { x402: wanted } = given
  const x402 = wanted && { options: { recordsPath: join(folder, 'x402'), ...wanted }, meters }
  const service = new PaymentService({
    ...(x402 === undefined ? {} : { x402 }),
    ledger,
    oracle: given.oracle ?? fixedOracle(),
    clock,
    log,
    readers: given.readers ?? [],
    networkPrice: async () => given.networkPrice?.() ?? 2n ** 30n,
    cards: given.cards?.(ledger) ?? new LocalCards(ledger, () => url, clock.now),
    ...(given.names === undefined ? {} : { names: given.names }),
    ...(given.mailer === undefined ? {} : { mailer: given.mailer }),
    meters,
    ...(given.clientOf === undefined ? {} : { clientOf: given.clientOf }),
    options: {
      privateSecret: given.privateSecret ?? secret,
      feePermille: 234,
      itemMicroUsd: 20,
      release: 'test',
      gateway: 'http://gateway.test',
      giftUrl: 'http://gifts.test/gift',
      addresses: given.addresses ?? {},
      excluded: given.excluded ?? [],
      recheckMs: 3600_000,
      lostMs: given.lostMs ?? 0,
      chainQuestionsPerSecond: 10,
    },
  })
  const host = serviceHost({
    routes: service.routes,
    family: 'payment',
    meters,
    log,
    clock,
    service: {
      title: 'Payments',
      description: 'Test',
      release: 'test',
      parameters: paymentParameters,
      securitySchemes: {},
    },
  })
  const onThrow = (error: unknown): void => {
    t.fail(String(error))
  }
  const server = serve(host, { host: '127.0.0.1', port: 0, stallMs: 60_000, requestsMax: 1000, onThrow })
  await server.listening
  // The service has run for an hour: its time is confirmed.
  setTime(nowMs + hourMs)
  url = `http://127.0.0.1:${server.port}`
  t.teardown(async () => {
    await server.close(0)
    await service.close()
  })
  const read = async (response: Response): Promise<{ status: number; text: string; json: unknown }> => {
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('application/json') === true
    return { status: response.status, text, json: isJson ? JSON.parse(text) : undefined }
  }
  return {
    url,
    service,
    ledger,
    meters,
    setTime,
    setClock: (ms) => {
      nowMs = ms
    },
    get: async (path, headers = {}) => read(await fetch(url + path, { headers, redirect: 'manual' })),
    post: async (path, body, headers = {}) =>
      read(await fetch(url + path, { method: 'POST', body: Buffer.from(body), headers, redirect: 'manual' })),
  }
}
