/** Opens the ledgers in the folders that it is given, and writes for each what it finds: a line of JSON (`Looked`). */
import { createHash } from 'node:crypto'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { headKey } from '../../src/ledger/head-key.js'
import { BrokenDatabase } from '../../src/store/lmdb-check.js'

export interface Looked {
  /** What the check says. */
  readonly faults: readonly string[]
  /** Digest of the answers to all queries; empty where the ledger was not opened. */
  readonly answers: string
  /** Why it was not opened. */
  readonly refused?: string
}

const many = 1000

/** The answers to all queries. Throws where something cannot be read. */
async function answersOf(ledger: EmbeddedLedger): Promise<string> {
  const digest = createHash('sha256')
  const add = (value: unknown): void => {
    const text = JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one))
    digest.update(`${text}\n`)
  }
  const accounts = await ledger.accounts('', '', many)
  for (const account of accounts) {
    add(account)
    for (const transfer of await ledger.history(account.name, Number.MAX_SAFE_INTEGER, many)) {
      add([transfer, await ledger.transfer(transfer.id), (await ledger.ending(transfer.id)) ?? null])
    }
  }
  for (const kind of ['k', 'list']) add(await ledger.records(kind, '', '', many))
  // What ends because its time is over.
  add(await ledger.expire(Date.now()))
  for (const account of await ledger.accounts('', '', many)) add(account)
  return digest.digest('hex')
}

async function look(path: string, keyPath: string): Promise<Looked> {
  try {
    const ledger = new EmbeddedLedger({ path, clock: systemClock, key: headKey(keyPath) })
    const { faults } = await ledger.check()
    const answers = await answersOf(ledger).catch((error: unknown) => `unreadable: ${error}`)
    await ledger.close()
    return { faults, answers }
  } catch (error) {
    if (!(error instanceof BrokenDatabase)) throw error
    return { faults: [], answers: '', refused: error.message }
  }
}

const [keyPath = '', ...paths] = process.argv.slice(2)
for (const path of paths) process.stdout.write(`${JSON.stringify(await look(path, keyPath))}\n`)
