import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/**
 * The last log lines of all threads, in shared memory, for whoever keeps them. Each slot: `number + 1 i32, length i32, text`. The
 * first cell of the memory is the number of the next line. A writer takes a number, writes the text and then the number: so a
 * reader knows which slots are whole. Nobody waits: lines that are not read in time are overwritten and counted as lost.
 */
const sharedName = 'sluice log ring'
const slotCount = 1024
const slotBytes = 2048
const headBytes = 8
const textMaxBytes = slotBytes - headBytes
/** Characters that are kept of each text in a line that is too long for a slot. */
const partMaxLength = 400

interface Ring {
  readonly cells: Int32Array
  readonly bytes: Uint8Array
}

/** To be called before any thread is started: from then on the lines of all of them are kept for a while. */
export function shareLogRing(): void {
  setEnvironmentData(sharedName, new SharedArrayBuffer(headBytes + slotCount * slotBytes))
}

function shared(): Ring | undefined {
  const memory = getEnvironmentData(sharedName)
  if (!(memory instanceof SharedArrayBuffer)) return undefined
  return { cells: new Int32Array(memory), bytes: new Uint8Array(memory) }
}

const startOf = (number: number): number => headBytes + (number % slotCount) * slotBytes

/** Adds lines to the ring; undefined where this process has none. */
export function logRingWriter(): ((line: string) => void) | undefined {
  const ring = shared()
  if (ring === undefined) return undefined
  const { cells, bytes } = ring
  return (line) => {
    const text = Buffer.from(shortened(line.trimEnd()))
    const number = Atomics.add(cells, 0, 1) >>> 0
    const start = startOf(number)
    Atomics.store(cells, start >> 2, 0)
    cells[(start >> 2) + 1] = text.length
    bytes.set(text, start + headBytes)
    Atomics.store(cells, start >> 2, (number + 1) | 0)
  }
}

/** A line of JSON that fits a slot: the texts of a longer one are cut, those of its error too. */
function shortened(line: string): string {
  if (Buffer.byteLength(line) <= textMaxBytes) return line
  const whole = JSON.parse(line) as Record<string, unknown>
  const { level, time, thread, msg, requestId, err } = whole
  const { type, message, stack } = (typeof err === 'object' && err !== null ? err : {}) as Record<
    string,
    unknown
  >
  const error = err === undefined ? {} : { err: { type, message: cut(message), stack: cut(stack) } }
  return JSON.stringify({
    level,
    time,
    thread,
    msg: cut(msg),
    requestId: cut(requestId),
    ...error,
    isCut: true,
  })
}

function cut(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, partMaxLength) : undefined
}

/** Reads each line of the ring once. */
export class LogRingReader {
  #next = 0
  readonly #ring = shared()

  /** Lines since the last call, the oldest first, and how many were overwritten before they were read. */
  read(): { readonly lines: readonly string[]; readonly lost: number } {
    if (this.#ring === undefined) return { lines: [], lost: 0 }
    const { cells } = this.#ring
    const end = Atomics.load(cells, 0) >>> 0
    const lines: string[] = []
    const behind = (end - this.#next) >>> 0
    let lost = Math.max(0, behind - slotCount)
    for (let number = (this.#next + lost) >>> 0; number !== end; number = (number + 1) >>> 0) {
      const line = this.#line(number)
      // A writer that does not finish (its thread was ended) must not stop the reader.
      if (line === undefined && (end - number) >>> 0 < slotCount / 2) {
        this.#next = number
        return { lines, lost }
      }
      if (line === undefined) lost += 1
      else lines.push(line)
    }
    this.#next = end
    return { lines, lost }
  }

  #line(number: number): string | undefined {
    const { cells, bytes } = this.#ring as Ring
    const start = startOf(number)
    const isWhole = (): boolean => Atomics.load(cells, start >> 2) === ((number + 1) | 0)
    if (!isWhole()) return undefined
    const length = Math.min(cells[(start >> 2) + 1] ?? 0, textMaxBytes)
    const text = Buffer.from(bytes.subarray(start + headBytes, start + headBytes + length)).toString()
    return isWhole() ? text : undefined
  }
}

/** Something that an operator will want to know of when looking for the cause of a trouble. */
export interface Change {
  /** `start` and `stop` of the program; `order`: an operator changed something. */
  readonly kind: 'start' | 'stop' | 'order'
  readonly what: string
  /** Who, where that is known. */
  readonly by?: string
}

/** Notifies whoever keeps the lines of a change. It is no log line: the level of the log does not count. */
export function noteChange(change: Change, nowMs: number): void {
  logRingWriter()?.(JSON.stringify({ time: new Date(nowMs).toISOString(), change }))
}
