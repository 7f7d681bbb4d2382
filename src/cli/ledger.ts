import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { type LedgerPlace, openLedger } from '../ledger/open.js'
import { brokenFolder } from '../main/databases.js'
import { approvalFaults } from '../payment/books/approval-faults.js'
import { lastingFault } from '../store/lmdb-check.js'
import { folders } from '../threads/folders.js'
import { headKeyPath } from '../threads/key-paths.js'
import { commandWords } from './command-words.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'

/** The folder of the embedded ledger, below DATA_PATH. */
const folder = 'ledger'

const help = `sluice ledger: the ledger of the payment service

Usage: sluice ledger check

  check  computes every account anew from the transfers, and compares: accounts, histories, what is pending, the chain of
         transfers, and each head of it that was signed; records are compared with their sum, and lists and sums of shared credits
         with the accounts of the approvals. All accounts together must hold nothing. The program may run meanwhile.

Ends with code 0 when everything holds, 4 when something does not, 3 when there is no ledger, 2 on wrong arguments.
`

/** Checks the ledger below DATA_PATH. */
export async function ledgerCommand(words: readonly string[]): Promise<number> {
  const positionals = commandWords(words, help)
  if (positionals === undefined) return exitCode.done
  if (positionals.join(' ') !== 'check') {
    process.stderr.write('sluice ledger: give check; see sluice ledger --help\n')
    return exitCode.usage
  }
  const config = readConfig()
  if (Array.isArray(config)) {
    for (const line of config) process.stderr.write(`sluice ledger: ${line}\n`)
    return exitCode.usage
  }
  const { root } = folders(config)
  const path = join(root, folder)
  const { databaseUrl } = config.credits
  if (databaseUrl === undefined && !existsSync(path)) {
    process.stderr.write(`sluice ledger: there is no ledger in ${path}\n`)
    return exitCode.notFound
  }
  // LMDB would end this process by a signal: the check of a ledger looks at every page before.
  const fault = databaseUrl === undefined ? lastingFault(path, Number.POSITIVE_INFINITY) : undefined
  if (fault !== undefined) throw brokenFolder(root, folder, fault)
  const place = { ledgerPath: path, headKeyPath: headKeyPath(config) }
  return checked({ ...place, ...(databaseUrl === undefined ? {} : { databaseUrl }) })
}

async function checked(place: LedgerPlace): Promise<number> {
  const ledger = await openLedger(place, systemClock)
  const { transfers, accounts, signedHeads, head, faults } = await ledger.check(approvalFaults)
  await ledger.close()
  const counted = `${transfers} transfers, ${accounts} accounts, ${signedHeads} signed heads`
  process.stdout.write(`${counted}; the chain ends in ${head}\n`)
  for (const fault of faults) process.stdout.write(`${paint('red', 'wrong')}  ${fault}\n`)
  process.stdout.write(faults.length === 0 ? `${paint('green', 'right')}  everything adds up\n` : '')
  return faults.length === 0 ? exitCode.done : exitCode.untrue
}
