import type { QueryResultRow } from 'pg'
import { type Clock, withinTime } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import { PostgresSessions } from '../ledger/postgres-session.js'
import { DatabaseCalls } from './database-calls.js'
import {
  type ItemElsewhere,
  type ItemsElsewhere,
  type ListedReceipt,
  type ReceiptFacts,
  saleLeaseMs,
} from './items-elsewhere.js'

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
  readonly isElsewhere: boolean | 'selling'
  readonly receipt?: ListedReceipt
}

interface Row {
  readonly id: Buffer
  readonly receipt: string | null
  readonly accepted: boolean
  /** The row names this machine. */
  readonly own: boolean
}

const down =
  'it is not known what other machines have accepted: credits pay only for items from the homes of their wallets'
const connectionsMax = 2
const answerMs = 3000
const restMs = 1000
/** Orders of one statement. */
const [addsMax, looksMax] = [20, 200]
/** Rows that one statement removes. */
const sweptMax = 5000
const lease = `interval '${saleLeaseMs} ms'`

/**
 * Ids of accepted items in the PostgreSQL of a cluster: a row of 200 to 280 bytes each, written before the receipt. So an item
 * that one machine has accepted, free or paid, alone or in a bundle, is charged by no other one.
 */
export class PostgresItems implements ItemsElsewhere {
  readonly #sessions: PostgresSessions
  readonly #calls: DatabaseCalls
  readonly #add: (items: readonly ItemElsewhere[]) => Promise<true | undefined>
  readonly #look: (id: Id) => Promise<Found | undefined>

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
    this.#add = this.#calls.grouped((orders) => this.#addAll(orders), addsMax)
    this.#look = this.#calls.grouped((ids) => this.#lookAll(ids), looksMax)
  }

  async add(items: readonly ItemElsewhere[]): Promise<boolean> {
    return (await this.#add(items)) !== undefined
  }

  async has(id: Id): Promise<boolean | 'selling' | undefined> {
    return (await this.#look(id))?.isElsewhere
  }

  async receiptOf(id: Id): Promise<ListedReceipt | 'none' | undefined> {
    const found = await this.#look(id)
    return found && (found.receipt ?? 'none')
  }

  async beginSale(bundle: Id): Promise<string | undefined> {
    const rows = await this.#rows<{ sale: string }>(
      `INSERT INTO cluster_sales (store, bundle, until) VALUES ($1, $2, now() + ${lease})
       ON CONFLICT (store, bundle) DO UPDATE SET until = excluded.until RETURNING sale`,
      [this.options.store, idBytes(bundle)],
    )
    return rows?.[0]?.sale
  }

  async addToSale(sale: string, ids: readonly Uint8Array[]): Promise<boolean> {
    const added = await this.#rows(
      `INSERT INTO cluster_sale_items (id, sale)
       SELECT w.id, s.sale FROM unnest($2::bytea[]) AS w(id), cluster_sales s
       WHERE s.sale = $1 AND s.bundle IS NOT NULL
       ON CONFLICT DO NOTHING`,
      [sale, ids],
    )
    return added !== undefined
  }

  async renewSales(bundles: readonly Id[]): Promise<ReadonlySet<Id> | undefined> {
    const rows = await this.#rows<{ bundle: Buffer }>(
      `UPDATE cluster_sales SET until = now() + ${lease}
       WHERE store = $1 AND bundle = ANY($2::bytea[]) RETURNING bundle`,
      [this.options.store, bundles.map(idBytes)],
    )
    return rows && new Set(rows.map(({ bundle }) => idOfBytes(bundle)))
  }

  async endSales(bundles: readonly Id[]): Promise<boolean> {
    const ended = await this.#rows(
      'UPDATE cluster_sales SET bundle = NULL WHERE store = $1 AND bundle = ANY($2::bytea[])',
      [this.options.store, bundles.map(idBytes)],
    )
    return ended !== undefined
  }

  async sweepSales(): Promise<boolean> {
    // First of all they cannot be renewed any more.
    await this.#rows(
      `UPDATE cluster_sales SET bundle = NULL WHERE bundle IS NOT NULL AND until < now() - ${lease}`,
      [],
    )
    const removed = await this.#rows(
      `DELETE FROM cluster_sale_items WHERE ctid = ANY(ARRAY(
         SELECT i.ctid FROM cluster_sale_items i JOIN cluster_sales s USING (sale)
         WHERE s.bundle IS NULL LIMIT ${sweptMax})) RETURNING 1`,
      [],
    )
    if (removed === undefined) return false
    if (removed.length > 0) return true
    await this.#rows(
      `DELETE FROM cluster_sales s WHERE s.bundle IS NULL
       AND NOT EXISTS (SELECT 1 FROM cluster_sale_items i WHERE i.sale = s.sale)`,
      [],
    )
    return false
  }

  close(): Promise<void> {
    return withinTime(this.options.clock, 1000, this.#sessions.close(), undefined)
  }

  async #addAll(orders: readonly (readonly ItemElsewhere[])[]): Promise<true[]> {
    const unique = new Map(inOrder(orders.flat()).map((item) => [idOfBytes(item.id), item]))
    // In one order for all machines, so that none waits for one that waits for it.
    const items = [...unique.values()].sort((one, other) => Buffer.compare(one.id, other.id))
    // Who had it before has it in its tables, or has left it to a machine that took over its uploads. What was accepted alone
    // stays where it is, whatever bundle elsewhere holds bytes under its id: nobody has checked those.
    await this.#sessions.ask(
      `INSERT INTO cluster_items (id, bundle, store, receipt) SELECT w.id, w.bundle, $1, w.receipt
       FROM unnest($2::bytea[], $3::bytea[], $4::text[]) AS w(id, bundle, receipt)
       ON CONFLICT (id) DO UPDATE SET store = excluded.store, receipt = coalesce(excluded.receipt, cluster_items.receipt)
       WHERE CASE WHEN excluded.receipt IS NULL
         THEN cluster_items.receipt IS NULL AND cluster_items.store <> excluded.store
         ELSE cluster_items.receipt IS NULL OR cluster_items.store <> excluded.store END`,
      [
        this.options.store,
        items.map(({ id }) => id),
        items.map(({ bundle }) => bundle),
        items.map(({ receipt }) => (receipt === undefined ? null : JSON.stringify(receipt))),
      ],
    )
    return orders.map(() => true)
  }

  async #rows<Row extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
  ): Promise<Row[] | undefined> {
    return (await this.#calls.call(() => this.#sessions.ask<Row>(text, values)))?.answer
  }

  async #lookAll(ids: readonly Id[]): Promise<Found[]> {
    // One statement: what leaves the sales is among the accepted ones already.
    const rows = await this.#sessions.ask<Row>(
      `SELECT id, receipt, true AS accepted, store = $2 AS own FROM cluster_items
       WHERE id = ANY($1::bytea[]) AND (store <> $2 OR receipt IS NOT NULL)
       UNION ALL
       SELECT DISTINCT i.id, NULL, false, false FROM cluster_sale_items i JOIN cluster_sales s USING (sale)
       WHERE i.id = ANY($1::bytea[]) AND s.store <> $2 AND s.bundle IS NOT NULL AND s.until > now()`,
      [ids.map(idBytes), this.options.store],
    )
    const accepted = new Map<Id, Row>()
    const selling = new Set<Id>()
    for (const row of rows) {
      if (row.accepted) accepted.set(idOfBytes(row.id), row)
      else selling.add(idOfBytes(row.id))
    }
    return ids.map((id) => {
      const { receipt = null, own = true } = accepted.get(id) ?? {}
      const isElsewhere = !own || (selling.has(id) && 'selling')
      if (receipt === null) return { isElsewhere }
      const facts = JSON.parse(receipt) as ReceiptFacts
      return { isElsewhere, receipt: own ? { ...facts, isOwn: true } : facts }
    })
  }
}

/** Those with a receipt last: of two with one id they count. */
function inOrder(items: readonly ItemElsewhere[]): ItemElsewhere[] {
  const isAlone = ({ receipt }: ItemElsewhere): boolean => receipt !== undefined
  return [...items.filter((item) => !isAlone(item)), ...items.filter(isAlone)]
}
