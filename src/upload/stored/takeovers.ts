import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { ObjectStore } from '../../source/objects/object-store.js'
import { keysOf, putBytes, wholeObject } from '../../source/objects/small-objects.js'
import { machineOf } from './machine-names.js'
import { isSealed, sealOf } from './seal.js'
import type { StoredKeys } from './stored-keys.js'

/** Who has taken over the uploads under a name. */
export interface Takeover {
  /** Undefined: no record is sealed by this service. */
  readonly machine: string | undefined
  /** Number of the last record under this name, from 1 on. */
  readonly number: number
}

const recordMaxBytes = 1024

/**
 * Which machine has the uploads under each name in the bucket. A record is an object that is written once, by a condition of the
 * store: of several machines exactly one takes a name over, and the number in its key grows (a fencing token). Records are
 * sealed, so that nobody else who may write to the bucket makes a machine leave its uploads to another one.
 */
export class Takeovers {
  /** Records never change. Undefined: this one is not sealed by this service. */
  readonly #read = new Map<string, string | undefined>()

  /** `secret`: makes the seals; all machines with one wallet have the same. */
  constructor(
    private readonly store: ObjectStore,
    private readonly keys: StoredKeys,
    private readonly secret: Uint8Array,
  ) {}

  /** Keyed by name, those that count. */
  async all(signal: AbortSignal): Promise<ReadonlyMap<string, Takeover> | Refusal> {
    const found = new Map<string, Takeover>()
    const listed = await this.#list(this.keys.takeovers, signal)
    if (isRefusal(listed)) return listed
    const records = listed.flatMap((key) => this.keys.takeoverOf(key) ?? [])
    for (const { name, number } of records.sort((one, other) => one.number - other.number)) {
      const read = await this.#machine(name, number, signal)
      if (isRefusal(read)) return read
      // A number whose record is not sealed is used up all the same.
      found.set(name, { machine: read.machine ?? found.get(name)?.machine, number })
    }
    return found
  }

  /** All names under which machines have written. */
  async names(signal: AbortSignal): Promise<readonly string[] | Refusal> {
    const listed = await this.#list(this.keys.node(''), signal)
    return isRefusal(listed) ? listed : listed.flatMap((key) => this.keys.nodeOf(key) ?? [])
  }

  /** False: another machine was faster. */
  async take(name: string, machine: string, number: number, signal: AbortSignal): Promise<boolean | Refusal> {
    const seal = sealOf(recordWords(name, number, machine), this.secret).toString('hex')
    const record = Buffer.from(`${machine} ${seal}`)
    const put = await putBytes(this.store, this.keys.takeover(name, number), record, true, signal)
    return isRefusal(put) ? put : put === 'put'
  }

  /** Whoever still writes under this name finds another claim than its own, and ends (NodeClaim). */
  async revoke(name: string, machine: string, signal: AbortSignal): Promise<Refusal | undefined> {
    const claim = Buffer.from(`taken over by ${machine}`)
    const put = await putBytes(this.store, this.keys.node(name), claim, false, signal)
    return isRefusal(put) ? put : undefined
  }

  /** Requests a sign of a machine that it can reach the store. */
  async question(of: string, by: string, signal: AbortSignal): Promise<Refusal | undefined> {
    const put = await putBytes(this.store, this.keys.question(of), Buffer.from(by), true, signal)
    return isRefusal(put) ? put : undefined
  }

  /** Whether a question to a machine is still there. */
  async hasQuestion(machine: string, signal: AbortSignal): Promise<boolean | Refusal> {
    const found = await this.store.head(this.keys.question(machine), signal)
    return isRefusal(found) ? (found.refused === 'unknown' ? false : found) : true
  }

  /** The sign of a machine, or the end of a question to one. */
  async answer(machine: string, signal: AbortSignal): Promise<Refusal | undefined> {
    const done = await this.store.remove(this.keys.question(machine), signal)
    return isRefusal(done) && done.refused !== 'unknown' ? done : undefined
  }

  async #machine(
    name: string,
    number: number,
    signal: AbortSignal,
  ): Promise<{ readonly machine: string | undefined } | Refusal> {
    const key = this.keys.takeover(name, number)
    if (!this.#read.has(key)) {
      const found = await this.store.get(key, undefined, { signal })
      const bytes = isRefusal(found) ? found : await wholeObject(found, recordMaxBytes)
      if (isRefusal(bytes) && bytes.refused !== 'unknown') return bytes
      const [machine = '', seal = ''] = isRefusal(bytes) ? [] : bytes.toString('latin1').split(' ')
      const words = recordWords(name, number, machine)
      const isOurs = isSealed(words, Buffer.from(seal, 'hex'), this.secret)
      this.#read.set(key, isOurs ? machine : undefined)
    }
    return { machine: this.#read.get(key) }
  }

  async #list(start: string, signal: AbortSignal): Promise<string[] | Refusal> {
    const keys: string[] = []
    for await (const page of keysOf(this.store, start, undefined, signal)) {
      if (isRefusal(page)) return page
      keys.push(...page)
    }
    return keys
  }
}

/** What the seal of a record covers. */
function recordWords(name: string, number: number, machine: string): Buffer {
  return Buffer.from(['takeover', name, String(number), machine].join('\n'))
}

/** Whether the uploads under a name belong to another machine than this one now. */
export function isTakenFrom(
  machine: string,
  name: string,
  takeovers: ReadonlyMap<string, Takeover>,
): boolean {
  return ![undefined, machine].includes(takeovers.get(name)?.machine)
}

/** The machine that has the uploads under a name. */
export function holderOf(name: string, takeovers: ReadonlyMap<string, Takeover>): string {
  return takeovers.get(name)?.machine ?? machineOf(name)
}
