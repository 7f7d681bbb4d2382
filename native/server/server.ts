import { loadAddon } from '../addon.js'
import { openTwinWire } from './twin.js'
import { type Hear, type StandingWire, sharedMemory, type Wire, type WireOptions } from './wire.js'

declare const doorBrand: unique symbol
type Door = { readonly [doorBrand]: true }

interface Addon {
  open(
    host: string,
    port: number,
    inbox: Int32Array,
    bytes: Buffer,
    outbox: Buffer,
    headMs: number,
    idleMs: number,
    stallMs: number,
    lingerMs: number,
    connectionsMax: number,
    hear: Hear,
  ): [door: Door, port: number]
  send(door: Door, slot: number, headBytes: number, body: Uint8Array, how: number): number
  stand(
    door: Door,
    at: number,
    before: number,
    after: number,
    rest: number,
    body: Uint8Array,
    start: number,
    size: number,
    file: number,
  ): number
  forget(door: Door): number[]
  cut(door: Door, number: number): void
  read(door: Door, slot: number): void
  hold(door: Door, slot: number): void
  release(door: Door, slot: number): void
  drop(door: Door, slot: number): void
  address(door: Door, slot: number): string
  sweep(door: Door, nowMs: number): void
  shut(door: Door): void
  destroy(door: Door): void
}

const addon = loadAddon<Addon>('server')

/** Which way sockets are served here: through the addon, or through its slower twin where the addon was not built. */
export const servedBy: 'addon' | 'twin' = addon === undefined ? 'twin' : 'addon'

class AddonWire implements Wire {
  readonly port: number
  readonly listening = Promise.resolve()
  readonly inbox: Int32Array
  readonly bytes: Buffer
  readonly outbox: Buffer
  readonly standing: StandingWire
  readonly #addon: Addon
  readonly #door: Door

  constructor(native: Addon, options: WireOptions, hear: Hear) {
    const { inbox, bytes, outbox } = sharedMemory(options.connectionsMax)
    const { host, port, headMs, idleMs, stallMs, lingerMs, connectionsMax } = options
    this.#addon = native
    this.inbox = inbox
    this.bytes = bytes
    this.outbox = outbox
    const times = [headMs, idleMs, stallMs, lingerMs] as const
    const opened = native.open(host, port, inbox, bytes, outbox, ...times, connectionsMax, hear)
    this.#door = opened[0]
    this.port = opened[1]
    this.standing = {
      stand: (at, { before, after, rest }, ...body) =>
        native.stand(opened[0], at, before, after, rest, ...body),
      forget: () => native.forget(opened[0]),
      cut: (number) => native.cut(opened[0], number),
    }
  }

  send(slot: number, headBytes: number, body: Uint8Array, how: number): number {
    return this.#addon.send(this.#door, slot, headBytes, body, how)
  }

  read(slot: number): void {
    this.#addon.read(this.#door, slot)
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

  shut(): void {
    this.#addon.shut(this.#door)
  }

  destroy(): void {
    this.#addon.destroy(this.#door)
  }
}

/** Listens. Throws where the address cannot be had. `by`: for tests of both ways on one machine. */
export function openWire(options: WireOptions, hear: Hear, by = servedBy): Wire {
  if (by === 'twin' || addon === undefined) return openTwinWire(options, hear)
  return new AddonWire(addon, options, hear)
}
