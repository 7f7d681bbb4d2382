import type { Agent, Dispatcher } from 'undici'
import { openAgent } from './agent.js'

/** A request to another server; `origin` says which. */
export type Question = Dispatcher.RequestOptions & { readonly origin: string }

/** Sends requests to other servers; undici's agents have this interface. */
export interface Asks {
  request(question: Question): Promise<Dispatcher.ResponseData>
}

/**
 * Connections to other servers, kept between requests. The library is loaded at the first request, because most threads
 * send none.
 */
export class Upstream implements Asks {
  #agent: Agent | undefined
  #closed = false

  constructor(private readonly options: Agent.Options) {}

  /** Resolves with the head of the answer; its body is read or dropped by the caller. Rejects as undici does. */
  async request(question: Question): Promise<Dispatcher.ResponseData> {
    if (this.#closed) throw new Error('these connections are closed')
    this.#agent ??= openAgent(this.options)
    return this.#agent.request(question)
  }

  /** Closes every connection, with what is under way on them. */
  async destroy(): Promise<void> {
    this.#closed = true
    await this.#agent?.destroy()
  }
}
