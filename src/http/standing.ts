import { known, message, type StandingWire, type Wire } from '../../native/server/wire.js'
import type { Given, StandingAnswer, Terms } from './exchange.js'
import { writeStanding } from './frame.js'

/** What the server that recognizes requests is asked. */
export interface StandingDesk {
  readonly wire: Wire
  dateLine(): string
  addressOf(slot: number): string
  /** Answers the request whose message starts at `at` as any other. */
  take(at: number): void
}

interface Held {
  readonly terms: Terms
  readonly hasBody: boolean
  /** Bytes of the whole body; 0 where the request names a range, or wants no body. */
  readonly wholeBytes: number
  /** The turn in which `holds` was asked last, and what it said. */
  turn: number
  holds: boolean
}

const noBody = { bytes: new Uint8Array(0), start: 0, sizeBytes: 0, file: -1 }

/**
 * Answers that stand for the rest of their second. The wire recognizes requests that are the same byte for byte as one that was
 * answered (but for the bounds of a range) and sends by itself; here each is still asked for: whether the answer holds, whether
 * its bytes are in memory, and whether the client may have it. What one client asks in one turn is asked for together.
 */
export class StandingAnswers {
  readonly #desk: StandingDesk
  readonly #wire: StandingWire
  /** By number. */
  readonly #held: (Held | undefined)[] = []
  /** Forgotten by the wire, and still being taken by some client. */
  readonly #leaving = new Map<number, Terms>()
  /** By slot: what its connection was given last. */
  readonly #given: Given[] = []
  #second = -1
  #turn = 0
  /** One client's requests for one answer. */
  #run: Held | undefined
  #runBytes = 0
  #runAddress = ''
  readonly #runAts: number[] = []
  readonly #runTolds: number[] = []

  constructor(desk: StandingDesk, wire: StandingWire) {
    this.#desk = desk
    this.#wire = wire
  }

  /** A turn begins, at `nowMs` of the clock that heads are dated by. */
  begin(nowMs: number): void {
    this.#turn += 1
    const second = Math.floor(nowMs / 1000)
    if (second === this.#second) return
    this.#second = second
    if (this.#held.length > 0) this.forget()
  }

  /** Lets an answer stand for requests like the one at `at`, which is being answered. */
  offer(at: number, { head, contentLength, body, terms }: StandingAnswer): void {
    const { outbox } = this.#desk.wire
    const said = body?.isRange === true ? undefined : contentLength
    const lengths = writeStanding(outbox, head, this.#desk.dateLine(), said)
    const { bytes, start, sizeBytes, file } = body ?? noBody
    const number = lengths === undefined ? -1 : this.#wire.stand(at, lengths, bytes, start, sizeBytes, file)
    if (number < 0) {
      terms.close()
      return
    }
    const wholeBytes = body === undefined || body.isRange ? 0 : bytes.length
    this.#held[number] = { terms, hasBody: body !== undefined, wholeBytes, turn: this.#turn, holds: true }
  }

  /** A request was recognized: its own message starts at `at`, the one that says so at `told`. */
  recognized(at: number, told: number): void {
    const { inbox } = this.#desk.wire
    const held = this.#held[inbox[told + known.answer]!]
    if (held === undefined || !this.#isTrue(held)) {
      this.#desk.take(at)
      return
    }
    let bytes = held.wholeBytes
    let start = 0
    if (held.hasBody) {
      const length = inbox[told + known.length]!
      if (length > 0) {
        start = inbox[told + known.startHigh]! * 2 ** 30 + inbox[told + known.startLow]!
        bytes = length
      }
      if (!held.terms.isHere(start, start + bytes)) {
        this.#desk.take(at)
        return
      }
    }
    const address = held.terms.asksWho ? this.#desk.addressOf(inbox[told + 1]!) : ''
    if (held !== this.#run || bytes !== this.#runBytes || address !== this.#runAddress) {
      this.settle()
      this.#run = held
      this.#runBytes = bytes
      this.#runAddress = address
    }
    this.#runAts.push(at)
    this.#runTolds.push(told)
  }

  /** Decides about what was recognized and not yet decided. */
  settle(): void {
    const run = this.#run
    if (run === undefined) return
    this.#run = undefined
    const count = this.#runAts.length
    const given = run.terms.give(this.#runAddress, this.#runBytes, count)
    if (given !== undefined) {
      const { inbox } = this.#desk.wire
      for (const told of this.#runTolds) {
        inbox[told] = message.allowed
        this.#given[inbox[told + 1]!] = given
      }
    } else for (const at of this.#runAts) this.#desk.take(at)
    this.#runAts.length = 0
    this.#runTolds.length = 0
  }

  /** The client on this slot left, or was sent away, before it had so many bytes. */
  unsent(slot: number, bytes: number): void {
    this.#given[slot]?.short(bytes)
  }

  /** Breaks off what may not go on. */
  check(): void {
    this.#held.forEach((held, number) => {
      if (held?.terms.mayGoOn() === false) this.#wire.cut(number)
    })
    for (const [number, terms] of this.#leaving) if (!terms.mayGoOn()) this.#wire.cut(number)
  }

  /** A client of an answer that was forgotten has got it all, or left. */
  released(number: number): void {
    this.#leaving.get(number)?.close()
    this.#leaving.delete(number)
  }

  /** No answer stands any more. */
  forget(): void {
    const taken = this.#wire.forget()
    this.#held.forEach((held, number) => {
      if (held === undefined) return
      if (taken.includes(number)) this.#leaving.set(number, held.terms)
      else held.terms.close()
    })
    this.#held.length = 0
  }

  /** When the wire is gone. */
  close(): void {
    for (const held of this.#held) held?.terms.close()
    for (const terms of this.#leaving.values()) terms.close()
    this.#held.length = 0
    this.#leaving.clear()
  }

  #isTrue(held: Held): boolean {
    if (held.turn !== this.#turn) {
      held.turn = this.#turn
      held.holds = held.terms.holds()
    }
    return held.holds
  }
}
