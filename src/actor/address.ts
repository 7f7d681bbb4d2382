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

/** A message that an actor sends to all callers without being asked. */
interface Broadcast<Event> {
  readonly event: Event
}

/**
 * The caller's side of a port to an actor on another thread.
 *
 * `mailboxMax` bounds the messages under way from this side; told messages count until the actor's next answer or
 * acknowledgement, which come once a turn. `hear` receives the broadcasts of the actor.
 */
export function addressOf<Request, Reply, Event = never>(
  port: MessagePort,
  mailboxMax: number,
  hear?: (event: Event) => void,
): Address<Request, Reply> {
  const waiting = new Map<number, (reply: Reply | Refusal) => void>()
  let lastTicket = 0
  let told = 0
  let lost = false

  port.on('message', (word: Answer<Reply> | Broadcast<Event> | { handled: number }) => {
    if ('event' in word) return hear?.(word.event)
    if ('handled' in word) {
      told -= word.handled
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

  const full = (): boolean => waiting.size + told >= mailboxMax
  return {
    tell(message) {
      if (lost || full()) return false
      told += 1
      port.postMessage({ ticket: 0, message } satisfies Envelope<Request>)
      return true
    },
    ask(message, moves = []) {
      if (lost) return Promise.resolve(refuse('upstream', 'self', 'the thread has ended'))
      if (full()) return Promise.resolve(refuse('busy', 'self', 'the mailbox is full'))
      lastTicket += 1
      const ticket = lastTicket
      port.postMessage({ ticket, message } satisfies Envelope<Request>, moves)
      return new Promise((resolve) => waiting.set(ticket, resolve))
    },
  }
}

/** The actor's side of one port: how its events reach that caller. */
export interface Caller<Event> {
  hear(event: Event): void
}

/**
 * Answers what comes in on `port`. `handle` may return a promise: messages are then answered as they finish, so an actor
 * that must work strictly in order awaits inside. A handler that throws is a bug: the error is rethrown and ends the
 * thread, and the supervisor ends the process. `movesOf` names what of a reply is not copied but moved to the caller.
 */
export function answer<Request, Reply, Event = never>(
  port: MessagePort,
  handle: (
    message: Request,
    caller: Caller<Event>,
  ) => Reply | Refusal | undefined | Promise<Reply | Refusal | undefined>,
  movesOf: (reply: Reply | Refusal) => readonly TransferListItem[] = () => [],
): Caller<Event> {
  const caller: Caller<Event> = { hear: (event) => port.postMessage({ event } satisfies Broadcast<Event>) }
  let handled = 0
  const acknowledge = (): void => {
    if (handled === 0) handled = 0
    else port.postMessage({ handled })
    handled = 0
  }
  port.on('message', (word: Envelope<Request>) => {
    if (word.ticket === 0) {
      handled += 1
      if (handled === 1) setImmediate(acknowledge)
    }
    const outcome = handle(word.message, caller)
    if (word.ticket === 0 && !(outcome instanceof Promise)) return
    void Promise.resolve(outcome).then(
      (reply) => {
        if (word.ticket === 0) return
        if (reply === undefined) throw new Error('an asked message was left without a reply')
        port.postMessage({ ticket: word.ticket, reply } satisfies Answer<Reply>, movesOf(reply))
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
      if (reply === undefined) throw new Error('an asked message was left without a reply')
      return reply
    },
  }
}
