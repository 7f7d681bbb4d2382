import { type Clock, withinTime } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import { GroupCommit } from '../ledger/group.js'
import { PostgresSessions } from '../ledger/postgres-session.js'
import { DatabaseCalls } from './database-calls.js'
import type { ItemElsewhere, ItemsElsewhere, ReceiptFacts } from './items-elsewhere.js'

export interface PostgresItemsOptions {
  readonly databaseUrl: string
  /** A UUID of the machine that has what is accepted here. */
  readonly store: string
  readonly clock: Clock
  readonly log: Pick<Log, 'warn' | 'info'>
  /** An uploader does not wait longer: 800 unless given. */
  readonly patienceMs?: number
}

/** What is known of one item. */
interface Found {
  readonly isElsewhere: boolean
  readonly receipt?: ReceiptFacts
}

const down =
  'it is not known what other machines have accepted: credits pay only for items from the homes of their wallets'
const connectionsMax = 2
const answerMs = 3000
const restMs = 1000
/** Orders of one statement. */
const [addsMax, looksMax] = [20, 200]

/**
 * Ids of accepted items in the PostgreSQL of a cluster: a row of some 100 bytes each, written before the receipt. So an item that
 * one machine has accepted, free or paid, alone or in a bundle, is charged by no other one.
 */
export class PostgresItems implements ItemsElsewhere {
  readonly #sessions: PostgresSessions
  readonly #calls: DatabaseCalls
  readonly #adds: GroupCommit<readonly ItemElsewhere[], true>
  readonly #looks: GroupCommit<Id, Found>

  constructor(private readonly options: PostgresItemsOptions) {
    const { databaseUrl, clock, log, patienceMs = 800 } = options
    const outage = new Outage(log, down, 'the items of the cluster are known again')
    this.#sessions = new PostgresSessions(databaseUrl, connectionsMax, answerMs, answerMs)
    this.#calls = new DatabaseCalls({
      clock,
      limitMs: patienceMs,
      restMs,
      onFailed: ({ message }) => outage.failed({ reason: message }),
      onWell: () => outage.well(),
    })
    this.#adds = new GroupCommit((orders) => this.#add(orders), addsMax)
    this.#looks = new GroupCommit((ids) => this.#look(ids), looksMax)
  }

  async add(items: readonly ItemElsewhere[]): Promise<boolean> {
    return (await this.#calls.call(() => this.#adds.add(items))) !== undefined
  }

  async has(id: Id): Promise<boolean | undefined> {
    return (await this.#calls.call(() => this.#looks.add(id)))?.answer.isElsewhere
  }

  async receiptOf(id: Id): Promise<ReceiptFacts | 'none' | undefined> {
    const found = await this.#calls.call(() => this.#looks.add(id))
    return found && (found.answer.receipt ?? 'none')
  }

  close(): Promise<void> {
    return withinTime(this.options.clock, 1000, this.#sessions.close(), undefined)
  }

  async #add(orders: readonly (readonly ItemElsewhere[])[]): Promise<true[]> {
    const unique = new Map(orders.flat().map((item) => [idOfBytes(item.id), item]))
    // In one order for all machines, so that none waits for one that waits for it.
    const items = [...unique.values()].sort((one, other) => Buffer.compare(one.id, other.id))
    // Who had it before has it in its tables, or has left it to a machine that took over its uploads.
    await this.#sessions.ask(
      `INSERT INTO cluster_items (id, bundle, store, receipt) SELECT w.id, w.bundle, $1, w.receipt
       FROM unnest($2::bytea[], $3::bytea[], $4::text[]) AS w(id, bundle, receipt)
       ON CONFLICT (id) DO UPDATE SET store = excluded.store, receipt = coalesce(excluded.receipt, cluster_items.receipt)
       WHERE cluster_items.store <> excluded.store`,
      [
        this.options.store,
        items.map(({ id }) => id),
        items.map(({ bundle }) => bundle),
        items.map(({ receipt }) => (receipt === undefined ? null : JSON.stringify(receipt))),
      ],
    )
    return orders.map(() => true)
  }

  async #look(ids: readonly Id[]): Promise<Found[]> {
    const rows = await this.#sessions.ask<{ id: Buffer; receipt: string | null }>(
      'SELECT id, receipt FROM cluster_items WHERE id = ANY($1::bytea[]) AND store <> $2',
      [ids.map(idBytes), this.options.store],
    )
    const found = new Map(rows.map(({ id, receipt }) => [idOfBytes(id), receipt]))
    return ids.map((id) => {
      const receipt = found.get(id)
      const isElsewhere = receipt !== undefined
      return typeof receipt === 'string'
        ? { isElsewhere, receipt: JSON.parse(receipt) as ReceiptFacts }
        : { isElsewhere }
    })
  }
}
