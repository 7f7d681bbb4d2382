import type { Log } from '../../actor/log.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { type Fence, Lead } from '../../ledger/lead.js'
import {
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import type { Gift } from './gifts.js'

/** A letter in plain text. */
export interface Letter {
  /** A lasting name: a repeated letter has the same one, so that receivers can recognize it. */
  readonly id: string
  readonly to: string
  readonly subject: string
  readonly text: string
}

/** A server that sends letters. */
export interface Mailer {
  readonly label: 'smtp'
  /** True: a server has taken it. `permanent`: no server ever will. Never rejects but for bugs. */
  send(letter: Letter): Promise<true | { readonly permanent: string } | Refusal>
  close(): void
}

/** A letter on its way. `kept`: nobody carries letters from here, the operator reads them. */
export interface OutboxEntry {
  readonly to: string
  readonly gift: string
  readonly winc: string
  readonly message: string
  readonly createdMs: number
  readonly state: 'waiting' | 'kept' | 'sent' | 'failed'
  readonly tries: number
  readonly nextMs: number
  readonly why?: string
}

const kind = 'outbox'
/** Names of the letters that are still to be sent. */
const waitingKind = 'outbox-waiting'
const sentAtOnce = 50
const firstPauseMs = 60_000
const longestPauseMs = 6 * 3600_000
/** A process that needed so long to note a try may have been followed by another one: it does not make that try. */
const notedMaxMs = 5000
/** Some five days. */
const triesMax = 30

/** The entry of a gift's letter in the outbox, as record changes. */
export function giftMail({ id, email, winc, giftMessage = '', createdMs }: Gift): RecordChange[] {
  const entry: OutboxEntry = {
    to: email,
    gift: id,
    winc,
    message: giftMessage,
    createdMs,
    state: 'waiting',
    tries: 0,
    nextMs: 0,
  }
  return [
    { kind, key: id, value: JSON.stringify(entry) },
    { kind: waitingKind, key: id, value: '1' },
  ]
}

export interface OutboxParts {
  readonly ledger: MoneyLedger
  /** Absent: letters stay here. */
  readonly mailer?: Mailer
  /** Where gifts are redeemed: a page that takes `id` and `email`. */
  readonly giftUrl: string
  readonly now: () => number
  readonly log: Log
}

/** Letters that must go out: each at least once, also over restarts; one that was taken by a server is not sent again. */
export class Outbox {
  #isWorking = false
  readonly #lead: Lead

  constructor(private readonly parts: OutboxParts) {
    this.#lead = new Lead(parts.ledger, 'mail')
  }

  /** Letters, by their gifts, behind `after`. */
  async list(after: string, limit: number): Promise<OutboxEntry[]> {
    return (await this.parts.ledger.records(kind, '', after, limit)).map(entryOf)
  }

  /** Sends what is due; of several services on one ledger one does. Resolves with how many letters are not waiting any more. */
  async work(): Promise<number> {
    if (this.#isWorking) return 0
    this.#isWorking = true
    try {
      const fence = await this.#lead.take()
      if (fence === undefined) return 0
      let done = 0
      let after = ''
      for (;;) {
        const page = await this.parts.ledger.records(waitingKind, '', after, sentAtOnce)
        for (const { key } of page) if (await this.#send(key, fence)) done += 1
        const last = page.at(-1)
        if (last === undefined || page.length < sentAtOnce) return done
        after = last.key
      }
    } finally {
      this.#isWorking = false
    }
  }

  /** True: it is not waiting any more. */
  async #send(id: string, fence: Fence): Promise<boolean> {
    const { ledger, mailer, now, log } = this.parts
    const stored = await ledger.record(kind, id)
    if (stored === undefined) return false
    const entry = entryOf(stored)
    if (mailer === undefined) return this.#put(stored, { ...entry, state: 'kept' }, fence)
    const begunMs = now()
    if (entry.nextMs > begunMs) return false
    const tries = entry.tries + 1
    const pauseMs = Math.min(firstPauseMs * 2 ** (tries - 1), longestPauseMs)
    const noted = await this.#noted(stored, { ...entry, tries, nextMs: begunMs + pauseMs }, fence)
    if (noted === undefined || now() - begunMs > notedMaxMs) return false
    const sent = await mailer.send(this.#letter(entry))
    const next = entryOf(noted)
    if (sent === true) return this.#put(noted, { ...next, state: 'sent' }, fence)
    const why = isRefusal(sent) ? sent.message : sent.permanent
    const isOver = !isRefusal(sent) || tries >= triesMax
    log.warn(
      { gift: id, why, tries },
      isOver ? 'an e-mail cannot be sent' : 'an e-mail could not be sent: tried again later',
    )
    return this.#put(noted, { ...next, why, ...(isOver ? { state: 'failed' } : {}) }, fence)
  }

  /** Writes a try down before it is made, so that another process that leads meanwhile does not make it, too. */
  async #noted(stored: LedgerRecord, next: OutboxEntry, fence: Fence): Promise<LedgerRecord | undefined> {
    const { key, version } = stored
    const value = JSON.stringify(next)
    const noted = { kind, key, value, expected: version }
    const outcome = await this.parts.ledger.commit({ transfers: [], records: [noted, fence] })
    const written = isRejected(outcome) ? undefined : await this.parts.ledger.record(kind, key)
    return written?.value === value ? written : undefined
  }

  async #put({ key, version }: LedgerRecord, next: OutboxEntry, fence: Fence): Promise<boolean> {
    const over = next.state === 'waiting' ? [] : [{ kind: waitingKind, key, value: undefined }]
    const change = { kind, key, value: JSON.stringify(next), expected: version }
    const outcome = await this.parts.ledger.commit({ transfers: [], records: [change, ...over, fence] })
    return next.state !== 'waiting' && !isRejected(outcome)
  }

  #letter({ to, gift, winc, message }: OutboxEntry): Letter {
    const link = `${this.parts.giftUrl}?${new URLSearchParams({ id: gift, email: to })}`
    const messagePart = message === '' ? '' : `\nA message from the sender:\n\n${message}\n`
    const text = `You have been given ${winc} winc: credits for permanent storage.
${messagePart}
Put them into your wallet:

${link}

The gift has the number ${gift}.
`
    return { id: gift, to, subject: 'You have been given storage credits', text }
  }
}

function entryOf(stored: Pick<LedgerRecord, 'value'>): OutboxEntry {
  return JSON.parse(stored.value) as OutboxEntry
}
