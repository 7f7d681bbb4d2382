import type { MessagePort, TransferListItem } from 'node:worker_threads'
import { type Refusal, refuse } from '../format/refusal.js'

/** Where an actor can be reached. A message to a full mailbox is refused at once and never queued. */
export interface Address<Request, Reply> {
  /** Hands a message over without waiting. False: the mailbox is full and nothing was queued. */
  tell(message: Request): boolean
  /**
   * Hands a message over and waits; what is in `moves` is transferred: not copied, and unusable here afterwards.
   * Refusals: `busy` (mailbox full), `upstream` (the actor is lost).
   */
  ask(message: Request, moves?: readonly TransferListItem[]): Promise<Reply | Refusal>
}

interface Envelope<Request> {
  /** 0: no reply wanted. */
  readonly ticket: number
  readonly message: Request
}

interface Answer<Reply> {
  readonly ticket: number
  readonly reply: Reply | Refusal
}

/** A message that an actor sends to all callers without a request. */
interface Broadcast<Event> {
  readonly event: Event
}

/**
 * What goes out through a port. Batched words go together at the end of the turn of the thread's loop, when all sockets that were
 * ready have been read: many answers of one turn wake the other side once. Until then their contents must not change.
 */
class Outgoing<Word> {
  #words: Word[] = []
  #moves: TransferListItem[] = []

  constructor(
    private readonly port: MessagePort,
    private readonly isBatched: boolean,
  ) {}

  post(word: Word, moves: readonly TransferListItem[] = []): void {
    if (!this.isBatched) {
      this.port.postMessage(word, moves)
      return
    }
    if (this.#words.length === 0) setImmediate(() => this.#flush())
    this.#words.push(word)
    if (moves.length > 0) this.#moves.push(...moves)
  }

  #flush(): void {
    const words = this.#words
    const moves = this.#moves
    this.#words = []
    this.#moves = []
    this.port.postMessage(words, moves)
  }
}

/** Hears what comes in, word by word. */
function hearFrom<Word>(port: MessagePort, hear: (word: Word) => void): void {
  port.on('message', (words: Word | readonly Word[]) => {
    if (Array.isArray(words)) for (const word of words as readonly Word[]) hear(word)
    else hear(words as Word)
  })
}

/** What the caller's side of a port may do besides. */
interface AddressOptions<Event> {
  /** Receives the broadcasts of the actor. */
  readonly hear?: (event: Event) => void
  /** Messages of one turn go together. */
  readonly isBatched?: boolean
}

/**
 * The caller's side of a port to an actor on another thread. `mailboxMax` bounds the messages under way from this side. Messages
 * without an answer count until the actor's next answer or acknowledgement, which come once a turn.
 */
export function addressOf<Request, Reply, Event = never>(
  port: MessagePort,
  mailboxMax: number,
  { hear, isBatched = false }: AddressOptions<Event> = {},
): Address<Request, Reply> {
  const outgoing = new Outgoing<Envelope<Request>>(port, isBatched)
  const waiting = new Map<number, (reply: Reply | Refusal) => void>()
  let lastTicket = 0
  let sent = 0
  let lost = false

  hearFrom(port, (word: Answer<Reply> | Broadcast<Event> | { handled: number }) => {
    if ('event' in word) return hear?.(word.event)
    if ('handled' in word) {
      sent -= word.handled
      return undefined
    }
    const resolve = waiting.get(word.ticket)
    waiting.delete(word.ticket)
    return resolve?.(word.reply)
  })
  port.on('close', () => {
    lost = true
    for (const resolve of waiting.values()) resolve(refuse('upstream', 'self', 'the thread has ended'))
    waiting.clear()
  })

  const full = (): boolean => waiting.size + sent >= mailboxMax
  return {
    tell(message) {
      if (lost || full()) return false
      sent += 1
      outgoing.post({ ticket: 0, message })
      return true
    },
    ask(message, moves = []) {
      if (lost) return Promise.resolve(refuse('upstream', 'self', 'the thread has ended'))
      if (full()) return Promise.resolve(refuse('busy', 'self', 'the mailbox is full'))
      lastTicket += 1
      const ticket = lastTicket
      outgoing.post({ ticket, message }, moves)
      return new Promise((resolve) => waiting.set(ticket, resolve))
    },
  }
}

/** The actor's side of one port: how its events reach that caller. */
export interface Caller<Event> {
  hear(event: Event): void
}

/** What the actor's side of a port may do besides. */
interface AnswerOptions<Reply> {
  /** What of a reply is not copied, but moved to the caller. */
  readonly movesOf?: (reply: Reply | Refusal) => readonly TransferListItem[]
  /** Replies and events of one turn go together. */
  readonly isBatched?: boolean
}

/**
 * Answers what comes in on `port`. `handle` may return a promise: messages are then answered as they finish, so an actor
 * that must work strictly in order awaits inside. A handler that throws is a bug: the error is rethrown and ends the
 * thread, and the supervisor ends the process.
 */
export function answer<Request, Reply, Event = never>(
  port: MessagePort,
  handle: (
    message: Request,
    caller: Caller<Event>,
  ) => Reply | Refusal | undefined | Promise<Reply | Refusal | undefined>,
  { movesOf = () => [], isBatched = false }: AnswerOptions<Reply> = {},
): Caller<Event> {
  const outgoing = new Outgoing<Answer<Reply> | Broadcast<Event> | { handled: number }>(port, isBatched)
  const caller: Caller<Event> = { hear: (event) => outgoing.post({ event }) }
  let handled = 0
  const acknowledge = (): void => {
    outgoing.post({ handled })
    handled = 0
  }
  hearFrom(port, (word: Envelope<Request>) => {
    if (word.ticket === 0) {
      handled += 1
      if (handled === 1) setImmediate(acknowledge)
    }
    const outcome = handle(word.message, caller)
    if (word.ticket === 0 && !(outcome instanceof Promise)) return
    void Promise.resolve(outcome).then(
      (reply) => {
        if (word.ticket === 0) return
        if (reply === undefined) throw new Error('a message that waits for a reply was left without one')
        outgoing.post({ ticket: word.ticket, reply }, movesOf(reply))
      },
      (error: unknown) => {
        setImmediate(() => {
          throw error
        })
      },
    )
  })
  return caller
}

/** An address for an actor on the same thread: for tests and for wiring without threads. */
export function localAddress<Request, Reply>(
  handle: (message: Request) => Reply | Refusal | undefined | Promise<Reply | Refusal | undefined>,
): Address<Request, Reply> {
  return {
    tell(message) {
      void handle(message)
      return true
    },
    async ask(message) {
      const reply = await handle(message)
      if (reply === undefined) throw new Error('a message that waits for a reply was left without one')
      return reply
    },
  }
}
