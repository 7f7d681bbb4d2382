#!/usr/bin/env node
import { programVersion } from '../actor/version.js'
import { parseId } from '../format/id.js'
import { UnusableData } from '../main/databases.js'
import { BrokenDatabase } from '../store/lmdb-check.js'
import type { Command } from './command.js'
import { exitCode } from './exit-code.js'

/** Each command is loaded when it is used: loading all would double the time to start. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./start.js')).start,
  verify: async () => (await import('./verify.js')).verify,
  bands: async () => (await import('./bands.js')).bandsCommand,
  import: async () => (await import('./import.js')).bulkImport,
  devnet: async () => (await import('./devnet.js')).devnet,
  index: async () => (await import('./upkeep.js')).index,
  names: async () => (await import('./names.js')).namesCommand,
  moderation: async () => (await import('./moderation.js')).moderationCommand,
  ledger: async () => (await import('./ledger.js')).ledgerCommand,
  promotion: async () => (await import('./promotion.js')).promotionCommand,
  uploads: async () => (await import('./uploads.js')).uploadsCommand,
  put: async () => (await import('./put.js')).put,
  deploy: async () => (await import('./deploy.js')).deploy,
  sync: async () => (await import('./deploy.js')).sync,
  get: async () => (await import('./get.js')).getCommand,
  drive: async () => (await import('./drive.js')).driveCommand,
  price: async () => (await import('./account.js')).price,
  balance: async () => (await import('./account.js')).balance,
  'top-up': async () => (await import('./account.js')).topUpCommand,
  share: async () => (await import('./account.js')).share,
  history: async () => (await import('./account.js')).history,
  completion: async () => (await import('./completion.js')).completion,
  settings: async () => (await import('./settings.js')).settings,
}

const help = `sluice: a gateway, an upload service and a payment service for permanent storage

Usage: sluice COMMAND [--help]

  start      runs the services (and, on devnet, the embedded base-layer node)
  verify ID  fetches content by id and checks digest, signatures and owner
  devnet     runs the embedded base-layer node alone
  index      checks or compacts the index of the chain
  names      sets, lists and removes names that this machine knows itself
  moderation lists, blocks and releases what is not served
  bands      builds, checks and imports parts of the index that gateways give each other
  import     fills the index from Parquet bands or node answers: a folder, or what a gateway publishes
  ledger     checks the accounts of the payment service
  promotion  declares a promotion at the payment service
  uploads    shows the state of uploads, packs and seeds them again
  settings   lists every setting: name, default, meaning

  put        uploads a file, or what comes by a pipe
  deploy     uploads a folder, only what is new of it, and gives it a manifest and a name
  sync       the same whenever the folder changes (--watch)
  get        fetches content and proves it before it is written
  drive      drives with folders and files: create, ls, put, get, mkdir, mv, rename, hide, snapshot
  price      what uploads cost; balance, top-up, share, history: credits
  completion a script for a shell, which completes commands

  -h, --help     this text; sluice COMMAND --help: what the command takes
  -v, --version  the version

Exit codes: 0 done, 1 failed, 2 wrong arguments or settings, 3 not found, 4 a proof is wrong, 5 a server did not answer.

Examples:
  sluice start                                    everything on this machine, nothing else needed
  NETWORK=mainnet sluice start                    the public network
  PORT=8080 DATA_PATH=/srv/sluice sluice start
  sluice verify ID --gateway http://127.0.0.1:3000
`

async function main(words: readonly string[]): Promise<number> {
  const [name = '', ...rest] = words
  if (name === '--version' || name === '-v') {
    process.stdout.write(`sluice ${programVersion()}\n`)
    return 0
  }
  const command = Object.hasOwn(commands, name) ? await commands[name]?.() : undefined
  if (command !== undefined) return run(name, command, rest)
  if (name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(help)
    return 0
  }
  process.stderr.write(name === '' ? help : `sluice: no command '${name}'; see sluice --help\n`)
  return exitCode.usage
}

/** Runs a command. An option that it does not have ends with the code for wrong usage and a line that names it. */
async function run(name: string, command: Command, words: readonly string[]): Promise<number> {
  try {
    return await command(idsLast(words.map((word) => (word === '-h' ? '--help' : word))))
  } catch (error) {
    if (error instanceof UnusableData || error instanceof BrokenDatabase) {
      process.stderr.write(`sluice ${name}: ${error.message}\n`)
      return exitCode.failed
    }
    const { code } = error as NodeJS.ErrnoException
    if (!(error instanceof Error) || code?.startsWith('ERR_PARSE_ARGS') !== true) throw error
    process.stderr.write(`sluice ${name}: ${error.message.split('. ')[0]}; see sluice ${name} --help\n`)
    return exitCode.usage
  }
}

/** One id in 64 starts with a dash: such ids, and what is below them, are moved behind `--`, or they would be read as options. */
function idsLast(words: readonly string[]): readonly string[] {
  const isId = (word: string): boolean =>
    word.startsWith('-') && parseId(word.split('/')[0] ?? '') !== undefined
  if (words.includes('--') || !words.some(isId)) return words
  return [...words.filter((word) => !isId(word)), '--', ...words.filter(isId)]
}

process.exitCode = await main(process.argv.slice(2))
