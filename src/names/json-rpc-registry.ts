import { fieldsOf, objectOf } from '../chain/json-fields.js'
import { expected } from '../format/bug.js'
import { textOfBytes } from '../format/bytes.js'
import { Gathered } from '../format/gathered.js'
import { refuse } from '../format/refusal.js'
import { Upstream } from '../http/upstream.js'
import { readRecord } from './name-record.js'
import type { Name, ResolveContext, Resolver, ResolverVerdict } from './names-port.js'

/** A record is a few hundred bytes. */
const answerMaxBytes = 65_536

/**
 * A registry that speaks JSON-RPC 2.0 over HTTP POST. One method:
 *
 * ns_getRecord [basename, record] -> null where there is no such name, or an object with
 *     transactionId    what the record points to
 * ttlSeconds how long it may be cached
 *     antId, antProgramId   the token that holds the record, and the program of that token
 *     undernameLimit   undernames that the name has paid for
 *     index            place of the record among all of the name, by priority; 0 for `@`
 *
 * All but `transactionId` may be left out.
 */
export class JsonRpcRegistry implements Resolver {
  readonly label = 'on-demand'
  readonly remote = true
  readonly #upstream: Upstream
  #last = 0

  constructor(
    private readonly url: string,
    connectionsMax: number,
  ) {
    this.#upstream = new Upstream({ connections: connectionsMax, headersTimeout: 0, bodyTimeout: 0 })
  }

  async resolve(name: Name, { signal }: ResolveContext): Promise<ResolverVerdict> {
    this.#last += 1
    const call = {
      jsonrpc: '2.0',
      id: this.#last,
      method: 'ns_getRecord',
      params: [name.basename, name.record],
    }
    try {
      const text = await this.#post(JSON.stringify(call), signal)
      return text === undefined ? this.#no('it does not answer with 200') : this.#read(text, call.id)
    } catch (error) {
      if (signal.aborted) return refuse('late', 'upstream', 'the registry did not answer')
      return refuse('upstream', 'upstream', `the registry of names: ${expected(error).message}`)
    }
  }

  async close(): Promise<void> {
    await this.#upstream.destroy()
  }

  /** The body of an answer with status 200. */
  async #post(call: string, signal: AbortSignal): Promise<string | undefined> {
    const { origin, pathname, search } = new URL(this.url)
    const { statusCode, body } = await this.#upstream.request({
      origin,
      path: pathname + search,
      method: 'POST',
      body: call,
      signal,
      headers: { 'content-type': 'application/json', accept: 'application/json' },
    })
    if (statusCode !== 200) {
      void body.dump({ limit: answerMaxBytes }).catch(() => undefined)
      return undefined
    }
    const gathered = new Gathered()
    for await (const piece of body as AsyncIterable<Buffer>) {
      // Leaving the loop closes the connection.
      if (gathered.sizeBytes + piece.length > answerMaxBytes) throw new Error('its answer is too large')
      gathered.add(piece)
    }
    return textOfBytes(gathered.bytes())
  }

  #read(text: string, id: number): ResolverVerdict {
    const answer = fieldsOf(text)
    if (answer === undefined || answer.id !== id) return this.#no('its answer is no answer to the question')
    if (answer.error !== undefined && answer.error !== null) return this.#no('it answers with an error')
    if (answer.result === null) return 'absent'
    const found = objectOf(answer.result)
    const record =
      found === undefined
        ? undefined
        : readRecord({ ...found, id: found.transactionId, recordIndex: found.index })
    return record ?? this.#no('its record has no id')
  }

  #no(why: string): ResolverVerdict {
    return refuse('forged', 'upstream', `the registry of names: ${why}`)
  }
}
