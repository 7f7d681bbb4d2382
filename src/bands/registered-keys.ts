import { open } from 'node:fs/promises'
import * as z from 'zod'
import type { Clock } from '../actor/clock.js'
import { decodeBase58 } from '../format/base58.js'
import { expected } from '../format/bug.js'
import { parsedBytes } from '../format/json.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { get, type HttpOptions } from './follow.js'
import type { AllowedSigners, PublisherKeys } from './publisher-keys.js'
import type { Subscription } from './subscription.js'

export interface RegistryOptions {
  /** A file, or an http(s) address. */
  readonly source: string
  /** How long an answer is believed. */
  readonly believeMs: number
}

/** Keyed by wallet. */
type Keys = ReadonlyMap<string, readonly string[]> | Refusal

/** A thousand gateways are 300 KiB. */
const registryMaxBytes = 8 * 1024 * 1024

/** How long a failure of the registry is remembered, so that it is not waited for once more for each publisher. */
const failedMs = 30_000

const shape = z.object({ gateways: z.record(z.string(), z.unknown()) })
const address = z
  .string()
  .max(44)
  .refine((text) => decodeBase58(text)?.length === 32)
const entry = z.object({ wallet: address, observerAddress: address })

/**
 * The keys that a registry of gateways has for a wallet, in JSON as gateways answer `/peers`. The entries of its object
 * `gateways` have `wallet` and `observerAddress` (the base58 key that signs). Other members, and entries without both, are
 * ignored. The registry decides which keys are accepted, so it must be a file of the operator or a trusted gateway.
 */
export class RegisteredKeys implements PublisherKeys {
  #cached: { readonly keys: Keys; readonly untilMs: number } | undefined
  #asking: Promise<Keys> | undefined

  constructor(
    private readonly options: RegistryOptions,
    private readonly pinned: PublisherKeys,
    private readonly asking: HttpOptions,
    private readonly clock: Clock,
  ) {}

  async of(subscription: Subscription, end: AbortSignal): Promise<AllowedSigners | Refusal> {
    if ('keyId' in subscription) return this.pinned.of(subscription, end)
    const { publisher } = subscription
    const keys = await this.#keys(end)
    if (isRefusal(keys)) return keys
    const keyIds = keys.get(publisher)
    return keyIds === undefined
      ? refuse('unknown', 'upstream', `the registry knows no ${publisher}`)
      : { keyIds, publisher }
  }

  /** The answer of the registry, cached for `believeMs`; concurrent calls share one request. */
  async #keys(end: AbortSignal): Promise<Keys> {
    const cached = this.#cached
    if (cached !== undefined && cached.untilMs > this.clock.monotonic()) return cached.keys
    this.#asking ??= this.#ask(end)
    return this.#asking
  }

  async #ask(end: AbortSignal): Promise<Keys> {
    try {
      const keys = await this.#read(end)
      const { believeMs } = this.options
      const forMs = isRefusal(keys) ? Math.min(believeMs, failedMs) : believeMs
      this.#cached = { keys, untilMs: this.clock.monotonic() + forMs }
      return keys
    } finally {
      this.#asking = undefined
    }
  }

  async #read(end: AbortSignal): Promise<Keys> {
    const { source } = this.options
    const bytes = /^https?:\/\//.test(source)
      ? await get(source, registryMaxBytes, this.asking, end)
      : await readBounded(source)
    return isRefusal(bytes) ? bytes : readRegistry(bytes)
  }
}

async function readBounded(path: string): Promise<Buffer | Refusal> {
  try {
    const file = await open(path)
    try {
      const { size } = await file.stat()
      if (size > registryMaxBytes)
        return refuse('too-large', 'self', `${path}: over ${registryMaxBytes} bytes`)
      return await file.readFile()
    } finally {
      await file.close()
    }
  } catch (error) {
    return refuse('upstream', 'self', `${path}: ${expected(error).message}`)
  }
}

/** Keys by wallet. A wallet that stands there twice has the keys of both entries. */
export function readRegistry(bytes: Uint8Array): ReadonlyMap<string, readonly string[]> | Refusal {
  const checked = shape.safeParse(parsedBytes(bytes, { values: 500_000 }))
  if (!checked.success) return refuse('malformed', 'upstream', 'the registry has no object of gateways')
  const keys = new Map<string, string[]>()
  for (const value of Object.values(checked.data.gateways)) {
    const { success, data } = entry.safeParse(value)
    if (!success) continue
    const known = keys.get(data.wallet)
    if (known === undefined) keys.set(data.wallet, [data.observerAddress])
    else if (!known.includes(data.observerAddress)) known.push(data.observerAddress)
  }
  return keys
}
