import { setImmediate as turn } from 'node:timers/promises'
import { loadAddon } from '../addon.js'
import type { BorrowedKey } from '../ed25519/ed25519.js'
import { type FilePlaces, filePlaces } from '../mapped/mapped.js'
import type { CacheTable } from './cache-table.js'
import { openFallbackWire } from './fallback.js'
import {
  type Hear,
  type Pair,
  sharedSizes,
  tlsCiphers,
  tlsGroups,
  type Wire,
  type WireOptions,
  type WireTls,
} from './wire.js'

declare const listenerBrand: unique symbol
type Listener = { readonly [listenerBrand]: true }

interface Addon {
  open(
    host: string,
    port: number,
    headMs: number,
    idleMs: number,
    stallMs: number,
    lingerMs: number,
    connectionsMax: number,
    inboxNumbers: number,
    bytesBytes: number,
    outboxBytes: number,
    hear: Hear,
  ): [listener: Listener, port: number, inbox: ArrayBuffer, bytes: ArrayBuffer, outbox: ArrayBuffer]
  send(listener: Listener, slot: number, headBytes: number, body: Uint8Array, how: number): number
  read(listener: Listener, slot: number): void
  pause(listener: Listener, slot: number): void
  hold(listener: Listener, slot: number): void
  release(listener: Listener, slot: number): void
  drop(listener: Listener, slot: number): void
  address(listener: Listener, slot: number): string
  sweep(listener: Listener, nowMs: number): void
  shut(listener: Listener): void
  destroy(listener: Listener): void
  bound(max: number): void
  places(places: FilePlaces): void
  sockets(): [open: number, max: number, pauses: number]
  tlsReady(): boolean
  tlsOpen(
    listener: Listener,
    ticketKeys: Uint8Array,
    refusesUnknown: boolean,
    suites: string,
    ciphers: string,
    groups: string,
  ): void
  tlsAdd(listener: Listener, names: string, cert: string, key: string): void
  tlsUse(listener: Listener): void
  cacheOpen(listener: Listener, maxBytes: number, plain: string, every: string): void
  cacheCells(listener: Listener, memory: Int32Array): number
  cacheTally(
    listener: Listener,
    meters: Float64Array,
    places: Float64Array,
    bounds: Float64Array,
    kind: number,
  ): number
  cacheRegion(
    listener: Listener,
    memory: Uint8Array,
    here: Int32Array,
    ticks: Int32Array,
    cellBytes: number,
    key: number,
  ): number
  cacheClose(listener: Listener, region: number): boolean
  cacheShare(listener: Listener, group: Int32Array): void
  cacheSigns(listener: Listener, key: BorrowedKey, reuseSeconds: number): void
  cacheLimits(
    listener: Listener,
    ip: Int32Array,
    resource: Int32Array,
    rules: Float64Array,
    trusted: Int32Array,
    exempt: Int32Array,
    meters: Float64Array,
    places: Float64Array,
  ): void
  cacheClients(listener: Listener, trusted: Int32Array, exempt: Int32Array): void
  cachePut(listener: Listener, numbers: Float64Array, textBytes: number): void
  cacheSamples(listener: Listener): [ms: number, bytes: number, count: number, target: string][]
  cacheUsage(listener: Listener): [answers: number, bytes: number, unfinished: number]
}

const addon = loadAddon<Addon>('server')
if (filePlaces !== undefined) addon?.places(filePlaces)

/** Which way sockets are served here: through the addon, or through its slower fallback where the addon was not built. */
export const servedBy: 'addon' | 'fallback' = addon === undefined ? 'fallback' : 'addon'

/** The same of TLS. */
export const tlsBy: 'addon' | 'fallback' = addon?.tlsReady() === true ? 'addon' : 'fallback'

/** Accepted sockets of all servers of this process; `max` 0: as many as the system gives. */
export interface SocketUsage {
  readonly open: number
  readonly max: number
  /** Times that a server stopped accepting, because there was no room or no descriptor for one more. */
  readonly pauses: number
}

/**
 * Bounds the sockets that all threads of this process accept together; further clients wait in the kernel's queue until there
 * is room. The fallback's threads do not share a count: there only the bound of each server applies.
 */
export function boundSockets(max: number): void {
  addon?.bound(max)
}

/** Undefined with the fallback. */
export function socketUsage(): SocketUsage | undefined {
  const [open, max, pauses] = addon?.sockets() ?? []
  return open === undefined || max === undefined || pauses === undefined ? undefined : { open, max, pauses }
}

class AddonWire implements Wire {
  readonly port: number
  readonly listening = Promise.resolve()
  readonly inbox: Int32Array
  readonly bytes: Buffer
  readonly outbox: Buffer
  readonly #addon: Addon
  readonly #listener: Listener
  readonly #isSecure: boolean

  constructor(native: Addon, options: WireOptions, hear: Hear) {
    const { host, port, headMs, idleMs, stallMs, lingerMs, connectionsMax } = options
    const { inboxNumbers, bytesBytes, outboxBytes } = sharedSizes(connectionsMax)
    this.#addon = native
    const times = [headMs, idleMs, stallMs, lingerMs] as const
    const sizes = [inboxNumbers, bytesBytes, outboxBytes] as const
    const [listener, bound, ...memory] = native.open(host, port, ...times, connectionsMax, ...sizes, hear)
    this.#listener = listener
    this.port = bound
    this.inbox = new Int32Array(memory[0])
    this.bytes = Buffer.from(memory[1])
    this.outbox = Buffer.from(memory[2])
    this.#isSecure = options.tls !== undefined
    if (options.tls !== undefined) this.#speakTls(options.tls)
  }

  #speakTls({ ticketKeys, unknownName, pairs }: WireTls): void {
    const all = tlsCiphers.split(':')
    const suites = all.filter((name) => name.startsWith('TLS_')).join(':')
    const ciphers = all.filter((name) => !name.startsWith('TLS_')).join(':')
    const refuses = unknownName === 'refuse'
    try {
      this.#addon.tlsOpen(this.#listener, new Uint8Array(ticketKeys), refuses, suites, ciphers, tlsGroups)
      this.setCertificates(pairs)
    } catch (error) {
      this.destroy()
      throw error
    }
  }

  send(slot: number, headBytes: number, body: Uint8Array, how: number): number {
    return this.#addon.send(this.#listener, slot, headBytes, body, how)
  }

  read(slot: number): void {
    this.#addon.read(this.#listener, slot)
  }

  pause(slot: number): void {
    this.#addon.pause(this.#listener, slot)
  }

  delayNext(slot: number): void {
    this.#addon.hold(this.#listener, slot)
  }

  takeNext(slot: number): void {
    this.#addon.release(this.#listener, slot)
  }

  drop(slot: number): void {
    this.#addon.drop(this.#listener, slot)
  }

  address(slot: number): string {
    return this.#addon.address(this.#listener, slot)
  }

  sweep(nowMs: number): void {
    this.#addon.sweep(this.#listener, nowMs)
  }

  setCertificates(pairs: readonly Pair[]): void {
    if (!this.#isSecure) throw new Error('this server speaks plain HTTP')
    for (const { names, cert, key } of pairs) this.#addon.tlsAdd(this.#listener, names.join('\n'), cert, key)
    this.#addon.tlsUse(this.#listener)
  }

  shut(): Promise<void> {
    this.#addon.shut(this.#listener)
    return turn()
  }

  destroy(): void {
    this.#addon.destroy(this.#listener)
  }

  responseCache(maxBytes: number, plain: readonly string[], lines = ''): CacheTable {
    const native = this.#addon
    const listener = this.#listener
    native.cacheOpen(listener, maxBytes, plain.join('\n'), lines)
    return {
      cells: (memory) => native.cacheCells(listener, memory),
      tally: (meters, places, bounds, kind = 0) => native.cacheTally(listener, meters, places, bounds, kind),
      region: (memory, here, ticks, cellBytes, key = 0) =>
        native.cacheRegion(listener, memory, here, ticks, cellBytes, key),
      close: (region) => native.cacheClose(listener, region),
      share: (group) => native.cacheShare(listener, group),
      signs: (key, reuseSeconds) => native.cacheSigns(listener, key, reuseSeconds),
      limits: (ip, resource, rules, { trusted, exempt }, meters, places) =>
        native.cacheLimits(listener, ip, resource, rules, trusted, exempt, meters, places),
      clients: ({ trusted, exempt }) => native.cacheClients(listener, trusted, exempt),
      put: (numbers, textBytes) => native.cachePut(listener, numbers, textBytes),
      samples: () => native.cacheSamples(listener),
      usage: () => native.cacheUsage(listener),
    }
  }
}

/** Listens. Throws where the address cannot be had. `by`: for tests of both ways on one machine. */
export function openWire(options: WireOptions, hear: Hear, by = servedBy): Wire {
  if (by === 'fallback' || addon === undefined || (options.tls !== undefined && tlsBy === 'fallback'))
    return openFallbackWire(options, hear)
  return new AddonWire(addon, options, hear)
}
