import { setImmediate as turn } from 'node:timers/promises'
import { loadAddon } from '../addon.js'
import type { BorrowedKey } from '../ed25519/ed25519.js'
import { type FilePlaces, filePlaces } from '../mapped/mapped.js'
import type { RepeatTable } from './repeats.js'
import { openTwinWire } from './twin.js'
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

declare const doorBrand: unique symbol
type Door = { readonly [doorBrand]: true }

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
  ): [door: Door, port: number, inbox: ArrayBuffer, bytes: ArrayBuffer, outbox: ArrayBuffer]
  send(door: Door, slot: number, headBytes: number, body: Uint8Array, how: number): number
  read(door: Door, slot: number): void
  pause(door: Door, slot: number): void
  hold(door: Door, slot: number): void
  release(door: Door, slot: number): void
  drop(door: Door, slot: number): void
  address(door: Door, slot: number): string
  sweep(door: Door, nowMs: number): void
  shut(door: Door): void
  destroy(door: Door): void
  bound(max: number): void
  places(places: FilePlaces): void
  sockets(): [open: number, max: number, pauses: number]
  tlsReady(): boolean
  tlsOpen(
    door: Door,
    ticketKeys: Uint8Array,
    refusesUnknown: boolean,
    suites: string,
    ciphers: string,
    groups: string,
  ): void
  tlsAdd(door: Door, names: string, cert: string, key: string): void
  tlsUse(door: Door): void
  repeatOpen(door: Door, maxBytes: number, plain: string, every: string): void
  repeatCells(door: Door, memory: Int32Array): number
  repeatTally(
    door: Door,
    meters: Float64Array,
    places: Float64Array,
    bounds: Float64Array,
    kind: number,
  ): number
  repeatRegion(
    door: Door,
    memory: Uint8Array,
    here: Int32Array,
    ticks: Int32Array,
    cellBytes: number,
    key: number,
  ): number
  repeatClose(door: Door, region: number): boolean
  repeatShare(door: Door, group: Int32Array): void
  repeatSigns(door: Door, key: BorrowedKey, reuseSeconds: number): void
  repeatLimits(
    door: Door,
    ip: Int32Array,
    resource: Int32Array,
    rules: Float64Array,
    trusted: Int32Array,
    exempt: Int32Array,
    meters: Float64Array,
    places: Float64Array,
  ): void
  repeatClients(door: Door, trusted: Int32Array, exempt: Int32Array): void
  repeatPut(door: Door, numbers: Float64Array, textBytes: number): void
  repeatSamples(door: Door): [ms: number, bytes: number, count: number, target: string][]
  repeatUsage(door: Door): [answers: number, bytes: number, unfinished: number]
}

const addon = loadAddon<Addon>('server')
if (filePlaces !== undefined) addon?.places(filePlaces)

/** Which way sockets are served here: through the addon, or through its slower twin where the addon was not built. */
export const servedBy: 'addon' | 'twin' = addon === undefined ? 'twin' : 'addon'

/** The same of TLS. */
export const tlsBy: 'addon' | 'twin' = addon?.tlsReady() === true ? 'addon' : 'twin'

/** Accepted sockets of all servers of this process; `max` 0: as many as the system gives. */
export interface SocketUsage {
  readonly open: number
  readonly max: number
  /** Times that a server stopped accepting, because there was no room or no descriptor for one more. */
  readonly pauses: number
}

/**
 * Bounds the sockets that all threads of this process accept together; further clients wait in the kernel's queue until there
 * is room. The twin's threads do not share a count: there only the bound of each server applies.
 */
export function boundSockets(max: number): void {
  addon?.bound(max)
}

/** Undefined with the twin. */
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
  readonly #door: Door
  readonly #isSecure: boolean

  constructor(native: Addon, options: WireOptions, hear: Hear) {
    const { host, port, headMs, idleMs, stallMs, lingerMs, connectionsMax } = options
    const { inboxNumbers, bytesBytes, outboxBytes } = sharedSizes(connectionsMax)
    this.#addon = native
    const times = [headMs, idleMs, stallMs, lingerMs] as const
    const sizes = [inboxNumbers, bytesBytes, outboxBytes] as const
    const [door, bound, ...memory] = native.open(host, port, ...times, connectionsMax, ...sizes, hear)
    this.#door = door
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
      this.#addon.tlsOpen(this.#door, new Uint8Array(ticketKeys), refuses, suites, ciphers, tlsGroups)
      this.setCertificates(pairs)
    } catch (error) {
      this.destroy()
      throw error
    }
  }

  send(slot: number, headBytes: number, body: Uint8Array, how: number): number {
    return this.#addon.send(this.#door, slot, headBytes, body, how)
  }

  read(slot: number): void {
    this.#addon.read(this.#door, slot)
  }

  pause(slot: number): void {
    this.#addon.pause(this.#door, slot)
  }

  hold(slot: number): void {
    this.#addon.hold(this.#door, slot)
  }

  release(slot: number): void {
    this.#addon.release(this.#door, slot)
  }

  drop(slot: number): void {
    this.#addon.drop(this.#door, slot)
  }

  address(slot: number): string {
    return this.#addon.address(this.#door, slot)
  }

  sweep(nowMs: number): void {
    this.#addon.sweep(this.#door, nowMs)
  }

  setCertificates(pairs: readonly Pair[]): void {
    if (!this.#isSecure) throw new Error('this server speaks plain HTTP')
    for (const { names, cert, key } of pairs) this.#addon.tlsAdd(this.#door, names.join('\n'), cert, key)
    this.#addon.tlsUse(this.#door)
  }

  shut(): Promise<void> {
    this.#addon.shut(this.#door)
    return turn()
  }

  destroy(): void {
    this.#addon.destroy(this.#door)
  }

  repeats(maxBytes: number, plain: readonly string[], lines = ''): RepeatTable {
    const native = this.#addon
    const door = this.#door
    native.repeatOpen(door, maxBytes, plain.join('\n'), lines)
    return {
      cells: (memory) => native.repeatCells(door, memory),
      tally: (meters, places, bounds, kind = 0) => native.repeatTally(door, meters, places, bounds, kind),
      region: (memory, here, ticks, cellBytes, key = 0) =>
        native.repeatRegion(door, memory, here, ticks, cellBytes, key),
      close: (region) => native.repeatClose(door, region),
      share: (group) => native.repeatShare(door, group),
      signs: (key, reuseSeconds) => native.repeatSigns(door, key, reuseSeconds),
      limits: (ip, resource, rules, { trusted, exempt }, meters, places) =>
        native.repeatLimits(door, ip, resource, rules, trusted, exempt, meters, places),
      clients: ({ trusted, exempt }) => native.repeatClients(door, trusted, exempt),
      put: (numbers, textBytes) => native.repeatPut(door, numbers, textBytes),
      samples: () => native.repeatSamples(door),
      usage: () => native.repeatUsage(door),
    }
  }
}

/** Listens. Throws where the address cannot be had. `by`: for tests of both ways on one machine. */
export function openWire(options: WireOptions, hear: Hear, by = servedBy): Wire {
  if (by === 'twin' || addon === undefined || (options.tls !== undefined && tlsBy === 'twin'))
    return openTwinWire(options, hear)
  return new AddonWire(addon, options, hear)
}
