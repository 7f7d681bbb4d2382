import type { Release } from '../actor/fair-slots.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { Base64urlFlow } from './base64url-flow.js'
import type { ByteFlow } from './chain.js'
import type { Node, NodeRequest, OpenAnswer } from './node.js'
import { absenceRefusal } from './verdict.js'

/**
 * Opens `GET /tx/{id}/data` (base64url text) as a flow of `sizeBytes` bytes. The first bytes are awaited, since a node that
 * lacks the data answers 200 with an empty body, and then another node can still be queried. `done` is called once, when a
 * flow that was given is over; a reader that will not read it to its end fires `signal` or breaks its loop.
 */
export async function dataFlow(
  node: Node,
  question: NodeRequest,
  sizeBytes: number,
  done: Release,
  signal?: AbortSignal,
): Promise<ByteFlow | Refusal> {
  const opened = await node.open(question, signal)
  if (isRefusal(opened)) return opened
  if (opened.status !== 200) {
    opened.drop()
    return absenceRefusal(opened.status, node)
  }
  const reader = new DataReader(opened, sizeBytes, node.name)
  const first = await reader.next()
  if (isRefusal(first)) return first
  if (first === undefined && sizeBytes > 0) {
    return refuse('unknown', 'upstream', `${node.name} does not have the data`)
  }
  const release = (): void => {
    signal?.removeEventListener('abort', release)
    opened.drop()
    done()
  }
  signal?.addEventListener('abort', release, { once: true })
  return { node: node.name, bytes: { [Symbol.asyncIterator]: () => iterate(reader, first, release) } }
}

function iterate(
  reader: DataReader,
  first: Buffer | undefined,
  release: () => void,
): AsyncIterator<Uint8Array | Refusal, undefined> {
  let waiting = first
  let over = false
  const finish = (): void => {
    over = true
    release()
  }
  return {
    async next() {
      if (over) return { done: true, value: undefined }
      const piece = waiting ?? (await reader.next())
      waiting = undefined
      if (piece === undefined || isRefusal(piece)) finish()
      return piece === undefined ? { done: true, value: undefined } : { done: false, value: piece }
    },
    async return() {
      finish()
      return { done: true, value: undefined }
    },
  }
}

/**
 * Decoded pieces of the data. Refused where the text is no base64url or too short; a text that is too long exceeds
 * the limit of the answer.
 */
class DataReader {
  readonly #source: OpenAnswer
  readonly #decoder = new Base64urlFlow()
  readonly #sizeBytes: number
  readonly #node: string
  #taken = 0
  #ended = false

  constructor(source: OpenAnswer, sizeBytes: number, node: string) {
    this.#source = source
    this.#sizeBytes = sizeBytes
    this.#node = node
  }

  /** At least one byte, or undefined at the end (sound, or before any byte came), or a refusal. */
  async next(): Promise<Buffer | undefined | Refusal> {
    while (!this.#ended) {
      const piece = await this.#source.next()
      if (isRefusal(piece)) return piece
      this.#ended = piece === undefined
      const bytes = piece === undefined ? this.#decoder.end() : this.#decoder.push(piece)
      if (bytes === undefined) return this.#wrong('is no base64url')
      this.#taken += bytes.length
      if (this.#ended && this.#taken > 0 && this.#taken < this.#sizeBytes) return this.#wrong('is too short')
      if (bytes.length > 0) return bytes
    }
    return undefined
  }

  #wrong(what: string): Refusal {
    this.#source.drop()
    return refuse('upstream', 'upstream', `the data that ${this.#node} sends ${what}`)
  }
}
