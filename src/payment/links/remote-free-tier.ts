import type { Clock } from '../../actor/clock.js'
import { JsonPeer } from '../../admission/json-peer.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { FreeTier } from '../credits-port.js'

const limitMs = 2000

/**
 * Free bytes, requested from an upload service on another machine, which counts them: as many as a wallet has left from this
 * machine's network.
 */
export class RemoteFreeTier implements FreeTier {
  readonly #peer: JsonPeer

  constructor(url: string, clock: Clock) {
    this.#peer = new JsonPeer({ url, connectionsMax: 8 }, clock)
  }

  async remaining(address: string): Promise<number | null | Refusal> {
    const path = `/v1/account/free?address=${encodeURIComponent(address)}`
    const read = await this.#peer.ask(path, undefined, limitMs)
    if ('why' in read) return refuse('upstream', 'upstream', `the upload service: ${read.why}`)
    const { bytesRemaining: bytes } = read.body
    const isKnown = bytes === null || (Number.isSafeInteger(bytes) && Number(bytes) >= 0)
    if (read.status === 200 && isKnown) return bytes as number | null
    return refuse('upstream', 'upstream', `the upload service answered ${read.status} without bytesRemaining`)
  }

  async close(): Promise<void> {
    await this.#peer.close()
  }
}
